//! Tests flow records in situations from papers (SpeedyBox, section VII-C). Packets, events,
//! counters after each packet, and state must be the same with and without records, and packets
//! must use records.

mod admission;
mod changes;
mod counters;
mod headers;
mod limits;
mod lives;
mod out_of_tunnels;
mod parts;
mod translated;
mod tunnels;

use braid_engine::{Compiled, Flows, Hashing, Options};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::compare::difference;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::{packet, tcp};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record, record_bursts, step};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const MS: u64 = 1_000_000;

/// Compiles the chain of a text with these files.
fn chain(text: &str, files: &[(&str, &str)]) -> Chain {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    harness::compile(text, &files.collect(), Form::AsWritten).unwrap_or_else(|why| panic!("{why}"))
}

/// A packet that enters.
fn enter(at_ms: u64, interface: u16, text: &str) -> Stimulus {
    Stimulus::Packet(interface, packet(text).at(at_ms * MS))
}

/// A line of a control file.
fn change(chain: &Chain, at_ms: u64, line: &str) -> Stimulus {
    let control = harness::control(chain, at_ms * MS, line, Path::new(""));
    Stimulus::Control(control.unwrap_or_else(|why| panic!("{line}: {why}")))
}

/// An engine that makes flow records early.
fn eager(chain: &Chain, hash: Hashing) -> Compiled {
    let options = Options { hash, eager: true, ..Options::fused() };
    Compiled::new(chain.clone(), Extent::Chain, options).expect("an engine")
}

/// Runs stimuli with flow records, packet by packet and in batches, and compares each run with the
/// reference engine. Returns the reference trace, and the statistics of the run packet by packet.
fn same(chain: &Chain, stimuli: &[Stimulus]) -> (Trace, Flows) {
    let expected = record(harness::reference(chain).as_mut(), stimuli, Detail::Steps);
    assert_eq!(expected.panic, None);
    // Its statistics are compared with numbers. With some hashes, flows get their records later.
    let mut single = eager(chain, Hashing::Seeded(1));
    let found = record(&mut single, stimuli, Detail::Steps);
    assert_eq!(difference(&expected, &found), None, "packet by packet");
    let last = Trace {
        counters: expected.counters.last().cloned().into_iter().collect(),
        ..expected.clone()
    };
    for (most, hash) in [(32, Hashing::Drawn), (7, Hashing::Colliding)] {
        let run = record_bursts(&mut eager(chain, hash), stimuli, most);
        assert_eq!(difference(&last, &run), None, "in bursts of {most}");
    }
    (expected, single.flows().expect("flow records"))
}

/// The statistics of flow records after each stimulus.
fn steps(chain: &Chain, stimuli: &[Stimulus]) -> Vec<Flows> {
    let mut engine = eager(chain, Options::fused().hash);
    let after = |stimulus| {
        step(&mut engine, stimulus);
        engine.flows().expect("flow records")
    };
    stimuli.iter().map(after).collect()
}

/// A field of the packet that left after each stimulus, if any.
fn left(trace: &Trace, field: Field) -> Vec<Option<u128>> {
    let of = |outputs: &Vec<Output>| match outputs.last() {
        Some(Output::Packet(_, packet)) => packet.get(&packet.parse(), field),
        _ => None,
    };
    trace.outputs.iter().map(of).collect()
}

fn events(trace: &Trace, name: &str) -> usize {
    let is_it = |output: &&Output| matches!(output, Output::Event(event) if event.name == name);
    trace.outputs.iter().flatten().filter(is_it).count()
}

