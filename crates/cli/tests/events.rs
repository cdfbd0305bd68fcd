//! Tests functions that take the events of others, from the command line.

mod common;

use std::path::Path;

use common::{Folder, S, braid, request};
use serde_json::Value;

/// A function that publishes its packets, and one that takes these events.
const CHAIN: &str = "\
event SEEN extends EVENT { src: ip4 }
event SEEN_OFTEN extends SEEN { times: u32 }

nf counter() {
  state seen: u32 per ip.src = 0;
  match {
    has ip => {
      seen += 1;
      if seen > 1 { emit SEEN_OFTEN { src: ip.src, times: seen }; }
      output;
    }
    else => output;
  }
}

nf gate(most: u32 = 1) {
  state often: u32 per (ip4) = 0;
  on SEEN { often[event.src] += 1; }
  match {
    has ip and often[ip.src] > most => drop \"often\";
    else => output;
  }
}

chain gated {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> counter() <-> gate() <-> wan;
}
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("chain.braid", CHAIN);
    let packets: Vec<_> = (1..5).map(|at| request(at * S, 1, 10)).collect();
    folder.capture("in.pcap", &packets);
    folder
}

/// The lines of a file of events: function, type, types that it extends.
fn events(text: &str) -> Vec<(String, String, Vec<String>)> {
    let line = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let extends = event["extends"].as_array().into_iter().flatten().map(text).collect();
        (text(&event["function"]), text(&event["event"]), extends)
    };
    text.lines().map(line).collect()
}

#[test]
fn handlers_decide_about_the_packets_of_all_engines() {
    let folder = folder();
    for engine in ["reference", "sequential", "synth", "fused", "parallel:3"] {
        let args = ["run", "chain.braid", "--in", "in.pcap", "--engine", engine];
        let ended = folder.braid(&[&args[..], &["--json", "--events-out", "events"]].concat());
        let summary = ended.code(0).json();
        // The first packet, and the second one, whose event is the first for its source.
        assert_eq!(summary["packets_out"]["wan"], 2, "{engine}: {summary}");
        let found = events(&folder.read("events"));
        let extends = vec!["SEEN".to_owned(), "EVENT".to_owned()];
        let event = ("counter".to_owned(), "SEEN_OFTEN".to_owned(), extends);
        assert_eq!(found, vec![event; 3], "{engine}");
    }
}

#[test]
fn check_warns_of_a_handler_that_nothing_publishes_for() {
    let folder = folder();
    folder.braid(&["check", "chain.braid"]).code(0);
    folder.write("chain.braid", &CHAIN.replace("counter() <-> ", ""));
    let ended = folder.braid(&["check", "chain.braid"]);
    assert!((ended.out.clone() + &ended.err).contains("E0525"), "{}{}", ended.out, ended.err);
}

#[test]
fn handlers_divide_like_the_functions_whose_packets_they_see() {
    let folder = folder();
    let args = ["run", "chain.braid", "--in", "in.pcap", "--workers", "2", "--json"];
    let summary = folder.braid(&args).code(0).json();
    assert_eq!(summary["packets_out"]["wan"], 2, "{summary}");
    folder.braid(&["check", "chain.braid", "--workers", "2"]).code(0).says("2 workers");
}

#[test]
fn chain_with_events_of_timers_runs_on_one_worker_with_the_reason() {
    let folder = folder();
    let timer = "every 1 s { emit SEEN { src: 10.0.0.1 }; }\n  match";
    folder.write("chain.braid", &CHAIN.replacen("match", timer, 1));
    let args = ["run", "chain.braid", "--in", "in.pcap", "--workers", "2"];
    let reason = "gate takes events that counter publishes without a packet";
    folder.braid(&args).code(0).warns(reason);
    folder.braid(&["check", "chain.braid", "--workers", "2"]).says(reason);
}

#[test]
fn verify_proves_programs_with_handlers() {
    let folder = folder();
    let summary = folder.braid(&["verify", "chain.braid", "--json"]).code(0).json();
    assert_eq!(summary["verdict"], "proven", "{summary}");
}

#[test]
fn functions_that_share_events_share_a_stage_and_go_in_sequence() {
    let folder = folder();
    let args = ["graph", "chain.braid"];
    folder.braid(&args).code(0).says("counter publishes or takes events, gate publishes or takes");
    let plan = folder.braid(&["graph", "chain.braid", "--plan", "--stages", "3"]);
    plan.code(0).says("one takes events of another");
}

#[test]
fn profiles_name_the_events_that_a_function_takes() {
    let folder = folder();
    let profiles = folder.braid(&["actions", "chain.braid", "--json"]).code(0).json();
    let takes = |name: &str| {
        let all = profiles["functions"].as_array().expect("functions");
        all.iter().find(|one| one["function"] == name).expect("a profile")["takes"].clone()
    };
    assert_eq!(takes("gate"), serde_json::json!(["SEEN"]));
    assert_eq!(takes("counter"), serde_json::json!([]));
}

#[test]
fn example_shows_a_search_and_a_quarantine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Folder::new();
    let path = |name: &str| root.join(name).display().to_string();
    let (example, capture) =
        (path("examples/quarantine.braid"), path("examples/captures/domain-client.pcap.gz"));
    let out = folder.path("events").display().to_string();
    braid(&["run", &example, "--in", &capture, "--events-out", &out]).code(0);
    let found = events(&folder.read("events"));
    assert!(found.len() >= 2, "{found:?}");
    for pair in found.chunks(2) {
        let names: Vec<_> =
            pair.iter().map(|(function, event, _)| (&**function, &**event)).collect();
        assert_eq!(names, [("search", "ROUTE_CHANGE"), ("hold", "QUARANTINE")]);
        assert_eq!(pair[0].2, ["SUSPECT", "EVENT"]);
    }
}
