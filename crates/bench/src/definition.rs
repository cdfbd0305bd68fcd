//! What a bench measures: definitions (`bench/*.toml`, embedded, or files of the user) and the
//! cases that they expand to.

use serde::Deserialize;

use crate::Error;

/// The definitions that come with the command: name and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

/// Largest value of a list in a sweep; tables and packets for it still fit into a few GiB.
const MAX_FLOWS: u64 = 4 << 20;
const MAX_RULES: u64 = 1 << 20;
const MAX_ROUTES: u64 = 1 << 20;
const MAX_FUNCTIONS: u64 = 100;
const MAX_TRAIN: u64 = 1024;
/// Frames without FCS: TCP over IPv4 fits into the smallest.
const FRAME_BYTES: std::ops::RangeInclusive<u64> = 60..=9000;
/// Most cases of one bench.
const MAX_CASES: usize = 1000;

/// A bench.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is, in a line.
    pub summary: String,
    /// More about it, for the page.
    #[serde(default)]
    pub about: String,
    /// What is measured.
    #[serde(default)]
    pub kind: Kind,
    /// What plots have on their x axis.
    pub axis: Axis,
    /// The floor that ratios are taken to.
    pub floor: FloorKind,
    /// Rules that are generated; chains get the first ones. 0: as many as the sweep asks for.
    #[serde(default)]
    pub rule_set: u64,
    /// The chain with its functions, in the language; `{each}TEXT{end}` repeats the text for each
    /// function of a row, `{i}` is its number from 1, `{hops}` are next hops for a router.
    pub chain: String,
    /// Kinds of flows.
    pub traffic: Vec<Traffic>,
    /// Cases: of each entry all combinations.
    pub sweep: Vec<Sweep>,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Time per packet.
    #[default]
    Speed,
    /// Time and memory until a chain is compiled.
    Compile,
}

/// What varies along the x axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Functions in a row.
    Functions,
    /// Rules.
    Rules,
    /// Flows.
    Flows,
    /// Frame size.
    FrameBytes,
}

/// A floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorKind {
    /// Parse, touch, forward.
    Touch,
    /// One flow lookup and one header blend on top.
    Flow,
}

/// A kind of flows.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Its share among the kinds, as an integer.
    #[serde(default = "one")]
    pub share: u64,
    /// `udp` or `tcp`.
    #[serde(default)]
    pub proto: Proto,
    /// Source addresses: a prefix.
    #[serde(default = "from_default")]
    pub from: String,
    /// Destination addresses: a prefix, an address, or `routes`: each flow to another prefix.
    #[serde(default = "to_default")]
    pub to: String,
    /// Destination ports, in turn.
    #[serde(default = "dport_default")]
    pub dport: Vec<u16>,
    /// Instead of all this: packets that the rules in turn decide, of the parameter `NODE.PARAM`.
    #[serde(default)]
    pub rules: Option<String>,
}

/// A protocol of generated flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proto {
    /// UDP.
    #[default]
    Udp,
    /// TCP; packets with ACK.
    Tcp,
}

/// Lists of which all combinations are cases.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Functions in a row (how often `{each}` repeats).
    #[serde(default = "ones")]
    pub functions: Vec<u64>,
    /// Rules.
    #[serde(default = "zeros")]
    pub rules: Vec<u64>,
    /// Routes.
    #[serde(default = "zeros")]
    pub routes: Vec<u64>,
    /// Flows.
    #[serde(default = "thousand")]
    pub flows: Vec<u64>,
    /// Frame sizes without FCS.
    #[serde(default = "sixty")]
    pub frame_bytes: Vec<u64>,
    /// Packets of a flow in a row.
    #[serde(default = "ones")]
    pub trains: Vec<u64>,
}

fn one() -> u64 {
    1
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
fn from_default() -> String {
    "10.0.0.0/8".to_owned()
}
fn to_default() -> String {
    "198.18.0.0/15".to_owned()
}
fn dport_default() -> Vec<u16> {
    vec![443]
}

/// One chain with one traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Functions in a row.
    pub functions: u64,
    /// Rules.
    pub rules: u64,
    /// Routes.
    pub routes: u64,
    /// Flows.
    pub flows: u64,
    /// Frame size without FCS.
    pub frame_bytes: u64,
    /// Packets of a flow in a row.
    pub train: u64,
}

