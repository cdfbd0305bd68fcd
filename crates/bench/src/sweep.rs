//! The cases of a bench: all combinations of the values that its sweeps list.

use serde::Deserialize;

/// The largest values in lists. With them, tables and packets still fit into a few GiB.
const MAX_FLOWS: u64 = 4 << 20;
pub(crate) const MAX_RULES: u64 = 1 << 20;
const MAX_ROUTES: u64 = 1 << 20;
const MAX_FUNCTIONS: u64 = 100;
const MAX_TRAIN: u64 = 1024;
const MAX_NEW: u64 = 1000;
/// Frame sizes without FCS (bytes). TCP over IPv4 fits into the smallest frame.
const FRAME_BYTES: std::ops::RangeInclusive<u64> = 60..=9000;

/// Lists of values. Each combination of values is a case.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Numbers of functions in a row: how often `{each}` repeats.
    #[serde(default = "ones")]
    pub functions: Vec<u64>,
    /// Numbers of rules.
    #[serde(default = "zeros")]
    pub rules: Vec<u64>,
    /// Numbers of routes.
    #[serde(default = "zeros")]
    pub routes: Vec<u64>,
    /// Numbers of flows.
    #[serde(default = "thousand")]
    pub flows: Vec<u64>,
    /// Frame sizes without FCS (bytes).
    #[serde(default = "sixty")]
    pub frame_bytes: Vec<u64>,
    /// Numbers of packets that a flow sends in a row.
    #[serde(default = "ones")]
    pub trains: Vec<u64>,
    /// Of a thousand packets, how many begin a flow.
    #[serde(default = "zeros")]
    pub new_per_mille: Vec<u64>,
    /// The names of mixes. Without any, all mixes.
    #[serde(default)]
    pub mixes: Vec<String>,
    /// Whether a quick look measures these cases, too.
    #[serde(default = "yes")]
    pub quick: bool,
}

fn yes() -> bool {
    true
}
fn ones() -> Vec<u64> {
    vec![1]
}
fn zeros() -> Vec<u64> {
    vec![0]
}
fn thousand() -> Vec<u64> {
    vec![1000]
}
fn sixty() -> Vec<u64> {
    vec![60]
}

/// One chain with one kind of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The number of the chain in the definition, from 0.
    pub chain: usize,
    /// Number of functions in a row.
    pub functions: u64,
    /// Number of rules.
    pub rules: u64,
    /// Number of routes.
    pub routes: u64,
    /// Number of flows.
    pub flows: u64,
    /// Frame size without FCS (bytes).
    pub frame_bytes: u64,
    /// Number of packets that a flow sends in a row.
    pub train: u64,
    /// Of a thousand packets, how many begin a flow.
    pub new_per_mille: u64,
    /// The number of the mix in the definition, from 0.
    pub mix: usize,
}

/// A condition `KEY=VALUE,…`: selects the cases with one of these values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    key: String,
    values: Vec<u64>,
}

/// The keys of [`Only`]. They are those of a sweep.
const KEYS: [&str; 7] =
    ["functions", "rules", "routes", "flows", "frame_bytes", "trains", "new_per_mille"];

impl Sweep {
    pub(crate) fn lists(&self) -> [(&'static str, &Vec<u64>, std::ops::RangeInclusive<u64>); 7] {
        let [functions, rules, routes, flows, frame_bytes, trains, new] = KEYS;
        [
            (functions, &self.functions, 1..=MAX_FUNCTIONS),
            (rules, &self.rules, 0..=MAX_RULES),
            (routes, &self.routes, 0..=MAX_ROUTES),
            (flows, &self.flows, 1..=MAX_FLOWS),
            (frame_bytes, &self.frame_bytes, FRAME_BYTES),
            (trains, &self.trains, 1..=MAX_TRAIN),
            (new, &self.new_per_mille, 0..=MAX_NEW),
        ]
    }

    pub(crate) fn combinations(&self) -> usize {
        self.lists().iter().map(|(_, values, _)| values.len()).fold(1, usize::saturating_mul)
    }

    /// All combinations of values. The mixes vary fastest, then the chains. The first list varies
    /// slowest. With `ends`, only the first and the last value of each list are used.
    pub(crate) fn cases(&self, chains: usize, mixes: &[usize], ends: bool) -> Vec<Case> {
        let mut rows: Vec<Vec<u64>> = vec![Vec::new()];
        for (_, values, _) in self.lists() {
            let inner = 1..values.len().saturating_sub(1);
            let kept: Vec<u64> = (0..)
                .zip(values)
                .filter(|(at, _)| !ends || !inner.contains(at))
                .map(|(_, value)| *value)
                .collect();
            rows = rows
                .iter()
                .flat_map(|row| kept.iter().map(|value| [&row[..], &[*value]].concat()))
                .collect();
        }
        let case = |row: &Vec<u64>, chain, mix| match row[..] {
            [functions, rules, routes, flows, frame_bytes, train, new_per_mille] => Some(Case {
                chain,
                functions,
                rules,
                routes,
                flows,
                frame_bytes,
                train,
                new_per_mille,
                mix,
            }),
            _ => None,
        };
        let places = |row| {
            let of = move |chain| mixes.iter().filter_map(move |mix| case(row, chain, *mix));
            (0..chains).flat_map(of)
        };
        rows.iter().flat_map(places).collect()
    }
}

impl Case {
    fn value(&self, key: &str) -> Option<u64> {
        let values = [
            self.functions,
            self.rules,
            self.routes,
            self.flows,
            self.frame_bytes,
            self.train,
            self.new_per_mille,
        ];
        KEYS.iter().zip(values).find(|(known, _)| **known == key).map(|(_, value)| value)
    }

    /// Whether a case fulfils all of these conditions.
    #[must_use]
    pub fn is_among(&self, only: &[Only]) -> bool {
        only.iter().all(|one| self.value(&one.key).is_some_and(|value| one.values.contains(&value)))
    }

    /// The values of the case as text that can be part of a file name.
    #[must_use]
    pub fn label(&self) -> String {
        let mut text = format!("n{}", self.functions);
        if self.chain > 0 {
            text.push_str(&format!("-chain{}", self.chain));
        }
        for (letter, value, usual) in [
            ("rules", self.rules, 0),
            ("routes", self.routes, 0),
            ("flows", self.flows, 0),
            ("bytes", self.frame_bytes, 60),
            ("trains", self.train, 1),
            ("new", self.new_per_mille, 0),
            ("mix", self.mix as u64, 0),
        ] {
            if value != usual {
                text.push_str(&format!("-{letter}{value}"));
            }
        }
        text
    }
}

impl std::fmt::Display for Only {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<String> = self.values.iter().map(u64::to_string).collect();
        write!(f, "{}={}", self.key, values.join(","))
    }
}

impl std::str::FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected KEY=VALUE,… with a key of {}", KEYS.join(", "));
        let (key, values) = text.split_once('=').ok_or_else(expected)?;
        if !KEYS.contains(&key) {
            return Err(expected());
        }
        let values: Result<Vec<u64>, _> = values.split(',').map(str::parse).collect();
        Ok(Self { key: key.to_owned(), values: values.map_err(|_| expected())? })
    }
}
