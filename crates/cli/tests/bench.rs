//! Tests the lists, measurements and files of `braid bench`. The tests ignore times.

mod common;

use std::fs;

use common::Folder;
use serde_json::Value;

/// A bench of two cases that runs in a very short time.
const TINY: &str = r#"
summary = "one or two routers"
axis = "functions"
hits = false
floor = "touch"
chain = '''
chain tiny {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  {each}r{i} = router(table: routes("routes{i}"), hops: {hops}, left: 10.0.0.1, right: 198.51.100.{i});
  {end}path lan <-> {each}r{i} <-> {end}wan;
}
'''
[[traffic]]
to = "routes"
[[sweep]]
functions = [1, 2]
routes = [5]
flows = [10]
"#;

const COMPILE: &str = r#"
summary = "a filter"
kind = "compile"
axis = "rules"
floor = "touch"
chain = '''
chain filter {
  fw = stateless_firewall(allow: classbench("rules", match: pass, default: drop));
  path in <-> fw <-> out;
}
'''
[[traffic]]
rules = "fw.allow"
[[sweep]]
rules = [10]
flows = [10]
"#;

const FLOWS: &str = r#"
summary = "a monitor over a trace"
kind = "flow_time"
axis = "flows"
floor = "flow"
chain = '''
chain one {
  m = monitor();
  path in <-> m <-> out;
}
'''
[[paper]]
functions = 1
saved = 12.5
[trace]
packets = 5
tail = 1.0
[[sweep]]
flows = [30, 40]
"#;

const MEMORY: &str = r#"
summary = "a monitor"
kind = "memory"
axis = "flows"
floor = "flow"
chain = '''
chain one {
  m = monitor();
  path in <-> m <-> out;
}
'''
[[traffic]]
[[sweep]]
flows = [50]
"#;

const ONCE: &str = r#"
summary = "a monitor of flows that come and go"
kind = "once"
axis = "new_per_mille"
floor = "flow"
chain = '''
chain one {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  m = monitor();
  path lan <-> m <-> wan;
}
'''
[[mix]]
name = "both ways"
[[mix.part]]
replies = 0.5
[[sweep]]
flows = [20]
new_per_mille = [10]
[[sweep]]
flows = [30]
new_per_mille = [1000]
quick = false
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("tiny.toml", TINY);
    folder.write("compile.toml", COMPILE);
    folder.write("whole.toml", FLOWS);
    folder.write("grown.toml", MEMORY);
    folder.write("once.toml", ONCE);
    folder
}

const FAST: [&str; 6] = ["--packets", "64", "--runs", "3", "--time", "0.01"];

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn list_names_every_bench_with_its_summary() {
    let listed = Folder::new().braid(&["bench", "--list"]).code(0);
    for name in [
        "arrivals",
        "traces",
        "routers",
        "napts",
        "isp",
        "snf",
        "frames",
        "flows",
        "compile",
        "mixed",
        "filters",
        "early_drop",
        "header_actions",
        "header_writes",
        "snort_monitor",
        "state_functions",
        "chain1",
        "chain2",
        "guards",
        "memory",
        "nat_lb_monitor_filter",
    ] {
        assert!(listed.out.lines().any(|line| line.starts_with(name)), "{}", listed.out);
    }
    let value = Folder::new().braid(&["bench", "--list", "--json"]).code(0).json();
    let routers = value["benches"].as_array().unwrap().iter().find(|one| one["name"] == "routers");
    assert_eq!(routers.unwrap()["cases"], 10);
}

