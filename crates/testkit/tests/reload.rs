//! Tests changes of chains while they run: what moves, what does not, and what the plan says.

use braid_engine::{Compiled, MoveMutant};
use braid_ir::chain::{Chain, Change, Control, Node, PolicyRule, Priority, Sink, Source};
use braid_ir::engine::{Counters, Engine};
use braid_ir::snapshot::{Fate, Plan, Snapshot, What, transfer};
use braid_ir::steering::By;
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use braid_testkit::breaks::{Kind, move_to, resumed};
use braid_testkit::generate::Rng;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, ENGINES, Form, budget};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record, step};
use std::collections::BTreeMap;

/// Number of stimuli of each case.
const STIMULI: usize = 120;
/// Number of cases, unless `BRAID_CASES` sets it.
const CASES: u64 = 40;

fn compile(source: &str) -> Chain {
    harness::compile(source, &BTreeMap::new(), Form::AsWritten).expect("compiles")
}

fn generated(seed: u64) -> Option<Chain> {
    let program = any(seed);
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
    let is_native = chain.nodes.iter().any(|node| node.model.native.is_some());
    // Records of native functions come again, so their sizes differ for a while.
    (!is_native).then_some(chain)
}

/// The engine `reference`, or a compiled engine without machine code.
fn kind(seed: u64) -> Kind {
    let engines = ENGINES.iter().filter(|engine| !engine.has_machine_code());
    let mut kinds: Vec<Kind> = engines.copied().map(Kind::Compiled).collect();
    kinds.push(Kind::Reference);
    *Rng::new(seed).pick(&kinds)
}

/// The chain with one more function in front, which has no links. All others change their numbers.
fn with_one_more(chain: &Chain) -> Chain {
    let mut chain = chain.clone();
    let extra = compile(
        "nf extra() { state seen: u32 global = 0; every 1 s { seen += 1; } match { else => output; } }
         chain c { interface a; interface b; path a <-> extra() <-> b; }",
    );
    let node = Node { name: "one_more".to_owned(), ..extra.nodes[0].clone() };
    chain.nodes.insert(0, node);
    for (source, sink) in &mut chain.links {
        if let Source::Port(node, _) = source {
            *node += 1;
        }
        if let Sink::Port(node, _) = sink {
            *node += 1;
        }
    }
    for Priority { winner, loser } in &mut chain.priorities {
        *winner += 1;
        *loser += 1;
    }
    for rule in &mut chain.policy {
        match rule {
            PolicyRule::Order(a, b) | PolicyRule::Priority(a, b) => {
                *a += 1;
                *b += 1;
            }
            PolicyRule::First(a) | PolicyRule::Last(a) => *a += 1,
        }
    }
    for by in &mut chain.steering.entries {
        if let By::Pool(_, pool) = by {
            pool.node += 1;
        }
    }
    chain
}

/// The stimulus for the chain with one more function.
fn shifted(stimulus: &Stimulus) -> Stimulus {
    match stimulus {
        Stimulus::Control(control) => {
            Stimulus::Control(Control { node: control.node + 1, ..control.clone() })
        }
        other => other.clone(),
    }
}

/// The trace of the chain with one more function, without this function.
fn without_it(mut trace: Trace) -> Trace {
    for output in trace.outputs.iter_mut().flatten() {
        if let Output::Event(event) = output {
            event.node -= 1;
        }
    }
    for counters in &mut trace.counters {
        counters.nodes.remove(0);
        let drops = std::mem::take(&mut counters.drops).into_iter();
        counters.drops =
            drops.map(|((node, row, why), count)| ((node - 1, row, why), count)).collect();
    }
    trace.state.retain(|entry| entry.node > 0);
    trace.state.iter_mut().for_each(|entry| entry.node -= 1);
    trace
}

