//! Small cases whose times are computed by hand.
//!
//! Except where a test says otherwise, the hub takes 10 ns for a burst, 5 for a bundle and 1 for a
//! packet. A hop takes 20. A bundle from another thread takes 3 more, and each of its packets 2. A
//! copy takes 7 for the bundle and 3 for a packet, and a merged part 4.

use crate::*;
use braid_ir::service_graph::stages::Route;
use braid_ir::service_graph::{
    Classification, Extent, Forwarding, Merge, Merging, Node, Operation, Part, Step, Tables,
    Target, Verdict,
};

const MACHINE: Overheads = Overheads {
    burst_ns: 10.0,
    bundle_ns: 5.0,
    packet_ns: 1.0,
    hop_ns: 20.0,
    taken_ns: 3.0,
    moved_ns: 2.0,
    copy_ns: 7.0,
    copied_ns: 3.0,
    byte_ns: 0.5,
    write_ns: 4.0,
    sleeps_after_ns: 10_000.0,
    wake_ns: 1_000.0,
    unpark_ns: 500.0,
};

/// A route through stages in sequence.
fn sequence(stages: &[usize]) -> Route {
    let to = |at| Step::Distribute { version: 1, targets: vec![Target::Function(at)] };
    let then = |at| if at < stages.len() { to(at) } else { Step::Output { version: 1 } };
    let forwarding = (0..stages.len()).map(|at| Forwarding {
        graph: 0,
        from: Target::Function(at),
        steps: vec![then(at + 1)],
        nil_to: None,
    });
    Route {
        stages: stages.to_vec(),
        root: Node::Sequence((0..stages.len()).map(Node::Function).collect()),
        tables: Tables {
            classification: Classification { graph: 0, copies: 0, steps: vec![to(0)] },
            forwarding: forwarding.collect(),
            merging: Vec::new(),
        },
    }
}

/// Two stages side by side. The second one has a copy, and writes the time to live if `writes`.
fn beside(extent: Extent, writes: bool) -> Route {
    let to = |version, target| Step::Distribute { version, targets: vec![target] };
    let from = |from, step| Forwarding { graph: 0, from, steps: vec![step], nil_to: None };
    let merger = Target::Merger(0);
    let write = Operation::Modify {
        part: Part::Tag("mark".to_owned()),
        from: 2,
        by: 1,
        unless: Vec::new(),
    };
    let operations = if writes { vec![write] } else { Vec::new() };
    let merge = Merge { into: 1, expects: 2, operations, verdict: Verdict::AnyDrops(1) };
    let steps = vec![
        Step::Copy { from: 1, to: 2, extent },
        to(1, Target::Function(0)),
        to(2, Target::Function(1)),
    ];
    Route {
        stages: vec![0, 1],
        root: Node::Sequence(Vec::new()),
        tables: Tables {
            classification: Classification { graph: 0, copies: 1, steps },
            forwarding: vec![
                from(Target::Function(0), to(1, merger)),
                from(Target::Function(1), to(2, merger)),
                from(merger, Step::Output { version: 1 }),
            ],
            merging: vec![Merging { graph: 0, merger: 0, merge }],
        },
    }
}

/// Simulates packets of the first route through stages with these costs of a packet (ns).
fn simulate(route: &Route, costs: &[f64], load: Load, packets: usize) -> Predicted {
    let staged = staged(std::slice::from_ref(route), costs);
    stages(&staged, &MACHINE, &traffic(), load, packets)
}

fn staged<'a>(routes: &'a [Route], costs: &[f64]) -> Staged<'a> {
    let costs: Vec<Cost> = costs.iter().copied().map(Cost::of_packet).collect();
    Staged { routes, reach: vec![1.0; costs.len()], costs }
}

fn traffic() -> Traffic {
    Traffic { routes: vec![Some(0)], bytes: 100.0 }
}

#[track_caller]
fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
}

#[test]
fn one_stage_runs_behind_the_work_of_the_hub() {
    // The hub: 10 + 1 + 5. The stage, on the same thread: 100.
    let alone = simulate(&sequence(&[0]), &[100.0], Load::Alone, 10);
    is_near(alone.packet_ns, 116.0);
    is_near(alone.latency.p99_ns, 116.0);
    // The hub sends 8 bundles first: 10 + 8 (8 + 5) = 114. Then come 64 packets of 100.
    let full = simulate(&sequence(&[0]), &[100.0], Load::Saturated, 128);
    is_near(full.latency.mean_ns, 6_514.0);
    is_near(full.packet_ns, 6_514.0 / 64.0);
}

