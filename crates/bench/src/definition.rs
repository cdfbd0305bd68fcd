//! Definitions of benches: the files `bench/*.toml`, which are embedded in the command, or files of
//! the user.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Error;
pub use crate::mix::{Mix, Part, Proto};
use crate::subject::Kind as Subject;
use crate::sweep::MAX_RULES;
pub use crate::sweep::{Case, Only, Sweep};

/// The embedded definitions: name and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

/// Largest number of TCP flags in the list for the packets of a flow.
const MAX_FLAGS: usize = 64;
/// Largest number of cases of a bench.
const MAX_CASES: usize = 1000;

/// A bench.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The name of the bench, which is the name of its file.
    #[serde(skip)]
    pub name: String,
    /// A summary of the bench, in a line.
    pub summary: String,
    /// More about the bench, for the page.
    #[serde(default)]
    pub about: String,
    /// The quantity that is measured.
    #[serde(default)]
    pub kind: Kind,
    /// The quantity on the x axis of the plots.
    pub axis: Axis,
    /// The floor by which times are divided.
    pub floor: FloorKind,
    /// Number of rules to generate. Chains get the first ones. With 0, the sweep determines the
    /// number.
    #[serde(default)]
    pub rule_set: u64,
    /// The chain with its functions, in the Braid language. `{each}TEXT{end}` repeats the text for
    /// each function of a row. `{i}` is the number of the function, from 1. `{hops}` is a list of
    /// next hops for a router.
    pub chain: String,
    /// Further chains. Each is measured in every case, with the same packets.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Files that chains read, by name. A file with `{i}` in its name exists once for each function
    /// of a row. `{i}` is replaced in its text, too.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Texts at the start of payloads. All packets of a flow have the same text. The rest of a
    /// payload is zeros (letters in traces).
    #[serde(default)]
    pub payloads: Vec<String>,
    /// Whether to measure the first and the second packets of flows separately, too.
    #[serde(default)]
    pub first: bool,
    /// Whether to report how much of the saving over `sequential` each engine brings.
    #[serde(default)]
    pub shares: bool,
    /// Savings that a paper reports for its system.
    #[serde(default)]
    pub paper: Vec<Paper>,
    /// Kinds of flows.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    /// Instead of `traffic`: flows that begin, go on and end.
    pub trace: Option<Trace>,
    /// Instead of `traffic`: mixes of flows that come and go. A case has one of them.
    #[serde(default)]
    pub mix: Vec<Mix>,
    /// Whether packets must take flow records in the check of `fused`.
    #[serde(default = "yes")]
    pub hits: bool,
    /// The cases: all combinations of the values of each entry.
    pub sweep: Vec<Sweep>,
}

/// A quantity that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Time per packet.
    #[default]
    Speed,
    /// Time and memory to compile a chain until it has processed the first packets.
    Compile,
    /// The largest memory while all flows send packets.
    Memory,
    /// Time of all packets of a flow together, over the flows of a trace.
    FlowTime,
    /// Time per packet while flows come and go: no packet is sent twice.
    Once,
}

/// A quantity on the x axis.
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
    /// Packets of a thousand that begin a flow.
    NewPerMille,
}

/// A floor: the least work that any engine must do for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorKind {
    /// Parse, touch, forward.
    Touch,
    /// As `Touch`, with one flow lookup and one header rewrite.
    Flow,
}

impl FloorKind {
    /// This floor as a kind of subject.
    #[must_use]
    pub fn kind(self) -> Subject {
        match self {
            FloorKind::Touch => Subject::FloorTouch,
            FloorKind::Flow => Subject::FloorFlow,
        }
    }
}

/// A saving that a paper reports: how much less time a chain takes with the paper's system than
/// without.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Functions in the chain.
    pub functions: u64,
    /// The chain. Without it, the saving applies to all chains.
    pub chain: Option<String>,
    /// The frame size in bytes. Without it, the saving applies to all sizes.
    pub frame_bytes: Option<u64>,
    /// The saving in per cent.
    pub saved: f64,
}

