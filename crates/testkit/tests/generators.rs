//! Tests that generated programs compile and use the whole language, and that generated traffic is
//! of every kind.

use braid_engine::{Compiled, FlowRecord, Hashing, Options};
use braid_ir::graph::Graph;
use braid_ir::model::Op;
use braid_ir::residual::Extent;
use braid_packet::{Field, Header, Packet};
use braid_testkit::generate::program::{any, program};
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::record::{Stimulus, step};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn generated_programs_compile() {
    for seed in budget::seeds(1000) {
        let program = any(seed);
        if let Err(errors) = harness::compile(&program.source, &program.files, Form::AsWritten) {
            panic!("seed {seed}:\n{program}\n{errors}");
        }
    }
}

#[test]
fn same_seed_gives_the_same_program() {
    assert_eq!(program(7), program(7));
    assert_ne!(program(7), program(8));
}

/// The kind of an operation, which is its name in the debug form.
fn kind(op: &Op) -> String {
    format!("{op:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// The operations that generated programs must have.
const NEEDED: [&str; 44] = [
    "Const",
    "Param",
    "ListLen",
    "ListGet",
    "Bin",
    "Cmp",
    "Clamp",
    "InSet",
    "Has",
    "Load",
    "Store",
    "LoadTag",
    "StoreTag",
    "PushVlan",
    "PopVlan",
    "Rules",
    "Route",
    "Patterns",
    "FindPatterns",
    "InStrings",
    "HasRoom",
    "PushOption",
    "PopOption",
    "LoadBytes",
    "LoadString",
    "StoreBytes",
    "ReplaceBytes",
    "SetOption",
    "Encapsulate",
    "Decapsulate",
    "Translate",
    "Encrypt",
    "Decrypt",
    "Extern",
    "StateExists",
    "StateGet",
    "StateSet",
    "StateDelete",
    "Take",
    "Release",
    "Emit",
    "Count",
    "Mirror",
    "Create",
];

#[test]
fn generated_chains_have_priority_at_a_distance_and_of_native_functions() {
    let (mut distant, mut native, mut sends) = (0, 0, 0);
    for seed in 0..braid_cases::at_least(400).into() {
        let program = any(seed);
        let chain =
            harness::compile(&program.source, &program.files, Form::AsWritten).expect("compiles");
        let graph = Graph::new(&chain).expect("it compiled");
        let count = u16::try_from(chain.nodes.len()).expect("few functions");
        for first in (0..count).filter(|node| graph.group(*node).first() == Some(node)) {
            let Some(branches) = graph.branches(first, false) else { continue };
            let models =
                graph.group(first).iter().map(|node| &chain.nodes[usize::from(*node)].model);
            distant += u32::from(branches.iter().any(|branch| branch.len() > 1));
            native += u32::from(models.clone().any(|model| model.native.is_some()));
            let sending = |op: &Op| matches!(op, Op::Mirror { .. } | Op::Create { .. });
            let mut ops = models.flat_map(|m| &m.packet.blocks).flat_map(|block| &block.ops);
            sends += u32::from(branches.iter().any(|b| b.len() > 1) && ops.any(sending));
        }
    }
    assert!(distant > 20 && native > 4 && sends > 10, "{distant}, {native}, {sends}");
}

#[test]
fn generated_programs_use_every_operation() {
    let mut ops = BTreeSet::new();
    let mut terms = BTreeSet::new();
    for seed in 0..braid_cases::at_least(400).into() {
        let program = program(seed);
        let chain =
            harness::compile(&program.source, &program.files, Form::AsWritten).expect("compiles");
        for node in &chain.nodes {
            let expire = node.model.expire.iter().map(|(_, program)| program);
            let timers = node.model.timers.iter().map(|timer| &timer.body);
            for program in std::iter::once(&node.model.packet).chain(expire).chain(timers) {
                for block in &program.blocks {
                    ops.extend(block.ops.iter().map(kind));
                    let term: String = format!("{:?}", block.term);
                    terms.insert(
                        term.chars().take_while(|c| c.is_alphanumeric()).collect::<String>(),
                    );
                }
            }
        }
    }
    let missing: Vec<_> = NEEDED.iter().filter(|name| !ops.contains(**name)).collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
    for term in ["Jump", "Branch", "Output", "Drop", "Consume", "Hold", "Resubmit", "Return"] {
        assert!(terms.contains(term), "no program ends in {term}");
    }
}

const FIREWALL: &str = "
nf firewall(ok: rules, idle: duration = 3 s) {
  state seen: bool per biflow = false, idle idle;
  match {
    vlan.id == 77 => drop;
    forward and packet in ok => { seen = true; output; }
    seen => output;
    ip.ttl < 5 => drop \"ttl\";
    else => output;
  }
}
chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> firewall(ok: rules(\"rules.txt\")) <-> wan;
}
";

/// The kinds of packets that traffic for the firewall must contain.
const WANTED: &[&str] = &[
    "interface 0",
    "interface 1",
    "flags 0x2",
    "flags 0x12",
    "flags 0x10",
    "flags 0x18",
    "flags 0x11",
    "flags 0x14",
    "flags 0x4",
    "ttl 4",
    "ttl 5",
    "port 399",
    "port 400",
    "port 500",
    "port 501",
    "address 0xc00001ff",
    "address 0xc0000200",
    "address 0xc00002ff",
    "vlan 77",
    "first fragment",
    "later fragment",
    "malformed",
    "icmp error",
    "echo",
    "two tags",
    "extension headers",
    "arp",
    "snapped",
    "back in time",
    "tick",
    "after the time-out",
    "just before the time-out",
];

/// The kinds of a packet.
fn kinds(interface: u16, packet: &Packet, last_ns: u64) -> Vec<String> {
    let layout = packet.parse();
    let get = |field| packet.get(&layout, field);
    let mut found = vec![format!("interface {interface}")];
    let named = [("flags", Field::TcpFlags), ("address", Field::IpDst)];
    found.extend(
        named.iter().filter_map(|(name, field)| Some(format!("{name} {:#x}", get(*field)?))),
    );
    let plain = [("ttl", Field::IpTtl), ("port", Field::L4Dport), ("vlan", Field::VlanId)];
    found.extend(plain.iter().filter_map(|(name, field)| Some(format!("{name} {}", get(*field)?))));
    let later = get(Field::PktLaterFragment) == Some(1);
    let behind = get(Field::Ip6Next) != get(Field::Ip6Proto);
    let is = [
        ("first fragment", get(Field::PktFragment) == Some(1) && !later),
        ("later fragment", later),
        ("malformed", layout.malformed().is_some()),
        ("icmp error", layout.has(Header::Quoted)),
        ("echo", layout.has(Header::IcmpEcho)),
        ("two tags", layout.has(Header::Vlan2)),
        ("extension headers", layout.has(Header::Ip6) && behind),
        ("arp", layout.has(Header::Arp)),
        ("snapped", get(Field::PktTruncated) == Some(1)),
        ("back in time", packet.time_ns < last_ns),
        ("tick", packet.time_ns.is_multiple_of(100_000_000)),
        ("after the time-out", packet.time_ns == last_ns + 3_000_000_000),
        ("just before the time-out", packet.time_ns == last_ns + 2_999_999_999),
    ];
    found.extend(is.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()));
    found
}

#[test]
fn traffic_is_of_every_kind_and_meets_the_edges() {
    let rules = "pass proto tcp from 10.0.0.0/24 to 192.0.2.0/24 port 400-500\ndefault drop\n";
    let files = BTreeMap::from([("rules.txt".to_owned(), rules.to_owned())]);
    let chain = harness::compile(FIREWALL, &files, Form::AsWritten).expect("compiles");
    let mut seen = BTreeSet::new();
    let mut last_ns = 0;
    for stimulus in stimuli(&chain, 1, 6000) {
        let Stimulus::Packet(interface, packet) = stimulus else { continue };
        seen.extend(kinds(interface, &packet, last_ns));
        last_ns = packet.time_ns;
    }
    let missing: Vec<_> = WANTED.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "no packet is {missing:?}");
}

/// What has happened to a TCP connection, by 5-tuple. The first side is the one with the lower
/// address and port.
#[derive(Default)]
struct Seen {
    fins: [Option<u128>; 2],
    is_reset: bool,
}

/// The events in the lives of connections that traffic for the firewall must contain.
const LIVES: &[&str] = &[
    "both sides close",
    "a FIN comes again",
    "data comes behind the other side's FIN",
    "a segment comes after the end",
    "an end resets",
    "a segment comes after a reset",
    "a tuple opens again after FINs",
    "a tuple opens again after a reset",
    "a flood of SYNs",
];

/// The events that this packet of a connection adds.
fn events(seen: &mut Seen, packet: &Packet, side: usize) -> Vec<&'static str> {
    let layout = packet.parse();
    let get = |field| packet.get(&layout, field).unwrap_or(0);
    let (flags, seq) = (get(Field::TcpFlags), get(Field::TcpSeq));
    let has_ended = seen.fins.iter().all(Option::is_some);
    let mut found = Vec::new();
    let mut add = |is: bool, what| found.extend(is.then_some(what));
    add(seen.is_reset && flags & 0x06 == 0, "a segment comes after a reset");
    match flags & 0x17 {
        0x02 => {
            add(has_ended, "a tuple opens again after FINs");
            add(seen.is_reset, "a tuple opens again after a reset");
            *seen = Seen::default();
        }
        0x11 => {
            add(seen.fins[side] == Some(seq), "a FIN comes again");
            seen.fins[side].get_or_insert(seq);
            add(!has_ended && seen.fins.iter().all(Option::is_some), "both sides close");
        }
        0x04 | 0x14 => {
            add(true, "an end resets");
            seen.is_reset = true;
        }
        _ => {
            let is_data = !packet.payload(&layout).is_empty();
            let is_half = seen.fins[1 - side].is_some() && seen.fins[side].is_none();
            add(is_data && is_half, "data comes behind the other side's FIN");
            add(has_ended, "a segment comes after the end");
        }
    }
    found
}

