//! Runs the repository's examples (`examples/*.braid`) on the capture that comes with them. The
//! expected results follow from the examples' text. They are read from the packets' bytes here,
//! without the code under test.

use braid_io::{MemorySink, MemorySource};
use braid_ir::chain::Chain;
use braid_ir::engine::Counters;
use braid_packet::Packet;
use braid_runtime::{Input, Run, Sinks};
use braid_testkit::harness::{self, Form};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The computer at the centre of the capture.
const CLIENT: [u8; 4] = [192, 168, 122, 145];
/// The domain controller.
const CONTROLLER: [u8; 4] = [192, 168, 122, 3];
/// The public address of the examples with NAT.
const PUBLIC: [u8; 4] = [203, 0, 113, 1];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn captured() -> Vec<Packet> {
    harness::read_capture(&folder().join("captures/domain-client.pcap.gz")).expect("the capture")
}

/// Names of the examples, without `.braid`.
fn examples() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the examples");
    let paths = files.map(|file| file.expect("readable").path());
    let mut names: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "braid"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn chain(name: &str) -> Chain {
    let path = folder().join(name).with_extension("braid");
    harness::compile_file(&path, Form::AsWritten).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The results of an example on the capture.
struct Outcome {
    chain: Chain,
    counters: Counters,
    /// The packets that left, by interface.
    left: BTreeMap<String, Vec<Packet>>,
}

fn run(name: &str, follow: bool) -> Outcome {
    let chain = chain(name);
    let mut engine = harness::reference(&chain);
    let mut sinks: Vec<_> = chain.interfaces.iter().map(|_| MemorySink::default()).collect();
    let source = Box::new(MemorySource::new(captured()));
    let input = Input { name: "capture".to_owned(), interface: None, source };
    let mut written = Sinks::default();
    for (number, sink) in (0..).zip(&mut sinks) {
        written = written.output("memory", Some(number), sink);
    }
    let run = Run::new(&chain, engine.as_mut()).input(input).follow(follow).sinks(written);
    let summary = run.run().unwrap_or_else(|error| panic!("{name}: {error}"));
    let (outside, others): (Vec<_>, Vec<_>) =
        summary.warnings.iter().partition(|warning| warning.contains("did not enter"));
    assert_eq!(others, Vec::<&String>::new(), "{name}");
    // Much of the capture stays between hosts that this one knows nothing of.
    assert_eq!(outside.len(), usize::from(name == "datacentre"), "{outside:?}");
    let names = chain.interfaces.iter().map(|interface| interface.name.clone());
    let left = names.zip(sinks.into_iter().map(|sink| sink.packets)).collect();
    Outcome { chain, counters: summary.counters, left }
}

impl Outcome {
    fn left(&self, interface: &str) -> &[Packet] {
        &self.left[interface]
    }

    /// Number of packets that a function dropped for a reason.
    fn drops(&self, function: &str, reason: &str) -> u64 {
        let is = |node: u16| self.chain.nodes[usize::from(node)].name == function;
        let counts = self.counters.drops.iter();
        counts.filter(|((node, _, why), _)| is(*node) && why == reason).map(|(_, n)| n).sum()
    }
}

/// IPv4 fields of a frame, at their offsets without VLAN tags.
struct Fields {
    src: [u8; 4],
    dst: [u8; 4],
    ttl: u8,
    proto: u8,
    sport: u16,
    dport: u16,
}

fn fields(packet: &Packet) -> Option<Fields> {
    let data = packet.data();
    if data[12..14] != [0x08, 0x00] {
        return None;
    }
    let proto = data[23];
    let ports = 14 + usize::from(data[14] & 15) * 4;
    let port = |at: usize| match proto {
        6 | 17 => u16::from_be_bytes([data[at], data[at + 1]]),
        _ => 0,
    };
    let addr = |at: usize| [data[at], data[at + 1], data[at + 2], data[at + 3]];
    let (sport, dport) = (port(ports), port(ports + 2));
    Some(Fields { src: addr(26), dst: addr(30), ttl: data[22], proto, sport, dport })
}

/// The captured packets from the client, with their IPv4 fields.
fn sent(captured: &[Packet]) -> Vec<(&Packet, Fields)> {
    let all = captured.iter().filter_map(|packet| Some((packet, fields(packet)?)));
    all.filter(|(_, ip)| ip.src == CLIENT).collect()
}

fn is_captured(packet: &Packet, captured: &BTreeSet<&[u8]>) -> bool {
    captured.contains(packet.data())
}

fn bytes(packets: &[Packet]) -> BTreeSet<&[u8]> {
    packets.iter().map(Packet::data).collect()
}

#[test]
fn there_are_seven_examples_and_all_account_for_every_packet() {
    let names = examples();
    assert!(names.len() >= 7, "{names:?}");
    let count = captured().len() as u64;
    for name in &names {
        for follow in [false, true] {
            let outcome = run(name, follow);
            assert!(outcome.counters.balanced(), "{name}: {:?}", outcome.counters);
            assert_eq!(outcome.counters.packets_in, count, "{name}");
            let left: usize = outcome.left.values().map(Vec::len).sum();
            assert!(left > 0, "{name}: nothing leaves");
            assert_eq!(left as u64, outcome.counters.out.values().sum::<u64>(), "{name}");
        }
    }
}

/// The payload of a TCP packet over IPv4.
fn tcp_payload(packet: &Packet) -> &[u8] {
    let data = packet.data();
    let tcp = 14 + usize::from(data[14] & 15) * 4;
    let end = 14 + usize::from(u16::from_be_bytes([data[16], data[17]]));
    &data[tcp + usize::from(data[tcp + 12] >> 4) * 4..end]
}

#[test]
fn example_resets_telnet_sessions_that_change_routes() {
    let captured = captured();
    let is_typed = |packet: &&Packet| {
        fields(packet).is_some_and(|ip| ip.proto == 6 && ip.dst == CLIENT && ip.dport == 23)
    };
    // What each session has typed. The capture has its packets in order, and each once.
    let mut typed: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let has_changed = |bytes: &[u8]| bytes.windows(9).any(|part| part == b"route add");
    let mut passed = 0;
    for packet in captured.iter().filter(is_typed) {
        let session = typed.entry(fields(packet).expect("IPv4").sport).or_default();
        session.extend_from_slice(tcp_payload(packet));
        passed += usize::from(!has_changed(session));
    }
    let changed = typed.values().filter(|bytes| has_changed(bytes)).count();
    assert!(changed > 0 && changed < typed.len(), "{changed} of {}", typed.len());
    let outcome = run("connections", false);
    let left = outcome.left("lan").iter().filter(is_typed);
    let (resets, others): (Vec<_>, Vec<_>) =
        left.partition(|packet| packet.data()[14 + 20 + 13] & 4 != 0);
    assert_eq!(others.len(), passed);
    assert!(resets.len() >= changed);
    assert!(outcome.drops("guard", "a change of routes") >= changed as u64);
}

#[test]
fn example_holds_telnet_clients_that_change_routes_for_two_seconds() {
    let captured = captured();
    // What each session has typed, as long as none of it was dropped. The capture has its packets
    // in order, and each once.
    let mut typed: BTreeMap<u16, Option<Vec<u8>>> = BTreeMap::new();
    let mut held: BTreeMap<[u8; 4], u64> = BTreeMap::new();
    let (mut dropped, mut passed) = (0, 0);
    for packet in &captured {
        let Some(ip) = fields(packet) else {
            passed += 1;
            continue;
        };
        let is_typed = ip.proto == 6 && ip.dport == 23 && !tcp_payload(packet).is_empty();
        if held.get(&ip.src).is_some_and(|until| packet.time_ns < *until) {
            dropped += 1;
            if is_typed {
                typed.insert(ip.sport, None);
            }
            continue;
        }
        passed += 1;
        let session = typed.entry(ip.sport).or_insert_with(|| Some(Vec::new()));
        if let (true, Some(session)) = (is_typed, session) {
            let from = session.len().saturating_sub(8);
            session.extend_from_slice(tcp_payload(packet));
            if session[from..].windows(9).any(|part| part == b"route add") {
                // Deadlines are rounded up to multiples of 100 ms.
                held.insert(ip.src, (packet.time_ns + 2_000_000_000).next_multiple_of(100_000_000));
            }
        }
    }
    assert!(!held.is_empty() && dropped > 0, "{held:?}, {dropped}");
    let outcome = run("quarantine", false);
    assert_eq!(outcome.drops("hold", "quarantine"), dropped);
    let left: usize = outcome.left.values().map(Vec::len).sum();
    assert_eq!(left as u64, passed);
}

#[test]
fn one_example_is_a_pass_through_without_interfaces() {
    let outcome = run("pass_through", false);
    let source = std::fs::read_to_string(folder().join("pass_through.braid")).expect("the file");
    assert!(!source.contains("interface "));
    assert_eq!(outcome.left("in"), []);
    let captured = captured();
    assert_eq!(outcome.left("out").len(), captured.len());
    for (left, entered) in outcome.left("out").iter().zip(&captured) {
        assert_eq!(left.data(), entered.data());
        assert_eq!((left.time_ns, left.wire_len), (entered.time_ns, entered.wire_len));
    }
}

#[test]
fn demo_hides_the_client_and_delivers_replies_as_they_were_captured() {
    let captured = captured();
    let outcome = run("demo", true);
    let servers = BTreeSet::from([[198, 51, 100, 11], [198, 51, 100, 12], [198, 51, 100, 13]]);
    let mut flows: BTreeMap<[u8; 4], BTreeSet<u16>> = BTreeMap::new();
    for packet in outcome.left("wan") {
        let ip = fields(packet).expect("IPv4: NAT lets nothing else out");
        assert_eq!(ip.src, PUBLIC);
        assert!(!(ip.dst == CONTROLLER && ip.proto == 6 && ip.dport == 88), "Kerberos is spread");
        assert!(ip.dport != 23, "no Telnet");
        if servers.contains(&ip.dst) {
            assert_eq!(ip.dport, if ip.dst[3] == 13 { 8088 } else { 88 });
            flows.entry(ip.dst).or_default().insert(ip.sport);
        }
    }
    // Kerberos connections alternate between servers, and each connection stays with its server.
    let kerberos: BTreeSet<u16> = sent(&captured)
        .iter()
        .filter(|(_, ip)| ip.dst == CONTROLLER && ip.proto == 6 && ip.dport == 88)
        .map(|(_, ip)| ip.sport)
        .collect();
    let shares: Vec<_> = flows.values().map(BTreeSet::len).collect();
    assert_eq!(shares.iter().sum::<usize>(), kerberos.len());
    assert_eq!(shares.iter().max(), shares.iter().min(), "27 connections over 3 servers");
    // Followed replies come back in their captured form, because all translation is undone.
    let all = bytes(&captured);
    assert!(outcome.left("lan").len() > 400);
    assert!(outcome.left("lan").iter().all(|packet| is_captured(packet, &all)));
    // In literal mode, no captured reply is addressed to the public address.
    assert_eq!(run("demo", false).left("lan"), []);
}

#[test]
fn edge_lets_only_listed_services_out_and_only_replies_in() {
    let captured = captured();
    let outcome = run("edge", true);
    let allowed = |ip: &Fields| match ip.proto {
        6 => [80, 443, 22].contains(&ip.dport),
        17 => [53, 443].contains(&ip.dport),
        proto => proto == 1,
    };
    let expected = sent(&captured).iter().filter(|(_, ip)| allowed(ip)).count();
    assert_eq!(outcome.left("wan").len(), expected);
    assert!(outcome.left("wan").iter().all(|packet| fields(packet).is_some_and(|ip| allowed(&ip))));
    assert!(
        outcome.left("wan").iter().all(|packet| fields(packet).is_some_and(|ip| ip.src == PUBLIC))
    );
    let all = bytes(&captured);
    assert!(!outcome.left("lan").is_empty());
    assert!(outcome.left("lan").iter().all(|packet| is_captured(packet, &all)));
}

#[test]
fn branch_changes_nothing_and_inspects_web_traffic_alone() {
    let captured = captured();
    let outcome = run("branch", false);
    let web = sent(&captured)
        .iter()
        .filter(|(_, ip)| ip.proto == 6 && [80, 8080].contains(&ip.dport))
        .count();
    assert!(web > 0);
    let number = outcome.chain.nodes.iter().position(|node| node.name == "inspect");
    let inspected = &outcome.counters.nodes[number.expect("the IDS")];
    assert_eq!(inspected.forward.packets, web as u64);
    assert_eq!(inspected.backward.packets, 0);
    let all = bytes(&captured);
    let left: usize = outcome.left.values().map(Vec::len).sum();
    assert_eq!(left, captured.len());
    assert!(outcome.left.values().flatten().all(|packet| is_captured(packet, &all)));
}

#[test]
fn datacentre_keeps_each_flow_with_one_server() {
    let captured = captured();
    let outcome = run("datacentre", true);
    let mut servers: BTreeMap<(u8, u16, u16), BTreeSet<[u8; 4]>> = BTreeMap::new();
    for packet in outcome.left("servers") {
        let Some(ip) = fields(packet) else { continue };
        assert_eq!((ip.src, ip.dst[..3].to_vec()), (CLIENT, vec![10, 1, 0]));
        assert!((1..=5).contains(&ip.dst[3]));
        servers.entry((ip.proto, ip.sport, ip.dport)).or_default().insert(ip.dst);
    }
    assert!(servers.values().all(|of| of.len() == 1));
    let used: BTreeSet<_> = servers.values().flatten().collect();
    assert_eq!(used.len(), 5, "over 90 flows reach all five");
    let all = bytes(&captured);
    assert!(outcome.left("internet").iter().all(|packet| is_captured(packet, &all)));
}

#[test]
fn router_counts_hops_and_tags_the_uplink() {
    let captured = captured();
    let outcome = run("router", false);
    let arp = captured.iter().filter(|packet| packet.data()[12..14] == [0x08, 0x06]).count();
    assert_eq!(outcome.drops("route", "not ip"), arp as u64);
    // The router forwards unicast frames with enough time to live, in order.
    let routed = |packet: &Packet, ip: &Fields| packet.data()[0] & 1 == 0 && ip.ttl > 1;
    let out: Vec<_> =
        sent(&captured).into_iter().filter(|(packet, ip)| routed(packet, ip)).collect();
    assert_eq!(outcome.left("uplink").len(), out.len());
    for (packet, (entered, ip)) in outcome.left("uplink").iter().zip(&out) {
        let data = packet.data();
        assert_eq!(data[..12], [2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 2], "the next hop's MAC, its own");
        assert_eq!(data[12..18], [0x81, 0x00, 0x00, 42, 0x08, 0x00]);
        assert_eq!(data[18 + 8], ip.ttl - 1);
        assert_eq!(data[18 + 12..], entered.data()[14 + 12..], "from the addresses on");
    }
    for packet in outcome.left("office") {
        assert_eq!(packet.data()[..14], [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        assert_eq!(fields(packet).map(|ip| ip.dst), Some(CLIENT));
    }
    assert!(!outcome.left("office").is_empty());
}

#[test]
fn functions_of_the_nfd_paper_do_as_its_tables_say() {
    let outcome = run("nfd", false);
    for packet in outcome.left("out") {
        let ip = fields(packet).expect("NAT drops all else");
        assert_eq!(ip.src, PUBLIC);
        assert!([[198, 51, 100, 1], [198, 51, 100, 2]].contains(&ip.dst));
    }
    assert!(outcome.left("out").len() > 50);
}

#[test]
fn functions_of_the_nfd_paper_take_their_rows_and_six_lines() {
    let source = std::fs::read_to_string(folder().join("nfd.braid")).expect("the file");
    for (text, what) in
        [(source.clone(), "as written"), (harness::format(&source).expect("formats"), "formatted")]
    {
        // Rows of the tables in the paper: figure 5, and figure 6 for the rate limiter.
        for (name, rows) in
            [("nfd_firewall", 3), ("nfd_nat", 2), ("nfd_load_balancer", 2), ("nfd_rate_limiter", 3)]
        {
            let lines = body_lines(&text, name);
            assert!(lines > 0 && lines <= rows + 6, "{name}, {what}: {lines} lines");
        }
    }
}

/// Number of lines between a function's braces, without empty lines and comments.
fn body_lines(source: &str, name: &str) -> usize {
    let head = format!("nf {name}(");
    let mut lines = source.lines().skip_while(|line| !line.starts_with(&head));
    // The head ends with the line that opens the body.
    lines.by_ref().find(|line| line.ends_with('{'));
    let body = lines.take_while(|line| *line != "}");
    body.filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//")).count()
}
