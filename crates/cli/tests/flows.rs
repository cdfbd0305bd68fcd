//! Tests `braid flows`: the records after captures, in text and JSON, and that they repeat. Also
//! tests the path that `braid trace` prints for a packet with records.

mod common;

use braid_packet::Packet;
use common::{Ended, Folder, S, request, udp};
use serde_json::{Value, json};

/// A router hop, a translator, and a counter of the packets of each source.
const CHAIN: &str = "\
nf hop() {
  match { ip.ttl > 1 => { ip.ttl -= 1; output; } has ip => drop \"expired\"; else => output; }
}
nf sources() {
  state seen: { packets: u32, bytes: size } per ip.src, capacity 10;
  match {
    forward and exists seen => { seen.packets += 1; seen.bytes += pkt.len; output; }
    forward and has ip => { seen = { packets: 1, bytes: 0 B } else drop \"full\"; output; }
    else => output;
  }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  hop = hop();
  seen = sources();
  nat = napt(public: 203.0.113.1);
  path lan <-> hop <-> seen <-> nat <-> wan;
}
";

/// A packet to a port of the translator without a mapping.
fn stray(time_ns: u64) -> Packet {
    udp(time_ns, (0xc000_0201, 53), (0xcb00_7101, 9), 20)
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("chain.braid", CHAIN);
    let requests = (1..=7).flat_map(|at| [request(at * S, 1, 10), request(at * S + 1, 2, 20)]);
    folder.capture("in.pcap", &requests.collect::<Vec<_>>());
    folder.capture("back.pcap", &(1..=7).map(|at| stray(at * S + 2)).collect::<Vec<_>>());
    folder
}

#[test]
fn flows_shows_what_each_record_does_and_depends_on() {
    let ended =
        folder().braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap"]).code(0);
    ended
        .says("packets: 10 hits, 0 guard failures, 11 misses\n")
        .says("records: 3 now, 3 made, 1 of them by scripts, 0 renewed, 0 ended, 0 refused, 0 contended; 2 templates\n")
        .says("  enters hop forward: program ")
        .says("  hop (hop) forward\n    row 1: ip.ttl > 1\n  seen (sources) forward\n")
        .says("    row 9: forward and exists map\n  if ip.ttl >= 2\n")
        .says("  writes ip.src, l4.sport, ip.ttl - 1\n  leaves by wan\n")
        .says("  udp 10.0.0.1:1000 > 192.0.2.1:53\n    3 packets, 156 bytes, last at 7.000000000\n")
        .says("    writes ip.src = 203.0.113.1, l4.sport = 1024, IPv4 checksum + 0x")
        .says("    depends on seen.seen[10.0.0.1]: packets + 1, bytes + bytes\n")
        .says("    depends on nat.map[17, 10.0.0.1, 1000]: = 1024\n")
        .says("  dropped by nat, row 13: no mapping\n")
        .says("    depends on no nat.back[17, 9]\n");
}

#[test]
fn flows_says_which_state_functions_could_run_at_the_same_time() {
    let folder = folder();
    let chain = "chain c {
        interface lan { behind 10.0.0.0/8 }
        interface wan;
        look = ids(signatures: patterns(\"bad\"), scope: rules(\"scope\"));
        count = monitor();
        path lan <-> look <-> count <-> wan;
    }";
    folder.write("chain.braid", chain);
    folder.write("bad", "1 \"cmd.exe\"\n");
    folder.write("scope", "default pass\n");
    folder
        .braid(&["flows", "chain.braid", "--in", "lan=in.pcap"])
        .code(0)
        .says("  look (ids) forward\n")
        .says("    its state functions read the payload\n    scope decides by rule 0\n")
        .says("    its state functions ignore the payload\n")
        .says("  at the same time could run the state functions of look and count\n");
}

#[test]
fn flows_in_json_names_keys_constants_and_state() {
    let folder = folder();
    let args = ["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap", "--json"];
    let value = folder.braid(&args).code(0).json();
    assert_eq!(
        (&value["hits"], &value["now"], &value["left_out"]),
        (&json!(10), &json!(3), &json!(0))
    );
    let records = value["records"].as_array().expect("a list");
    let sends = |record: &&Value| record["key"]["ip.src"] == "10.0.0.2";
    let record = records.iter().find(sends).expect("the second host's flow");
    let key = json!({
        "ip.proto": "17", "ip.src": "10.0.0.2", "ip.dst": "192.0.2.1", "l4.sport": "1000",
        "l4.dport": "53",
    });
    assert_eq!(record["key"], key);
    assert_eq!(record["writes"], json!({ "ip.src": "203.0.113.1", "l4.sport": "1025" }));
    assert_eq!((&record["packets"], &record["bytes"]), (&json!(4), &json!(248)));
    assert_eq!(record["last_taken_ns"], json!(7 * S + 1));
    let adds = |slot: &str, packet: u64, byte: u64| {
        json!({
            "slot": slot, "change": "add", "for_packet": packet, "for_byte": byte, "wraps": false,
            "least": null, "most": null,
        })
    };
    let depends_on = json!({
        "function": "seen", "table": "seen", "key": ["10.0.0.2"], "reads": {},
        "changes": [adds("packets", 1, 0), adds("bytes", 0, 1)],
    });
    assert_eq!(record["depends_on"][0], depends_on);
    assert_eq!(record["depends_on"][1]["reads"], json!({ "": 1025 }));
    let templates = value["templates"].as_array().expect("a list");
    let template = &templates[record["template"].as_u64().expect("a number") as usize];
    assert_eq!(template["end"], json!({ "what": "leave", "interface": "wan" }));
    assert_eq!(
        (&template["ttl"], &template["records"], &template["packets"]),
        (&json!(1), &json!(2), &json!(7))
    );
    assert_eq!(template["guards"][0]["text"], "ip.ttl >= 2");
}

/// Functions that change tags, publish events, and send copies.
const SIDE_EFFECTS: &str = "\
event SEEN extends EVENT { src: ip4 }
nf stamp(id: u12) {
  tag zone: u12;
  match {
    has eth => { push vlan(id); zone = id; output; }
    else => output;
  }
}
nf tell() {
  port side;
  state n: u32 per ip.src = 0, capacity 10;
  match {
    has ip => { n += 1; emit SEEN { src: ip.src }; mirror side; output; }
    else => output;
  }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  interface log;
  tell = tell();
  path lan <-> stamp(id: 9) <-> tell <-> wan;
  link tell.side -> log;
}
";

#[test]
fn flows_shows_tags_events_and_copies() {
    let folder = folder();
    folder.write("chain.braid", SIDE_EFFECTS);
    let ended = folder.braid(&["flows", "chain.braid", "--in", "lan=in.pcap"]).code(0);
    ended
        .says("  tell (tell) forward\n    row 1: has ip\n    publishes SEEN\n    its state functions ignore the payload\n  pushes vlan 9\n")
        .says("  tag zone = 9\n  a copy leaves by log\n  leaves by wan\n");
    let args = ["flows", "chain.braid", "--in", "lan=in.pcap", "--json"];
    let value = folder.braid(&args).code(0).json();
    let template = &value["templates"][0];
    let tag = json!([{ "tpid": 0x8100, "id": 9, "pcp": 0, "dei": false }]);
    assert_eq!((&template["pushes"], &template["pops"]), (&tag, &json!(0)));
    assert_eq!(template["tags"], json!([{ "tag": "zone", "value": "9" }]));
    assert_eq!(template["copies"], json!(["log"]));
    assert_eq!(template["functions"][1]["events"], json!(["SEEN"]));
}

#[test]
fn flows_shows_as_many_records_as_asked_or_only_templates() {
    let folder = folder();
    let one = folder
        .braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap", "--limit", "1"])
        .code(0);
    assert_eq!(one.out.matches("last at").count(), 1, "{}", one.out);
    one.says("\nand 2 more records\n");
    let templates = folder
        .braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap", "--templates"])
        .code(0);
    assert!(!templates.out.contains("last at"), "{}", templates.out);
    templates.says("template 0: ").says("template 1: ");
    let args =
        ["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap", "--templates", "--json"];
    assert!(folder.braid(&args).code(0).json().get("records").is_none());
}

#[test]
fn flows_are_the_same_each_time() {
    let folder = folder();
    let show = || {
        folder
            .braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "wan=back.pcap", "--json"])
            .code(0)
            .out
    };
    assert_eq!(show(), show());
}