#[test]
fn generated_connections_end_and_open_again() {
    let rules = "pass proto tcp from 10.0.0.0/24 to 192.0.2.0/24 port 400-500\ndefault drop\n";
    let files = BTreeMap::from([("rules.txt".to_owned(), rules.to_owned())]);
    let chain = harness::compile(FIREWALL, &files, Form::AsWritten).expect("compiles");
    let mut found = BTreeMap::<&str, u32>::new();
    for seed in 0..braid_cases::at_least(30).into() {
        let mut connections = BTreeMap::<_, Seen>::new();
        let (mut last, mut in_row) = (None, 0);
        for stimulus in stimuli(&chain, seed, 300) {
            let Stimulus::Packet(_, packet) = stimulus else { continue };
            let layout = packet.parse();
            let get = |field| packet.get(&layout, field);
            let fields = [Field::InetSrc, Field::L4Sport, Field::InetDst, Field::L4Dport];
            let [Some(src), Some(sport), Some(dst), Some(dport)] = fields.map(get) else {
                continue;
            };
            let Some(flags) = get(Field::TcpFlags) else { continue };
            let (from, to) = ((src, sport), (dst, dport));
            let is_next = flags == 0x02 && last == Some(to);
            (last, in_row) = (Some(to), if is_next { in_row + 1 } else { 0 });
            let seen = connections.entry((from.min(to), from.max(to))).or_default();
            let events = events(seen, &packet, usize::from(from > to));
            let flood = (in_row == 5).then_some("a flood of SYNs");
            events.into_iter().chain(flood).for_each(|event| *found.entry(event).or_default() += 1);
        }
    }
    let rare: Vec<_> =
        LIVES.iter().filter(|event| found.get(**event).copied().unwrap_or(0) < 3).collect();
    assert!(rare.is_empty(), "rare: {rare:?} of {found:?}");
}

