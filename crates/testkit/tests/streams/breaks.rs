//! Tests that connections go on as if nothing had happened when the state moves to another engine,
//! in the middle of conversations.

use crate::{PACKETS, compile};
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::snapshot::{Plan, Snapshot};
use braid_packet::build::build_fresh;
use braid_packet::{Field, Link, Shape};
use braid_testkit::breaks::{Kind, RIGHT, Step, differs, resumed, snapshots_differ, with_breaks};
use braid_testkit::compare::shrink;
use braid_testkit::generate::Rng;
use braid_testkit::generate::program::Program;
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, ENGINES};
use braid_testkit::record::{Detail, Output, Stimulus, record};

/// The generated chain of a seed, and steps with breaks.
fn case(seed: u64) -> (Program, Chain, Vec<Step>) {
    let program = streams::program(seed);
    let chain = compile(&program);
    let (stimuli, _) = recorded(&chain, seed, PACKETS);
    let steps = with_breaks(&stimuli, seed, false);
    (program, chain, steps)
}

fn check(count: u32, fails: &dyn Fn(&Chain, &[Step]) -> Option<String>) {
    for seed in 0..braid_cases::at_least(count).into() {
        let (program, chain, steps) = case(seed);
        let fails = |steps: &[Step]| fails(&chain, steps);
        if let Some(found) = fails(&steps) {
            let (steps, found) = shrink(&steps, found, &fails);
            panic!("seed {seed}: {found}\n{steps:#?}\n{program}");
        }
    }
}

#[test]
fn connections_go_on_in_other_engines() {
    check(40, &|chain, steps| differs(chain, steps, &|_| (), RIGHT));
}

#[test]
fn all_engines_give_the_same_connections_and_give_back_what_they_took() {
    check(20, &snapshots_differ);
}

/// The bytes of the stacks of all functions.
fn stacks(snapshot: &mut Snapshot) -> impl Iterator<Item = &mut Vec<u8>> {
    let shards = snapshot.functions.iter_mut().flat_map(|function| &mut function.shards);
    shards.filter_map(|shard| shard.stack.as_mut())
}

#[test]
fn breaks_find_that_connections_are_lost() {
    let lost = |snapshot: &mut Snapshot| {
        let shards = snapshot.functions.iter_mut().flat_map(|function| &mut function.shards);
        shards.for_each(|shard| shard.stack = None);
    };
    let count = 30;
    let cases = (0..count).map(case);
    let found = cases.filter(|(_, chain, steps)| differs(chain, steps, &lost, RIGHT).is_some());
    let found = found.count();
    assert!(found > 20, "of {count} chains: {found}");
}

/// The outputs of an engine, with the names of functions. The counters are those of another chain.
fn outputs(engine: &mut dyn Engine, chain: &Chain, all: &[Stimulus]) -> Vec<String> {
    let trace = record(engine, all, Detail::End);
    let text = |output: &Output| match output {
        Output::Event(event) => {
            let name = &chain.nodes[usize::from(event.node)].name;
            format!("{name} {} {} {:?}", event.time_ns, event.name, event.fields)
        }
        Output::Packet(interface, packet) => {
            format!("{interface} {} {} {:?}", packet.time_ns, packet.wire_len, packet.data())
        }
        Output::Refused(why) => format!("refused: {why:?}"),
    };
    trace.outputs.iter().map(|outputs| outputs.iter().map(text).collect()).collect()
}

#[test]
fn connections_go_on_with_one_function_more_or_fewer() {
    for seed in 0..braid_cases::at_least(12).into() {
        let program = streams::program(seed);
        let mut more = program.clone();
        let quiet = "stream nf quiet() { on open { forward; } on data { forward; } }\n";
        more.source = quiet.to_owned() + &program.source.replace("lan <->", "lan <-> quiet() <->");
        let (chain, more) = (compile(&program), compile(&more));
        assert_eq!(more.nodes.len(), chain.nodes.len() + 1);
        let (stimuli, _) = recorded(&chain, seed, PACKETS);
        let mut rng = Rng::new(seed);
        let (before, after) = stimuli.split_at(rng.below(PACKETS));
        for (from, to) in [(&chain, &more), (&more, &chain)] {
            let compiled = || ENGINES.iter().filter(|engine| !engine.has_machine_code()).copied();
            let mut old = Kind::Compiled(compiled().next().expect("an engine")).engine(from);
            let mut oracle = harness::reference(from);
            record(old.as_mut(), before, Detail::End);
            record(oracle.as_mut(), before, Detail::End);
            let snapshots = [oracle.export(), old.export()];
            let expected = outputs(oracle.as_mut(), from, after);
            for snapshot in snapshots {
                let plan = Plan::new(&snapshot, to).to_string();
                assert!(plan.contains("TCP stack ("), "{plan}");
                for kind in compiled().map(Kind::Compiled).chain([Kind::Reference]) {
                    let mut engine = resumed(kind, to, snapshot.clone()).expect("the state fits");
                    let actual = outputs(engine.as_mut(), to, after);
                    let at = expected.iter().zip(&actual).position(|(a, b)| a != b);
                    if let Some(at) = at {
                        let (expected, actual) = (&expected[at], &actual[at]);
                        panic!("seed {seed}, {kind:?}, {at}: {expected}\n{actual}\n{program}");
                    }
                }
            }
        }
    }
}

