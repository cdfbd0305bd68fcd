//! Runs every embedded bench at a small size: its chain compiles, its packets take the expected
//! paths, and its rows are complete.

mod common;

use std::time::Duration;

use braid_bench::definition::{Case, Definition, Kind as Measures, Traffic, embedded};
use braid_bench::feed::Feed;
use braid_bench::frames::{Headers, START_NS};
use braid_bench::measure::{Measured, Plan, measure};
use braid_bench::report::Row;
use braid_bench::selection::Selection;
use braid_bench::setup::Given;
use braid_bench::subject::Kind;
use braid_bench::{check, compile, export, memory};
use braid_packet::{BURST, Link, Packet};
use braid_traffic::Traffic as _;
use braid_traffic::flows::{Flows, Options};
use common::chain;

fn tiny() -> Plan {
    let trial = Duration::from_micros(100);
    Plan { runs: 3, trial, packets: 64, check: 320, warm: 64, ..Plan::quick() }
}

/// A case with the smallest values that still make sense.
fn small(case: Case) -> Case {
    Case {
        rules: case.rules.min(20),
        routes: case.routes.min(20),
        flows: case.flows.min(40),
        ..case
    }
}

/// Few packets where flows come and go.
fn few() -> Given {
    Given { measured: Some(2_000), ..Given::default() }
}

fn named(name: &str) -> Definition {
    embedded().unwrap().into_iter().find(|definition| definition.name == name).unwrap()
}

fn run(name: &str, case: Case, plan: &Plan) -> Measured {
    let mut definition = named(name);
    definition.rule_set = 0;
    let case = small(case);
    let setup = definition.set_up(&case, &few(), &chain).unwrap();
    measure(&definition, &case, &setup, plan).unwrap()
}

/// One case for each of a definition's chains, with up to three functions in a row.
fn one_of_each(definition: &Definition) -> Vec<Case> {
    let cases = definition.cases(false);
    let functions = cases.iter().map(|case| case.functions).max().unwrap().min(3);
    let chains = 0..=definition.beside.len();
    chains.map(|chain| Case { chain, functions, ..cases[0] }).collect()
}

#[test]
fn every_bench_runs_and_all_engines_agree_with_reference() {
    for definition in embedded().unwrap() {
        if matches!(definition.kind, Measures::Compile | Measures::Memory) {
            continue;
        }
        for case in one_of_each(&definition) {
            let measured = run(&definition.name, case, &tiny());
            let wrong: Vec<String> = measured.wrong.iter().map(ToString::to_string).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
            rows_are_whole(&definition, &measured.rows);
        }
    }
}

fn rows_are_whole(definition: &Definition, rows: &[Row]) {
    let engines: Vec<&str> = rows.iter().map(|row| row.engine.as_str()).collect();
    let is_once = definition.kind == Measures::Once;
    let kinds = Kind::ALL.into_iter().filter(|kind| !is_once || *kind != Kind::Reference);
    assert_eq!(engines, kinds.map(Kind::name).collect::<Vec<_>>());
    for row in rows {
        let (min, median) = (row.ns_per_packet_min, row.ns_per_packet_median);
        assert!(min <= median && median <= row.ns_per_packet_max, "{row:?}");
        assert!(row.floor_ns.is_some() && row.source_ns.is_some_and(|ns| ns > 0.0));
        let engine = !row.engine.starts_with("floor");
        assert_eq!(row.ratio_to_sequential.is_some(), engine, "{row:?}");
        assert_eq!(row.saved_percent.is_some(), engine && row.engine != "reference", "{row:?}");
        if definition.kind == Measures::FlowTime {
            let time = row.flow_time.as_ref().unwrap();
            assert_eq!((time.flows, time.packets), (row.flows, row.packets_per_run.unwrap()));
            assert!(time.percentile(10) <= time.percentile(50), "{row:?}");
            assert!(row.first_ns_per_packet.is_some() && row.second_ns_per_packet.is_some());
            continue;
        }
        assert_eq!(row.new_share.is_some() && row.mix.is_some(), is_once);
        let is_checked = engine && row.engine != "reference";
        assert_eq!(row.checked_packets.is_some_and(|packets| packets > 0), is_checked);
        if row.engine == "fused" && definition.hits {
            assert!(row.checked_hits.is_some_and(|hits| hits > 0), "{row:?}");
        }
        assert_eq!((row.runs, row.packets_per_run.map(|n| n % 32)), (Some(3), Some(0)));
        let first = definition.first && row.flows > 1 && row.engine != "reference";
        assert_eq!(row.first_ns_per_packet.is_some(), first, "{row:?}");
        assert_eq!(row.hit_rate.is_some(), row.engine == "fused", "{row:?}");
        if let (Some(hits), Some(guard_failures), Some(misses)) =
            (row.hit_rate, row.guard_failure_rate, row.miss_rate)
        {
            assert!((hits + guard_failures + misses - 1.0).abs() < 1e-9, "{row:?}");
        }
    }
}