/// A trace of flows whose sizes have a heavy tail. All flows are open at the same time. TCP flows
/// begin with SYN and end with FIN.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Mean number of packets of a flow.
    pub packets: u64,
    /// Tail index of the number of packets (Pareto). A smaller index makes the largest flows
    /// larger.
    pub tail: f64,
    /// Destinations: a prefix or an address. An address also replaces the destinations of a
    /// capture.
    #[serde(default = "to_default")]
    pub to: String,
}

/// A kind of flows.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The weight of this kind among all kinds.
    #[serde(default = "one")]
    pub share: u64,
    /// `udp` or `tcp`.
    #[serde(default)]
    pub proto: Proto,
    /// Source addresses: a prefix.
    #[serde(default = "from_default")]
    pub from: String,
    /// Destination addresses: a prefix, an address, or `routes`. With `routes`, each flow goes to
    /// another prefix of the chain's routes.
    #[serde(default = "to_default")]
    pub to: String,
    /// Destination ports, which flows take in turn.
    #[serde(default = "dport_default")]
    pub dport: Vec<u16>,
    /// TCP flags, which the packets of a flow take in turn.
    #[serde(default = "flags_default")]
    pub flags: Vec<u8>,
    /// The largest number of sources (address and port). Further flows go from the same sources to
    /// the next destination port.
    pub sources: Option<u64>,
    /// Instead of all of the above: flows for the rules of the parameter `NODE.PARAM`. The rules in
    /// turn each decide a flow.
    #[serde(default)]
    pub rules: Option<String>,
}

fn one() -> u64 {
    1
}
fn yes() -> bool {
    true
}
fn from_default() -> String {
    "10.0.0.0/8".to_owned()
}
fn to_default() -> String {
    "198.18.0.0/15".to_owned()
}
fn flags_default() -> Vec<u8> {
    vec![0x10]
}
fn dport_default() -> Vec<u16> {
    vec![443]
}