#[test]
fn functions_keep_their_state_when_the_chain_gets_one_more() {
    for seed in budget::seeds(CASES) {
        let Some(chain) = generated(seed) else { continue };
        let more = with_one_more(&chain);
        let stimuli = stimuli(&chain, seed, STIMULI);
        let (before, after) = stimuli.split_at(Rng::new(!seed).below(STIMULI));
        let mut oracle = harness::reference(&chain);
        record(oracle.as_mut(), before, Detail::End);
        let snapshot = oracle.export();
        let plan = Plan::new(&snapshot, &more);
        assert!(!plan.loses(), "seed {seed}: {plan}");
        assert_eq!(plan.functions[0].fate, Fate::New);
        let copied = resumed(kind(seed), &more, snapshot).expect("the state fits");
        let mut old = kind(!seed).engine(&chain);
        record(old.as_mut(), before, Detail::End);
        let mut moved = kind(seed).engine(&more);
        move_to(&more, moved.as_mut(), (&chain, old.as_mut())).expect("the state fits");
        let after: Vec<_> = after.iter().map(|one| (one, shifted(one))).collect();
        let (own, shifted): (Vec<_>, Vec<_>) =
            after.into_iter().map(|(own, shifted)| (own.clone(), shifted)).unzip();
        let expected = record(oracle.as_mut(), &own, Detail::End);
        for mut engine in [copied, moved] {
            let actual = without_it(record(engine.as_mut(), &shifted, Detail::End));
            let difference = braid_testkit::compare::difference(&expected, &actual);
            assert!(difference.is_none(), "seed {seed}: {difference:?}\n{}", any(seed));
        }
    }
}

/// The chain with the values that these stimuli give its parameters.
fn with_new_values(chain: &Chain, stimuli: &[Stimulus]) -> Chain {
    let mut chain = chain.clone();
    for stimulus in stimuli {
        if let Stimulus::Control(Control { node, param, change: Change::Set(value), .. }) = stimulus
        {
            chain.nodes[usize::from(*node)].params[param.index()] = value.clone();
        }
    }
    chain
}

#[test]
fn state_that_moves_takes_new_values_as_a_copy_does() {
    for seed in budget::seeds(CASES) {
        let Some(chain) = generated(seed) else { continue };
        let stimuli = stimuli(&chain, seed, 2 * STIMULI);
        let (before, after) = stimuli.split_at(STIMULI);
        let next = with_new_values(&chain, after);
        let mut oracle = harness::reference(&chain);
        record(oracle.as_mut(), before, Detail::End);
        let copied = resumed(Kind::Reference, &next, oracle.export());
        let mut old = kind(seed).engine(&chain);
        record(old.as_mut(), before, Detail::End);
        let mut moved = kind(seed).engine(&next);
        let taken = move_to(&next, moved.as_mut(), (&chain, old.as_mut()));
        let mut copied = match (copied, taken) {
            (Ok(copied), Ok(())) => copied,
            (copied, taken) => {
                assert_eq!(copied.err(), taken.err(), "seed {seed}");
                continue;
            }
        };
        let expected = record(copied.as_mut(), after, Detail::End);
        let actual = record(moved.as_mut(), after, Detail::End);
        let difference = braid_testkit::compare::difference(&expected, &actual);
        assert!(difference.is_none(), "seed {seed}: {difference:?}\n{}", any(seed));
    }
}

/// What a mapping becomes when it moves to a NAPT with a shorter time-out and another pool of
/// ports: whether it has expired in time, and the port of the next mapping.
fn moved_mapping(mutant: Option<MoveMutant>) -> (bool, u128) {
    let (chain, next) = (
        napt("", "public: 198.51.100.1"),
        napt("", "public: 198.51.100.1, ports: 7000..7009, idle: 7 s"),
    );
    let make = |chain: &Chain| {
        let (extent, options) = ENGINES[0].options();
        match mutant {
            None => Compiled::new(chain.clone(), extent, options),
            Some(mutant) => Compiled::with_move_mutant(chain.clone(), extent, options, mutant),
        }
        .expect("an engine")
    };
    let (mut old, mut engine) = (make(&chain), make(&next));
    enter(&mut old, 0, udp(1_000_000_000, INSIDE, SERVER));
    move_to(&next, &mut engine, (&chain, &mut old)).expect("the state fits");
    assert!(!engine.state().is_empty());
    step(&mut engine, &Stimulus::Advance(8_500_000_000));
    let has_expired = engine.state().is_empty();
    let out = enter(&mut engine, 0, udp(9_000_000_000, INSIDE, SERVER));
    (has_expired, get(out.first().expect("a packet"), Field::UdpSport))
}