#[test]
fn all_branches_of_the_ids_are_taken_alike_and_what_it_passes_by_takes_records() {
    // Rules of Snort's three kinds: pass, alert, and log with a drop.
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           alert = ids(signatures: patterns(\"alert\"), scope: rules(\"scope\"));
           log = ids(signatures: patterns(\"log\"), scope: rules(\"scope\"), block: true);
           count = monitor();
           path lan <-> alert <-> log <-> count <-> wan;
         }",
        &[
            ("alert", "1 \"cmd.exe\"\n2 /etc.(passwd|shadow)/\n"),
            ("log", "7 \"sqlmap\" nocase\n"),
            ("scope", "pass proto tcp to any port 80\ndefault drop\n"),
        ],
    );
    let payloads =
        ["nothing", "run cmd.exe now", "SQLmap/1.0", "cat /etc/shadow", "cmd.exe sqlmap"];
    let mut stimuli = Vec::new();
    for round in 0..8_u64 {
        for flow in 0..10_u64 {
            let port = if flow < 5 { 80 } else { 8080 };
            let payload = payloads[(round + flow) as usize % payloads.len()];
            let text =
                format!("tcp 10.0.0.{flow}:1000 > 192.0.2.1:{port} PA seq={round} \"{payload}\"");
            stimuli.push(enter(round * 10 + flow, 0, &text));
        }
    }
    let (trace, flows) = same(&chain, &stimuli);
    // Of five payloads to port 80, three are reported, and two are logged and dropped.
    assert_eq!(events(&trace, "ALERT"), 40 / 5 * 5);
    let dropped =
        trace.outputs.iter().filter(|outputs| !matches!(outputs.last(), Some(Output::Packet(..))));
    assert_eq!(dropped.count(), 40 / 5 * 2);
    // Packets use records if their payload is not searched or has no match. Four of five payloads
    // to port 80 have a match.
    assert!(flows.hits >= 5 * (8 - 3) && flows.hits <= 80 - 40 / 5 * 4, "{flows:?}");
    assert!(flows.guard_failures + flows.misses >= 40 / 5 * 4, "{flows:?}");
}

/// The number N of a destination 10.1.0.N.
fn backend(addr: Option<u128>) -> u128 {
    addr.expect("it leaves") & 0xff
}

/// The chain of this text, and the same chain with native functions in place of models.
fn with_natives(text: &str, files: &[(&str, &str)]) -> [Chain; 2] {
    let natives = r#"
        native nf maglev5(vip: ip4, servers: backends<ip4>) from "five" function maglev;
        native nf ipfilter5(filter: rules) from "five" function ipfilter;
        native nf monitor5() from "five" function monitor;
        native nf mazunat5(public: ip4, ports: pool<port> = 1024..65535) from "five" function mazunat;"#;
    let names = [
        ("= maglev(", "= maglev5("),
        ("= ipfilter(", "= ipfilter5("),
        ("= monitor(", "= monitor5("),
        ("= napt(", "= mazunat5("),
        ("backends: [", "servers: ["),
    ];
    let native = names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    [chain(text, files), chain(&format!("{natives}\n{native}"), files)]
}

#[test]
fn maglev_flows_go_elsewhere_from_their_sixth_packet_on_when_their_backend_fails() {
    let chains = with_natives(
        "chain c {
           interface clients;
           interface servers { behind 10.1.0.0/16 }
           lb = maglev(vip: 203.0.113.80, backends: [10.1.0.1, 10.1.0.2, 10.1.0.3, 10.1.0.4, 10.1.0.5]);
           path clients <-> lb <-> servers;
         }",
        &[],
    );
    for (chain, backends) in chains.iter().zip(["backends", "servers"]) {
        maglev_flows_go_elsewhere(chain, backends);
    }
}

fn maglev_flows_go_elsewhere(chain: &Chain, backends: &str) {
    const FLOWS: usize = 100;
    let packet = |round: u64, flow: usize| {
        let text = format!("tcp 198.51.100.{flow}:1000 > 203.0.113.80:80 A seq={round} \"data\"");
        enter(round * 200 + flow as u64, 0, &text)
    };
    let rounds = |rounds: std::ops::RangeInclusive<u64>| {
        rounds.flat_map(|round| (0..FLOWS).map(move |flow| packet(round, flow)))
    };
    let mut stimuli: Vec<Stimulus> = rounds(1..=5).collect();
    stimuli.push(change(chain, 1190, &format!("backend lb.{backends} down 10.1.0.3")));
    stimuli.extend(rounds(6..=10));
    let (trace, flows) = same(chain, &stimuli);
    let mut to = left(&trace, Field::IpDst);
    to.remove(5 * FLOWS);
    let mut moved = 0;
    for flow in 0..FLOWS {
        let own: Vec<u128> = to.iter().skip(flow).step_by(FLOWS).map(|to| backend(*to)).collect();
        let (before, behind) = own.split_at(5);
        assert!(
            before.iter().all(|to| *to == before[0]) && behind.iter().all(|to| *to == behind[0])
        );
        assert_ne!(behind[0], 3);
        assert_eq!(before[0] != behind[0], before[0] == 3, "flow {flow}");
        moved += usize::from(before[0] == 3);
    }
    assert!((10..=30).contains(&moved), "{moved} of {FLOWS} flows");
    // Each flow has one packet before its record, and one more if it moved. The admission filter
    // does not count the very first packet.
    let (all, moved) = (FLOWS as u64, moved as u64);
    // A flow of a native function has no record any more. Other flows have an outdated one.
    let guard_failures = if chain.nodes[0].model.native.is_some() { 0 } else { moved };
    assert_eq!(
        (flows.hits, flows.guard_failures),
        (all * 9 - moved - 1, guard_failures),
        "{flows:?}"
    );
    assert_eq!((flows.records.made, flows.records.ended), (all + moved, moved), "{flows:?}");
}

#[test]
fn a_fifth_of_the_flows_of_chain_1_change_in_mid_stream() {
    let chains = with_natives(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           nat = napt(public: 203.0.113.1);
           lb = maglev(vip: 203.0.113.80, backends: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4, 192.0.2.5]);
           count = monitor();
           filter = ipfilter(filter: rules(\"filter\"));
           path lan <-> nat <-> lb <-> count <-> filter <-> wan;
         }",
        &[("filter", "drop proto tcp to 192.0.2.4 port 25\npass proto tcp\ndefault drop\n")],
    );
    for (chain, backends) in chains.iter().zip(["backends", "servers"]) {
        a_fifth_of_the_flows_change(chain, backends);
    }
}

fn a_fifth_of_the_flows_change(chain: &Chain, backends: &str) {
    const FLOWS: usize = 60;
    let mut stimuli = Vec::new();
    for round in 1..=12_u64 {
        for flow in 0..FLOWS {
            let port = if flow % 10 == 9 { 25 } else { 80 };
            let text =
                format!("tcp 10.0.0.{flow}:2000 > 203.0.113.80:{port} A seq={round} \"data\"");
            stimuli.push(enter(round * 100 + flow as u64, 0, &text));
            if round == 6 && flow == FLOWS / 2 {
                stimuli.push(change(chain, 640, &format!("backend lb.{backends} down 192.0.2.5")));
            }
        }
    }
    let (trace, flows) = same(chain, &stimuli);
    chain_1_keeps_records_of_flows_that_stay(chain, &stimuli, &trace);
    let to = left(&trace, Field::IpDst);
    let numbers: Vec<u128> = to.iter().flatten().map(|to| to & 0xff).collect();
    let packets = numbers.len();
    let share = numbers[..packets / 3].iter().filter(|to| **to == 5).count() * 100 / (packets / 3);
    assert!((8..=32).contains(&share), "{share} % of the flows go to the backend that fails");
    assert!(numbers[packets * 2 / 3..].iter().all(|to| *to != 5));
    // The monitor counts a moved flow under both destinations.
    let counted = trace.state.iter().filter(|entry| entry.table == "stats").count();
    assert!(counted > FLOWS + FLOWS / 12, "{counted}");
    assert!(flows.hits >= FLOWS as u64 * 10, "{flows:?}");
}

/// Flows of the failed backend go to another backend with their next packet, and have a record for
/// that from the following packet on. All other flows keep their records.
fn chain_1_keeps_records_of_flows_that_stay(chain: &Chain, stimuli: &[Stimulus], trace: &Trace) {
    let steps = steps(chain, stimuli);
    let change = stimuli.iter().position(|one| matches!(one, Stimulus::Control(_)));
    let change = change.expect("a change");
    let source = |at: usize| match &stimuli[at] {
        Stimulus::Packet(_, packet) => packet.get(&packet.parse(), Field::IpSrc),
        _ => None,
    };
    // The last destination of each flow before the change.
    let to = left(trace, Field::IpDst);
    let before: BTreeMap<_, _> = (0..change).map(|at| (source(at), to[at])).collect();
    let failed = Some(0xc000_0205);
    let mut met = BTreeSet::new();
    let (mut moved, mut stayed) = (0, 0);
    for at in change + 1..stimuli.len() {
        let flow = source(at);
        let is_hit = steps[at].hits > steps[at - 1].hits;
        let is_made = steps[at].records.made > steps[at - 1].records.made;
        let is_first = met.insert(flow);
        if before[&flow] == failed {
            moved += usize::from(is_first);
            assert_ne!(to[at], failed, "it goes elsewhere at once");
            assert_eq!(is_hit, !is_first, "the second packet at the latest takes a record");
        } else {
            stayed += usize::from(is_first);
            assert_eq!(to[at], before[&flow], "it goes where it went");
            assert!(is_hit && !is_made, "it takes the record that it had");
        }
    }
    let share = moved * 100 / (moved + stayed);
    assert!((8..=32).contains(&share), "{moved} flows moved, {stayed} did not");
    let made = steps.last().map(|last| last.records.made - steps[change].records.made);
    assert_eq!(made, Some(moved as u64));
}

/// A chain with a connection-tracking firewall and a monitor, between hosts behind both interfaces.
fn firewall() -> Chain {
    chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           count = monitor();
           wall = stateful_firewall(ok: rules(\"ok\"));
           path lan <-> count <-> wall <-> wan;
         }",
        &[("ok", "pass proto tcp\ndefault drop\n")],
    )
}

/// A packet of a connection, from the opener or from the other end.
fn segment(at_ms: u64, host: usize, forward: bool, flags: &str) -> Stimulus {
    let (inside, outside) = (format!("10.0.0.{host}:3000"), "192.0.2.1:80");
    let ends =
        if forward { format!("{inside} > {outside}") } else { format!("{outside} > {inside}") };
    let packet = tcp(&format!("{ends} {flags} \"x\"")).at(at_ms * MS);
    Stimulus::Packet(u16::from(!forward), packet)
}

#[test]
fn fin_and_rst_that_race_with_data_close_connections_that_have_records() {
    let chain = firewall();
    let open = [(true, "S"), (false, "SA"), (true, "A")];
    let data = [(true, "A"), (false, "A")];
    // The packets that each end still sends, in order. The interleaving is random.
    let sides: [&[&[&str]; 2]; 6] = [
        &[&["A", "FA", "A", "A"], &["A", "A", "FA", "A", "A"]],
        &[&["A", "FA", "R", "A"], &["A", "A", "A", "A"]],
        &[&["A", "A", "A", "A"], &["A", "R", "A", "FA"]],
        &[&["A", "R", "S", "A", "A"], &["A", "A", "SA", "A", "A"]],
        &[&["FA", "A", "S", "A", "A"], &["FA", "A", "A", "SA", "A"]],
        &[&["A", "FA", "FA", "A"], &["FA", "RA", "A", "SA"]],
    ];
    let mut outcomes = BTreeSet::new();
    for seed in 0..braid_cases::at_least(40).into() {
        let mut rng = Rng::new(seed);
        let mut scripts: Vec<Vec<(bool, &str)>> = Vec::new();
        for sides in sides {
            let mut script = open.to_vec();
            (0..4).for_each(|_| script.extend(data));
            let mut left = [sides[0].iter(), sides[1].iter()];
            while left.iter().any(|side| side.len() > 0) {
                let side = rng.below(2);
                script.extend(left[side].next().map(|flags| (side == 0, *flags)));
            }
            scripts.push(script);
        }
        let mut stimuli = Vec::new();
        let mut at = vec![0; scripts.len()];
        while at.iter().zip(&scripts).any(|(at, script)| *at < script.len()) {
            let host = rng.below(scripts.len());
            // A few packets of one connection in sequence, as in a burst.
            for _ in 0..=rng.below(3) {
                if let Some((forward, flags)) = scripts[host].get(at[host]) {
                    stimuli.push(segment(stimuli.len() as u64 + 1, host, *forward, flags));
                    at[host] += 1;
                }
            }
        }
        let (trace, flows) = same(&chain, &stimuli);
        assert!(flows.hits > 20 && flows.records.ended > 4, "seed {seed}: {flows:?}");
        outcomes.extend(trace.state.iter().map(|entry| entry.table.clone()));
        let drops =
            trace.counters.last().expect("counters").drops.keys().map(|drop| drop.2.clone());
        outcomes.extend(drops);
    }
    for outcome in ["closing", "established", "no connection"] {
        assert!(outcomes.contains(outcome), "{outcomes:?}");
    }
}

#[test]
fn record_of_a_refused_direction_ends_when_the_connection_opens() {
    let chain = firewall();
    let stray = |at: u64| segment(at, 1, false, "A");
    let mut stimuli: Vec<Stimulus> = (1..=6).map(stray).collect();
    let open = [(true, "S"), (false, "SA"), (true, "A")];
    stimuli.extend((7..).zip(open).map(|(at, (forward, flags))| segment(at, 1, forward, flags)));
    stimuli.extend((10..=16).map(stray));
    let (trace, flows) = same(&chain, &stimuli);
    let leaves = |outputs: &Vec<Output>| !outputs.is_empty();
    assert!(!trace.outputs[..6].iter().any(leaves) && trace.outputs[6..].iter().all(leaves));
    assert!(flows.hits >= 3 + 4 && flows.records.ended >= 1, "{flows:?}");
    let state: BTreeMap<&str, usize> =
        trace.state.iter().fold(BTreeMap::new(), |mut all, entry| {
            *all.entry(entry.table.as_str()).or_default() += 1;
            all
        });
    assert_eq!(state.get("established"), Some(&1), "{state:?}");
}

#[test]
fn tenants_and_security_associations_are_flows_of_their_own() {
    let chain = chain(
        "nf tenants(closed: set<u24>) {
           state count: u32 per (ip.dst, vxlan.vni) = 0, capacity 100;
           match {
             vxlan.vni in closed => drop \"closed\";
             has vxlan => { count += 1; vxlan.vni = vxlan.vni + 1000; output; }
             esp.spi == 7 => drop \"revoked\";
             else => output;
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           tenants = tenants(closed: {13});
           path lan <-> tenants <-> wan;
         }",
        &[],
    );
    let mut stimuli = Vec::new();
    for round in 0..6 {
        for vni in [12, 13, 14] {
            let inner = format!(
                "eth 02:00:00:00:00:07 > 02:00:00:00:00:08 / udp 1.1.1.{round}:1 > 2.2.2.2:2"
            );
            let text = format!("udp 10.0.0.1:50000 > 10.0.0.2:4789 / vxlan {vni} / {inner}");
            stimuli.push(enter(round, 0, &text));
        }
        for spi in [7, 8] {
            let data = "00112233".repeat(4);
            let text = format!("ip 10.0.0.1 > 10.0.0.2 / esp spi={spi} seq={round} hex={data}");
            stimuli.push(enter(round, 0, &text));
        }
    }
    let (trace, flows) = same(&chain, &stimuli);
    let vnis = left(&trace, Field::VxlanVni);
    assert_eq!(vnis[10..15], [Some(1012), None, Some(1014), None, None]);
    // The first packet of each of the five flows has no record. Neither has one more packet of the
    // first flow of each of the two kinds of packets, because the admission filter does not count
    // the first packet of a kind.
    assert_eq!(flows.hits, 5 * (6 - 1) - 2, "{flows:?}");
}

#[test]
fn packets_of_a_flow_with_other_link_addresses_are_told_apart() {
    let chain = chain(
        "nf gate(mine: mac) {
           state seen: u32 per (ip.src, ip.dst) = 0, capacity 100;
           match {
             eth.dst == mine => { seen += 1; eth.src = mine; output; }
             else => drop \"not mine\";
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           gate = gate(mine: 02:00:00:00:00:09);
           path lan <-> gate <-> wan;
         }",
        &[],
    );
    let mut stimuli = Vec::new();
    for round in 0..30_u64 {
        // Two of three packets are for the gate. The other addresses differ from it in one bit
        // only.
        let to = if round % 3 == 1 { ["08", "0b", "19"][round as usize / 3 % 3] } else { "09" };
        let text = format!(
            "eth 02:00:00:00:00:01 > 02:00:00:00:00:{to} / udp 10.0.0.1:5 > 10.0.0.2:6 \"{round}\""
        );
        stimuli.push(enter(round, 0, &text));
    }
    let (trace, flows) = same(&chain, &stimuli);
    let is_out = |outputs: &&Vec<Output>| matches!(outputs.last(), Some(Output::Packet(..)));
    assert_eq!(trace.outputs.iter().filter(is_out).count(), 20);
    // The flow has one record at a time. After several packets with other addresses, a record for
    // these takes its place.
    let (made, ended) = (flows.records.made, flows.records.ended);
    assert!(flows.hits >= 15 && made >= 2 && ended == made - 1, "{flows:?}");
}

#[test]
fn flow_has_a_record_for_its_usual_packets_most_of_the_time() {
    let chain = chain(
        "nf urgent() {
           state seen: u32 per (ip.src, ip.dst) = 0, capacity 100;
           match {
             tcp.flags & URG != 0 => { seen += 1; ip.dscp = 1; output; }
             has tcp => { seen += 1; output; }
             else => drop \"other\";
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           urgent = urgent();
           path lan <-> urgent <-> wan;
         }",
        &[],
    );
    // One packet of eight is urgent, and so are the first eight.
    let flags = |at: u64| if at < 8 || at.is_multiple_of(8) { "UA" } else { "A" };
    let stimuli: Vec<Stimulus> = (0..4000).map(|at| segment(at, 1, true, flags(at))).collect();
    let (_, flows) = same(&chain, &stimuli);
    assert!(flows.hits > 4000 * 3 / 4 && flows.records.made < 100, "{flows:?}");
}

#[test]
fn events_say_texts_as_they_are_after_a_change() {
    let chain = chain(
        "event SEEN extends EVENT { by: string }
         nf tell(by: string) {
           state n: u32 per ip.src = 0, capacity 9;
           match { has ip => { n += 1; emit SEEN { by: by }; output; } else => output; }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           tell = tell(by: \"one\");
           path lan <-> tell <-> wan;
         }",
        &[],
    );
    let packet = |at: u64| enter(at, 0, "udp 10.0.0.1:1 > 192.0.2.1:2");
    let mut stimuli: Vec<Stimulus> = (0..6).map(packet).collect();
    stimuli.push(change(&chain, 6, "set tell.by \"two\""));
    stimuli.extend((7..12).map(packet));
    let (_, flows) = same(&chain, &stimuli);
    assert!(flows.hits >= 6, "{flows:?}");
}

#[test]
fn flows_behind_a_scan_get_records_once_they_come_again() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           nat = napt(public: 203.0.113.1);
           count = monitor();
           path lan <-> nat <-> count <-> wan;
         }",
        &[],
    );
    let scan = |port: u64| enter(port, 0, &format!("udp 10.0.0.1:{port} > 192.0.2.1:9 \"x\""));
    let flow = |(round, flow): (u64, u64)| {
        enter(3000 + round * 100 + flow, 0, &format!("udp 10.1.0.{flow}:7 > 192.0.2.2:9 \"x\""))
    };
    let rounds = |rounds: u64| (0..rounds).flat_map(|round| (0..50).map(move |one| (round, one)));
    let stimuli: Vec<_> = (1..=2000).map(scan).chain(rounds(10).map(flow)).collect();
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::Steps);
    let expected =
        Trace { counters: expected.counters.last().cloned().into_iter().collect(), ..expected };
    for most in [1, 32] {
        let mut engine =
            Compiled::new(chain.clone(), Extent::Chain, Options::fused()).expect("an engine");
        let run = record_bursts(&mut engine, &stimuli, most);
        assert_eq!(difference(&expected, &run), None, "in bursts of {most}");
        let flows = engine.flows().expect("flow records");
        // The admission filter samples at most one of a flow's first three packets. So records are
        // made for the fifth to the seventh packet.
        assert_eq!(flows.records.made, 50, "{flows:?}");
        assert!((50 * 4..=50 * 6).contains(&flows.hits), "{flows:?}");
    }
}

