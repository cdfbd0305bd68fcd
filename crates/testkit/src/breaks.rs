//! Runs with breaks: at a break, the state moves to a new engine, which goes on. Such a run must do
//! what a run without breaks does.

use crate::compare::difference;
use crate::generate::Rng;
use crate::harness::{self, Engine, USERS};
use crate::record::{Detail, Stimulus, Trace, record, record_bursts};
use braid_engine::Compiled;
use braid_ir::chain::Chain;
use braid_ir::engine::Engine as AnyEngine;
use braid_ir::snapshot::{ImportError, Snapshot};

/// A step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// A stimulus.
    Stimulus(Stimulus),
    /// The state moves to a new engine of this kind.
    Break(Kind),
}

/// A kind of engine.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The reference engine.
    Reference,
    /// A compiled engine.
    Compiled(Engine),
}

/// An engine in a run.
enum Running {
    Reference(Box<dyn AnyEngine>),
    Compiled(Engine, Box<Compiled>),
}

impl Kind {
    fn make(self, chain: &Chain) -> Running {
        match self {
            Kind::Reference => Running::Reference(harness::reference(chain)),
            Kind::Compiled(engine) => Running::Compiled(engine, Box::new(engine.make(chain))),
        }
    }
}

impl Running {
    fn engine(&mut self) -> &mut dyn AnyEngine {
        match self {
            Running::Reference(engine) => engine.as_mut(),
            Running::Compiled(_, engine) => engine.as_mut(),
        }
    }

    /// Runs a part of the stimuli. Returns what is wrong.
    fn run(&mut self, chain: &Chain, stimuli: &[Stimulus], mut expected: Trace) -> Option<String> {
        let mut actual = match self {
            Running::Compiled(kind, engine) if let Some(most) = kind.burst() => {
                record_bursts(engine.as_mut(), stimuli, most)
            }
            running => record(running.engine(), stimuli, Detail::End),
        };
        forget_records(chain, &mut expected);
        forget_records(chain, &mut actual);
        let found = difference(&expected, &actual);
        found.map(|found| format!("{:?} at {:?}: {}", found.kind, found.step, found.text))
    }
}

/// Removes the sizes of native functions' records, which come again after a break.
fn forget_records(chain: &Chain, trace: &mut Trace) {
    for entry in trace.state.iter_mut().filter(|entry| entry.table == "flows") {
        if chain.nodes[usize::from(entry.node)].model.native.is_some() {
            entry.slots.clear();
        }
    }
}

/// Stimuli with breaks at places that the seed chooses. The engines are of the kinds that the seed
/// chooses, and the reference engine.
#[must_use]
pub fn with_breaks(stimuli: &[Stimulus], seed: u64, native: bool) -> Vec<Step> {
    let mut rng = Rng::new(seed ^ 0x6272_6561_6b73_2121);
    let mut kinds: Vec<Kind> =
        Engine::drawn(seed, native).into_iter().map(Engine::eagerly).map(Kind::Compiled).collect();
    if native {
        kinds.extend(USERS.iter().copied().map(Kind::Compiled));
    }
    kinds.push(Kind::Reference);
    let mut steps = vec![Step::Break(*rng.pick(&kinds))];
    for stimulus in stimuli {
        if rng.one_in(25) {
            steps.push(Step::Break(*rng.pick(&kinds)));
        }
        steps.push(Step::Stimulus(stimulus.clone()));
    }
    steps
}

/// A change of a snapshot on its way to the next engine. It stands for a mistake of an engine.
pub type Change<'a> = &'a dyn Fn(&mut Snapshot);

/// Runs steps beside a reference engine without breaks. `change` changes each snapshot on its way.
/// Returns the first difference in what can be seen from outside.
#[must_use]
pub fn differs(chain: &Chain, steps: &[Step], change: Change<'_>) -> Option<String> {
    let mut oracle = harness::reference(chain);
    let mut running = Kind::Reference.make(chain);
    let mut at = 0;
    while at < steps.len() {
        if let Step::Break(kind) = &steps[at] {
            let mut snapshot = running.engine().export();
            change(&mut snapshot);
            running = kind.make(chain);
            if let Err(why) = running.engine().import(snapshot) {
                return Some(format!("{kind:?} refuses the state: {why}"));
            }
            at += 1;
            continue;
        }
        let stimuli: Vec<_> = steps[at..].iter().map_while(stimulus).cloned().collect();
        at += stimuli.len();
        let expected = record(oracle.as_mut(), &stimuli, Detail::End);
        if let Some(found) = running.run(chain, &stimuli, expected) {
            return Some(found);
        }
    }
    None
}

fn stimulus(step: &Step) -> Option<&Stimulus> {
    match step {
        Step::Stimulus(stimulus) => Some(stimulus),
        Step::Break(_) => None,
    }
}

/// Checks that the snapshots of all kinds of engines are equal where breaks are, and that engines
/// give back what they took. Returns the first difference.
#[must_use]
pub fn snapshots_differ(chain: &Chain, steps: &[Step]) -> Option<String> {
    let mut oracle = harness::reference(chain);
    let mut running = Kind::Reference.make(chain);
    for step in steps {
        match step {
            Step::Stimulus(stimulus) => {
                crate::record::step(oracle.as_mut(), stimulus);
                crate::record::step(running.engine(), stimulus);
            }
            Step::Break(kind) => {
                let expected = oracle.export();
                if let Some(text) = unequal(&expected, &running.engine().export()) {
                    return Some(format!("exports differ: {text}"));
                }
                let read = Snapshot::from_bytes(&expected.to_bytes());
                if read.as_ref() != Ok(&expected) {
                    return Some("the state is another one after it was written".to_owned());
                }
                running = kind.make(chain);
                if let Err(why) = running.engine().import(expected.clone()) {
                    return Some(format!("{kind:?} refuses the state: {why}"));
                }
                if let Some(text) = unequal(&expected, &running.engine().export()) {
                    return Some(format!("{kind:?} takes another state than it gives: {text}"));
                }
            }
        }
    }
    None
}

/// A snapshot without the memory of native functions, which may save the same state in several
/// forms.
fn without_memory(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    let shards = snapshot.functions.iter_mut().flat_map(|function| &mut function.shards);
    shards.for_each(|shard| shard.memory = None);
    snapshot
}

/// The first difference of two snapshots.
fn unequal(a: &Snapshot, b: &Snapshot) -> Option<String> {
    let (a, b) = (&without_memory(a), &without_memory(b));
    if a == b {
        return None;
    }
    let mut tables =
        a.functions.iter().zip(&b.functions).flat_map(|(a, b)| a.tables.iter().zip(&b.tables));
    if let Some((a, b)) = tables.find(|(a, b)| a != b) {
        return Some(format!("{a:?}\n{b:?}"));
    }
    if let Some((a, b)) = a.functions.iter().zip(&b.functions).find(|(a, b)| a != b) {
        return Some(format!("{a:?}\n{b:?}"));
    }
    Some(format!("{:?} {:?}\n{:?} {:?}", a.now_ns, a.totals, b.now_ns, b.totals))
}

/// A new engine that goes on with a chain from a snapshot.
///
/// # Errors
/// As [`AnyEngine::import`].
pub fn resumed(
    kind: Kind,
    chain: &Chain,
    snapshot: Snapshot,
) -> Result<Box<dyn AnyEngine>, ImportError> {
    let mut engine: Box<dyn AnyEngine> = match kind {
        Kind::Reference => harness::reference(chain),
        Kind::Compiled(engine) => Box::new(engine.make(chain)),
    };
    engine.import(snapshot)?;
    Ok(engine)
}
