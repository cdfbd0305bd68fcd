//! Tests `braid trace`, `diff`, `nfs`, `explain`, and the behaviour that all commands share.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{Folder, S, braid, command, reply, request, udp};
use serde_json::{Value, json};

fn folder() -> Folder {
    let folder = Folder::edge();
    let stray = udp(4 * S, (0x0808_0808, 1), (0x0909_0909, 1), 0);
    folder.capture(
        "in.pcap",
        &[request(S, 1, 10), request(2 * S, 1, 20), request(3 * S, 2, 200), stray],
    );
    folder
}

#[test]
fn trace_shows_what_a_function_read_wrote_and_decided() {
    let ended =
        folder().braid(&["trace", "chain.braid", "--in", "in.pcap", "--packet", "2"]).code(0);
    let ended = ended
        .says("packet 2 at 2.000000000 enters at lan\n")
        .says("f (limit) forward\n")
        .says("  row 1: ")
        .says("reads pkt.len = 62")
        .says("state seen[10.0.0.1] becomes 2")
        .says("output onward")
        .says("leaves by wan\n");
    assert!(!ended.out.contains("created"), "the first packet made the entry\n{}", ended.out);
}

#[test]
fn trace_shows_why_a_packet_was_dropped() {
    let folder = folder();
    let args = ["trace", "chain.braid", "--in", "in.pcap", "--packet", "3"];
    folder.braid(&args).code(0).says("row 3").says("drop: too long");
    let value = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    assert_eq!((&value["packet"], &value["time_ns"]), (&json!(3), &json!(3 * S)));
    assert_eq!(value["interface"], "lan");
    let last = value["steps"].as_array().unwrap().last().unwrap().clone();
    let drop = json!({ "what": "drop", "function": "f", "row": "3", "reason": "too long" });
    assert_eq!(last, drop);
}

#[test]
fn trace_of_a_packet_that_enters_nowhere_says_so() {
    let folder = folder();
    let args = ["trace", "chain.braid", "--in", "in.pcap", "--packet", "4"];
    folder.braid(&args).code(0).says("does not enter").says("no_interface");
}

#[test]
fn trace_of_a_packet_that_is_not_there_is_a_usage_error() {
    let folder = folder();
    let trace = |n: &str| folder.braid(&["trace", "chain.braid", "--in", "in.pcap", "--packet", n]);
    trace("5").code(2).warns("there is no packet 5; 4 were read");
    trace("0").code(2);
}

#[test]
fn trace_counts_entering_packets_of_several_captures() {
    let folder = folder();
    folder.capture("back.pcap", &[reply(S + 1, 1, 10)]);
    let inputs = ["trace", "chain.braid", "--in", "lan=in.pcap", "--in", "wan=back.pcap"];
    let second = folder.braid(&[&inputs[..], &["--packet", "2"]].concat()).code(0);
    second.says("enters at wan").says("f (limit) backward").says("leaves by lan");
}

#[test]
fn diff_of_equal_captures_ends_with_0() {
    let folder = folder();
    let ended = folder.braid(&["diff", "in.pcap", "in.pcap"]).code(0);
    assert_eq!(ended.out, "4 packets: equal\n");
    let value = folder.braid(&["diff", "in.pcap", "in.pcap", "--json"]).code(0).json();
    let equal = json!({
        "equal": true, "packets": [4, 4], "different": 0, "changed": 0, "only": [0, 0],
        "differences": [],
    });
    assert_eq!(value, equal);
}

#[test]
fn diff_aligns_and_names_fields_and_ends_with_1() {
    let folder = Folder::new();
    folder.capture("a.pcap", &[request(S, 1, 1), request(2 * S, 1, 2), request(3 * S, 1, 3)]);
    folder.capture("b.pcap", &[request(S + 1, 1, 1), request(3 * S, 2, 3), request(4 * S, 1, 9)]);
    let text = folder.braid(&["diff", "a.pcap", "b.pcap"]).code(1);
    text.says("packet 1\n  time: 1000000000 -> 1000000001\n")
        .says("- packet 2: 10.0.0.1:1000 > 192.0.2.1:53")
        .says("packet 3 -> 2\n  ip.src: 10.0.0.1 -> 10.0.0.2\n")
        .says("+ packet 3: 10.0.0.1:1000 > 192.0.2.1:53")
        .says("3 packets: 4 differ: 2 changed, 1 only in the first, 1 only in the second\n");
    let args = ["diff", "a.pcap", "b.pcap", "--ignore-time", "--json"];
    let value = folder.braid(&args).code(1).json();
    assert_eq!((&value["equal"], &value["different"]), (&json!(false), &json!(3)));
    assert_eq!((&value["changed"], &value["only"]), (&json!(1), &json!([1, 1])));
    let found = &value["differences"];
    assert_eq!((&found[0]["a"], &found[0]["b"]), (&json!(2), &json!(null)));
    assert_eq!((&found[1]["a"], &found[1]["b"]), (&json!(3), &json!(2)));
    assert_eq!(found[2]["b"], 3);
}