#[test]
fn packets_leave_as_the_bench_says() {
    let plan = Plan { kinds: vec![Kind::FloorTouch], ..tiny() };
    let forwarded = |name: &str, chain: usize| {
        let case = Case { chain, ..named(name).cases(false)[0] };
        run(name, case, &plan).rows[0].forwarded.unwrap()
    };
    for name in ["routers", "napts", "frames", "flows", "filters", "header_actions"] {
        assert_eq!(forwarded(name, 0), 1.0, "{name}");
    }
    for name in ["header_writes", "chain1", "chain2"] {
        assert_eq!(forwarded(name, 0), 1.0, "{name}");
    }
    for name in ["mixed", "nat_lb_monitor_filter", "state_functions", "snort_monitor", "guards"] {
        assert_eq!([forwarded(name, 0), forwarded(name, 1)], [1.0; 2], "{name}");
    }
    assert_eq!(forwarded("early_drop", 0), 0.0);
    // One flow in eight is UDP to another port. The check takes some flows more often than others.
    assert!((forwarded("snf", 0) - 0.875).abs() < 0.02, "{}", forwarded("snf", 0));
    // A few rules are for ICMP types that NAPT does not translate, and no rule decides some
    // packets.
    assert!(forwarded("isp", 0) > 0.9, "{}", forwarded("isp", 0));
}

#[test]
fn longer_sweeps_make_longer_chains() {
    let definition = named("routers");
    let last = definition.cases(false).pop().unwrap();
    let case = Case { routes: 10, flows: 10, ..last };
    let setup = definition.set_up(&case, &Given::default(), &chain).unwrap();
    assert_eq!((setup.chain.nodes.len(), setup.routes), (10, 10));
}

#[test]
fn rules_of_a_bench_come_from_a_file_when_one_is_given() {
    let definition = named("isp");
    let case = Case { rules: 1, routes: 5, flows: 3, ..definition.cases(false)[0] };
    let rules = "@10.1.0.0/16\t20.0.0.1/32\t0 : 65535\t80 : 80\t0x06/0xFF\t0x0000/0x0000\t\n";
    let given = Given { rules: Some(rules.to_owned()), ..Given::default() };
    let setup = definition.set_up(&case, &given, &chain).unwrap();
    assert_eq!(setup.rules, 1);
    let mut cursor = setup.ring.cursor(1);
    let (frame, _) = cursor.next_frame();
    assert_eq!((&frame[26..28], &frame[30..34]), (&[10, 1][..], &[20, 0, 0, 1][..]));
    assert_eq!(frame[36..38], [0, 80]);
}

#[test]
fn compiling_is_measured_in_time_and_memory() {
    let definition = named("compile");
    let case = small(definition.cases(false)[0]);
    let given = Given::default();
    let row = compile::measure(&definition, &case, &given, &chain, Kind::Synth).unwrap();
    assert!(row.load_ms.is_some_and(|ms| ms > 0.0) && row.compile_ms.is_some_and(|ms| ms > 0.0));
    assert_eq!(row.ns_per_packet_median, None);
}

#[test]
fn memory_of_flows_is_measured_with_an_entry_for_each() {
    let definition = named("memory");
    let case = Case { flows: 100, ..definition.cases(false)[0] };
    for kind in [Kind::Sequential, Kind::Fused] {
        let row = memory::measure(&definition, &case, &Given::default(), &chain, kind).unwrap();
        assert!(
            row.resident_bytes >= row.engine_bytes && row.resident_bytes.is_some_and(|b| b > 0)
        );
        assert_eq!((row.forwarded, row.packets_per_run), (Some(1.0), Some(600)));
        assert_eq!(row.records_made.is_some(), kind == Kind::Fused);
    }
    // Each of three functions has an entry for each flow, and the NAPT has two for each source.
    let few = Definition {
        traffic: vec![Traffic { sources: Some(10), ..definition.traffic[0].clone() }],
        ..definition
    };
    let setup = few.set_up(&case, &Given::default(), &chain).unwrap();
    let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let mut feed = Feed::new();
    for headers in setup.headers.chunks(BURST) {
        headers.iter().for_each(|headers| feed.add_copy(&packet(headers)));
        reference.run(&mut feed);
    }
    assert_eq!(reference.state().len(), 3 * 100 + 2 * 10);
}