/// The output of `braid flows` after a change of configuration, 5.5 s after the first of seven
/// packets.
fn changed(folder: &Folder, change: &str) -> Ended {
    folder.write("control.txt", &format!("+5.5 {change}\n"));
    let inputs = ["--in", "lan=in.pcap", "wan=back.pcap", "--control", "control.txt"];
    folder.braid(&[&["flows", "chain.braid"][..], &inputs].concat()).code(0)
}

#[test]
fn change_of_what_is_compiled_into_programs_ends_records_and_that_of_a_time_none() {
    let folder = folder();
    changed(&folder, "set nat.public 203.0.113.2")
        .says("records: 1 now, 4 made, 1 of them by scripts, 0 renewed, 3 ended, ");
    changed(&folder, "set nat.idle 1 min")
        .says("records: 3 now, 3 made, 1 of them by scripts, 0 renewed, 0 ended, ");
}

/// A filter and a load balancer, and two hosts. The second host sends its last packet before the
/// first host does.
fn walls() -> Folder {
    let folder = Folder::new();
    let chain = "chain c {
        interface lan { behind 10.0.0.0/8 }
        interface wan;
        wall = ipfilter(filter: rules(\"wall\"));
        lb = maglev(vip: 192.0.2.1, backends: [192.0.2.10, 192.0.2.11]);
        path lan <-> wall <-> lb <-> wan;
    }";
    folder.write("chain.braid", chain);
    folder.write("wall", "pass proto udp\ndefault drop\n");
    let mut requests: Vec<_> =
        (1..=7).flat_map(|at| [request(at * S, 1, 20), request(at * S + 1, 2, 20)]).collect();
    requests.pop();
    folder.capture("in.pcap", &requests);
    folder.capture("back.pcap", &[stray(2 * S)]);
    folder
}

#[test]
fn flows_shows_what_parameters_records_depend_on_and_which_are_outdated() {
    let folder = walls();
    let before = changed(&folder, "set lb.idle 1 min");
    before.says("  depends on wall.filter\n  depends on lb.backends: number ");
    let after = changed(&folder, "add-rule wall.filter at 0 drop to 192.0.2.11");
    // The hosts' backends differ, so their records have different paths, and scripts make none.
    after
        .says("records: 2 now, 3 made, 0 of them by scripts, 1 renewed, 1 ended, ")
        .says(": 1 record (outdated), ");
}

#[test]
fn trace_says_that_a_record_was_outdated() {
    let folder = walls();
    let traced = |change: &str| {
        folder.write("control.txt", &format!("+5.5 {change}\n"));
        let args = ["trace", "chain.braid", "--in", "lan=in.pcap", "--packet", "13", "--control"];
        folder.braid(&[&args[..], &["control.txt"]].concat()).code(0)
    };
    traced("add-rule wall.filter at 0 drop to 192.0.2.11")
        .says("record (hit): made for this packet, in place of one that is outdated");
    let outdated = "guard failure: its record is outdated: it depends on lb.backends or \
                    wall.filter, which has changed, and no other record can be made: it changes \
                    state: lb.chosen";
    let moved = ["192.0.2.10", "192.0.2.11"]
        .map(|addr| traced(&format!("backend lb.backends down {addr}")).out);
    assert_eq!(moved.iter().filter(|out| out.contains(outdated)).count(), 1, "{moved:?}");
    assert_eq!(
        moved.iter().filter(|out| out.trim_end().ends_with("record (hit)")).count(),
        1,
        "{moved:?}"
    );
}

/// The path that `braid trace` prints for a packet of the first host or for an odd packet.
fn path(folder: &Folder, packet: &str) -> String {
    let args = ["trace", "chain.braid", "--in", "paths.pcap", "--packet", packet];
    let ended = folder.braid(&args).code(0);
    let without = folder.braid(&[&args[..], &["--engine", "reference"]].concat()).code(0);
    let path = ended.out.strip_prefix(&without.out).expect("the walk stays what it is");
    path.strip_prefix("with flow records\n  ")
        .unwrap_or_else(|| panic!("{packet}: {path}"))
        .trim_end()
        .to_owned()
}

fn paths() -> Folder {
    let folder = folder();
    let mut dying = request(4 * S, 1, 20);
    dying.data_mut()[14 + 8] = 1;
    let short = request(S + 2, 1, 0);
    let packets = [
        request(S, 1, 20),
        request(S + 1, 1, 20),
        short,
        request(2 * S, 1, 20),
        request(3 * S, 1, 20),
        request(3 * S + 1, 1, 20),
        request(3 * S + 2, 1, 20),
        dying,
        request(500 * S, 1, 20),
        request(500 * S, 1, 20),
    ];
    folder.capture("paths.pcap", &packets);
    folder
}

#[test]
fn trace_says_which_path_a_packet_took_and_why() {
    let folder = paths();
    assert_eq!(path(&folder, "1"), "miss: it is the first packet of all");
    let yet = "miss: no record yet: Braid tries to make one for the flow's fourth packet, then \
               for the eighth, the sixteenth, … (later if earlier records were hardly used, and for \
               the second if they were used often)";
    ["2", "3", "4", "10"].iter().for_each(|packet| assert_eq!(path(&folder, packet), yet));
    assert_eq!(path(&folder, "5"), "record (hit): made for this packet");
    ["6", "7"].iter().for_each(|packet| assert_eq!(path(&folder, packet), "record (hit)"));
    assert_eq!(path(&folder, "8"), "guard failure: guard ip.ttl >= 2 does not hold: it is 1");
    assert_eq!(path(&folder, "9"), "guard failure: something is due");
}

#[test]
fn trace_says_that_no_record_is_looked_for_in_a_scan() {
    let folder = folder();
    let hosts = (1..=250).map(|host| request(u64::from(host) * S / 1000, host, 20));
    folder.capture("paths.pcap", &hosts.collect::<Vec<_>>());
    let left_out = "miss: no search for a record: few earlier packets belonged to known flows or \
                    took records, so most packets skip the search";
    let yet = |packet| path(&folder, packet) != left_out;
    assert_eq!(["1", "128", "129", "247", "248"].map(yet), [true, true, false, false, true]);
}

#[test]
fn trace_says_what_state_a_packet_without_record_changes() {
    let folder = folder();
    let args = ["trace", "chain.braid", "--in", "in.pcap", "--packet", "2", "--engine", "fused"];
    let why = "no record can be made: it changes state: new entry seen.seen";
    folder.braid(&args).code(0).says(&format!("with flow records\n  miss: {why}\n"));
    let value = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    assert_eq!(value["path"], json!({ "taken": "miss", "why": why, "rest": false, "part": false }));
}

#[test]
fn packets_that_leave_a_tunnel_are_said_to_take_records_from_there() {
    let folder = folder();
    let tunnel = "nf begins() {
          match {
            forward and has ip => {
              push ip { src: 192.0.2.1, dst: 192.0.2.2 }, gre else drop \"long\";
              output;
            }
            else => output;
          }
        }
        nf ends() {
          match { has gre => { pop ip, gre else drop \"no packet\"; output; } else => output; }
        }\n";
    let chain = CHAIN.replace("lan <-> hop", "lan <-> begins() <-> ends() <-> hop");
    folder.write("chain.braid", &format!("{tunnel}{chain}"));
    // The programs behind the tunnel's end exist from the first packet on, which comes from the
    // first host. Each host's fourth packet from then on gets a record.
    let counts = "packets: 0 hits, 0 guard failures, 14 misses; 7 further records behind functions \
                  on their paths\n";
    folder.braid(&["flows", "chain.braid", "--in", "lan=in.pcap"]).code(0).says(counts);
    let value = folder.braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "--json"]).code(0);
    assert_eq!(value.json()["rest_hits"], 7);
    let args = ["trace", "chain.braid", "--in", "lan=in.pcap", "--packet", "14"];
    folder.braid(&args).code(0).says("; it took a record for the rest of its path\n");
    let value = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    assert_eq!((&value["path"]["taken"], &value["path"]["rest"]), (&json!("miss"), &json!(true)));
}