/// `KEY=VALUE,…`: only cases with one of these values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Only {
    key: String,
    values: Vec<u64>,
}

/// The keys that [`Only`] knows, as in a sweep.
const KEYS: [&str; 6] = ["functions", "rules", "routes", "flows", "frame_bytes", "trains"];

/// The definitions that come with the command, by name.
///
/// # Errors
/// When one of them is wrong, which is a bug.
pub fn embedded() -> Result<Vec<Definition>, Error> {
    EMBEDDED.iter().map(|(name, text)| Definition::parse(name, text)).collect()
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Definition { name: name.to_owned(), why };
        let mut definition: Self =
            toml::from_str(text).map_err(|why| wrong(why.to_string().trim_end().to_owned()))?;
        definition.name = name.to_owned();
        definition.check().map_err(wrong)?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        if self.sweep.is_empty() {
            return Err("a bench needs a [[sweep]]".to_owned());
        }
        if self.traffic.iter().map(|traffic| traffic.share).fold(0, u64::saturating_add) == 0 {
            return Err("a bench needs [[traffic]] with a share above 0".to_owned());
        }
        if self.rule_set > MAX_RULES {
            return Err(format!("rule_set: at most {MAX_RULES}"));
        }
        for sweep in &self.sweep {
            for (key, values, range) in sweep.lists() {
                if values.is_empty() {
                    return Err(format!("{key}: an empty list makes no case"));
                }
                if let Some(value) = values.iter().find(|value| !range.contains(value)) {
                    let (low, high) = (range.start(), range.end());
                    return Err(format!("{key}: {value} is not between {low} and {high}"));
                }
            }
        }
        let cases: usize =
            self.sweep.iter().map(Sweep::combinations).fold(0, usize::saturating_add);
        if cases > MAX_CASES {
            return Err(format!("{cases} cases are more than {MAX_CASES}"));
        }
        Ok(())
    }

    /// All cases in order; with `ends` only the first and the last value of each list.
    #[must_use]
    pub fn cases(&self, ends: bool) -> Vec<Case> {
        self.sweep.iter().flat_map(|sweep| sweep.cases(ends)).collect()
    }

    /// How many rules to generate for a case.
    #[must_use]
    pub fn rules_to_make(&self, case: &Case) -> u64 {
        if case.rules == 0 { 0 } else { self.rule_set.max(case.rules) }
    }
}

impl Sweep {
    fn lists(&self) -> [(&'static str, &Vec<u64>, std::ops::RangeInclusive<u64>); 6] {
        let [functions, rules, routes, flows, frame_bytes, trains] = KEYS;
        [
            (functions, &self.functions, 1..=MAX_FUNCTIONS),
            (rules, &self.rules, 0..=MAX_RULES),
            (routes, &self.routes, 0..=MAX_ROUTES),
            (flows, &self.flows, 1..=MAX_FLOWS),
            (frame_bytes, &self.frame_bytes, FRAME_BYTES),
            (trains, &self.trains, 1..=MAX_TRAIN),
        ]
    }

    fn combinations(&self) -> usize {
        self.lists().iter().map(|(_, values, _)| values.len()).fold(1, usize::saturating_mul)
    }

    /// All combinations, the first list varying slowest.
    fn cases(&self, ends: bool) -> Vec<Case> {
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
        let case = |row: &Vec<u64>| match row[..] {
            [functions, rules, routes, flows, frame_bytes, train] => {
                Some(Case { functions, rules, routes, flows, frame_bytes, train })
            }
            _ => None,
        };
        rows.iter().filter_map(case).collect()
    }
}

impl Case {
    fn value(&self, key: &str) -> Option<u64> {
        let values =
            [self.functions, self.rules, self.routes, self.flows, self.frame_bytes, self.train];
        KEYS.iter().zip(values).find(|(known, _)| **known == key).map(|(_, value)| value)
    }

    /// Whether all conditions hold.
    #[must_use]
    pub fn is_among(&self, only: &[Only]) -> bool {
        only.iter().all(|one| self.value(&one.key).is_some_and(|value| one.values.contains(&value)))
    }

