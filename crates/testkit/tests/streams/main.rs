//! Tests of stream functions: engines, which share TCP stacks, do what the reference engine does,
//! where each function has a stack of its own.

mod breaks;
mod division;
mod natives;

use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, EventValue};
use braid_packet::build::build_fresh;
use braid_packet::{Field, Link, Packet, Shape};
use braid_runtime::Sharded;
use braid_testkit::generate::program::Program;
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, ENGINES, Form, USERS};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record};
use std::collections::{BTreeMap, BTreeSet};

/// The number of packets of each chain.
const PACKETS: usize = 300;

fn compile(program: &Program) -> Chain {
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    chain.unwrap_or_else(|error| panic!("{program}\n{error}"))
}

/// How often events of each kind were published.
fn published(trace: &Trace, counts: &mut BTreeMap<String, usize>) {
    for output in trace.outputs.iter().flatten() {
        if let Output::Event(Event { name, .. }) = output {
            *counts.entry(name.trim_end_matches(char::is_numeric).to_owned()).or_default() += 1;
        }
    }
}

#[test]
fn random_stream_functions_do_on_all_engines_what_they_do_alone() {
    let count = braid_cases::at_least(60);
    let (mut events, mut resets, mut ordered) = (BTreeMap::new(), 0, 0);
    let mut sids = BTreeSet::new();
    for seed in 0..count.into() {
        let program = streams::program(seed);
        let chain = compile(&program);
        let (stimuli, expected) = recorded(&chain, seed, PACKETS);
        published(&expected, &mut events);
        let fields = expected.outputs.iter().flatten().filter_map(|output| match output {
            Output::Event(event) => event.fields.first(),
            _ => None,
        });
        sids.extend(fields.filter_map(|(name, value)| match value {
            EventValue::Scalar(_, sid) if name == "sid" => Some(*sid),
            _ => None,
        }));
        resets += expected.counters.iter().map(|counters| counters.created).sum::<u64>();
        let drops = expected.counters.iter().flat_map(|counters| &counters.drops);
        ordered += drops.filter(|((.., reason), _)| reason == "ordered").count();
        // Each chain has programs of its own, which take long to compile.
        let is_compiled = seed % 4 == 0;
        let engines = ENGINES.iter().chain(USERS);
        for engine in engines.filter(|engine| is_compiled || !engine.has_machine_code()) {
            let found = engine.difference_of(engine.make(&chain).as_mut(), &stimuli, &expected);
            if let Some(found) = found {
                panic!("seed {seed}, {engine}: {found:?}\n{program}");
            }
        }
    }
    println!("of {count} chains: events {events:?}, rules {sids:?}, resets {resets}");
    // Two rules only set bits.
    assert_eq!(sids, (1..=25).filter(|sid| ![7, 15].contains(sid)).collect());
    for kind in ["OPEN", "FOUND", "CLOSED", "REQUEST", "RESPONSE", "STEER", "WOKEN", "TOOK"] {
        assert!(events.get(kind).is_some_and(|times| *times > 90), "{kind}: {events:?}");
    }
    assert!(resets > 100 && ordered > 5, "{resets}, {ordered}");
}