#[test]
fn two_stages_in_sequence_overlap_from_bundle_to_bundle() {
    let route = sequence(&[0, 1]);
    // The hub until 16, the first stage until 116, a hop until 136, 5 + 300 until 441, a hop until
    // 461, and 5 on the hub.
    is_near(simulate(&route, &[100.0, 300.0], Load::Alone, 10).packet_ns, 466.0);
    // Two bundles: the hub until 10 + 2 (8 + 5) = 36. The first stage is done with them at 836 and
    // 1,636. The second one begins at 856 and takes 19 + 2,400 for each, until 5,694. A hop and 19
    // on the hub end at 5,733.
    let two = simulate(&route, &[100.0, 300.0], Load::Saturated, 16);
    is_near(two.latency.p50_ns, 5_733.0);
    is_near(two.packet_ns, 5_733.0 / 16.0);
}

#[test]
fn two_stages_side_by_side_take_as_long_as_the_slower_one() {
    // The hub until 16, a copy until 26. The first stage is done at 126. The copy arrives at 46, is
    // done at 351, comes back at 371, and 376 is the end.
    let headers = beside(Extent::Headers, false);
    is_near(simulate(&headers, &[100.0, 300.0], Load::Alone, 10).packet_ns, 376.0);
    // A part that is written: 4 more.
    let writes = beside(Extent::Headers, true);
    is_near(simulate(&writes, &[100.0, 300.0], Load::Alone, 10).packet_ns, 380.0);
    // A copy of all 100 bytes: 50 more.
    let full = beside(Extent::Full, false);
    is_near(simulate(&full, &[100.0, 300.0], Load::Alone, 10).packet_ns, 426.0);
    // The hub is the slower one: 26 + 1,000. Then it takes the copy, which waits: 5.
    is_near(simulate(&headers, &[1_000.0, 300.0], Load::Alone, 10).packet_ns, 1_031.0);
}

#[test]
fn a_stage_takes_bundles_in_the_order_of_arrival() {
    // One packet passes stages 1 and 2, and the next one stage 2 alone. Only hops take time. The
    // first one is done at stage 1 at 20 + 300, and at stage 2 at 340 + 100. The second one is
    // there at 20, but begins at 440. It is back at 560.
    let routes = [sequence(&[1, 2]), sequence(&[2])];
    let staged = staged(&routes, &[0.0, 300.0, 100.0]);
    let machine = Overheads { hop_ns: 20.0, ..Overheads::default() };
    let traffic = Traffic { routes: vec![Some(0), Some(1)], bytes: 0.0 };
    let found = stages(&staged, &machine, &traffic, Load::Saturated, 2);
    is_near(found.latency.mean_ns, 560.0);
}

#[test]
fn a_thread_that_sleeps_is_woken() {
    let routes = [sequence(&[0, 1]), sequence(&[0, 1])];
    let staged = staged(&routes, &[20_000.0, 300.0]);
    let machine = Overheads {
        hop_ns: 20.0,
        sleeps_after_ns: 10_000.0,
        wake_ns: 1_000.0,
        unpark_ns: 500.0,
        ..Overheads::default()
    };
    let simulate = |routes: &[Option<usize>], packets| {
        let traffic = Traffic { routes: routes.to_vec(), bytes: 0.0 };
        stages(&staged, &machine, &traffic, Load::Saturated, packets).latency.mean_ns
    };
    // The second stage has waited for 20,000 when the first one is done. It begins at 20,000 + 20 +
    // 1,000, and the bundle is back at 21,020 + 300 + 20. The hub still looks for work.
    is_near(simulate(&[Some(0)], 1), 21_340.0);
    // With a second bundle: waking takes the hub until 20,500. Its stage has the second bundle
    // until 40,500. The other stage sleeps again, since 21,320, and begins at 41,520. The bundle is
    // back at 41,520 + 300 + 20.
    is_near(simulate(&[Some(0), Some(1)], 2), 41_840.0);
}