#[test]
fn fault_of_a_value_that_nobody_needs_is_a_fault_of_the_next_flow_too() {
    // The packets are dropped, so their new ports do not matter.
    let text = "nf faults(few: list<port>) {
          match {
            has udp and udp.dport == 53 => { udp.dport = 60 / udp.sport; drop \"divided\"; }
            has udp and udp.dport == 54 => { udp.dport = few[u32(udp.sport)]; drop \"listed\"; }
            else => output;
          }
        }
        chain c {
          interface lan { behind 10.0.0.0/8 }
          interface wan;
          path lan <-> monitor() <-> monitor() <-> faults(few: [1, 2, 3, 4, 5, 6, 7, 8, 9]) <-> wan;
        }";
    let chain = chain(text, &[]);
    let mut stimuli = Vec::new();
    for sport in [1, 2, 3, 4, 5, 0, 6, 9, 0, 9, 10, 7] {
        for dport in [53, 54] {
            let packet = format!("udp 10.0.0.1:{sport} > 192.0.2.1:{dport}");
            for _ in 0..3 {
                stimuli.push(enter(stimuli.len() as u64, 0, &packet));
            }
        }
    }
    let (trace, flows) = same(&chain, &stimuli);
    let last = trace.counters.last().expect("counters");
    let dropped = |reason: &str| {
        let of = last.drops.iter().filter(|((_, _, of), _)| of == reason);
        of.map(|(_, count)| *count).sum::<u64>()
    };
    // Two of the twelve flows divide by 0, and three read behind the list.
    assert_eq!(["division", "index"].map(dropped), [2 * 3, 3 * 3]);
    assert!(flows.hits > 20, "{flows:?}");
}
