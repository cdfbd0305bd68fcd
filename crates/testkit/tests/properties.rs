//! Tests properties of the reference engine on generated chains with generated traffic.

use braid_ir::chain::Chain;
use braid_ir::engine::LOST_HOP_LIMIT;
use braid_ir::model::Model;
use braid_testkit::compare::difference;
use braid_testkit::generate::program::{Options, Program, program, program_with};
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::packet::packet;
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record, step};
use braid_testkit::soundness::{Wrongness, complaint, wrongness_inside, wrongness_of_tunnels};
use braid_testkit::wrong::{Sabotaged, Wrong};

/// Number of stimuli for each chain.
const STIMULI: usize = 150;

fn compile(program: &Program, form: Form) -> Chain {
    match harness::compile(&program.source, &program.files, form) {
        Ok(chain) => chain,
        Err(errors) => panic!("{program}\n{errors}"),
    }
}

/// Calls `property` for generated chains with traffic, and prints the seed of a failure.
fn for_each_case(count: u64, property: impl Fn(u64, &Program, &Chain, &[Stimulus])) {
    for seed in budget::seeds(count) {
        let program = program(seed);
        let chain = compile(&program, Form::AsWritten);
        let stimuli = stimuli(&chain, seed, STIMULI);
        property(seed, &program, &chain, &stimuli);
    }
}

#[test]
fn every_packet_is_accounted_for_after_every_step() {
    for_each_case(200, |seed, program, chain, stimuli| {
        let trace = record(harness::reference(chain).as_mut(), stimuli, Detail::Steps);
        assert_eq!(trace.panic, None, "seed {seed}\n{program}");
        let wrong = trace.counters.iter().position(|counters| !counters.balanced());
        if let Some(step) = wrong {
            panic!("seed {seed}, step {step}: {:?}\n{program}", trace.counters[step]);
        }
        let left: usize = trace
            .outputs
            .iter()
            .flatten()
            .filter(|output| matches!(output, Output::Packet(..)))
            .count();
        let counted: u64 = trace.counters.last().map_or(0, |last| last.out.values().sum());
        assert_eq!(left as u64, counted, "seed {seed}\n{program}");
    });
}

#[test]
fn packets_leave_as_sound_as_they_came() {
    for_each_case(200, |seed, program, chain, stimuli| {
        let holds = chain.nodes.iter().any(|node| !node.model.queues.is_empty());
        let mut engine = harness::reference(chain);
        let mut arrived: Vec<Wrongness> = Vec::new();
        for stimulus in stimuli {
            // A held packet may leave after packets that arrived later.
            if !holds {
                arrived.clear();
            }
            arrived.extend(wrongness_of_tunnels(chain));
            if let Stimulus::Packet(_, packet) = stimulus {
                arrived.extend(wrongness_inside(packet));
            }
            for output in step(engine.as_mut(), stimulus) {
                let Output::Packet(_, packet) = output else { continue };
                if let Some(complaint) = complaint(&packet, &arrived) {
                    panic!("seed {seed}: {complaint}\n{stimulus:?}\n{program}");
                }
            }
        }
    });
}

#[test]
fn bit_that_an_engine_flips_is_unsound() {
    let program =
        Program { source: "chain c { path in <-> out; }".to_owned(), ..Program::default() };
    let chain = compile(&program, Form::AsWritten);
    let mut engine = Sabotaged::new(harness::reference(&chain), Wrong::Bit);
    let sound = packet("udp 10.0.0.1:7 > 10.0.0.2:9000 \"some text\"").at(0);
    let found: Vec<_> = (0..9)
        .flat_map(|_| step(&mut engine, &Stimulus::Packet(0, sound.clone())))
        .filter_map(|output| match output {
            Output::Packet(_, packet) => complaint(&packet, &[]),
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn two_runs_are_equal() {
    for_each_case(100, |seed, program, chain, stimuli| {
        let first = record(harness::reference(chain).as_mut(), stimuli, Detail::Steps);
        let second = record(harness::reference(chain).as_mut(), stimuli, Detail::Steps);
        assert_eq!(difference(&first, &second), None, "seed {seed}\n{program}");
    });
}

#[test]
fn function_that_passes_everything_on_changes_nothing() {
    for seed in budget::seeds(100) {
        let plain = program(seed);
        let chain = compile(&plain, Form::AsWritten);
        // Gates of sides, such as `n0.side0`, come behind all functions.
        let functions = chain.nodes.iter().filter(|node| !node.name.contains('.')).count();
        // Behind the first function, it could separate neighbours with a priority.
        let at = functions - 1;
        let longer = program_with(seed, Options { pass_through: Some(at), ..Options::default() });
        let long_chain = compile(&longer, Form::AsWritten);
        assert_eq!(long_chain.nodes.len(), chain.nodes.len() + 1);
        let stimuli = stimuli(&chain, seed, STIMULI);
        let first = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        let mut second = record(harness::reference(&long_chain).as_mut(), &stimuli, Detail::End);
        // A packet that functions send back and forth reaches its hop limit earlier in a longer
        // chain.
        let lost =
            |trace: &Trace| trace.counters.iter().any(|c| c.lost.contains_key(LOST_HOP_LIMIT));
        if lost(&first) || lost(&second) {
            continue;
        }
        for counters in &mut second.counters {
            // The longer chain has one more function with counters.
            counters.nodes.remove(functions);
        }
        assert_eq!(difference(&first, &second), None, "seed {seed}\n{longer}");
    }
}

/// The model without the parts that depend on its layout in the file.
fn without_lines(model: &Model) -> Model {
    let mut model = model.clone();
    for row in &mut model.rows {
        row.line = 0;
        row.text = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    model
}

#[test]
fn formatting_keeps_the_meaning_and_is_done_after_once() {
    for seed in budget::seeds(500) {
        let program = program(seed);
        let formatted = harness::format(&program.source).expect("formats");
        let again = harness::format(&formatted).expect("formats again");
        assert_eq!(formatted, again, "seed {seed}");
        let before = compile(&program, Form::AsWritten);
        let after = compile(&program, Form::Formatted);
        for (a, b) in before.nodes.iter().zip(&after.nodes) {
            assert_eq!(
                without_lines(&a.model),
                without_lines(&b.model),
                "seed {seed}\n{formatted}"
            );
            assert_eq!(a.params, b.params, "seed {seed}");
        }
        assert_eq!(before.links, after.links);
        assert_eq!(before.interfaces, after.interfaces);
        assert_eq!((before.seed, before.workers), (after.seed, after.workers));
        assert_eq!(before.policy, after.policy);
    }
}

#[test]
fn models_survive_their_text_form() {
    for seed in budget::seeds(200) {
        let program = program(seed);
        for node in &compile(&program, Form::AsWritten).nodes {
            let text = braid_ir::text::print(&node.model);
            let again = braid_ir::text::parse(&text).expect("printed models parse");
            assert_eq!(again, *node.model, "seed {seed}\n{text}");
        }
    }
}
