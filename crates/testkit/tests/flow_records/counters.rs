//! Tests flows whose packets differ in fields outside of the flow key, and counters up to a
//! threshold.

use crate::{chain, enter, left, same};
use braid_engine::{Compiled, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::record::step;
use std::collections::BTreeSet;

#[test]
fn pings_through_a_nat_take_records_whatever_their_sequence_number() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           nat = napt(public: 203.0.113.1);
           path lan <-> nat <-> wan;
         }",
        &[],
    );
    const ROUNDS: u64 = 8;
    let mut stimuli = Vec::new();
    for round in 1..=ROUNDS {
        // Two hosts choose the same identifier.
        for (host, id) in [(1, 7), (2, 7), (2, 8)] {
            let text =
                format!("icmp 10.0.0.{host} > 8.8.8.8 echo-request id={id} seq={round} \"data\"");
            stimuli.push(enter(round * 10, 0, &text));
        }
    }
    let (trace, flows) = same(&chain, &stimuli);
    let all = 3 * ROUNDS;
    // The first packet of each flow makes its mapping. The very first packet of all is not counted
    // by the admission filter.
    assert_eq!((flows.hits, flows.records.made), (all - 4, 3), "{flows:?}");
    let ids: BTreeSet<_> = left(&trace, Field::IcmpId).into_iter().collect();
    assert_eq!(ids.len(), 3);
}

/// A chain with one function that counts a flow's packets.
fn counting(match_arms: &str) -> Chain {
    let text = format!(
        "nf counting() {{
           state seen: {{ packets: u64, bytes: u64 }} per flow = {{ packets: 0, bytes: 0 }}, idle 60 s, capacity 64;
           match {{ {match_arms} else => output; }}
         }}
         chain c {{
           interface lan {{ behind 10.0.0.0/8 }}
           interface wan;
           f = counting();
           path lan <-> f <-> wan;
         }}"
    );
    chain(&text, &[])
}

#[test]
fn counters_with_thresholds_take_records_on_both_sides_of_them() {
    let arms = [
        // The condition behind the addition, and in front of it. Then bytes, and several counters.
        "has inet => { seen.packets += 1; if seen.packets > 20 { drop \"enough\"; } output; }",
        "has inet => { if seen.packets >= 20 { drop \"enough\"; } seen.packets += 1; output; }",
        "has inet => { seen.bytes += u64(pkt.len); if seen.bytes > 20 * 60 { drop \"enough\"; } output; }",
        "has inet => {
           seen.packets += 1;
           seen.bytes += u64(pkt.len);
           if seen.packets > 20 or seen.bytes > 40 * 60 { drop \"enough\"; }
           output;
         }",
    ];
    const PACKETS: u64 = 60;
    for arms in arms {
        let chain = counting(arms);
        let mut stimuli = Vec::new();
        for at in 1..=PACKETS {
            for host in 1..=3 {
                // Each packet has 60 bytes.
                let text = format!("udp 10.0.0.{host}:9 > 192.0.2.1:9 \"123456789012345678\"");
                stimuli.push(enter(at, 0, &text));
            }
        }
        let (trace, flows) = same(&chain, &stimuli);
        let left = left(&trace, Field::IpSrc).iter().flatten().count();
        assert_eq!(left, 60, "20 packets of each flow: {arms}");
        // The first packets run by the programs, and packets near the threshold may.
        let by_program = 3 * PACKETS - flows.hits;
        assert!(by_program <= 3 * 4, "{by_program} by their programs: {arms}\n{flows:?}");
        assert!(flows.records.made <= 3 * 2, "{flows:?}");
    }
}

#[test]
fn records_that_would_leave_much_to_compute_are_made_for_long_chains_only() {
    let short = ("", "");
    let long = ("nat = napt(public: 203.0.113.1); count = monitor();", "<-> nat <-> count");
    for ((nodes, stops), made) in [(short, 0), (long, 1)] {
        let chain = chain(
            &format!(
                "chain c {{
                   interface lan {{ behind 10.0.0.0/8 }}
                   interface wan;
                   rate = source_rate_limiter(rate: 10 Gbit/s);
                   {nodes}
                   path lan <-> rate {stops} <-> wan;
                 }}"
            ),
            &[],
        );
        let engine = Compiled::new(chain, Extent::Chain, Options::fused());
        let mut engine = engine.expect("an engine");
        for at in 1..=20 {
            let text = "udp 10.0.0.1:9 > 192.0.2.1:9 \"123456789012345678\"";
            step(&mut engine, &enter(at, 0, text));
        }
        let flows = engine.flows().expect("flow records");
        assert_eq!((flows.records.made, flows.hits > 10), (made, made > 0), "{flows:?}");
    }
}

#[test]
fn packets_that_divide_by_zero_do_not_take_records_of_others() {
    let chain = chain(
        "nf sizes() {
           state sum: u32 per (ip4) = 0;
           match {
             has ip => { sum[ip.src] += 100 / (u32(pkt.len) % 3); output; }
             else => output;
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           path lan <-> sizes() <-> wan;
         }",
        &[],
    );
    let mut all = Vec::new();
    for host in 1..=9 {
        for at in 0..12 {
            let payload = "x".repeat(18 + (host + at) % 3);
            all.push(enter(0, 0, &format!("udp 10.0.0.{host}:9 > 192.0.2.1:9 \"{payload}\"")));
        }
    }
    let (trace, flows) = same(&chain, &all);
    assert_eq!(left(&trace, Field::IpSrc).iter().flatten().count(), 9 * 8, "a third faults");
    assert!(flows.scripted > 0 && flows.hits > 9 * 4, "{flows:?}");
}
