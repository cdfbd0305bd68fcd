//! Tests `--engine auto` and `braid graph --plan --measure`: what they choose and say, and that
//! measuring changes nothing.

mod common;

use common::{Folder, S, reply, request};
use serde_json::Value;

/// Two functions with state, one with events and one that may drop, and traffic of both sides.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write(
        "c.braid",
        "event seen { src: ip4, n: u32 }
nf count() {
  state n: u32 per ip.src = 0, idle 60 s;
  match { has ip => { n += 1; emit seen { src: ip.src, n: n }; output; } else => output; }
}
nf short() {
  state all: u32 global = 0;
  match { pkt.len > 150 => drop \"long\"; else => { all += 1; output; } }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> count() <-> short() <-> wan;
}
",
    );
    let packets = (0..200).map(|at| {
        let host = 1 + u8::try_from(at % 20).unwrap();
        let time_ns = S + at * 1_000_000;
        match at % 5 {
            4 => reply(time_ns, host, 10),
            3 => request(time_ns, host, 200),
            _ => request(time_ns, host, 10),
        }
    });
    folder.capture("in.pcap", &packets.collect::<Vec<_>>());
    folder
}

/// Runs the chain. Returns the report without the choice, the choice, and the files.
fn run(folder: &Folder, engine: &str) -> (Value, Value, [String; 3]) {
    let args = ["run", "c.braid", "--in", "in.pcap", "--out", "out.pcap", "--json", "--engine"];
    let more = ["--state-out", "state.json", "--events-out", "events.json"];
    let ended = folder.braid(&[&args[..], &[engine], &more].concat()).code(0);
    let mut report = ended.json();
    let choice = report["choice"].take();
    report.as_object_mut().unwrap().remove("choice");
    let packets = format!("{:?}", folder.packets("out.pcap"));
    (report, choice, [packets, folder.read("state.json"), folder.read("events.json")])
}

#[test]
fn measuring_changes_no_packet_and_no_state_and_no_counter() {
    let folder = folder();
    let (report, none, files) = run(&folder, "fused");
    assert_eq!(none, Value::Null);
    assert_eq!(report["packets_in"], 200);
    assert_eq!(files[2].lines().count(), 200, "an event for each packet");
    for (engine, goal) in
        [("auto", "throughput"), ("auto:throughput", "throughput"), ("auto:latency", "latency")]
    {
        let (same, choice, same_files) = run(&folder, engine);
        assert_eq!(report, same, "{engine}");
        assert_eq!(files, same_files, "{engine}");
        assert_eq!(choice["goal"], goal);
        assert!(choice["engine"] == "fused" || choice["engine"] == "parallel:2", "{choice}");
        assert!(choice["why"].as_str().unwrap().contains("ns") || cores() < 2, "{choice}");
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn the_reason_is_printed() {
    let ended = folder().braid(&["run", "c.braid", "--in", "in.pcap", "--engine", "auto"]).code(0);
    let ended = ended.warns("braid: engine ").warns(" for throughput: ");
    if cores() > 1 {
        ended.warns("(measured on 200 packets of the captures)");
    }
}

#[test]
fn what_cannot_be_divided_runs_on_one_core() {
    let folder = folder();
    folder.write(
        "one.braid",
        "nf one() { match { else => output; } }
chain c { interface lan; interface wan; path lan <-> one() <-> wan; }",
    );
    let args = ["run", "one.braid", "--in", "lan=in.pcap", "--engine", "auto", "--json"];
    let choice = folder.braid(&args).code(0).json()["choice"].take();
    assert_eq!(choice["engine"], "fused");
    assert_eq!(choice["candidates"], serde_json::json!([]));
    let why = choice["why"].as_str().unwrap();
    assert!(why.starts_with("the chain runs on one core: "), "{why}");
    assert!(cores() < 2 || why.ends_with("it has fewer than two functions"), "{why}");
}

#[test]
fn workers_are_not_divided_again() {
    let folder = folder();
    folder.write(
        "w.braid",
        "nf plain() { match { else => output; } }
chain c { interface lan; interface wan; path lan <-> plain() <-> plain() <-> wan; }",
    );
    let args = ["run", "w.braid", "--in", "lan=in.pcap", "--engine", "auto", "--workers", "2"];
    let ended = folder.braid(&args).code(0);
    if cores() > 1 {
        ended.warns("its 2 workers already use several cores");
    }
}

#[test]
fn times_at_the_end_of_time_are_measured() {
    let folder = folder();
    let last = 1_000_000_000 * u64::from(u32::MAX);
    let packets = [request(0, 1, 10), request(1, 1, 10), request(last, 2, 10)];
    folder.capture("far.pcap", &packets);
    let args = ["run", "c.braid", "--in", "far.pcap", "--engine", "auto", "--json"];
    assert_eq!(folder.braid(&args).code(0).json()["packets_in"], 3);
}

#[test]
fn only_runs_choose_an_engine() {
    folder().braid(&["run", "c.braid", "--in", "in.pcap", "--engine", "auto:speed"]).code(2);
    let args = ["trace", "c.braid", "--in", "in.pcap", "--packet", "1", "--engine", "auto"];
    folder().braid(&args).code(2).warns("there is no engine `auto`");
}

#[test]
fn a_live_run_is_measured_on_generated_traffic() {
    let folder = folder();
    let args = ["run", "c.braid", "--if", "lan=memory:in.pcap", "wan=memory", "--packets", "200"];
    let ended = folder.braid(&[&args[..], &["--engine", "auto", "--json"]].concat()).code(0);
    assert!(ended.json()["packets_in"].as_u64().unwrap() >= 200, "{}", ended.out);
    if cores() > 1 {
        ended.warns("(measured on 4096 packets of generated traffic)");
    }
}

#[test]
fn a_plan_is_measured_for_both_goals() {
    let folder = folder();
    let args = ["graph", "c.braid", "--plan", "--stages", "2", "--measure", "--in", "in.pcap"];
    folder
        .braid(&args)
        .code(0)
        .says("measured on 200 packets of the captures")
        .says("stage 1 of 2")
        .says("a hop of a bundle to another thread")
        .says("auto:throughput takes ")
        .says("auto:latency takes ");
    let found = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    let measured = &found["measured"];
    assert_eq!(measured["packets"], 200);
    assert_eq!(measured["source"], "the captures");
    // 40 of 200 packets are long. They come from lan, where `count` is first.
    let stages = measured["plans"][0].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    assert_eq!(stages[0]["functions"], "count");
    assert!(stages[0]["cost"]["packet_ns"].as_f64().unwrap() > 0.0, "{stages:?}");
    let counts: Vec<&Value> =
        measured["predicted"].as_array().unwrap().iter().map(|one| &one["stages"]).collect();
    assert_eq!(counts, [1, 2]);
    for key in ["burst_ns", "bundle_ns", "packet_ns", "hop_ns", "moved_ns", "copy_ns", "wake_ns"] {
        assert!(measured["overheads"][key].as_f64().unwrap() >= 0.0, "{key}");
    }
    for goal in ["throughput", "latency"] {
        assert!(measured["auto"][goal].is_string(), "{measured}");
    }
}

#[test]
fn a_plan_that_cannot_be_measured_says_why() {
    let folder = folder();
    folder
        .braid(&["graph", "c.braid", "--plan", "--stages", "1", "--measure"])
        .code(0)
        .says("not measured, so auto takes fused: it is one stage: no more stages were asked for");
    folder.braid(&["graph", "c.braid", "--measure"]).code(2);
    folder.braid(&["graph", "c.braid", "--plan", "--in", "in.pcap"]).code(2);
}