#[test]
fn functions_that_saw_different_packets_share_a_stack_after_a_reload() {
    let mut count = 0;
    for seed in 0..braid_cases::at_least(60).into() {
        let program = streams::program(seed);
        let mut fewer = program.clone();
        fewer.source = program.source.replace(" <-> thin()", "");
        let (chain, fewer) = (compile(&program), compile(&fewer));
        if chain.nodes.len() == fewer.nodes.len() {
            continue;
        }
        count += 1;
        let (stimuli, _) = recorded(&chain, seed, PACKETS);
        let (before, after) = stimuli.split_at(PACKETS / 2);
        let mut old = harness::reference(&chain);
        record(old.as_mut(), before, Detail::End);
        let kind = Kind::Compiled(ENGINES[0]);
        let mut engine = resumed(kind, &fewer, old.export()).expect("the state fits");
        let mut next = resumed(kind, &fewer, engine.export()).expect("the state fits");
        let expected = outputs(engine.as_mut(), &fewer, after);
        assert_eq!(outputs(next.as_mut(), &fewer, after), expected, "seed {seed}\n{program}");
    }
    assert!(count > 5, "{count}");
}

/// A segment of a conversation whose handshake was not seen.
fn segment(time_ns: u64, seq: u128, payload: &[u8]) -> Stimulus {
    let fields = [
        (Field::IpSrc, 0x0a00_0001),
        (Field::IpDst, 0xc633_6401),
        (Field::TcpSport, 1000),
        (Field::TcpDport, 80),
        (Field::TcpSeq, seq),
        (Field::TcpFlags, 16),
    ];
    let packet = build_fresh(Link::Ethernet, time_ns, Shape::Tcp4, &fields, payload);
    Stimulus::Packet(0, packet.expect("the shape has these fields"))
}

/// A chain with a function that resets connections for this reason when it finds these patterns.
fn guarded(patterns: &str, reason: &str) -> Chain {
    let source = format!(
        "stream nf guard(bad: patterns) {{
             on data {{ if stream.data matches bad {{ reset \"{reason}\"; }} }}
         }}
         chain c {{ interface lan; interface wan; path lan <-> guard(bad: {patterns}) <-> wan; }}"
    );
    compile(&Program { source, ..Program::default() })
}

/// Whether a segment passes a chain that goes on after other segments.
fn passes(before: &[Stimulus], (old, new): (&Chain, &Chain), segment: &Stimulus) -> bool {
    let mut engine = harness::reference(old);
    record(engine.as_mut(), before, Detail::End);
    let passes = [Kind::Reference, Kind::Compiled(ENGINES[0])].map(|kind| {
        let mut engine = resumed(kind, new, engine.export()).expect("the state fits");
        let outputs = record(engine.as_mut(), std::slice::from_ref(segment), Detail::End).outputs;
        let leaves = |output: &Output| match (output, segment) {
            (Output::Packet(1, out), Stimulus::Packet(_, packet)) => out.data() == packet.data(),
            _ => false,
        };
        outputs.iter().flatten().any(leaves)
    });
    assert_eq!(passes[0], passes[1]);
    passes[0]
}

#[test]
fn reload_can_change_patterns_and_reasons() {
    let old = guarded("{ \"evil\" }", "bad");
    let (first, second) = (segment(1, 0, b"ev"), segment(2, 2, b"il"));
    let began = std::slice::from_ref(&first);
    assert!(!passes(began, (&old, &old), &second), "the match began before the reload");
    // The searches begin anew.
    assert!(passes(began, (&old, &guarded("{ \"evil\", \"x\" }", "bad")), &second));
    let both = [first, second];
    let third = segment(3, 4, b".");
    assert!(!passes(&both, (&old, &guarded("{ \"x\" }", "bad")), &third));
    // The function has nothing to do with the connection any more.
    assert!(passes(&both, (&old, &guarded("{ \"x\" }", "worse")), &third));
}

#[test]
fn damaged_connections_are_refused_or_do_no_harm() {
    let mut refused = 0;
    for seed in 0..braid_cases::at_least(20).into() {
        let chain = compile(&streams::program(seed));
        let (stimuli, _) = recorded(&chain, seed, PACKETS);
        let (before, after) = stimuli.split_at(PACKETS / 2);
        let mut engine = harness::reference(&chain);
        record(engine.as_mut(), before, Detail::End);
        let snapshot = engine.export();
        let mut rng = Rng::new(seed);
        for _ in 0..30 {
            let mut snapshot = snapshot.clone();
            for bytes in stacks(&mut snapshot) {
                let at = rng.below(bytes.len());
                match rng.below(3) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, rng.byte()),
                    _ => bytes[at] = rng.byte(),
                }
            }
            let kinds = [Kind::Reference, Kind::Compiled(ENGINES[0])];
            match resumed(*rng.pick(&kinds), &chain, snapshot) {
                Ok(mut engine) => drop(record(engine.as_mut(), after, Detail::End)),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