#[test]
fn json_is_one_object_a_line_with_the_promised_keys() {
    let ended = folder().braid(&[&["bench", "tiny.toml", "--json"], &FAST[..]].concat()).code(0);
    let rows = rows(&ended.out);
    let engines = ["floor_touch", "floor_flow", "reference", "sequential", "synth", "fused"];
    assert_eq!(rows.len(), 2 * engines.len());
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row["engine"], engines[at % engines.len()]);
        assert_eq!(row["functions"], 1 + at / engines.len());
        assert_eq!((&row["bench"], &row["chain"]), (&"tiny".into(), &"tiny".into()));
        assert_eq!(
            (&row["flows"], &row["frame_bytes"], &row["rules"]),
            (&10.into(), &60.into(), &0.into())
        );
        assert_eq!(row["runs"], 3);
        for key in ["ns_per_packet_median", "ns_per_packet_min", "ns_per_packet_max", "floor_ns"] {
            assert!(row[key].is_number(), "{key}: {row}");
        }
        for key in ["cycles_per_packet", "ratio_to_floor", "ratio_to_sequential", "flow_time"] {
            assert!(row.get(key).is_some(), "{key}: {row}");
        }
        let compiled = ["sequential", "synth", "fused"].iter().any(|name| row["engine"] == *name);
        assert_eq!(row["saved_percent"].is_number(), compiled);
        for key in
            ["hit_rate", "guard_failure_rate", "miss_rate", "records_made", "records_refused"]
        {
            assert_eq!(row[key].is_number(), row["engine"] == "fused", "{key}: {row}");
        }
    }
}

#[test]
fn page_and_table_show_every_engine() {
    let folder = folder();
    let args = [&["bench", "tiny.toml", "--only", "functions=2", "--html", "page.html"], &FAST[..]];
    let ended = folder.braid(&args.concat()).code(0).says("ns/packet").says("synth");
    assert_eq!(ended.out.lines().filter(|line| line.starts_with("sequential")).count(), 1);
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg") && page.contains("synth"));
}

#[test]
fn compiling_is_measured_for_each_compiled_engine_apart() {
    let ended = folder().braid(&["bench", "compile.toml", "--json"]).code(0);
    let rows = rows(&ended.out);
    assert_eq!(rows.len(), 2);
    for (row, engine) in rows.iter().zip(["sequential", "synth"]) {
        assert_eq!((&row["engine"], &row["rules"]), (&engine.into(), &10.into()));
        assert!(row["compile_ms"].as_f64().unwrap() > 0.0);
        assert!(row["ns_per_packet_median"].is_null());
    }
}

