//! Tests that connections go on as if nothing had happened when the state moves to another engine, in
//! the middle of conversations.

use crate::{PACKETS, compile};
use braid_ir::chain::Chain;
use braid_ir::snapshot::{Plan, Snapshot};
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
    shards.filter_map(|shard| shard.memory.as_mut())
}

#[test]
fn breaks_find_that_connections_are_lost() {
    let lost = |snapshot: &mut Snapshot| {
        let shards = snapshot.functions.iter_mut().flat_map(|function| &mut function.shards);
        shards.for_each(|shard| shard.memory = None);
    };
    let count = 30;
    let cases = (0..count).map(case);
    let found = cases.filter(|(_, chain, steps)| differs(chain, steps, &lost, RIGHT).is_some());
    let found = found.count();
    assert!(found > 20, "of {count} chains: {found}");
}

/// The outputs of an engine, with the names of functions. The counters are those of another chain.
fn outputs(
    engine: &mut dyn braid_ir::engine::Engine,
    chain: &Chain,
    all: &[Stimulus],
) -> Vec<String> {
    let trace = record(engine, all, Detail::End);
    let text = |output: &Output| match output {
        Output::Event(event) => {
            let name = &chain.nodes[usize::from(event.node)].name;
            format!("{name} {} {} {:?}", event.time_ns, event.name, event.fields)
        }
        other => format!("{other:?}"),
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
            let compiled = || ENGINES.iter().filter(|engine| !engine.is_native()).copied();
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
