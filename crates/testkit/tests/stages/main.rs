//! Tests of chains in stages: whatever the number of stages, the sizes of batches and the delays
//! between threads are, the engine does what the reference engine does.

mod chains;

use braid_compiler::parallel::stages::stages;
use braid_ir::chain::Chain;
use braid_ir::service_graph::{Node, Stages};
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Engine};
use braid_testkit::record::{Detail, Stimulus, record};

/// The number of stimuli of each chain.
const STIMULI: usize = 150;

/// The engines that a seed chooses.
fn engines(rng: &mut Rng, seed: u64) -> Vec<Engine> {
    let inner = *rng.pick(&Engine::drawn(seed, false));
    let sizes = [(2, 1), (2, 16), (3, 5), (8, 64), (8, 3)];
    let (most, batch) = *rng.pick(&sizes);
    vec![inner.in_stages(most, batch), inner.in_stages(8, batch).stalled(seed)]
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
    let count = braid_cases::at_least(200);
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