fn packet(headers: &Headers) -> Packet {
    Packet::new(Link::Ethernet, START_NS, headers.frame(60, &[]))
}

#[test]
fn every_function_of_the_mixed_chain_works_on_every_flow() {
    let definition = named("mixed");
    let case = small(definition.cases(false)[0]);
    let setup = definition.set_up(&case, &Given::default(), &chain).unwrap();
    let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let mut cursor = setup.ring.cursor(u64::MAX);
    let mut next = |feed: &mut Feed| cursor.add(feed);
    let _ = check::observe(reference.as_mut(), &mut next, case.flows);
    // A firewall's connection, two entries of a NAPT, a choice and a counter; all of them twice.
    assert_eq!(reference.state().len() as u64, 2 * 5 * case.flows);
}

#[test]
fn filters_of_a_row_differ_and_early_drop_is_dropped_by_the_last() {
    let definition = named("early_drop");
    let case = Case { functions: 2, ..small(definition.cases(false)[0]) };
    let setup = definition.set_up(&case, &Given::default(), &chain).unwrap();
    let rules = |number: u64| &setup.source.files[&format!("rules{number}")];
    assert!(rules(1) != rules(2) && rules(2) != rules(3));
    let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let mut cursor = setup.ring.cursor(u64::MAX);
    let mut next = |feed: &mut Feed| cursor.add(feed);
    let _ = check::observe(reference.as_mut(), &mut next, 100);
    let drops = reference.counters().unwrap().drops;
    let by: Vec<(u16, u64)> = drops.iter().map(|((node, ..), count)| (*node, *count)).collect();
    assert_eq!(by, [(2, 100)]);
}

#[test]
fn packets_unlike_the_others_of_their_flow_fail_the_guards_of_its_record() {
    let definition = named("guards");
    let plan = Plan { kinds: vec![Kind::Fused], warm: 64_000, packets: 2_048, ..tiny() };
    // Where rules test flags, one of eight packets differs from the others. At times the flow has a
    // record for the packet that differs, so a few more packets fail the guards.
    for (chain, like_others, slack) in [(0, 7.0 / 8.0, 0.1), (1, 1.0, 0.01), (2, 1.0, 0.01)] {
        let case = Case { chain, ..definition.cases(false)[0] };
        let row = run("guards", case, &plan).rows.remove(0);
        let (hits, guard_failures) = (row.hit_rate.unwrap(), row.guard_failure_rate.unwrap());
        let is_expected = hits > like_others - slack && hits <= like_others + slack / 10.0;
        assert!(is_expected && guard_failures < 1.0 - like_others + slack, "{chain}: {hits}");
    }
}

#[test]
fn check_without_hits_is_an_error_where_hits_are_expected() {
    let mut definition = named("routers");
    let case = small(definition.cases(false)[0]);
    let setup = definition.set_up(&case, &few(), &chain).unwrap();
    assert!(measure(&definition, &case, &setup, &tiny()).unwrap().wrong.is_empty());
    definition.hits = true;
    let measured = measure(&definition, &case, &setup, &tiny()).unwrap();
    let wrong: Vec<String> = measured.wrong.iter().map(ToString::to_string).collect();
    assert!(wrong.len() == 1 && wrong[0].contains("took a flow record"), "{wrong:?}");
    assert!(measured.rows.iter().all(|row| row.engine != "fused"));
}

#[test]
fn arrivals_begin_their_share_of_flows_and_mappings_time_out() {
    let definition = named("arrivals");
    for (new_per_mille, mix) in [(0, 0), (26, 1), (250, 0), (1000, 0)] {
        let case = Case { new_per_mille, mix, flows: 200, ..definition.cases(false)[0] };
        let given = Given { measured: Some(20_000), ..Given::default() };
        let setup = definition.set_up(&case, &given, &chain).unwrap();
        let sequence = setup.sequence.as_ref().unwrap();
        let (share, wanted) = (sequence.new_share() * 1000.0, new_per_mille as f64);
        assert!((share - wanted).abs() <= wanted / 5.0, "{share} instead of {wanted}");
        let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
        let outcome = Selection::new(&setup, 1 << 30).observe(reference.as_mut());
        assert_eq!(outcome.left_by(1), sequence.packets());
        // Two entries for each flow of the last second, which has 50 packets of each active flow.
        let flows = 200 + 200 * 65 * new_per_mille / 1000;
        let (entries, all) = (reference.state().len() as u64, u64::from(sequence.flows()));
        assert!(entries <= 2 * flows && entries >= 2 * all.min(200), "{entries} for {all} flows");
    }
}

