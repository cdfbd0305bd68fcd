//! Tests events between functions: all engines deliver them as the reference engine does, and the
//! comparison finds each mutant of handlers.

use braid_compiler::synth::SynthMutant;
use braid_engine::{Compiled, DELIVERY_MUTANTS, DeliveryMutant};
use braid_ir::chain::Chain;
use braid_ir::model::{Model, Op};
use braid_ir::subscriptions::Subscriptions;
use braid_testkit::case::{list, replay};
use braid_testkit::generate::program::{Options, Program, program_with};
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, ENGINES, Engine, Form, USERS};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record};
use std::path::Path;

/// Number of stimuli of each chain.
const STIMULI: usize = 150;

/// The program of a seed, in which most functions share events.
fn program(seed: u64) -> Program {
    program_with(seed, Options { shares_events: true, ..Options::default() })
}

fn compile(program: &Program) -> Chain {
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    chain.unwrap_or_else(|errors| panic!("{program}\n{errors}"))
}

fn models(chain: &Chain) -> Vec<&Model> {
    chain.nodes.iter().map(|node| &*node.model).collect()
}

/// What the events of a run do.
#[derive(Default, Debug)]
struct Seen {
    /// Chains in which functions take events.
    chains: usize,
    /// Events that a handler took, and handlers that ran.
    taken: usize,
    handled: usize,
    /// Events that a handler took outside of programs.
    outside: usize,
    /// Events that a handler took whose type extends the handler's.
    inherited: usize,
    /// Events of functions that publish in handlers only.
    nested: usize,
}

impl Seen {
    fn add(&mut self, chain: &Chain, trace: &Trace) {
        let subscriptions = Subscriptions::new(chain).expect("they are checked");
        self.chains += usize::from(!subscriptions.is_empty());
        for output in trace.outputs.iter().flatten() {
            let Output::Event(event) = output else { continue };
            let model = &chain.nodes[usize::from(event.node)].model;
            let types = (0..).map(braid_ir::model::EventId).zip(&model.events);
            let of_event = types.filter(|(_, decl)| decl.name == event.name);
            for (id, decl) in of_event {
                let takers = subscriptions.of(event.node, id);
                self.taken += usize::from(!takers.is_empty());
                self.handled += takers.len();
                self.outside += usize::from(subscriptions.stays_outside(event.node, id));
                for taker in takers {
                    let model = &chain.nodes[usize::from(taker.node)].model;
                    let (taken, _) = model.handlers[taker.handler];
                    self.inherited += usize::from(model.events[taken.index()].name != decl.name);
                }
            }
            let emits = |op: &Op| matches!(op, Op::Emit { event: of, .. } if model.events[of.index()].name == event.name);
            let packet = &model.packet.blocks;
            let expire = model.expire.iter().flat_map(|(_, program)| &program.blocks);
            let timers = model.timers.iter().flat_map(|timer| &timer.body.blocks);
            let mut own = packet.iter().chain(expire).chain(timers).flat_map(|block| &block.ops);
            self.nested += usize::from(!own.any(emits));
        }
    }
}

#[test]
fn engines_deliver_events_as_the_reference_does() {
    let mut seen = Seen::default();
    let count = braid_cases::at_least(60);
    for seed in 0..u64::from(count) {
        let program = program(seed);
        let chain = compile(&program);
        let (stimuli, expected) = recorded(&chain, seed, STIMULI);
        seen.add(&chain, &expected);
        let number = usize::try_from(seed).expect("a small number");
        let users = USERS[number % USERS.len()];
        let all = ENGINES[number % ENGINES.len()];
        for engine in Engine::drawn(seed, seed % 4 == 0).into_iter().chain([users, all]) {
            if let Err(report) = engine.compare(&chain, &stimuli, &expected) {
                panic!("seed {seed}, {engine}: {report}\n{program}");
            }
        }
    }
    println!("of {count} chains: {seen:?}");
    let least = usize::try_from(count).expect("a small number") / 4;
    assert!(seen.chains > least, "{seen:?}");
    assert!(seen.taken > 10 * least && seen.handled > seen.taken, "{seen:?}");
    assert!(seen.outside > least && seen.taken > seen.outside + 10 * least, "{seen:?}");
    assert!(seen.inherited > least && seen.nested > least, "{seen:?}");
}

#[test]
fn subscriptions_of_generated_chains_reach_only_other_functions() {
    for seed in braid_cases::seeds(60) {
        let chain = compile(&program(seed));
        let subscriptions = Subscriptions::new(&chain).expect("they are checked");
        for (node, model) in (0..).zip(models(&chain)) {
            for event in (0..).map(braid_ir::model::EventId).take(model.events.len()) {
                let takers = subscriptions.of(node, event);
                assert!(takers.is_sorted_by_key(|taker| taker.node), "seed {seed}");
                assert!(takers.iter().all(|taker| taker.node != node), "seed {seed}");
            }
        }
    }
}

/// A mutant of the handlers in programs, or of the delivery to those outside.
#[derive(Clone, Copy, Debug)]
enum Mutant {
    Program(SynthMutant),
    Delivery(DeliveryMutant),
}

/// All mutants.
fn mutants() -> Vec<Mutant> {
    let programs = [
        SynthMutant::HandlersReversed,
        SynthMutant::NestedLater,
        SynthMutant::HandlerFaultDrops,
        SynthMutant::OtherInstance,
    ];
    let deliveries = DELIVERY_MUTANTS.into_iter().map(Mutant::Delivery);
    programs.into_iter().map(Mutant::Program).chain(deliveries).collect()
}

/// Whether a mutant makes a difference on an engine.
fn is_found(
    mutant: Mutant,
    engine: Engine,
    chain: &Chain,
    (stimuli, expected): &(Vec<Stimulus>, Trace),
) -> bool {
    let (extent, options) = engine.options();
    let chain = chain.clone();
    let wrong = match mutant {
        Mutant::Program(mutant) => Compiled::with_mutant(chain, extent, options, mutant),
        Mutant::Delivery(mutant) => Compiled::with_delivery_mutant(chain, extent, options, mutant),
    };
    let mut wrong = wrong.expect("an engine");
    engine.difference_of(&mut wrong, stimuli, expected).is_some()
}

/// Removes the mutants that make a difference.
fn hunt(left: &mut Vec<Mutant>, chain: &Chain, traffic: &(Vec<Stimulus>, Trace), place: &str) {
    let engine = ENGINES.iter().find(|engine| engine.has_records()).expect("one with records");
    left.retain(|mutant| {
        let found = is_found(*mutant, engine.eagerly(), chain, traffic);
        if found {
            println!("{mutant:?}: by {place}");
        }
        !found
    });
}

#[test]
fn generated_chains_and_cases_find_each_mutant_of_events() {
    let mut left = mutants();
    for seed in 0..braid_cases::at_least(60).into() {
        let chain = compile(&program(seed));
        let traffic = recorded(&chain, seed, STIMULI);
        hunt(&mut left, &chain, &traffic, &format!("seed {seed}"));
    }
    // Some are rare in generated chains.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let cases = list(&folder).expect("folders of cases").into_iter();
    for case in cases.filter(|case| case.folder.iter().any(|part| part == "events")) {
        let (chain, stimuli) = replay(&case).unwrap_or_else(|error| panic!("{error}"));
        let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        hunt(&mut left, &chain, &(stimuli, trace), &case.name);
    }
    assert!(left.is_empty(), "not found: {left:?}");
}
