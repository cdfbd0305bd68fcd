//! Tests of stream functions: engines, which share TCP stacks, do what the reference engine does,
//! where each function has a stack of its own.

mod breaks;
mod division;

use braid_ir::chain::Chain;
use braid_ir::engine::Event;
use braid_packet::build::build_fresh;
use braid_packet::{Field, Link, Packet, Shape};
use braid_testkit::generate::program::Program;
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, ENGINES, Form, USERS};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record};
use std::collections::BTreeMap;

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
    let (mut events, mut resets) = (BTreeMap::new(), 0);
    for seed in 0..count.into() {
        let program = streams::program(seed);
        let chain = compile(&program);
        let (stimuli, expected) = recorded(&chain, seed, PACKETS);
        published(&expected, &mut events);
        resets += expected.counters.iter().map(|counters| counters.created).sum::<u64>();
        for engine in ENGINES.iter().chain(USERS).filter(|engine| !engine.has_machine_code()) {
            let found = engine.difference_of(engine.make(&chain).as_mut(), &stimuli, &expected);
            if let Some(found) = found {
                panic!("seed {seed}, {engine}: {found:?}\n{program}");
            }
        }
    }
    println!("of {count} chains: events {events:?}, resets {resets}");
    for kind in ["OPEN", "FOUND", "CLOSED"] {
        assert!(events.get(kind).is_some_and(|times| *times > 100), "{kind}: {events:?}");
    }
    assert!(resets > 100, "{resets}");
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
    ];
    let mut engines = vec![harness::reference(&chain)];
    engines
        .extend(ENGINES.iter().filter(|one| !one.has_machine_code()).map(|one| one.make(&chain)));
    for mut engine in engines {
        record(engine.as_mut(), &stimuli, Detail::End);
        for node in 0..2 {
            let problems = engine.problems().into_iter().filter(|(of, _)| *of == node);
            let texts: Vec<_> = problems.map(|(_, noted)| noted.to_string()).collect();
            assert_eq!(texts, expected);
        }
    }
}