#[test]
fn trace_of_other_engines_is_a_usage_error() {
    let folder = folder();
    let args = ["trace", "chain.braid", "--in", "in.pcap", "--packet", "2", "--engine"];
    folder.braid(&[&args[..], &["synth"]].concat()).code(2).warns("reference and fused");
    folder.braid(&[&args[..], &["sinth"]].concat()).code(2).warns("did you mean `synth`?");
}

#[test]
fn flows_and_trace_say_which_records_are_for_a_part_of_a_path() {
    let folder = folder();
    let encrypts = "nf writes() {
          match {
            forward and has l4 => { u8 at payload = 7 else drop \"short\"; output; }
            else => output;
          }
        }\n";
    let many: String = (0..8).map(|at| format!("  m{at} = monitor();\n")).collect();
    let places: String = (0..8).map(|at| format!(" <-> m{at}")).collect();
    let chain = CHAIN.replace("  path", &format!("{many}  path"));
    let chain = chain.replace("<-> nat", &format!("<-> nat{places} <-> writes()"));
    folder.write("chain.braid", &format!("{encrypts}{chain}"));
    let requests = (1..=20).flat_map(|at| [request(at * S, 1, 10), request(at * S + 1, 2, 20)]);
    folder.capture("in.pcap", &requests.collect::<Vec<_>>());
    // The program is made behind the first 33 packets.
    let ended = folder.braid(&["flows", "chain.braid", "--in", "lan=in.pcap"]).code(0);
    ended.says("; 7 records were for a part of a path\n").says("  goes on at writes\n");
    let value = folder.braid(&["flows", "chain.braid", "--in", "lan=in.pcap", "--json"]).code(0);
    let value = value.json();
    assert_eq!((&value["hits"], &value["part_hits"]), (&json!(7), &json!(7)));
    let end = json!({ "what": "onward", "function": "writes" });
    assert_eq!(value["templates"][0]["end"], end);
    let args = ["trace", "chain.braid", "--in", "lan=in.pcap", "--packet", "40"];
    folder.braid(&args).code(0).says("record for a part of its path (hit)\n");
    let value = folder.braid(&[&args[..], &["--json"]].concat()).code(0).json();
    assert_eq!((&value["path"]["taken"], &value["path"]["part"]), (&json!("hit"), &json!(true)));
}
