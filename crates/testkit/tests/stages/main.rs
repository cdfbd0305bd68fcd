//! Tests of chains in stages: whatever the number of stages, the sizes of bundles and the delays
//! between threads are, the engine does what the reference engine does.

mod chains;

use braid_compiler::parallel::stages::stages;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{self, Counters, Outputs, StateEntry};
use braid_ir::service_graph::Node;
use braid_ir::service_graph::stages::Stages;
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::Burst;
use braid_runtime::parallel::{self, MUTANTS, Mutant, Options};
use braid_testkit::compare::difference;
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Engine, USERS};
use braid_testkit::record::{Detail, Stimulus, record, record_bursts};

/// The number of stimuli of each chain.
const STIMULI: usize = 150;

/// The engines that a seed chooses.
fn engines(rng: &mut Rng, seed: u64) -> Vec<Engine> {
    let inner = *rng.pick(&Engine::drawn(seed, false));
    let sizes = [(2, 1), (2, 16), (3, 5), (8, 64), (8, 3)];
    let (most, bundle) = *rng.pick(&sizes);
    vec![inner.in_stages(most, bundle), inner.in_stages(8, bundle).stalled(seed)]
}

fn check(names: &[&str], chain: &Chain, engine: Engine, stimuli: &[Stimulus]) {
    let expected = record(harness::reference(chain).as_mut(), stimuli, Detail::End);
    if let Err(report) = engine.check(chain, stimuli, &expected) {
        let plan = stages(chain, 8);
        let graphs: Vec<&Node> = plan.routes.iter().map(|route| &route.root).collect();
        panic!("{names:?}: {report}\n{graphs:?}");
    }
}

fn has_fork(plan: &Stages) -> bool {
    plan.routes.iter().any(|route| !route.tables.merging.is_empty())
}

#[test]
fn random_chains_in_stages_do_what_the_chains_do() {
    let (mut staged, mut forked, mut merged) = (0, 0, 0);
    let count = braid_cases::at_least(120);
    for seed in 0..count.into() {
        let mut rng = Rng::new(seed ^ 0x5eed_0000);
        let (names, chain) = chains::any(&mut rng);
        let plan = stages(&chain, 8);
        staged += u32::from(plan.stages.len() > 1);
        forked += u32::from(has_fork(&plan));
        merged += u32::from(plan.stages.iter().any(|stage| !stage.logged.is_empty()));
        let stimuli = chains::traffic(&mut rng, STIMULI);
        for engine in engines(&mut rng, seed) {
            check(&names, &chain, engine, &stimuli);
        }
    }
    println!("of {count} chains, {staged} have stages, {forked} forks, {merged} merge writes");
    assert!(staged * 2 > count && forked * 4 > count && merged * 20 > count);
}

/// An engine with a defect. Delays let threads overtake each other.
fn with_mutant(chain: &Chain, mutant: Mutant, seed: u64) -> Box<dyn engine::Engine> {
    let options =
        Options { bundle: 3, stalls: Some(seed), mutant: Some(mutant), ..Options::default() };
    let make = |chain: Chain| -> Result<Box<dyn engine::Engine>, std::io::Error> {
        Ok(Box::new(USERS[0].compiled(&chain)))
    };
    parallel::engine(chain, &stages(chain, 8), options, make).expect("an engine")
}

#[test]
fn random_chains_find_each_mutant() {
    let mut left = MUTANTS.to_vec();
    for seed in 0..braid_cases::at_least(100).into() {
        let mut rng = Rng::new(seed ^ 0xb0b0_0000);
        let (_, chain) = chains::any(&mut rng);
        let stimuli = chains::traffic(&mut rng, STIMULI);
        let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        left.retain(|mutant| {
            let mut wrong = with_mutant(&chain, *mutant, seed);
            difference(&expected, &record_bursts(wrong.as_mut(), &stimuli, 64)).is_none()
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("nothing finds {left:?}");
}

#[test]
fn panic_of_a_stage_reaches_the_caller() {
    let chain = chains::chain(&["count", "ttl"], "");
    let mut made = 0;
    let make = |chain: Chain| -> Result<Box<dyn engine::Engine>, std::io::Error> {
        made += 1;
        let inner: Box<dyn engine::Engine> = Box::new(USERS[0].compiled(&chain));
        Ok(if made == 2 { Box::new(Panics(inner)) } else { inner })
    };
    let plan = stages(&chain, 8);
    let mut engine = parallel::engine(&chain, &plan, Options::default(), make).expect("an engine");
    let stimuli = chains::traffic(&mut Rng::new(1), 3);
    let trace = record(engine.as_mut(), &stimuli, Detail::End);
    assert!(trace.panic.is_some_and(|text| text.contains("a stage of the chain has panicked")));
}

/// An engine that panics at its first packet.
struct Panics(Box<dyn engine::Engine>);

impl engine::Engine for Panics {
    fn burst(&mut self, _: &mut Burst, _: &mut dyn Outputs) {
        panic!("the stage cannot go on");
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.0.advance(time_ns, out);
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.0.begin(time_ns, out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.0.control(control, out)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        self.0.state()
    }

    fn export(&mut self) -> Snapshot {
        self.0.export()
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        self.0.import(snapshot)
    }
}