#[test]
fn packets_that_end_connections_take_records_and_others_run_programs() {
    let (mut hits, mut others) = (0, 0);
    for seed in 0..braid_cases::at_least(120).into() {
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.expect("compiles");
        let options = Options { hash: Hashing::Seeded(seed), ..Options::fused() };
        let mut engine = Compiled::new(chain.clone(), Extent::Chain, options).expect("an engine");
        for stimulus in stimuli(&chain, seed, 150) {
            let is_end = match &stimulus {
                Stimulus::Packet(_, packet) => {
                    let flags = packet.get(&packet.parse(), Field::TcpFlags);
                    flags.is_some_and(|flags| flags & 0x05 != 0)
                }
                _ => false,
            };
            let before = engine.flows().expect("flow records").hits;
            step(&mut engine, &stimulus);
            let is_hit = engine.flows().expect("flow records").hits > before;
            match is_end {
                true if is_hit => hits += 1,
                true => others += 1,
                false => {}
            }
        }
    }
    assert!(hits > 30 && others > 100, "{hits} of FINs and RSTs take records, {others} do not");
}

/// The records that packets can use, with the number of packets that did.
fn records(engine: &Compiled) -> BTreeMap<String, u64> {
    let table = engine.flow_table().expect("flow records");
    let templates = &table.templates;
    let is_current = |record: &&FlowRecord| !templates[record.template as usize].is_outdated;
    let records = table.records.iter().filter(is_current);
    records
        .map(|record| (format!("{} {:?}", record.template, record.key), record.packets))
        .collect()
}

/// Number of packets that used records that already existed.
fn taken(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> u64 {
    let more = |(record, packets): (&String, &u64)| {
        now.get(record).map_or(0, |now| now.saturating_sub(*packets))
    };
    before.iter().map(more).sum()
}

#[test]
fn generated_changes_leave_some_records_and_renew_others() {
    let (mut left, mut renewed) = (0, 0);
    for seed in 0..braid_cases::at_least(120).into() {
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.expect("compiles");
        let options = Options { eager: true, hash: Hashing::Seeded(seed), ..Options::fused() };
        let mut engine = Compiled::new(chain.clone(), Extent::Chain, options).expect("an engine");
        engine.keep_flow_totals();
        let mut before = BTreeMap::new();
        for stimulus in stimuli(&chain, seed, 150) {
            let is_change = matches!(stimulus, Stimulus::Control(_));
            if is_change {
                left += taken(&before, &records(&engine));
            }
            step(&mut engine, &stimulus);
            if is_change {
                before = records(&engine);
            }
        }
        left += taken(&before, &records(&engine));
        renewed += engine.flows().expect("flow records").renewed;
    }
    assert!(left > 100, "{left} packets took records that were there before the last change");
    assert!(renewed > 10, "{renewed} records took an outdated one's place");
}
