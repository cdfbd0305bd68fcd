//! Every bench that comes with the command, small: its chain compiles, its packets go where they should,
//! its rows are whole.

use std::time::Duration;

use braid_bench::definition::{Case, Definition, Kind as Measures, embedded};
use braid_bench::measure::{Measured, Plan, measure};
use braid_bench::setup::{Given, Source};
use braid_bench::subject::Kind;
use braid_bench::{compile, export};
use braid_ir::chain::Chain;
use braid_lang::Loader;
use braid_lang::diag::{Style, render};

struct Files<'a>(&'a Source);

impl Loader for Files<'_> {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        self.0.files.get(path).map(|text| text.clone().into_bytes()).ok_or("none".to_owned())
    }
}

fn chain(source: &Source) -> Result<Chain, String> {
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = braid_lang::compile((&source.name, &source.text), &library, &Files(source));
    let text = render(&compiled.diagnostics, &compiled.sources, Style::default());
    let chains = compiled.unit.map(|unit| unit.chains).unwrap_or_default();
    chains.into_iter().next().ok_or(text)
}

fn tiny() -> Plan {
    let segment = Duration::from_micros(100);
    Plan { runs: 3, segment, packets: 64, check: 320, warm: 64, ..Plan::quick() }
}

/// A definition's first case with as little of everything as still makes sense.
fn small(definition: &Definition) -> Case {
    let case = definition.cases(false)[0];
    Case {
        rules: case.rules.min(20),
        routes: case.routes.min(20),
        flows: case.flows.min(40),
        ..case
    }
}

fn named(name: &str) -> Definition {
    embedded().unwrap().into_iter().find(|definition| definition.name == name).unwrap()
}

fn run(name: &str) -> Measured {
    let mut definition = named(name);
    definition.rule_set = 0;
    let case = small(&definition);
    let setup = definition.set_up(&case, &Given::default(), &chain).unwrap();
    measure(&definition, &case, &setup, &tiny()).unwrap()
}

#[test]
fn every_bench_runs_and_all_engines_agree_with_reference() {
    for definition in embedded().unwrap() {
        if definition.kind == Measures::Compile {
            continue;
        }
        let measured = run(&definition.name);
        let wrong: Vec<String> = measured.wrong.iter().map(ToString::to_string).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let engines: Vec<&str> = measured.rows.iter().map(|row| row.engine.as_str()).collect();
        assert_eq!(engines, Kind::ALL.map(Kind::name));
        for row in &measured.rows {
            assert_eq!((row.runs, row.packets_per_run.map(|n| n % 32)), (Some(3), Some(0)));
            let (min, median) = (row.ns_per_packet_min, row.ns_per_packet_median);
            assert!(min <= median && median <= row.ns_per_packet_max, "{row:?}");
            assert!(row.floor_ns.is_some() && row.source_ns.is_some_and(|ns| ns > 0.0));
            assert_eq!(row.ratio_to_sequential.is_some(), !row.engine.starts_with("floor"));
        }
    }
}

#[test]
fn packets_leave_as_the_bench_says() {
    let forwarded = |name: &str| run(name).rows[0].forwarded.unwrap();
    for name in ["routers", "napts", "frames", "flows"] {
        assert_eq!(forwarded(name), 1.0, "{name}");
    }
    // One flow of eight is UDP to another port.
    assert_eq!(forwarded("snf"), 0.875);
    // A few rules are for ICMP types that NAPT does not translate, or decided by none.
    assert!(forwarded("isp") > 0.9, "{}", forwarded("isp"));
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
    let given = Given { rules: Some(rules.to_owned()), routes: None };
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
    let case = small(&definition);
    let given = Given::default();
    let row = compile::measure(&definition, &case, &given, &chain, Kind::Synth).unwrap();
    assert!(row.load_ms.is_some_and(|ms| ms > 0.0) && row.compile_ms.is_some_and(|ms| ms > 0.0));
    assert_eq!(row.ns_per_packet_median, None);
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
