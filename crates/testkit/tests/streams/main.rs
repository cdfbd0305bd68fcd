//! Tests of stream functions: engines, which share TCP stacks, do what the reference engine does,
//! where each function has a stack of its own.

mod breaks;
mod division;

use braid_ir::chain::Chain;
use braid_ir::engine::Event;
use braid_testkit::generate::program::Program;
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, ENGINES, Form, USERS};
use braid_testkit::record::{Output, Trace};
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
        for engine in ENGINES.iter().chain(USERS).filter(|engine| !engine.is_native()) {
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
