//! Tests that the engines of N workers, each with the packets that the steering gives it, do
//! together what the reference engine with N shards does.

use braid_io::{MemorySink, MemorySource};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine;
use braid_ir::steering::{By, Of, Part, Side, Steering};
use braid_packet::Packet;
use braid_reference::Reference;
use braid_runtime::{Input, Run, RunError, Sharded, Sinks, Summary};
use braid_testkit::case::{list, replay};
use braid_testkit::compare::difference;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, Engine, Form, USERS, budget};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Stimulus, Trace, record, record_bursts, step};
use std::path::Path;

/// Number of stimuli of each chain.
const STIMULI: usize = 150;

/// How the engines of workers are made.
#[derive(Clone, Copy)]
enum Kind {
    Reference,
    Compiled(Engine),
}

/// The workers of a chain, as one engine.
fn sharded(chain: &Chain, kind: Kind) -> Sharded {
    let make = |chain: Chain| -> Result<Box<dyn engine::Engine>, String> {
        Ok(match kind {
            Kind::Reference => Box::new(Reference::new(chain)?),
            Kind::Compiled(engine) => engine.make(&chain),
        })
    };
    Sharded::new(chain, make).expect("engines of workers")
}

/// The chain with several workers.
fn with_workers(chain: Chain, seed: u64) -> Chain {
    if chain.workers > 1 {
        return chain;
    }
    let workers = 2 + u16::try_from(seed % 3).expect("small");
    harness::over_workers(Chain { workers, ..chain })
}

/// The kinds of engines that a seed chooses.
fn kinds(seed: u64) -> Vec<Kind> {
    let user = USERS[usize::try_from(seed).unwrap_or(0) % USERS.len()];
    let drawn = Engine::drawn(seed, false).into_iter().map(Kind::Compiled);
    let user = seed.is_multiple_of(16).then_some(Kind::Compiled(user));
    drawn.chain(user).chain([Kind::Reference]).collect()
}

/// Puts what may come in any order into one order: work of several workers that is due at the same
/// time, and state entries that they created at the same time.
fn settled(mut trace: Trace) -> Trace {
    trace.outputs = std::mem::take(&mut trace.outputs).into_iter().map(harness::settled).collect();
    trace.state.sort_by_cached_key(|entry| {
        (entry.node, entry.table.clone(), entry.created_ns, entry.shard, format!("{:?}", entry.key))
    });
    trace
}

/// The stimuli with times that always go on, so that no two packets have the same time.
fn apart(stimuli: &[Stimulus]) -> Vec<Stimulus> {
    let mut last = 0;
    let mut later = |time: &mut u64| {
        last = time.saturating_add(1).max(last + 1);
        *time = last;
    };
    let mut all = stimuli.to_vec();
    for stimulus in &mut all {
        match stimulus {
            Stimulus::Packet(_, packet) => later(&mut packet.time_ns),
            Stimulus::Advance(time) => later(time),
            Stimulus::Control(control) => later(&mut control.time_ns),
        }
    }
    all
}

/// The first difference between workers and the reference engine with a shard for each: packet by
/// packet, or in bursts.
fn differs(chain: &Chain, kind: Kind, stimuli: &[Stimulus], most: Option<usize>) -> Option<String> {
    let mut workers = sharded(chain, kind);
    let mut oracle = harness::reference(chain);
    let (expected, actual) = match most {
        None => (
            settled(record(oracle.as_mut(), stimuli, Detail::End)),
            settled(record(&mut workers, stimuli, Detail::End)),
        ),
        Some(most) => {
            let stimuli = apart(stimuli);
            (
                settled(record(oracle.as_mut(), &stimuli, Detail::End)),
                settled(record_bursts(&mut workers, &stimuli, most)),
            )
        }
    };
    let found = difference(&expected, &actual)?;
    let name = match kind {
        Kind::Reference => "reference".to_owned(),
        Kind::Compiled(engine) => engine.to_string(),
    };
    Some(format!("{} workers of {name}, {most:?}: {found:?}", chain.workers))
}

/// All differences on a chain: packet by packet, and in bursts whose size the seed draws.
fn differences(chain: &Chain, seed: u64, stimuli: &[Stimulus]) -> Vec<String> {
    let ways = [None, Some(if seed.is_multiple_of(2) { 7 } else { 64 })];
    let all = kinds(seed).into_iter().flat_map(|kind| ways.map(|most| (kind, most)));
    all.filter_map(|(kind, most)| differs(chain, kind, stimuli, most)).collect()
}