#[test]
fn packets_that_do_not_reach_a_stage_cost_nothing_there() {
    // Half of the packets reach the second stage: 16 + 100, a hop, 3 and half of 2 + 300, a hop,
    // and 5.
    let routes = [sequence(&[0, 1])];
    let staged = Staged { reach: vec![1.0, 0.5], ..staged(&routes, &[100.0, 300.0]) };
    let found = stages(&staged, &MACHINE, &traffic(), Load::Alone, 10);
    is_near(found.packet_ns, 116.0 + 20.0 + 154.0 + 20.0 + 5.0);
}

#[test]
fn packets_without_a_route_pass_the_hub_alone() {
    let routes = [sequence(&[0])];
    let none = Traffic { routes: vec![None], bytes: 0.0 };
    let found = stages(&staged(&routes, &[100.0]), &MACHINE, &none, Load::Alone, 10);
    is_near(found.packet_ns, 11.0);
}

#[test]
fn a_call_counts_once_for_all_of_its_packets() {
    let cost = Cost { call_ns: 10.0, packet_ns: 5.0 };
    is_near(run_to_completion(cost, Load::Alone, 10).packet_ns, 15.0);
    // 10 + 64 * 5 for 64 packets.
    let full = run_to_completion(cost, Load::Saturated, 640);
    is_near(full.packet_ns, 330.0 / 64.0);
    is_near(full.latency.p50_ns, 330.0);
}

#[test]
fn a_low_rate_leaves_packets_alone_and_a_high_one_saturates() {
    let cost = Cost { call_ns: 10.0, packet_ns: 5.0 };
    // A packet each millisecond on average: hardly two within 15 ns.
    let low = run_to_completion(cost, Load::Rate(1e3), 1_000);
    is_near(low.latency.p99_ns, 15.0);
    assert!((9e5..1.1e6).contains(&low.packet_ns), "{low:?}");
    // A packet each nanosecond: bursts are full, and packets wait longer and longer.
    let high = run_to_completion(cost, Load::Rate(1e9), 64_000);
    assert!((5.15..5.17).contains(&high.packet_ns), "{high:?}");
    assert!(high.latency.p99_ns > 200_000.0, "{high:?}");
}

#[test]
fn costs_of_calls_and_packets_are_told_apart() {
    // 10 + 5 for each of ten calls with one packet, 10 + 10 * 5 for one with ten.
    let few = Calls { calls: 10.0, packets: 10.0, nanos: 150.0 };
    let many = Calls { calls: 1.0, packets: 10.0, nanos: 60.0 };
    let cost = Cost::between(few, many);
    is_near(cost.call_ns, 10.0);
    is_near(cost.packet_ns, 5.0);
    // Where all calls have one packet, there is nothing to tell apart.
    assert_eq!(Cost::between(few, few), Cost::of_packet(15.0));
}

#[test]
fn stages_are_for_throughput_where_a_packet_alone_is_faster_on_one_core() {
    let routes = [sequence(&[0, 1])];
    let staged = staged(&routes, &[100.0, 300.0]);
    let whole = Candidate::on_one_core(Cost::of_packet(400.0));
    let two = Candidate::in_stages(&staged, &MACHINE, &traffic());
    // The hub until 114, the first bundle of the first stage until 914, a hop, 8 bundles of 2,419
    // on the second stage, a hop, and 19: 20,325 for 64 packets, or 318 for one instead of 400.
    is_near(two.saturated.packet_ns, 20_325.0 / 64.0);
    let all = [whole, two];
    assert_eq!(choose(Goal::Throughput, &all).map(|best| best.stages), Some(2));
    // Alone, a packet takes 466 instead of 400.
    assert_eq!(choose(Goal::Latency, &all).map(|best| best.stages), Some(1));
}

#[test]
fn stages_must_be_better_by_a_tenth() {
    let of = |stages, packet_ns| {
        let latency = Latency { mean_ns: packet_ns, p50_ns: packet_ns, p99_ns: packet_ns };
        let predicted = Predicted { packet_ns, latency };
        Candidate { stages, saturated: predicted, alone: predicted }
    };
    let chosen = |all: &[Candidate]| choose(Goal::Latency, all).map(|best| best.stages);
    assert_eq!(chosen(&[of(1, 100.0), of(2, 91.0)]), Some(1));
    assert_eq!(chosen(&[of(1, 100.0), of(2, 89.0)]), Some(2));
    // 81 is more than nine tenths of 89.
    assert_eq!(chosen(&[of(1, 100.0), of(2, 89.0), of(3, 81.0)]), Some(2));
    assert_eq!(chosen(&[]), None);
}
