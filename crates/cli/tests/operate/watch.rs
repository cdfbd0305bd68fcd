//! Captures and traces of live runs.

use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Ended, Folder, ended, request};
use crate::site::{Site, site};

/// A chain of two functions.
const TWO: &str = "\
nf first() { match {
  forward and pkt.len <= 100 B and has ip => { ip.src = 192.0.2.1; output; }
  else => drop \"too long\";
} }
nf second() { match { else => output; } }
chain two {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  first = first();
  second = second();
  path lan <-> first <-> second <-> wan;
}
";

/// The end of a command. Until then, packets of hosts 1 and 2 enter: those of host 2 are too long.
fn fed(site: &mut Site, mut child: Child) -> Ended {
    while child.try_wait().expect("the command's state").is_none() {
        site.send(&[request(0, 1, 10), request(0, 2, 100)]);
        std::thread::sleep(Duration::from_millis(20));
    }
    ended(&child.wait_with_output().expect("the command's output"))
}

/// How often a text is in a file.
fn times(site: &Site, file: &str, text: &str) -> usize {
    let bytes = std::fs::read(site.folder.path(file)).expect("a capture");
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

#[test]
fn capture_says_what_happened_to_each_packet() {
    site!(site, Folder::edge(), &[]);
    let capture = site.start(&["capture", "lan:in", "--out", "in.pcapng", "--count", "4"]);
    fed(&mut site, capture).code(0).says("4 packets in in.pcapng");
    assert_eq!(site.folder.packets("in.pcapng").len(), 4);
    assert_eq!(times(&site, "in.pcapng", "entered at lan, left the chain for wan"), 2);
    assert_eq!(times(&site, "in.pcapng", "entered at lan, was dropped by f: too long"), 2);
    let filter = "ip.src == 10.0.0.1 and has udp";
    let args = ["capture", "wan", filter, "--out", "out.pcapng", "--count", "3"];
    let capture = site.start(&args);
    fed(&mut site, capture).code(0);
    let packets = site.folder.packets("out.pcapng");
    assert!(packets.iter().all(|packet| packet.data()[26..30] == [10, 0, 0, 1]));
    assert_eq!((packets.len(), times(&site, "out.pcapng", "sent by wan")), (3, 3));
    // What was watched is accounted for as ever.
    site.ask("stop").code(0);
    let report = site.end().code(0).json();
    let [out, dropped] = [&report["packets_out"]["wan"], &report["drops"][0]["count"]];
    assert_eq!(out, dropped, "{report}");
}

#[test]
fn capture_between_functions_shows_what_each_function_gets_and_passes_on() {
    let folder = Folder::edge();
    folder.write("chain.braid", TWO);
    site!(site, folder, &[]);
    let args = ["capture", "second:in", "--out", "in.pcapng", "--count", "4"];
    let capture = site.start(&args);
    fed(&mut site, capture).code(0).says("4 packets in in.pcapng");
    // The first function has changed the source address, and drops long packets.
    let packets = site.folder.packets("in.pcapng");
    assert!(packets.iter().all(|packet| packet.data()[26..30] == [192, 0, 2, 1]));
    let said = "entered second on the left, left the chain for wan";
    assert_eq!(times(&site, "in.pcapng", said), 4);
    // The filter is about the packets there.
    let filter = "ip.src == 10.0.0.2";
    let args = ["capture", "first", filter, "--out", "first.pcapng", "--count", "2"];
    let capture = site.start(&args);
    fed(&mut site, capture).code(0);
    let said = "entered first on the left, did not leave first";
    assert_eq!(times(&site, "first.pcapng", said), 2);
    let args = ["capture", "first:out", "--out", "out.pcapng", "--count", "2"];
    let capture = site.start(&args);
    fed(&mut site, capture).code(0);
    assert_eq!(times(&site, "out.pcapng", "left first, left the chain for wan"), 2);
    // What was watched is accounted for as ever.
    site.ask("stop").code(0);
    let report = site.end().code(0).json();
    let [out, dropped] = [&report["packets_out"]["wan"], &report["drops"][0]["count"]];
    assert_eq!(out, dropped, "{report}");
}

#[test]
fn captures_that_make_no_sense_are_refused() {
    site!(site, Folder::edge(), &[]);
    let refused = |args: &[&str], why: &str| {
        let args = [&["capture"], args, &["--out", "x.pcapng"]].concat();
        ended(&site.ctl(&args).output().unwrap()).code(3).warns(why);
    };
    refused(&["dmz"], "no interface or function `dmz`; the chain has the interfaces lan, wan");
    refused(&["lan:up"], "is `in` or `out`, and not `up`");
    refused(&["lan", "ip.scr == 10.0.0.1"], "ip.scr");
    refused(&["lan", "true => output; } }"], "is not a condition");
    assert!(!site.folder.path("x.pcapng").exists());
    let args = ["capture", "lan", "--out", "none.pcapng", "--for", "100ms"];
    ended(&site.ctl(&args).output().unwrap()).code(0).says("0 packets");
}

#[test]
fn capture_replaces_a_file_only_if_told_to() {
    site!(site, Folder::edge(), &[]);
    let path = site.folder.path("x.pcapng");
    std::fs::write(&path, "precious").unwrap();
    let capture = |more: &[&str]| {
        let args = ["capture", "lan", "--out", "x.pcapng", "--for", "100ms"];
        ended(&site.ctl(&[&args, more].concat()).output().unwrap())
    };
    capture(&[]).code(3).warns("x.pcapng: the file exists; `--force` replaces it");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    capture(&["--force"]).code(0).says("0 packets");
    assert_ne!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn trace_shows_the_ways_of_packets_that_a_record_takes_through() {
    site!(site, Folder::edge(), &[]);
    // The program for these packets is compiled, and their flow has a record.
    for _ in 0..50 {
        site.send(&[request(0, 1, 10), request(0, 2, 100)]);
        std::thread::sleep(Duration::from_millis(10));
    }
    let trace = site.start(&["trace", "ip.src == 10.0.0.1", "--count", "2"]);
    let ended = fed(&mut site, trace).code(0);
    let text = &ended.out;
    assert_eq!(text.matches("leaves by wan").count(), 2, "{text}");
    assert!(
        text.contains("packet 2 at ") && text.contains("state seen[10.0.0.1] becomes"),
        "{text}"
    );
    assert!(text.contains("record (hit)"), "{text}");
    let trace = site.start(&["trace", "ip.src == 10.0.0.2", "--json"]);
    let walk = fed(&mut site, trace).code(0).json();
    let last = walk["steps"].as_array().and_then(|steps| steps.last()).unwrap();
    assert_eq!((&last["what"], &last["reason"]), (&"drop".into(), &"too long".into()), "{walk}");
    // The state counts each packet once.
    site.ask("stop").code(0);
    let report = site.end().code(0).json();
    assert_eq!(report["packets_out"]["wan"], report["drops"][0]["count"], "{report}");
}

#[test]
fn trace_of_a_chain_with_much_state_is_refused() {
    site!(site, Folder::edge(), &[]);
    site.send(&[request(0, 1, 10)]);
    site.until("there is an entry", |site| {
        site.json("state")["entries"].as_array().is_some_and(|entries| !entries.is_empty())
    });
    let trace = site.start(&["trace", "--most-entries", "0"]);
    fed(&mut site, trace).code(3).warns("the chain has 1 state entries");
}

#[test]
fn pages_of_a_listing_show_the_state_of_one_time() {
    site!(site, Folder::edge(), &[]);
    let hosts = |page: &Value| {
        let entries = page["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["key"].to_string()).collect::<Vec<_>>()
    };
    let sees = |site: &mut Site, host: u8, count: usize| {
        site.send(&[request(0, host, 10)]);
        site.until("the host is there", |site| hosts(&site.json("state f")).len() == count);
    };
    sees(&mut site, 1, 1);
    sees(&mut site, 2, 2);
    let first = site.json("state --limit 1");
    assert_eq!((hosts(&first).len(), &first["next"]), (1, &1.into()), "{first}");
    site.send(&[request(0, 3, 10)]);
    site.until("the host came", |site| site.json("counters")["packets_in"] == 3);
    let rest = site.json("state --from 1");
    assert_eq!((hosts(&rest).len(), &rest["next"]), (1, &Value::Null), "{rest}");
    assert_ne!(hosts(&first), hosts(&rest));
    assert_eq!(hosts(&site.json("state")).len(), 3);
    site.ask("state x").code(3).warns("no function `x`; those of chain `");
}

#[test]
fn status_says_what_is_compiled() {
    site!(site, Folder::edge(), &[]);
    // Programs are compiled for their 65th packet.
    let requests: Vec<_> = (0..20).map(|_| request(0, 2, 100)).collect();
    let mut programs = Value::Null;
    for _ in 0..200 {
        site.send(&requests);
        std::thread::sleep(Duration::from_millis(10));
        programs = site.json("status")["workers"][0]["programs"].take();
        if programs["machine_code"] == 1 {
            break;
        }
    }
    assert_eq!(programs["machine_code"], 1, "{programs}");
    assert_eq!(programs["refused"], Value::Object(Default::default()), "{programs}");
    assert_eq!(programs["compiler_has_ended"], false, "{programs}");
}

#[test]
fn captures_traces_and_drains_are_those_of_all_workers() {
    site!(site, Folder::edge(), &["--workers", "2"]);
    assert_eq!(site.json("status")["workers"].as_array().map(Vec::len), Some(2));
    let capture = site.start(&["capture", "lan", "--out", "in.pcapng", "--count", "20"]);
    fed(&mut site, capture).code(0);
    let comments = ["left the chain for wan", "was dropped by f: too long"];
    let [left, dropped] = comments.map(|comment| times(&site, "in.pcapng", comment));
    // Packets come in pairs. The end may part the last pair of each worker.
    assert!(left + dropped == 20 && left.abs_diff(dropped) <= 2, "{left} {dropped}");
    for host in ["10.0.0.1", "10.0.0.2"] {
        let trace = site.start(&["trace", &format!("ip.src == {host}")]);
        fed(&mut site, trace).code(0).says("f (limit) forward");
    }
    site.ask("drain").code(0).says("0 packets wait");
    let report = site.end().code(0).json();
    assert_eq!(report["packets_out"]["wan"], report["drops"][0]["count"], "{report}");
}

#[test]
fn flows_shows_the_records_of_a_run_in_pages() {
    site!(site, Folder::edge(), &[]);
    let hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
    let mut answer = String::new();
    for _ in 0..200 {
        for host in 1..=3 {
            site.send(&[request(0, host, 10)]);
        }
        answer = site.ask("flows").code(0).out;
        if hosts.iter().all(|host| answer.contains(host)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(hosts.iter().all(|host| answer.contains(host)), "{answer}");
    let count = |page: &Value| page["flows"]["records"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&site.json("flows --contains 10.0.0.2")), 1);
    // Each page goes on where the one before has ended.
    let (mut from, mut found) = (Some(0), 0);
    while let Some(at) = from {
        let page = site.json(&format!("flows --from {at} --limit 1"));
        assert!(count(&page) <= 1, "{page}");
        (from, found) = (page["next"].as_u64(), found + count(&page));
    }
    assert_eq!(found, 3);
    site.ask("flows --worker 1").code(3).warns("below 1");
    site.ask("stop").code(0);
    site.end().code(0);
}