#[test]
fn workers_are_equal_to_shards_on_generated_chains() {
    let mut by_rule = 0;
    for seed in budget::seeds(budget::PAIRS / 6) {
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
        let chain = with_workers(chain, seed);
        by_rule += u64::from(!chain.steering.entries.is_empty());
        let (stimuli, _) = recorded(&chain, seed, STIMULI);
        let found = differences(&chain, seed, &stimuli);
        assert!(found.is_empty(), "seed {seed}\n{program}\n{}", found.join("\n"));
    }
    assert!(by_rule > 0, "no chain has a steering of its own");
}

/// A timer that may be behind by 10 s before it skips firings.
const TICKS: &str = "
nf ticks() {
  state seen: u32 per flow = 0, capacity 100, full refuse;
  every 1 ms { }
  match {
    has ip => { seen += 1; output; }
    else => output;
  }
}
chain c {
  t = ticks();
  interface lan;
  interface wan;
  path lan <-> t <-> wan;
}";

#[test]
fn timers_skip_as_many_firings_on_workers_as_on_one_engine() {
    let chain = harness::compile(TICKS, &Default::default(), Form::AsWritten).expect("a chain");
    let chain = with_workers(chain, 0);
    // Small steps, long ones that add up to leaps for a worker without packets, and leaps.
    let times = [0, 1, 6, 12, 12, 18, 24, 60, 61, 65, 72, 90, 91];
    let stimuli: Vec<Stimulus> = (0..)
        .zip(times)
        .map(|(flow, seconds)| {
            let text = format!("udp 10.0.0.{}:9 > 10.0.0.1:9", flow * 7 % 11);
            Stimulus::Packet(0, parse(&text).expect("a packet").at(seconds * 1_000_000_000))
        })
        .collect();
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let skipped = expected.counters.last().expect("counters").nodes[0].timers_skipped;
    // 36 s, 18 s: the firings beyond the last 10,000.
    assert_eq!(skipped, 26_000 + 8_000);
    for seed in 0..braid_cases::at_least(2).into() {
        let found = differences(&chain, seed, &stimuli);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn workers_are_equal_to_shards_on_chains_of_library_functions() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        let chain = with_workers(chain, 1);
        let (stimuli, _) = recorded(&chain, 1, 400);
        let found = differences(&chain, 0, &stimuli);
        assert!(found.is_empty(), "{name}\n{}", found.join("\n"));
    }
}

#[test]
fn workers_are_equal_to_shards_on_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    for (seed, case) in (0..).zip(list(&folder).expect("folders of cases")) {
        let (chain, stimuli) = replay(&case).unwrap_or_else(|error| panic!("{error}"));
        let chain = with_workers(chain, seed);
        let found = differences(&chain, seed, &stimuli);
        assert!(found.is_empty(), "{}\n{}", case.name, found.join("\n"));
    }
}

#[test]
fn state_of_workers_moves_to_one_engine_and_back() {
    for seed in budget::seeds(budget::PAIRS / 10) {
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = with_workers(chain.expect("a chain"), seed);
        let (stimuli, expected) = recorded(&chain, seed, STIMULI);
        let mut running: Box<dyn engine::Engine> = Box::new(sharded(&chain, kinds(seed)[0]));
        let mut outputs = Vec::new();
        for (at, stimulus) in stimuli.iter().enumerate() {
            outputs.push(step(running.as_mut(), stimulus));
            if at % 30 == 29 {
                let snapshot = running.export();
                running = match at % 60 {
                    29 => harness::reference(&chain),
                    _ => Box::new(sharded(&chain, kinds(seed)[0])),
                };
                running.import(snapshot).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            }
        }
        let counters = vec![running.counters()];
        let actual = Trace { outputs, counters, state: running.state(), panic: None };
        let [expected, actual] = [expected, actual].map(|trace| unrecorded(&chain, settled(trace)));
        let found = difference(&expected, &actual);
        assert!(found.is_none(), "seed {seed}\n{program}\n{found:?}");
    }
}

/// A trace without the sizes of native functions' recordings, which snapshots do not hold.
fn unrecorded(chain: &Chain, mut trace: Trace) -> Trace {
    let is_native = |node: u16| chain.nodes[usize::from(node)].model.native.is_some();
    let flows = |entry: &&mut engine::StateEntry| is_native(entry.node) && entry.table == "flows";
    trace.state.iter_mut().filter(flows).for_each(|entry| entry.slots.clear());
    trace
}

/// What a run has written: packets by interface, and events as lines.
type Written = (Vec<Vec<Packet>>, Vec<String>);

