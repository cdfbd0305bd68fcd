//! Tests `braid sim`: what it prints, and arguments that make no sense.

mod common;

use common::Folder;
use serde_json::Value;

/// Three functions side by side or in sequence, all with named costs.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write(
        "c.braid",
        "nf count() { state n: u32 global = 0; match { else => { n += 1; output; } } }
nf guard() { match { ip.ttl == 0 => drop \"dead\"; else => output; } }
chain beside { interface lan; interface wan; a = count(); b = count(); c = count();
  path lan <-> a <-> b <-> c <-> wan; }
chain behind { interface lan; interface wan; a = guard(); b = count();
  path lan <-> a <-> b <-> wan; }
",
    );
    folder
}

fn simulated(args: &[&str]) -> Value {
    let all = [&["sim", "c.braid", "--json", "--packets", "4096"], args].concat();
    folder().braid(&all).code(0).json()
}

/// The time of a packet in a run (ns).
fn packet_ns(found: &Value, stages: u64, load: &str) -> f64 {
    let runs = found["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["stages"] == stages && run["load"] == load);
    run.unwrap()["packet_ns"].as_f64().unwrap()
}

#[test]
fn three_busy_functions_side_by_side_take_a_third_of_the_time() {
    // 0.1 s each, so that hops and copies do not count, however slow they are.
    let costs = ["--cost", "a=1e8", "b=1e8", "c=1e8"];
    let found = simulated(&[&["--chain", "beside", "--cores", "3"], &costs[..]].concat());
    assert_eq!(found["simulated"], true);
    assert_eq!(found["source"], "no packets");
    for load in ["alone", "saturated"] {
        assert!((packet_ns(&found, 1, load) - 3e8).abs() < 1.0);
        let two = packet_ns(&found, 2, load);
        assert!((2e8..2.5e8).contains(&two), "{load}: {two}");
        let three = packet_ns(&found, 3, load);
        assert!((1e8..1.5e8).contains(&three), "{load}: {three}");
    }
    for run in found["runs"].as_array().unwrap() {
        assert_eq!(run["simulated"], true);
        assert_eq!(run["real"], Value::Null);
        for key in ["mean_ns", "p50_ns", "p99_ns"] {
            assert!(run["latency"][key].as_f64().unwrap() >= 1e8, "{run}");
        }
    }
}

#[test]
fn functions_in_sequence_gain_throughput_but_not_latency() {
    let costs = ["--chain", "behind", "--cost", "a=1e8", "--cost", "b=1e8"];
    let found = simulated(&costs);
    // Nine bundles of 8 in the time of sixteen.
    assert!(packet_ns(&found, 2, "saturated") < 1.5e8);
    assert!(packet_ns(&found, 2, "alone") > 2e8);
}

#[test]
fn a_rate_replaces_the_other_loads() {
    let args = ["--chain", "behind", "--cost", "a=100", "b=100", "--rate", "1000"];
    let found = simulated(&args);
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs.iter().all(|run| run["load"] == "rate" && run["rate"] == 1000.0));
    // Hardly any packet waits for another one.
    assert_eq!(runs[0]["latency"]["p50_ns"], 200.0);
}

#[test]
fn text_says_that_it_is_simulated() {
    folder()
        .braid(&["sim", "c.braid", "--chain", "behind", "--cost", "a=1", "b=1"])
        .code(0)
        .says("chain behind, simulated\n")
        .says("full bursts");
}

#[test]
fn costs_that_are_not_named_are_measured_and_compared() {
    let args = ["sim", "c.braid", "--chain", "behind", "--packets", "100", "--compare", "--json"];
    let found = folder().braid(&args).code(0).json();
    assert_eq!(found["source"], "generated traffic");
    let runs = found["runs"].as_array().unwrap();
    assert!(runs[0]["real"]["packet_ns"].as_f64().unwrap() > 0.0, "{found}");
    let one = folder()
        .braid(&["sim", "c.braid", "--chain", "beside", "--cost", "b=5000", "--json"])
        .code(0)
        .json();
    assert_eq!(one["functions"][1]["cost"]["packet_ns"], 5000.0);
    assert!(one["functions"][0]["cost"]["packet_ns"].as_f64().unwrap() > 0.0);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let refused = |args: &[&str], code, text: &str| {
        let all = [&["sim", "c.braid", "--chain", "behind"], args].concat();
        folder().braid(&all).code(code).warns(text);
    };
    refused(&["--cores", "0"], 2, "0 is not in 1..=64");
    refused(&["--cores", "65"], 2, "65 is not in 1..=64");
    refused(&["--packets", "0"], 2, "0 is not in 1..=1000000");
    refused(&["--packets", "99999999999"], 2, "99999999999 is not in");
    for cost in ["a=-1", "a=NaN", "a=inf", "a=1e300", "a=", "a"] {
        refused(&["--cost", cost], 2, "expected FUNCTION=NS with 0 to 1000000000 nanoseconds");
    }
    refused(&["--cost", "zebra=1"], 2, "the chain `behind` has no function `zebra`; it has a, b");
    refused(&["--cost", "a=1", "a=2"], 2, "the cost of `a` is named twice");
    for rate in ["0", "-5", "NaN", "1e13"] {
        refused(&[&format!("--rate={rate}")], 2, "expected 1 to 1000000000000 packets");
    }
    refused(&["--compare", "--rate", "5"], 2, "cannot be used with");
}

#[test]
fn a_chain_that_is_one_stage_has_nothing_to_simulate() {
    let folder = folder();
    folder.write(
        "one.braid",
        "nf one() { match { else => output; } }
chain c { interface lan; interface wan; path lan <-> one() <-> wan; }",
    );
    folder.braid(&["sim", "one.braid"]).code(3).warns(
        "one.braid: the chain has no stages to simulate: it has fewer than two functions; \
             `braid graph one.braid` shows which functions depend on each other",
    );
}

#[test]
fn a_chain_that_cannot_be_measured_needs_named_costs() {
    let folder = folder();
    folder.write(
        "two.braid",
        "chain c { interface lan; interface wan; workers 2; path lan <-> monitor() <-> wan; }",
    );
    folder
        .braid(&["sim", "two.braid"])
        .code(3)
        .warns("cannot be measured: its 2 workers already use several cores")
        .warns("name the cost of each function with --cost FUNCTION=NS");
}

#[test]
fn the_largest_costs_and_rates_stay_finite() {
    let args = ["--chain", "behind", "--cost", "a=1e9", "b=1e9", "--rate", "1e12"];
    let found = simulated(&args);
    for run in found["runs"].as_array().unwrap() {
        assert!(run["latency"]["p99_ns"].as_f64().unwrap().is_finite(), "{run}");
    }
}