#[test]
fn diff_shows_as_many_packets_as_asked() {
    let folder = Folder::new();
    folder.capture("a.pcap", &[request(1, 1, 1), request(2, 1, 1)]);
    folder.capture("b.pcap", &[request(1, 2, 1), request(2, 2, 1)]);
    let ended = folder.braid(&["diff", "a.pcap", "b.pcap", "--limit", "1"]).code(1);
    let ended = ended.says("packet 1\n").says("1 more packets differ");
    assert!(!ended.out.contains("packet 2\n"));
}

#[test]
fn diff_of_what_is_no_capture_ends_with_3() {
    let folder = folder();
    folder.braid(&["diff", "in.pcap", "chain.braid"]).code(3).warns("chain.braid: not a capture");
}

#[test]
fn nfs_lists_the_library_and_prints_pages_and_models() {
    braid(&["nfs"]).code(0).says("napt").says("router");
    let value = braid(&["nfs", "--json"]).code(0).json();
    let names: Vec<&Value> =
        value["functions"].as_array().unwrap().iter().map(|f| &f["name"]).collect();
    assert!(names.contains(&&json!("stateful_firewall")), "{names:?}");
    braid(&["nfs", "napt"]).code(0).says("#");
    braid(&["nfs", "napt", "--source"]).code(0).says("nf napt(");
    assert_eq!(braid(&["nfs", "napt", "--json"]).code(0).json()["name"], "napt");
    braid(&["nfs", "natp"]).code(2).warns("did you mean `napt`?");
}

#[test]
fn explain_prints_what_a_code_means() {
    braid(&["explain", "E0512"]).code(0).says("E0512: a loop").says("Wrong:").says("Right:");
    braid(&["explain", "512"]).code(0).says("E0512: a loop");
    assert_eq!(braid(&["explain", "E0512", "--json"]).code(0).json()["title"], "a loop");
    braid(&["explain"]).code(0).says("E0512  a loop");
    braid(&["explain", "E9999"]).code(2).warns("no message has the code `E9999`");
}

/// The subcommands that the help lists.
fn subcommands() -> Vec<String> {
    let help = braid(&["--help"]).code(0).out;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(String::from).collect()
}

#[test]
fn every_subcommand_and_option_is_documented() {
    let docs = include_str!("../../../docs/cli.md");
    let commands = subcommands();
    assert!(commands.len() >= 9, "{commands:?}");
    for name in commands {
        assert!(docs.contains(&format!("\n## braid {name}\n")), "no section for `{name}`");
        let row = format!("\n| [`{name}`](#braid-{name}) | ");
        assert!(docs.contains(&row), "no row for `{name}` in the table of commands");
        let help = braid(&[&name, "--help"]).code(0).out;
        let options = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
        for option in options {
            let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let option = option.split(['=', '`']).next().unwrap_or("");
            if !["help", ""].contains(&option) {
                assert!(docs.contains(&format!("--{option}")), "`{name} --{option}` is not there");
            }
        }
    }
}

#[test]
fn documented_keys_of_the_report_are_there() {
    let folder = folder();
    let report = folder.braid(&["run", "chain.braid", "--in", "in.pcap", "--json"]).code(0).json();
    for key in
        ["packets_in", "created", "copied", "packets_out", "drops", "lost", "held", "consumed"]
    {
        assert!(report.get(key).is_some(), "{key}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    braid(&["frobnicate"]).code(2);
    braid(&["diff", "only-one.pcap"]).code(2);
    braid(&["nfs", "--source"]).code(2);
    braid(&[]).code(2);
}

#[test]
fn closed_pipe_is_no_error() {
    let mut child = command()
        .args(["explain", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let status = child.wait().expect("it ends");
    let mut message = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut message).expect("text");
    assert_eq!((status.code(), message.as_str()), (Some(0), ""));
}

#[test]
fn full_disk_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = command().arg("explain").stdout(full).output().expect("the command starts");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn full_or_closed_standard_error_changes_nothing() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let status = command().args(["nfs", "natp"]).stderr(full).status().expect("the command starts");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn captures_come_from_standard_input_too() {
    let folder = folder();
    let input = std::fs::File::open(folder.path("in.pcap")).expect("the capture");
    let mut diff = command();
    diff.args(["diff", "-", "in.pcap"]).stdin(input).current_dir(folder.path("."));
    assert_eq!(diff.output().expect("the command starts").status.code(), Some(0));
}