/// What runs packets.
enum On<'a> {
    One(&'a mut dyn engine::Engine),
    Workers(&'a mut Sharded),
}

/// Runs stimuli as inputs of a run: one for each interface, and changes of configuration.
fn drive(chain: &Chain, on: On<'_>, stimuli: &[Stimulus]) -> (Result<Summary, RunError>, Written) {
    let mut packets = vec![Vec::new(); chain.interfaces.len()];
    let mut control: Vec<Control> = Vec::new();
    for stimulus in apart(stimuli) {
        match stimulus {
            Stimulus::Packet(interface, packet) => packets[usize::from(interface)].push(packet),
            Stimulus::Control(change) => control.push(change),
            Stimulus::Advance(_) => {}
        }
    }
    let mut sinks = vec![MemorySink::default(); chain.interfaces.len()];
    let mut events = Vec::new();
    let run = match on {
        On::One(engine) => Run::new(chain, engine),
        On::Workers(workers) => Run::on_workers(chain, workers),
    };
    let mut run = run.control(control);
    for (interface, packets) in (0..).zip(packets) {
        let source = Box::new(MemorySource::new(packets));
        run = run.input(Input { name: String::new(), interface: Some(interface), source });
    }
    let mut written = Sinks::default().events("events", &mut events);
    for (interface, sink) in (0..).zip(&mut sinks) {
        written = written.output("out", Some(interface), sink);
    }
    let done = run.sinks(written).run();
    let events = String::from_utf8(events).expect("JSON lines");
    let left = sinks.into_iter().map(|sink| sink.packets).collect();
    (done, (left, events.lines().map(str::to_owned).collect()))
}

/// Checks that a run on threads writes what a run of the reference engine writes, in its order.
fn check_threads(chain: &Chain, kind: Kind, stimuli: &[Stimulus], what: &str) {
    let mut oracle = harness::reference(chain);
    let mut workers = sharded(chain, kind);
    let (expected, (packets, mut events)) = drive(chain, On::One(oracle.as_mut()), stimuli);
    let (actual, (found, mut found_events)) = drive(chain, On::Workers(&mut workers), stimuli);
    match (expected, actual) {
        (Ok(expected), Ok(actual)) => assert_eq!(expected, actual, "{what}"),
        (Err(expected), Err(actual)) => {
            assert_eq!(expected.to_string(), actual.to_string(), "{what}");
        }
        (expected, actual) => panic!("{what}: {expected:?}, {actual:?}"),
    }
    for (packets, found) in packets.iter().zip(&found) {
        let seen = |all: &[Packet]| -> Vec<(u64, Vec<u8>)> {
            all.iter().map(|packet| (packet.time_ns, packet.data().to_vec())).collect()
        };
        let (mut packets, mut found) = (seen(packets), seen(found));
        assert!(found.is_sorted_by_key(|(time_ns, _)| *time_ns), "{what}");
        // Work of several workers that is due at the same time may come in another order.
        packets.sort();
        found.sort();
        assert_eq!(packets, found, "{what}");
    }
    events.sort();
    found_events.sort();
    assert_eq!(events, found_events, "{what}");
}

#[test]
fn workers_on_threads_write_what_one_engine_with_shards_writes() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        let chain = with_workers(chain, 1);
        let (stimuli, _) = recorded(&chain, 1, 400);
        check_threads(&chain, kinds(0)[0], &stimuli, &name);
    }
    for seed in budget::seeds(budget::PAIRS / 10) {
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = with_workers(chain.expect("a chain"), seed);
        let (stimuli, _) = recorded(&chain, seed, STIMULI);
        check_threads(&chain, kinds(seed)[0], &stimuli, &format!("seed {seed}\n{program}"));
    }
}

/// A rule for all interfaces.
fn everywhere(chain: &Chain, end: Side, what: Of, errors_follow: bool) -> Steering {
    let by = By::Part(Part { end, what });
    Steering { entries: vec![by; chain.interfaces.len()], errors_follow }
}

#[test]
fn workers_that_are_steered_by_another_rule_are_found() {
    let chains = harness::library_chains().expect("chains compile");
    let chains: Vec<_> = chains.into_iter().map(|(_, one)| with_workers(one, 1)).collect();
    let by = |chain: &Chain, at| match at {
        0 => Steering::by_connection(),
        1 => everywhere(chain, Side::Destination, Of::Both, false),
        2 => everywhere(chain, Side::Source, Of::Address, false),
        // ICMP errors follow the packets that they quote.
        _ => everywhere(chain, Side::Source, Of::Both, true),
    };
    for mistake in 0..4 {
        let is_found = chains.iter().any(|chain| {
            let right = everywhere(chain, Side::Source, Of::Both, false);
            let chain = Chain { steering: right, ..chain.clone() };
            let (stimuli, expected) = recorded(&chain, 1, 400);
            let wrong = Chain { steering: by(&chain, mistake), ..chain.clone() };
            let mut workers = sharded(&wrong, Kind::Reference);
            let actual = settled(record(&mut workers, &stimuli, Detail::End));
            difference(&settled(expected), &actual).is_some()
        });
        assert!(is_found, "mistake {mistake} makes no difference");
    }
}