    /// What distinguishes it, in words that can stand in a file's name.
    #[must_use]
    pub fn label(&self) -> String {
        let mut text = format!("n{}", self.functions);
        for (letter, value, usual) in [
            ("rules", self.rules, 0),
            ("routes", self.routes, 0),
            ("flows", self.flows, 0),
            ("bytes", self.frame_bytes, 60),
            ("trains", self.train, 1),
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

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        summary = "s"
        axis = "functions"
        floor = "touch"
        chain = "chain c {}"
        [[traffic]]
        [[sweep]]
        functions = [1, 2, 3]
        flows = [10, 20]
        [[sweep]]
        rules = [5]
    "#;

    fn small() -> Definition {
        Definition::parse("small", SMALL).unwrap()
    }

    #[test]
    fn sweeps_make_all_combinations_in_order() {
        let cases = small().cases(false);
        let found: Vec<_> = cases.iter().map(|c| (c.functions, c.flows, c.rules)).collect();
        let expected =
            [(1, 10, 0), (1, 20, 0), (2, 10, 0), (2, 20, 0), (3, 10, 0), (3, 20, 0), (1, 1000, 5)];
        assert_eq!(found, expected);
        assert!(cases.iter().all(|case| case.frame_bytes == 60 && case.train == 1));
    }

    #[test]
    fn ends_of_lists_are_their_first_and_last_values() {
        let found: Vec<_> = small().cases(true).iter().map(|c| (c.functions, c.flows)).collect();
        assert_eq!(found, [(1, 10), (1, 20), (3, 10), (3, 20), (1, 1000)]);
    }

    #[test]
    fn only_keeps_cases_with_all_of_its_values() {
        let only: Vec<Only> =
            ["functions=2,3", "flows=20"].map(|text| text.parse().unwrap()).into();
        let kept: Vec<_> = small().cases(false).into_iter().filter(|c| c.is_among(&only)).collect();
        assert_eq!(
            kept.iter().map(|c| (c.functions, c.flows)).collect::<Vec<_>>(),
            [(2, 20), (3, 20)]
        );
        for wrong in ["functions", "n=1", "flows=", "flows=-1", "flows=1;2"] {
            assert!(wrong.parse::<Only>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_key() {
        for (from, to, says) in [
            ("flows = [10, 20]", "flows = [0]", "flows: 0"),
            ("flows = [10, 20]", "flows = []", "flows: an empty list"),
            ("functions = [1, 2, 3]", "functions = [101]", "functions: 101"),
            ("rules = [5]", "frame_bytes = [59]", "frame_bytes: 59"),
            ("[[traffic]]", "[[traffic]]\nshare = 0", "share above 0"),
            ("rules = [5]", "colour = [5]", "colour"),
        ] {
            let why = Definition::parse("x", &SMALL.replace(from, to)).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn every_definition_that_comes_with_the_command_is_right() {
        let all = embedded().unwrap();
        let names: Vec<&str> = all.iter().map(|definition| definition.name.as_str()).collect();
        for name in ["compile", "flows", "frames", "isp", "napts", "routers", "snf"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        for definition in &all {
            assert!(!definition.cases(false).is_empty(), "{}", definition.name);
            assert!(definition.cases(true).len() <= definition.cases(false).len());
        }
    }

    #[test]
    fn benches_reach_what_they_promise() {
        let all = embedded().unwrap();
        let values = |name: &str, value: fn(&Case) -> u64| -> Vec<u64> {
            let definition = all.iter().find(|definition| definition.name == name).unwrap();
            let mut found: Vec<u64> = definition.cases(false).iter().map(value).collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        assert_eq!(values("routers", |c| c.functions), (1..=10).collect::<Vec<_>>());
        assert_eq!(values("napts", |c| c.functions), (1..=10).collect::<Vec<_>>());
        assert_eq!(values("isp", |c| c.rules), [251, 713, 8550]);
        assert_eq!(values("isp", |c| c.routes), [10_000]);
        let frames = values("frames", |c| c.frame_bytes);
        assert_eq!((frames[0], frames[frames.len() - 1]), (60, 1500));
        let flows = values("flows", |c| c.flows);
        assert_eq!((flows[0], flows[flows.len() - 1]), (1, 1_000_000));
        assert_eq!(values("flows", |c| c.train), [1, 8]);
        assert_eq!(values("compile", |c| c.rules).last(), Some(&100_000));
    }
}