#[test]
fn memory_is_measured_for_each_compiled_engine_apart() {
    let ended = folder().braid(&["bench", "grown.toml", "--json"]).code(0);
    let rows = rows(&ended.out);
    let engines: Vec<&str> = rows.iter().map(|row| row["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["sequential", "synth", "fused"]);
    for row in rows {
        assert_eq!((&row["flows"], &row["packets_per_run"]), (&50.into(), &300.into()));
        assert!(row["resident_bytes"].as_u64() >= row["engine_bytes"].as_u64());
        assert!(row["engine_bytes"].is_number() && row["forwarded"] == 1.0);
    }
}

#[test]
fn flows_of_a_trace_and_of_a_capture_are_timed_as_a_whole() {
    let folder = folder();
    let engines = ["--engine", "sequential,fused"];
    let ended =
        folder.braid(&[&["bench", "whole.toml", "--json"], &engines[..], &FAST[..]].concat());
    let rows = rows(&ended.code(0).out);
    assert_eq!(rows.len(), 4);
    for (row, flows) in rows.iter().zip([30, 30, 40, 40]) {
        let time = &row["flow_time"];
        assert_eq!((&time["flows"], &time["packets"]), (&flows.into(), &(flows * 5).into()));
        let percentiles = time["percentiles_ns"].as_array().unwrap();
        assert_eq!((&percentiles[0][0], &percentiles[22][0]), (&1.into(), &100.into()));
        assert!(
            time["by_packets"]
                .as_array()
                .unwrap()
                .iter()
                .all(|size| size["flows"].as_u64() > Some(0))
        );
        let paper = if row["engine"] == "fused" { 12.5.into() } else { Value::Null };
        assert_eq!(row["paper_saved_percent"], paper);
        assert!(row["saved_percent"].is_number());
    }
    folder.braid(&["gen", "flows", "--flows", "7", "--packets", "70", "--out", "x.pcap"]).code(0);
    let args = [&["bench", "whole.toml", "--capture", "x.pcap"], &FAST[..]].concat();
    let ended = folder.braid(&[&args[..], &["--json"]].concat()).code(0);
    let timed = ended.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let timed: Vec<_> = timed.map(|row| row["flow_time"]["packets"].clone()).collect();
    assert_eq!(timed, vec![70; 6]);
    folder.braid(&args).code(0).says("paper: 12.5 %").says("p50").says("256 and more");
    folder.braid(&["bench", "tiny.toml", "--capture", "x.pcap"]).code(2).warns("--capture");
    folder.braid(&["bench", "whole.toml", "--capture", "none.pcap"]).code(3);
}

#[test]
fn flows_that_come_and_go_are_measured_once_and_counted() {
    let folder = folder();
    let args = [&["bench", "once.toml", "--quick", "--engine", "synth,fused"], &FAST[..]].concat();
    let rows = rows(&folder.braid(&[&args[..], &["--json"]].concat()).code(0).out);
    assert_eq!(rows.len(), 2, "one of two cases is for a quick look");
    for row in rows {
        assert_eq!((&row["mix"], &row["new_per_mille"]), (&"both ways".into(), &10.into()));
        assert!((0.005..0.015).contains(&row["new_share"].as_f64().unwrap()), "{row}");
        assert!(row["checked_packets"].as_u64() > Some(60_000));
        let hits = row["checked_hits"].as_u64();
        assert_eq!(hits.is_some_and(|hits| hits > 10_000), row["engine"] == "fused", "{row}");
    }
    folder.braid(&args).code(0).says("both ways").says("instructions").says("by flow records");
    let counted = ["bench", "once.toml", "--case", "0", "--count", "--engine", "synth"];
    assert_eq!(folder.braid(&counted).code(0).out, "20000\n");
    folder
        .braid(&[
            "gen",
            "flows",
            "--replies",
            "0.5",
            "--flows",
            "7",
            "--packets",
            "700",
            "--out",
            "x.pcap",
        ])
        .code(0);
    let args = [&args[..], &["--capture", "x.pcap", "--json"]].concat();
    let first: Value =
        serde_json::from_str(folder.braid(&args).code(0).out.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["mix"], &first["flows"], &first["forwarded"]),
        (&"capture".into(), &7.into(), &1.0.into())
    );
}

#[test]
fn exported_case_runs_as_a_chain_over_its_capture() {
    let folder = folder();
    folder.braid(&["bench", "tiny.toml", "--only", "functions=1", "--export", "cases"]).code(0);
    let case = "cases/tiny-n1-routes5-flows10";
    let (chain, capture) = (format!("{case}/chain.braid"), format!("lan={case}/packets.pcap"));
    let value = folder.braid(&["run", &chain, "--in", &capture, "--json"]).code(0).json();
    assert_eq!(value["packets_in"], 1030);
    assert_eq!(value["packets_out"]["wan"], 1030);
}

#[test]
fn what_does_not_exist_is_wrong_usage_and_a_wrong_file_a_wrong_file() {
    let folder = folder();
    folder.braid(&["bench", "router"]).code(2).warns("did you mean `routers`");
    folder.braid(&["bench", "tiny.toml", "--engine", "fast"]).code(2).warns("sequential");
    folder.braid(&["bench", "tiny.toml", "--only", "colour=1"]).code(2).warns("functions");
    folder.braid(&["bench", "tiny.toml", "--core", "100000"]).code(2).warns("100000");
    folder.braid(&["bench", "none.toml"]).code(3);
    folder.write("bad.toml", &TINY.replace("flows = [10]", "flows = [0]"));
    folder.braid(&["bench", "bad.toml"]).code(3).warns("flows: 0");
    folder.write("chain.toml", &TINY.replace("router(", "ruter("));
    folder.braid(&["bench", "chain.toml"]).code(3).warns("ruter");
}
