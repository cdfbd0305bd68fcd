//! Tests the library's functions under traffic aimed at their own boundaries.

use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, budget};
use braid_testkit::record::{Output, Stimulus, step};
use braid_testkit::soundness::{Wrongness, complaint, wrongness_inside, wrongness_of_tunnels};
use std::collections::BTreeSet;

/// Number of stimuli for each seed.
const STIMULI: usize = 1500;

#[test]
fn chains_have_every_function_of_the_library() {
    let chains = harness::library_chains().expect("chains compile");
    let used: BTreeSet<&str> = chains
        .iter()
        .flat_map(|(_, chain)| &chain.nodes)
        .map(|node| node.model.name.as_str())
        .collect();
    let missing: Vec<_> =
        braid_nfs::all().iter().map(|nf| nf.name).filter(|name| !used.contains(name)).collect();
    assert!(missing.is_empty(), "no chain in crates/testkit/chains has {missing:?}");
}

#[test]
fn functions_are_formatted() {
    let formatted = |source| harness::format(source).expect("a function of the library parses");
    let wrong = braid_nfs::all().iter().filter(|nf| formatted(nf.source) != nf.source);
    let wrong: Vec<_> = wrong.map(|nf| nf.name).collect();
    assert!(wrong.is_empty(), "braid fmt changes {wrong:?}");
}

#[test]
fn library_accounts_for_all_packets_and_keeps_them_sound() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        for seed in budget::seeds(3) {
            let mut engine = harness::reference(&chain);
            for stimulus in stimuli(&chain, seed, STIMULI) {
                let mut arrived: Vec<Wrongness> = match &stimulus {
                    Stimulus::Packet(_, packet) => wrongness_inside(packet),
                    _ => Vec::new(),
                };
                arrived.extend(wrongness_of_tunnels(&chain));
                for output in step(engine.as_mut(), &stimulus) {
                    let Output::Packet(_, packet) = output else { continue };
                    if let Some(complaint) = complaint(&packet, &arrived) {
                        panic!("{name}, seed {seed}: {complaint}\n{stimulus:?}");
                    }
                }
                let counters = engine.counters();
                assert!(counters.balanced(), "{name}, seed {seed}: {counters:?}\n{stimulus:?}");
            }
        }
    }
}

#[test]
fn traffic_reaches_most_rows_of_the_library() {
    let mut rows = 0;
    let mut never = Vec::new();
    for (name, chain) in harness::library_chains().expect("chains compile") {
        let mut engine = harness::reference(&chain);
        for seed in 0..braid_cases::at_least(3).into() {
            for stimulus in stimuli(&chain, seed, STIMULI) {
                step(engine.as_mut(), &stimulus);
            }
        }
        for (node, counters) in chain.nodes.iter().zip(&engine.counters().nodes) {
            for (row, traffic) in node.model.rows.iter().zip(&counters.rows) {
                rows += 1;
                if traffic.packets == 0 && row.label != "fault" {
                    never.push(format!("{name}: {} row {} {}", node.name, row.label, row.text));
                }
            }
        }
    }
    assert!(never.len() * 4 < rows, "{} of {rows} rows:\n{}", never.len(), never.join("\n"));
}