#[test]
fn instances_share_the_machine_code_of_programs_for_events() {
    let source = "chain c { interface in; interface out;
        one = stream_ids(signatures: { \"x\" }); two = stream_ids(signatures: { \"y\" });
        path in <-> one <-> two <-> out; }";
    let chain = harness::compile(source, &BTreeMap::new(), Form::AsWritten).expect("compiles");
    let fields = [(Field::IpSrc, 1), (Field::IpDst, 2), (Field::TcpFlags, 16)];
    let packet = build_fresh(Link::Ethernet, 1, Shape::Tcp4, &fields, b"some bytes").expect("TCP");
    let stimuli = [Stimulus::Packet(0, packet)];
    for engine in ENGINES {
        let mut made = engine.make(&chain);
        record(made.as_mut(), &stimuli, Detail::End);
        let compiled = made.compilation().map(|compilation| compilation.compiled);
        // `open` and `data from client`. A workshop has also compiled the other two, and those of
        // IPv6. Packets of TCP have no programs.
        let expected = match (engine.has_machine_code(), engine.has_workshop()) {
            (false, _) => 0,
            (true, false) => 2,
            (true, true) => 8,
        };
        assert_eq!(compiled.unwrap_or(0), expected, "{engine}");
    }
}

#[test]
fn packets_that_no_function_can_follow_are_told() {
    let source = "chain c { interface in; interface out;
        path in <-> connection_log() <-> stream_ids(signatures: { \"x\" }) <-> out; }";
    let chain = harness::compile(source, &BTreeMap::new(), Form::AsWritten).expect("compiles");
    let fields = [(Field::IpSrc, 1), (Field::IpDst, 2), (Field::TcpFlags, 16)];
    let good = build_fresh(Link::Ethernet, 1, Shape::Tcp4, &fields, b"some bytes").expect("TCP");
    let changed = |at: usize, by: u8| {
        let mut data = good.data().to_vec();
        data[at] ^= by;
        Packet::new(Link::Ethernet, 1, data)
    };
    let cut = Packet::snapped(Link::Ethernet, 1, &good.data()[..60], good.wire_len);
    // The last byte of the payload, and the flag "more fragments".
    let packets = [good.clone(), changed(63, 1), changed(63, 2), changed(20, 0x20), cut];
    let stimuli: Vec<_> = packets.into_iter().map(|one| Stimulus::Packet(0, one)).collect();
    let expected = [
        "does not follow packets with a wrong checksum, 2 times",
        "does not follow IP fragments",
        "does not follow bytes that the capture lacks",
    ]
    .map(str::to_owned)
    .to_vec();
    for (name, told) in told(&chain, &stimuli) {
        assert_eq!(told, [expected.clone(), expected.clone()], "{name}");
    }
}

#[test]
fn each_function_tells_what_its_own_signatures_have_missed() {
    let source = "chain c { interface in; interface out;
        udp = signature_ids(rules: signatures(\"udp.signatures\"));
        tcp = signature_ids(rules: signatures(\"tcp.signatures\"));
        path in <-> udp <-> tcp <-> out; }";
    let rule = |protocol: &str, sid: u32| {
        format!("alert {protocol} any any -> any any (content:\"x\"; sid:{sid};)\n")
    };
    let files = [("udp.signatures", rule("udp", 1)), ("tcp.signatures", rule("tcp", 2))];
    let files = files.map(|(name, text)| (name.to_owned(), text)).into();
    let chain = harness::compile(source, &files, Form::AsWritten).expect("compiles");
    let fields = [(Field::IpSrc, 1), (Field::IpDst, 2)];
    let whole = build_fresh(Link::Ethernet, 1, Shape::Udp4, &fields, b"some bytes").expect("UDP");
    let mut data = whole.data().to_vec();
    // The flag "more fragments".
    data[20] ^= 0x20;
    let stimuli = [Stimulus::Packet(0, Packet::new(Link::Ethernet, 1, data))];
    let expected = [vec!["does not inspect IP fragments".to_owned()], Vec::new()];
    for (name, told) in told(&chain, &stimuli) {
        assert_eq!(told, expected, "{name}");
    }
}

/// What the two functions of a chain tell of their traffic, for each engine, and for engines of two
/// workers.
fn told(chain: &Chain, stimuli: &[Stimulus]) -> Vec<(String, [Vec<String>; 2])> {
    let engines = ENGINES.iter().filter(|one| !one.has_machine_code());
    let one = engines.map(|one| (one.to_string(), one.make(chain)));
    let divided = Chain { workers: 2, ..chain.clone() };
    let make = |chain: Chain| Ok::<_, String>(harness::reference(&chain));
    let two: Box<dyn Engine> = Box::new(Sharded::new(&divided, make).expect("engines of workers"));
    let alone =
        [("reference".to_owned(), harness::reference(chain)), ("two workers".to_owned(), two)];
    let each = one.chain(alone).map(|(name, mut engine)| {
        record(engine.as_mut(), stimuli, Detail::End);
        let of = |node: u16| {
            let problems = engine.problems().into_iter().filter(move |(of, _)| *of == node);
            problems.map(|(_, noted)| noted.to_string()).collect()
        };
        (name, [of(0), of(1)])
    });
    each.collect()
}