#[test]
fn new_time_out_and_new_pool_apply_to_state_that_moves() {
    assert_eq!(moved_mapping(None), (true, 7000));
    assert!(!moved_mapping(Some(MoveMutant::DeadlinesKept)).0);
    assert_eq!(moved_mapping(Some(MoveMutant::MembersKept)), (true, 1024));
}

#[test]
fn plan_for_the_same_chain_moves_everything() {
    for seed in budget::seeds(CASES) {
        let Some(chain) = generated(seed) else { continue };
        let mut engine = harness::reference(&chain);
        record(engine.as_mut(), &stimuli(&chain, seed, STIMULI), Detail::End);
        let snapshot = engine.export();
        let plan = Plan::new(&snapshot, &chain);
        let kept = "it keeps the value that it got while the chain ran";
        // A snapshot has no keys.
        let keys = "it gets the keys of the chain";
        for part in plan.functions.iter().flat_map(|function| &function.parts) {
            let overfull = part.what == What::Table;
            let is_kept = [kept, keys].iter().any(|why| part.fate == Fate::MovesBut((*why).into()));
            assert!(
                part.fate.moves() && (is_kept || overfull || part.fate == Fate::Moves),
                "{plan}"
            );
        }
        let moved = transfer(snapshot.clone(), &chain).expect("the state fits");
        assert!(moved.changes.is_empty());
        assert!(moved.snapshot == snapshot, "seed {seed}");
    }
}

/// Packets that leave, and events, are not needed.
fn enter(engine: &mut dyn Engine, interface: u16, packet: Packet) -> Vec<Packet> {
    let outputs = step(engine, &Stimulus::Packet(interface, packet));
    let packet = |output| match output {
        Output::Packet(_, packet) => Some(packet),
        _ => None,
    };
    outputs.into_iter().filter_map(packet).collect()
}

fn udp(time_ns: u64, src: (u32, u16), dst: (u32, u16)) -> Packet {
    let fields = [
        (Field::IpSrc, src.0.into()),
        (Field::UdpSport, src.1.into()),
        (Field::IpDst, dst.0.into()),
        (Field::UdpDport, dst.1.into()),
    ];
    build_fresh(Link::RawIp, time_ns, Shape::Udp4, &fields, &[]).expect("a packet")
}

fn get(packet: &Packet, field: Field) -> u128 {
    packet.get(&packet.parse(), field).expect("the field")
}

const INSIDE: (u32, u16) = (0x0a00_0001, 5000);
const SERVER: (u32, u16) = (0xcb00_7107, 53);
const PUBLIC: u32 = 0xc633_6401;

/// The state of a chain with a NAPT that has one mapping, and the port of the mapping.
fn napt_with_a_mapping() -> (Snapshot, u16) {
    let mut engine = harness::reference(&napt("", "public: 198.51.100.1"));
    let out = enter(engine.as_mut(), 0, udp(1_000_000_000, INSIDE, SERVER));
    let [packet] = &out[..] else { panic!("{out:?}") };
    (engine.export(), get(packet, Field::UdpSport) as u16)
}

fn napt(before: &str, args: &str) -> Chain {
    compile(&format!(
        "chain c {{ interface lan {{ behind 10.0.0.0/8 }} interface wan; nat = napt({args}); \
         path lan <-> {before} nat <-> wan; }}"
    ))
}

