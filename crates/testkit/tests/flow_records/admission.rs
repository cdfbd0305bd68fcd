//! Which flows have records, and how the records are made.

use crate::{MS, chain};
use braid_engine::{Compiled, Flows, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_testkit::compare::difference;
use braid_testkit::harness;
use braid_testkit::packet::tcp;
use braid_testkit::record::{Detail, Stimulus, record, record_bursts};

const FLOWS: u64 = 100;

/// A monitor and a NAT with many ports.
fn edge() -> Chain {
    chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           count = monitor();
           nat = napt(public: 203.0.113.1);
           path lan <-> count <-> nat <-> wan;
         }",
        &[],
    )
}

/// The statistics of flow records with the options that users get, after a comparison with the
/// reference engine.
fn flows(chain: &Chain, stimuli: &[Stimulus]) -> Flows {
    let expected = record(harness::reference(chain).as_mut(), stimuli, Detail::End);
    let mut engine =
        Compiled::new(chain.clone(), Extent::Chain, Options::fused()).expect("an engine");
    assert_eq!(difference(&expected, &record_bursts(&mut engine, stimuli, 32)), None);
    engine.flows().expect("flow records")
}

/// A segment of a connection to a server.
fn segment(at_ms: u64, from: &str, flags: &str) -> Stimulus {
    Stimulus::Packet(0, tcp(&format!("{from} > 192.0.2.1:80 {flags} \"x\"")).at(at_ms * MS))
}

/// Rounds in which each of the flows sends a packet. In rounds from the tenth on, `half_open` other
/// flows begin after each packet.
fn traffic(half_open: u64) -> Vec<Stimulus> {
    let mut stimuli = Vec::new();
    let mut opened = 0;
    for round in 0..40 {
        for flow in 0..FLOWS {
            let (at, port) = (round * FLOWS + flow, 1000 + flow);
            let flags = if round == 0 { "S" } else { "A" };
            stimuli.push(segment(at, &format!("10.0.0.1:{port}"), flags));
            for _ in 0..if round < 10 { 0 } else { half_open } {
                let (host, port) = (opened / 50_000, 1024 + opened % 50_000);
                stimuli.push(segment(at, &format!("10.9.{host}.1:{port}"), "S"));
                opened += 1;
            }
        }
    }
    stimuli
}

#[test]
fn syn_flood_of_ten_times_the_traffic_costs_established_flows_at_most_a_twentieth_of_their_hits() {
    let chain = edge();
    let (plain, flooded) = (flows(&chain, &traffic(0)), flows(&chain, &traffic(10)));
    assert_eq!(plain.records.made, FLOWS, "{plain:?}");
    assert_eq!(flooded.records.made, FLOWS, "no half-open flow has a record: {flooded:?}");
    assert!(plain.hits >= 36 * FLOWS, "{plain:?}");
    assert!(flooded.hits * 20 >= plain.hits * 19, "{flooded:?}");
}

#[test]
fn specialiser_runs_once_for_each_path() {
    let chain = edge();
    // All flows take one path: the first one by the specialiser, the others by its script.
    let found = flows(&chain, &traffic(0));
    assert_eq!((found.records.made, found.scripted), (FLOWS, FLOWS - 1), "{found:?}");
}
