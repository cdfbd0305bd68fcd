//! Changes of rules, which outdate templates and their records.

use crate::{chain, change, eager, enter, same, steps};
use braid_engine::{Compiled, Hashing, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_testkit::compare::difference;
use braid_testkit::harness;
use braid_testkit::record::{Detail, Stimulus, record, record_bursts};

/// A filter with these rules, and another function behind it.
fn wall(behind: &str, rules: &str) -> Chain {
    let text = format!(
        "chain c {{
           interface lan {{ behind 10.0.0.0/8 }}
           interface wan;
           wall = ipfilter(filter: rules(\"wall\"));
           next = {behind};
           path lan <-> wall <-> next <-> wan;
         }}"
    );
    chain(&text, &[("wall", rules)])
}

#[test]
fn change_of_a_rule_renews_records_with_the_next_packet_of_each_flow() {
    let chain =
        wall("monitor()", "drop proto udp to any port 69\npass from 10.0.0.0/24\npass proto tcp\n");
    let round = |round: u64| {
        (0..20).map(move |flow| {
            let (net, proto) = (flow % 2, if flow % 4 < 2 { "tcp" } else { "udp" });
            let text = format!("{proto} 10.0.{net}.{flow}:1000 > 192.0.2.1:69 \"data\"");
            enter(round * 100 + flow, 0, &text)
        })
    };
    let mut stimuli: Vec<Stimulus> = (1..=4).flat_map(round).collect();
    stimuli.push(change(&chain, 490, "add-rule wall.filter at 0 drop from 10.0.0.4"));
    stimuli.extend((5..=6).flat_map(round));
    stimuli.push(change(&chain, 690, "remove-rule wall.filter 1"));
    stimuli.extend((7..=8).flat_map(round));
    let (_, flows) = same(&chain, &stimuli);
    let steps = steps(&chain, &stimuli);
    // The first change costs no packet its record. The second change lets five flows pass that were
    // dropped before. The monitor must have an entry for them before they have a record.
    let since = |from: usize, to: usize| steps[to].hits - steps[from].hits;
    assert_eq!((since(80, 120), since(121, 161)), (40, 35), "{flows:?}");
    assert_eq!((flows.renewed, flows.records.made), (35, 20 + 35 + 5), "{flows:?}");
}

#[test]
fn changes_that_outdate_many_templates_keep_packets_and_rules_right_meanwhile() {
    const FLOWS: u64 = 200;
    let rules: String = (0..FLOWS).map(|at| format!("pass from 10.0.0.{at}\n")).collect();
    let chain = wall("monitor()", &rules);
    let round = |round: u64| {
        (0..FLOWS).map(move |flow| {
            let text = format!("udp 10.0.0.{flow}:1000 > 192.0.2.1:53 \"data\"");
            enter(round * 1000 + flow, 0, &text)
        })
    };
    let mut stimuli: Vec<Stimulus> = (1..=4).flat_map(round).collect();
    let before = stimuli.len();
    // The second and third change come while the templates do not reflect the first one yet.
    stimuli.push(change(&chain, 4990, "add-rule wall.filter at 0 drop from 10.0.0.4"));
    stimuli.extend(round(5).take(1));
    stimuli.push(change(&chain, 5000, "remove-rule wall.filter 1"));
    stimuli.push(change(&chain, 5000, "add-rule wall.filter at 90 drop from 10.0.0.150"));
    let after = stimuli.len();
    stimuli.extend((6..=8).flat_map(round));
    let (_, flows) = same(&chain, &stimuli);
    let steps = steps(&chain, &stimuli);
    assert!(steps[after + 1].misses > steps[before].misses, "records wait for the templates");
    // The counts of these packets are read for the first time while changes are pending.
    let expected = record(harness::reference(&chain).as_mut(), &stimuli[..after], Detail::End);
    let found = record(&mut eager(&chain, Hashing::Drawn), &stimuli[..after], Detail::End);
    assert_eq!(difference(&expected, &found), None);
    let since = |from: usize, to: usize| steps[to].hits - steps[from].hits;
    // Flow 0 has lost its rule. Flows 4 and 150 are dropped.
    assert!(since(stimuli.len() - 1 - FLOWS as usize, stimuli.len() - 1) >= FLOWS - 3, "{flows:?}");
}

#[test]
fn few_records_are_renewed_at_a_time_after_a_change() {
    const FLOWS: u64 = 200;
    let chain = wall("napt(public: 203.0.113.1)", "pass from 10.0.0.0/24\n");
    let rounds = |rounds: std::ops::Range<u64>| {
        let packet = |round, flow| {
            enter(round * 1000 + flow, 0, &format!("udp 10.0.0.{flow}:7 > 192.0.2.1:9 \"x\""))
        };
        rounds.flat_map(move |round| (0..FLOWS).map(move |flow| packet(round, flow)))
    };
    // Records are renewed after the first six rounds, for as many rounds as `more` says.
    let made = |more: u64| {
        let mut stimuli: Vec<Stimulus> = rounds(1..7).collect();
        stimuli.push(change(&chain, 6999, "add-rule wall.filter at 0 drop from 10.0.0.4"));
        stimuli.extend(rounds(7..7 + more));
        let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        let mut engine =
            Compiled::new(chain.clone(), Extent::Chain, Options::fused()).expect("an engine");
        let run = record_bursts(&mut engine, &stimuli, 32);
        assert_eq!(difference(&expected, &run), None);
        engine.flows().expect("flow records").records.made
    };
    let (before, one, many) = (made(0), made(1), made(12));
    assert_eq!(before, FLOWS);
    assert!((1..=32).contains(&(one - before)), "{one}");
    assert!(many - before >= FLOWS - 1, "{many}");
}