/// The address of the host that gets the server's answer.
fn answered(mut engine: Box<dyn Engine>, port: u16) -> Option<(u128, u128)> {
    let out = enter(engine.as_mut(), 1, udp(2_000_000_000, SERVER, (PUBLIC, port)));
    let packet = out.first()?;
    Some((get(packet, Field::IpDst), get(packet, Field::UdpDport)))
}

#[test]
fn mappings_of_a_napt_survive_one_more_function() {
    let (snapshot, port) = napt_with_a_mapping();
    let more = napt("monitor() <->", "public: 198.51.100.1");
    for engine in ENGINES.iter().filter(|engine| !engine.has_machine_code()) {
        let engine = resumed(Kind::Compiled(*engine), &more, snapshot.clone()).expect("it fits");
        let inside = (INSIDE.0.into(), INSIDE.1.into());
        assert_eq!(answered(engine, port), Some(inside), "the answer reaches the host");
    }
}

#[test]
fn new_value_of_the_chain_applies_to_moved_state() {
    let (snapshot, _) = napt_with_a_mapping();
    let changed = napt("", "public: 198.51.100.1, idle: 7 s");
    let plan = Plan::new(&snapshot, &changed).to_string();
    assert!(plan.contains("parameter `idle` moves: it gets the chain's new value"), "{plan}");
    let engine = resumed(Kind::Reference, &changed, snapshot).expect("it fits");
    assert_eq!(engine.state()[0].expires_ns, Some(8_000_000_000));
}

/// A chain of one function with these tables.
fn memory(tables: &str) -> Chain {
    compile(&format!(
        "nf memory(_ports: pool<port> = 1..9, _most: u32 = 9) {{ {tables} match {{
             has ip => {{ _seen = 1; output; }} else => output; }} }}
         chain c {{ interface a; interface b; m = memory(); path a <-> m <-> b; }}"
    ))
}

#[test]
fn plan_says_what_is_lost_and_why() {
    let mut engine = harness::reference(&memory(
        "state _seen: u32 per (ip.src) = 0, capacity _most; state _n: u8 global = 3;",
    ));
    for host in 0..3 {
        enter(engine.as_mut(), 0, udp(1, (host, 1), (9, 9)));
    }
    let snapshot = engine.export();
    let plan = |tables: &str| Plan::new(&snapshot, &memory(tables)).to_string();
    let wider = plan("state _seen: u64 per (ip.src) = 0, capacity _most; state _n: u8 global = 3;");
    assert!(
        wider.contains(
            "table `_seen` (3 entries) is lost: its schema was `u32 per (ip.src)` and is `u64 per (ip.src)`"
        ),
        "{wider}"
    );
    let smaller = plan("state _seen: u32 per (ip.src) = 0, capacity 2; state _n: u8 global = 3;");
    assert!(
        smaller.contains("table `_seen` (3 entries) moves: it has room for 2 entries, 1 fewer"),
        "{smaller}"
    );
    let fewer = plan("state _seen: u32 per (ip.src) = 0, capacity _most;");
    assert!(fewer.contains("table `_n` (1 entries) is lost"), "{fewer}");
    assert!(fewer.contains("its pools do not move"), "{fewer}");
    let other = compile("chain d { interface a; interface b; path a <-> monitor() <-> b; }");
    let gone = Plan::new(&snapshot, &other).to_string();
    assert!(gone.contains("`m` is lost: the chain has no function of this name"), "{gone}");
}

#[test]
fn packets_of_lost_functions_stay_accounted_for() {
    for seed in budget::seeds(CASES) {
        let Some(chain) = generated(seed) else { continue };
        let mut engine = harness::reference(&chain);
        record(engine.as_mut(), &stimuli(&chain, seed, STIMULI), Detail::End);
        let other = compile("chain c { interface a; interface b; path a <-> monitor() <-> b; }");
        let engine = resumed(kind(seed), &other, engine.export()).expect("it fits");
        let counters: Counters = engine.counters();
        assert!(counters.balanced(), "seed {seed}: {counters:?}");
    }
}
