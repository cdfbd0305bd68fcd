//! Tests the sources of `braid gen` from the command line.

mod common;

use common::{Folder, S, reply, request};
use serde_json::json;

const TEMPLATE: &str = "\
- duration: 2
  generator: {clients_start: 16.0.0.1, clients_end: 16.0.0.9, servers_start: 48.0.0.1,
    servers_end: 48.0.0.9, colour: red}
  cap_info:
    - {name: cap2/dns.pcap, cps: 50, ipg: 10, rtt: 10}
    - {name: cap2/none.pcap, cps: 1, ipg: 10, rtt: 10}
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.capture("x__cap2__dns.pcap", &[request(S, 1, 10), reply(2 * S, 1, 20)]);
    folder.write("t.yaml", TEMPLATE);
    folder
}

#[test]
fn gen_flows_writes_what_its_summary_says() {
    let folder = Folder::new();
    let args = "gen flows --flows 10 --packets 101 --rate 1000 --size 100 --proto udp --out f.pcap";
    let args: Vec<&str> = args.split(' ').collect();
    folder.braid(&args).code(0).says("f.pcap: 101 packets, 10,100 bytes, 10 flows, 0.1");
    let packets = folder.packets("f.pcap");
    let bytes: u64 = packets.iter().map(|packet| u64::from(packet.wire_len)).sum();
    assert_eq!((packets.len(), bytes), (101, 10_100));
    let value = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    assert_eq!(value["packets"], 101);
    assert_eq!(value["bytes"], 10_100);
    assert_eq!(value["flows"], 10);
    let seconds = value["seconds"].as_f64().unwrap();
    assert!((seconds - 0.1).abs() < 1e-6, "{seconds}");
}

#[test]
fn gen_with_the_same_seed_gives_the_same_file() {
    let folder = Folder::new();
    let made = |seed: &str, out: &str| {
        let args =
            ["gen", "flows", "--flows", "9", "--packets", "90", "--seed", seed, "--out", out];
        folder.braid(&args).code(0);
        std::fs::read(folder.path(out)).unwrap()
    };
    assert_eq!(made("7", "a.pcap"), made("7", "b.pcap"));
    assert_ne!(made("7", "a.pcap"), made("8", "b.pcap"));
}

#[test]
fn gen_template_expands_and_warns() {
    let folder = folder();
    let args = ["gen", "template", "t.yaml", "--out", "o.pcap", "--arrivals", "regular"];
    folder.braid(&args).code(3).warns("no capture `cap2/none.pcap`").warns("--skip-missing");
    let ended = folder.braid(&[&args[..], &["--skip-missing", "--json"]].concat()).code(0);
    let ended = ended.warns("left out").warns("line 3: generator.colour is not known");
    assert_eq!(ended.json()["packets"], json!(2 * 50 * 2));
    assert_eq!(folder.packets("o.pcap").len(), 200);
    let few = ["--skip-missing", "--packets", "7", "--start", "5.5"];
    folder.braid(&[&args[..], &few].concat()).code(0);
    let packets = folder.packets("o.pcap");
    assert_eq!(packets.len(), 7);
    assert!((5_500_000_000..6_000_000_000).contains(&packets[0].time_ns));
}

#[test]
fn gen_template_without_any_connection_warns() {
    let folder = folder();
    let args = "gen template t.yaml --skip-missing --seconds 0 --out o.pcap";
    let args: Vec<&str> = args.split(' ').collect();
    folder.braid(&args).code(0).warns("no connection begins").says("0 packets");
    assert!(folder.packets("o.pcap").is_empty());
}

#[test]
fn gen_template_error_names_file_line_and_key() {
    let folder = folder();
    folder.write("t.yaml", &TEMPLATE.replace("cps: 50", "cps: many"));
    let ended = folder.braid(&["gen", "template", "t.yaml", "--out", "o.pcap"]);
    ended.code(3).warns("t.yaml: line 5: cap_info[0].cps: expected a number, found `many`");
    assert!(!folder.path("o.pcap").exists());
}

#[test]
fn gen_repeat_shifts_times_and_addresses() {
    let folder = folder();
    let args = "gen repeat x__cap2__dns.pcap --times 3 --gap 1 --shift 10.0.0.0/8 --out r.pcap";
    let args: Vec<&str> = args.split(' ').collect();
    folder.braid(&args).code(0).says("r.pcap: 6 packets, ").says("3 flows, 5.000000 s");
    let expected = [
        request(S, 1, 10),
        reply(2 * S, 1, 20),
        request(3 * S, 2, 10),
        reply(4 * S, 2, 20),
        request(5 * S, 3, 10),
        reply(6 * S, 3, 20),
    ];
    assert_eq!(folder.packets("r.pcap"), expected);
}

#[test]
fn gen_never_writes_over_its_input() {
    let folder = folder();
    let before = std::fs::read(folder.path("x__cap2__dns.pcap")).unwrap();
    let input = "x__cap2__dns.pcap";
    let args = ["gen", "repeat", input, "--times", "2", "--out", "./x__cap2__dns.pcap"];
    folder.braid(&args).code(2).warns("is an input");
    let args = ["gen", "template", "t.yaml", "--skip-missing", "--out", input];
    folder.braid(&args).code(2).warns("is an input");
    assert_eq!(std::fs::read(folder.path(input)).unwrap(), before);
}

#[test]
fn gen_goes_on_when_its_warnings_cannot_be_written() {
    let folder = folder();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = common::command()
        .args(["gen", "template", "t.yaml", "--skip-missing", "--out", "o.pcap"])
        .current_dir(folder.path("."))
        .stdout(std::process::Stdio::null())
        .stderr(full)
        .status();
    assert_eq!(ended.unwrap().code(), Some(0));
}

#[test]
fn gen_refuses_wrong_values_as_wrong_usage() {
    let folder = folder();
    for (args, expected) in [
        ("flows --flows 0 --packets 1", "--flows must be at least 1"),
        ("flows --flows 9 --packets 1", "at least as many packets"),
        ("flows --flows 1 --packets 1 --size 59", "expected imix"),
        ("flows --flows 1 --packets 1 --proto sctp", "expected one of tcp, udp, mix"),
        ("flows --flows 1 --packets 1 --replies 1.5", "expected a share from 0 to 1"),
        ("flows --flows 1 --packets 1 --from 10.0.0.1/8", "did you mean 10.0.0.0/8?"),
        ("flows --flows 1 --packets 1 --ipv6 --from 10.0.0.0/8", "different IP versions"),
        ("flows --flows 1 --packets 1 --ipv6 --from 10.0.0.0/8 --to 10.0.0.0/8", "contradicts"),
        ("flows --flows 1 --packets 1 --start now", "seconds since the epoch"),
        ("repeat x__cap2__dns.pcap --times 0", "0 is not in"),
        ("repeat x__cap2__dns.pcap --times 18446744073709551615", "2106"),
        ("template t.yaml --scale 0 --skip-missing", "the scale must be above 0"),
        ("template t.yaml --seconds soon", "expected seconds from 0"),
    ] {
        let args: Vec<&str> = ["gen"].into_iter().chain(args.split(' ')).collect();
        folder.braid(&[&args[..], &["--out", "o.pcap"]].concat()).code(2).warns(expected);
    }
}