/// The embedded definitions.
///
/// # Errors
/// Returns an error when one of them is wrong, which is a bug.
pub fn embedded() -> Result<Vec<Definition>, Error> {
    EMBEDDED.iter().map(|(name, text)| Definition::parse(name, text)).collect()
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// Returns a message with the mistake in the definition, and its place.
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
        self.check_mixes()?;
        let shares = self.traffic.iter().map(|traffic| traffic.share);
        match (&self.trace, self.kind) {
            (None, Kind::Once) if self.traffic.is_empty() => {}
            (_, Kind::Once) => return Err("once takes a [[mix]] alone".to_owned()),
            (None, Kind::FlowTime) => return Err("flow_time needs a [trace]".to_owned()),
            (Some(_), Kind::FlowTime) if self.traffic.is_empty() => {}
            (Some(_), _) => return Err("a [trace] is for flow_time alone".to_owned()),
            _ if shares.fold(0, u64::saturating_add) == 0 => {
                return Err("a bench needs [[traffic]] with a share above 0".to_owned());
            }
            _ => {}
        }
        for traffic in &self.traffic {
            if traffic.sources == Some(0) {
                return Err("sources: 0 sources send nothing".to_owned());
            }
            if !(1..=MAX_FLAGS).contains(&traffic.flags.len()) {
                return Err(format!("flags: a list of 1 to {MAX_FLAGS}"));
            }
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
        let cases = self.sweep.iter().map(Sweep::combinations).fold(0, usize::saturating_add);
        let cases = cases.saturating_mul(self.chains()).saturating_mul(self.mix.len().max(1));
        if cases > MAX_CASES {
            return Err(format!("{cases} cases are more than {MAX_CASES}"));
        }
        Ok(())
    }

    /// Checks that a bench has mixes exactly if it measures flows that come and go
    /// ([`Kind::Once`]), and that its sweeps name only these mixes.
    fn check_mixes(&self) -> Result<(), String> {
        if (self.kind == Kind::Once) == self.mix.is_empty() {
            return Err("once needs a [[mix]], and a [[mix]] is for once alone".to_owned());
        }
        self.mix.iter().try_for_each(Mix::check)?;
        for name in self.sweep.iter().flat_map(|sweep| &sweep.mixes) {
            if !self.mix.iter().any(|mix| mix.name == *name) {
                return Err(format!("mixes: there is no mix `{name}`"));
            }
        }
        Ok(())
    }

    /// All cases in order. For a quick look, only the first and the last value of each list are
    /// used, and sweeps that say so are left out.
    #[must_use]
    pub fn cases(&self, quick: bool) -> Vec<Case> {
        let sweeps = self.sweep.iter().filter(|sweep| sweep.quick || !quick);
        let of = |sweep: &Sweep| sweep.cases(self.chains(), &self.mixes(sweep), quick);
        sweeps.flat_map(of).collect()
    }

    /// The numbers of a sweep's mixes. The number 0 for benches without mixes.
    fn mixes(&self, sweep: &Sweep) -> Vec<usize> {
        let wanted = |mix: &Mix| sweep.mixes.is_empty() || sweep.mixes.contains(&mix.name);
        let numbers = (0..self.mix.len()).filter(|at| wanted(&self.mix[*at]));
        if self.mix.is_empty() { vec![0] } else { numbers.collect() }
    }

    /// Number of chains that each case is measured with.
    fn chains(&self) -> usize {
        1 + self.beside.len()
    }

    /// The text of a case's chain.
    #[must_use]
    pub fn text(&self, case: &Case) -> &str {
        case.chain.checked_sub(1).and_then(|at| self.beside.get(at)).unwrap_or(&self.chain)
    }

    /// Number of rules to generate for a case.
    #[must_use]
    pub fn rules_to_make(&self, case: &Case) -> u64 {
        if case.rules == 0 { 0 } else { self.rule_set.max(case.rules) }
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
    fn chains_beside_come_in_every_case_after_the_first_chain() {
        let text = SMALL.replace("[[traffic]]", "beside = [\"chain d {}\"]\n[[traffic]]");
        let definition = Definition::parse("two", &text).unwrap();
        let cases = definition.cases(false);
        let found: Vec<_> = cases[..4].iter().map(|c| (c.chain, c.functions, c.flows)).collect();
        assert_eq!(found, [(0, 1, 10), (1, 1, 10), (0, 1, 20), (1, 1, 20)]);
        let texts: Vec<&str> = cases[..2].iter().map(|case| definition.text(case)).collect();
        assert_eq!(texts, ["chain c {}", "chain d {}"]);
        assert_eq!([cases[0].label(), cases[1].label()], ["n1-flows10", "n1-chain1-flows10"]);
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
            ("[[traffic]]", "[[traffic]]\nsources = 0", "sources"),
            ("[[traffic]]", "[[traffic]]\nflags = []", "flags"),
            ("floor = \"touch\"", "floor = \"touch\"\nkind = \"flow_time\"", "[trace]"),
            ("[[traffic]]", "[[mix]]\n[[mix.part]]\n[[traffic]]", "once"),
            ("[[traffic]]", "[trace]\npackets = 1\ntail = 1.0\n[[traffic]]", "flow_time alone"),
        ] {
            let why = Definition::parse("x", &SMALL.replace(from, to)).unwrap_err().to_string();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn every_definition_that_comes_with_the_command_is_right() {
        let all = embedded().unwrap();
        let names: Vec<&str> = all.iter().map(|definition| definition.name.as_str()).collect();
        for name in [
            "chain1",
            "chain2",
            "arrivals",
            "compile",
            "early_drop",
            "filters",
            "flows",
            "frames",
            "gateway",
            "guards",
            "header_actions",
            "header_writes",
            "isp",
            "memory",
            "mixed",
            "napts",
            "nat_lb_monitor_filter",
            "routers",
            "snf",
            "snort_monitor",
            "state_functions",
            "thresholds",
            "traces",
        ] {
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
        assert_eq!((flows[0], flows[flows.len() - 1]), (1, 4_000_000));
        assert_eq!(values("flows", |c| c.train), [1, 8]);
        assert_eq!(values("compile", |c| c.rules).last(), Some(&100_000));
        assert_eq!(values("filters", |c| c.functions), (1..=9).collect::<Vec<_>>());
        assert_eq!(values("mixed", |c| c.flows), [1000, 50_000]);
        assert_eq!(values("header_actions", |c| c.functions), [1, 2, 3]);
        assert_eq!(values("memory", |c| c.flows).last(), Some(&1_000_000));
    }
}
