//! Tests with real rule sets and route tables, if `BRAID_DATA` names their folder.
//!
//! The expected numbers come from an independent reader (a few lines of Python), not from this
//! code.

use braid_ir::rules::RulePacket;
use braid_ir::value::RuleSet;
use braid_lang::import::{classbench, routes};
use flate2::read::MultiGzDecoder;
use std::io::Read;
use std::path::PathBuf;

/// A file's text. If the file is absent, as on a user's machine, a note is printed.
fn data(path: &str) -> Option<String> {
    let Some(root) = std::env::var_os("BRAID_DATA") else {
        eprintln!("skipped: BRAID_DATA is not set");
        return None;
    };
    let path = PathBuf::from(root).join(path);
    if !path.exists() {
        eprintln!("skipped: {} is absent", path.display());
        return None;
    }
    let bytes = std::fs::read(&path).expect("a readable file");
    let mut text = String::new();
    match path.extension().is_some_and(|end| end == "gz") {
        true => MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip of text"),
        false => (&bytes[..]).read_to_string(&mut text).expect("text"),
    };
    Some(text)
}

fn filter_set(path: &str) -> Option<RuleSet> {
    let text = data(path)?;
    Some(classbench(&text, true, false).unwrap_or_else(|errors| panic!("{path}: {errors}")))
}

#[test]
fn classbench_sets_are_read_whole() {
    let sets = [
        ("CutSplit__acl_1k", 1016),
        ("CutSplit__fw_1k", 856),
        ("CutSplit__ipc_1k", 1007),
        ("PartitonSort__fw1_seed_1.rules.gz", 58_576),
    ];
    for (name, count) in sets {
        if let Some(set) = filter_set(&format!("acl/{name}")) {
            assert_eq!(set.rules.len(), count, "{name}");
        }
    }
    let small =
        ["acl1", "acl2", "acl3", "acl4", "acl5", "fw1", "fw2", "fw3", "fw4", "fw5", "ipc1", "ipc2"];
    let large = ["acl1", "acl4", "fw1", "fw5", "ipc1", "ipc2"];
    let named = |size, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("acl/neurocuts__classbench__{name}_{size}")).collect()
    };
    for path in named("1k", &small).iter().chain(&named("10k", &large)) {
        let (Some(set), Some(text)) = (filter_set(path), data(path)) else { continue };
        assert_eq!(set.rules.len(), text.lines().count(), "{path}");
    }
}

#[test]
fn generator_seeds_are_refused_with_places() {
    let Some(text) = data("acl/classbench__parameter_files__acl1_seed") else { return };
    let errors = classbench(&text, true, false).expect_err("no filter set");
    assert_eq!((errors.errors.len(), errors.errors[0].line), (20, 1));
    assert!(errors.more > 0);
}

/// A packet of a trace and the rule that it was made from (counted from 0). The columns are src,
/// dst, sport, dport, protocol, a word, and the rule. The word is not a header field of its own, so
/// the packet gets the value that its rule requires.
fn trace_packet(line: &str, set: &RuleSet) -> (RulePacket, usize) {
    let columns: Vec<u32> =
        line.split_whitespace().map(|column| column.parse().expect("a number")).collect();
    let [src, dst, sport, dport, proto, _, from] = columns[..] else { panic!("seven columns") };
    let from = usize::try_from(from).expect("a rule number");
    let rule = &set.rules[from];
    let proto = u8::try_from(proto).expect("a protocol");
    let port = |port: u32| u16::try_from(port).expect("a port");
    let [kind, code] = rule.icmp.0.to_be_bytes();
    let packet = RulePacket {
        version: 4,
        src: src.into(),
        dst: dst.into(),
        proto,
        ports: matches!(proto, 6 | 17).then_some((port(sport), port(dport))),
        tcp_flags: (proto == 6).then_some(rule.tcp_flags.0),
        icmp: (proto == 1).then_some((kind, code)),
    };
    (packet, from)
}

#[test]
fn first_match_agrees_with_cutsplit_traces() {
    // Each packet matches the rule that it was made from. The first match is often that rule, and
    // otherwise an earlier rule that overlaps it.
    for (name, packets, same) in EXPECTED_FIRST {
        let Some(set) = filter_set(&format!("acl/CutSplit__{name}_1k")) else { continue };
        let Some(trace) = data(&format!("acl/CutSplit__{name}_1k_trace.gz")) else { continue };
        let (mut seen, mut equal) = (0, 0);
        for line in trace.lines() {
            let (packet, from) = trace_packet(line, &set);
            let (pass, decided) = set.decide(&packet);
            let decided = usize::try_from(decided).expect("a rule number");
            assert!(set.rules[from].matches(&packet), "{name}: {line}");
            assert!(pass && decided <= from, "{name}: {line}: {decided}");
            seen += 1;
            equal += usize::from(decided == from);
        }
        assert_eq!((seen, equal), (packets, same), "{name}");
    }
}

/// The trace, its number of packets, and how many have the rule that they were made from as first
/// match.
const EXPECTED_FIRST: [(&str, usize, usize); 3] =
    [("acl", 10_160, 10_156), ("fw", 14_027, 13_721), ("ipc", 10_070, 10_037)];

#[test]
fn full_route_table_is_read_and_answers() {
    let Some(text) = data("rib/bart__internal__tests__testdata__prefixes.txt.gz") else { return };
    let table = routes(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((table.iter4().count(), table.iter6().count()), (901_899, 160_147));
    // 1.0.4.0/22 and 1.0.5.0/24 are lines 2 and 3 of the file.
    assert_eq!(table.lookup4(0x0100_0501), Some(0));
    assert_eq!(table.lookup4(0x7f00_0001), None);
}