#[test]
fn traces_have_both_directions_and_the_single_packets_that_they_promise() {
    let definition = named("traces");
    let single = |name: &str| {
        let mix = definition.mix.iter().position(|mix| mix.name == name).unwrap();
        let case = Case { mix, flows: 300, ..definition.cases(false)[0] };
        let given = Given { measured: Some(30_000), ..Given::default() };
        let setup = definition.set_up(&case, &given, &chain).unwrap();
        let sequence = setup.sequence.as_ref().unwrap();
        let back = sequence.in_order().filter(|packet| packet.ingress == 1).count() as f64;
        assert!((0.3..0.6).contains(&(back / sequence.packets() as f64)), "{name}: {back}");
        let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
        let outcome = Selection::new(&setup, 1).observe(reference.as_mut());
        assert_eq!(outcome.packets, sequence.packets());
        // Answers come back to the clients. Scans and forged sources do not.
        let answered = outcome.left_by(0) as f64 / back;
        assert!(answered > 0.6, "{name}: {answered}");
        let mut packets = vec![0; sequence.flows() as usize];
        sequence.flow_numbers().for_each(|flow| packets[flow as usize] += 1);
        packets.iter().filter(|packets| **packets == 1).count() as f64 / packets.len() as f64
    };
    let shares = ["data_centre", "campus", "syn_flood"].map(single);
    assert!(shares[0] < 0.3 && (0.4..0.65).contains(&shares[1]) && shares[2] > 0.6, "{shares:?}");
}

#[test]
fn capture_of_both_directions_passes_as_a_conversation() {
    let options = Options { replies_ppm: 500_000, ..Options::new(50, 2_000) };
    let mut flows = Flows::new(options).unwrap();
    let packets: Vec<Packet> = std::iter::from_fn(|| flows.next_packet().unwrap()).collect();
    let definition = named("traces");
    let case = definition.cases(false)[0];
    let given = Given { capture: Some(packets), ..Given::default() };
    let setup = definition.set_up(&case, &given, &chain).unwrap();
    let sequence = setup.sequence.as_ref().unwrap();
    assert_eq!((sequence.packets(), sequence.flows()), (2_000, 50));
    let mut reference = Kind::Reference.make(&setup.chain, case.flows).unwrap();
    let outcome = Selection::new(&setup, 1).observe(reference.as_mut());
    assert_eq!(outcome.forwarded(), 1.0);
    assert!(outcome.left_by(0) > 900 && outcome.left_by(1) > 900);
    let row = &measure(&definition, &case, &setup, &tiny()).unwrap().rows[0];
    assert_eq!((row.mix.as_deref(), row.flows), (Some("capture"), 50));
}

#[test]
fn capture_takes_the_place_of_a_trace() {
    let definition = named("chain1");
    let case = small(definition.cases(false)[0]);
    let generated = definition.set_up(&case, &Given::default(), &chain).unwrap().trace.unwrap();
    let capture = Some(generated.packets[..50].to_vec());
    let given = Given { capture, ..Given::default() };
    let setup = definition.set_up(&case, &given, &chain).unwrap();
    let rows = measure(&definition, &case, &setup, &tiny()).unwrap().rows;
    assert!(rows.iter().all(|row| row.flow_time.as_ref().unwrap().packets == 50));
}

#[test]
fn exported_case_has_all_its_files() {
    let definition = named("isp");
    let case = Case { rules: 5, routes: 5, flows: 4, ..definition.cases(false)[0] };
    let setup = definition.set_up(&case, &Given::default(), &chain).unwrap();
    let parent = std::env::temp_dir().join(format!("braid-bench-{}", std::process::id()));
    let folder = export::export(&definition, &case, &setup, &parent).unwrap();
    for name in ["chain.braid", "rules", "routes1", "packets.pcap"] {
        assert!(folder.join(name).metadata().unwrap().len() > 24, "{name}");
    }
    std::fs::remove_dir_all(parent).unwrap();
}
