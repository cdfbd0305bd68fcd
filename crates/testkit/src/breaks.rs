//! Runs with breaks: at a break, the state goes to a new engine, which goes on: as a copy, or as it
//! is. Such a run must do what a run without breaks does.

use crate::compare::difference;
use crate::harness::{self, Engine, USERS};
use crate::record::{Detail, Stimulus, Trace, record, record_bursts};
use crate::rng::Rng;
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine as AnyEngine, StateEntry};
use braid_ir::snapshot::{ImportError, Snapshot, staying};

/// A step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// A stimulus.
    Stimulus(Stimulus),
    /// The state goes to a new engine of this kind as a snapshot.
    Break(Kind),
    /// The state goes to a new engine of this kind as in a reload ([`move_to`]).
    Move(Kind),
    /// The engine prepares a copy of its state.
    Prepare,
    /// No copy is needed any more.
    Resume,
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
    Compiled(Engine, Box<dyn AnyEngine>),
}

impl Kind {
    fn make(self, chain: &Chain, make: Make<'_>) -> Running {
        match self {
            Kind::Reference => Running::Reference(harness::reference(chain)),
            Kind::Compiled(engine) => Running::Compiled(engine, make(engine, chain)),
        }
    }

    /// A new engine of this kind.
    #[must_use]
    pub fn engine(self, chain: &Chain) -> Box<dyn AnyEngine> {
        match self.make(chain, RIGHT) {
            Running::Reference(engine) => engine,
            Running::Compiled(_, engine) => engine,
        }
    }
}

/// Makes a compiled engine for a chain.
pub type Make<'a> = &'a dyn Fn(Engine, &Chain) -> Box<dyn AnyEngine>;

/// Makes engines without mutants.
pub const RIGHT: Make<'static> = &|engine, chain| engine.make(chain);

impl Running {
    fn engine(&mut self) -> &mut dyn AnyEngine {
        match self {
            Running::Reference(engine) => engine.as_mut(),
            Running::Compiled(_, engine) => engine.as_mut(),
        }
    }

    /// Prepares a copy of the state, or does without it.
    fn prepare(&mut self, step: &Step) {
        match step {
            Step::Prepare => drop(self.engine().prepare_copy()),
            _ => self.engine().resume(),
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
pub fn with_breaks(stimuli: &[Stimulus], seed: u64, machine_code: bool) -> Vec<Step> {
    let mut rng = Rng::new(seed ^ 0x6272_6561_6b73_2121);
    let mut engines: Vec<Engine> =
        Engine::drawn(seed, machine_code).into_iter().map(Engine::eagerly).collect();
    if machine_code {
        engines.extend(USERS);
    }
    let mut kinds: Vec<_> = engines.iter().copied().map(Kind::Compiled).collect();
    kinds.push(Kind::Reference);
    let mut steps = vec![Step::Break(*rng.pick(&kinds))];
    for stimulus in stimuli {
        if rng.one_in(25) {
            let hash = rng.below(usize::MAX) as u64;
            steps.push(match rng.one_in(2) {
                true => Step::Break(*rng.pick(&kinds)),
                false => Step::Move(Kind::Compiled(rng.pick(&engines).hashed(hash))),
            });
        }
        if rng.one_in(20) {
            steps.push(if rng.one_in(2) { Step::Prepare } else { Step::Resume });
        }
        steps.push(Step::Stimulus(stimulus.clone()));
    }
    steps
}

/// Gives the state of an engine of the chain `from` to a new engine of a chain, as a reload does:
/// entries and pools as they are, where both engines can do that, and the rest as a snapshot.
///
/// # Errors
/// As [`AnyEngine::import`].
pub fn move_to(
    chain: &Chain,
    new: &mut dyn AnyEngine,
    (from, old): (&Chain, &mut dyn AnyEngine),
) -> Result<(), ImportError> {
    let kind = |engine: &mut dyn AnyEngine| engine.movable().map(|engine| (*engine).type_id());
    let staying = match (kind(old), kind(new)) {
        (Some(old), Some(new)) if old == new => staying(from, chain),
        _ => Vec::new(),
    };
    let here: Vec<u16> = staying.iter().map(|(_, here)| *here).collect();
    new.import(old.export_without(&here))?;
    new.take_over(old, &staying);
    Ok(())
}

/// A change of a snapshot on its way to the next engine. It stands for a mistake of an engine.
pub type Change<'a> = &'a dyn Fn(&mut Snapshot);

/// Runs steps beside a reference engine without breaks. `change` changes each snapshot on its way,
/// and `make` makes the engines. Returns the first difference in what can be seen from outside.
#[must_use]
pub fn differs(
    chain: &Chain,
    steps: &[Step],
    change: Change<'_>,
    make: Make<'_>,
) -> Option<String> {
    let mut oracle = harness::reference(chain);
    let mut running = Kind::Reference.make(chain, make);
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        at += 1;
        let (kind, moved) = match step {
            Step::Stimulus(_) => {
                at -= 1;
                let stimuli: Vec<_> = steps[at..].iter().map_while(stimulus).cloned().collect();
                at += stimuli.len();
                let expected = record(oracle.as_mut(), &stimuli, Detail::End);
                if let Some(found) = running.run(chain, &stimuli, expected) {
                    return Some(found);
                }
                continue;
            }
            Step::Prepare | Step::Resume => {
                running.prepare(step);
                continue;
            }
            Step::Break(kind) => (kind, false),
            Step::Move(kind) => (kind, true),
        };
        let mut next = kind.make(chain, make);
        let taken = if moved {
            move_to(chain, next.engine(), (chain, running.engine()))
        } else {
            let mut snapshot = running.engine().export();
            change(&mut snapshot);
            next.engine().import(snapshot)
        };
        if let Err(why) = taken {
            return Some(format!("{kind:?} refuses the state: {why}"));
        }
        running = next;
    }
    None
}

fn stimulus(step: &Step) -> Option<&Stimulus> {
    match step {
        Step::Stimulus(stimulus) => Some(stimulus),
        _ => None,
    }
}

/// Checks that the snapshots of all kinds of engines are equal where breaks are, that copies of the
/// state hold what the engine held when it was copied, and that engines give back what they took.
/// Returns the first difference.
#[must_use]
pub fn snapshots_differ(chain: &Chain, steps: &[Step]) -> Option<String> {
    let mut oracle = harness::reference(chain);
    let mut running = Kind::Reference.make(chain, RIGHT);
    for step in steps {
        let kind = match step {
            Step::Stimulus(stimulus) => {
                crate::record::step(oracle.as_mut(), stimulus);
                crate::record::step(running.engine(), stimulus);
                continue;
            }
            Step::Prepare | Step::Resume => {
                running.prepare(step);
                continue;
            }
            Step::Break(kind) | Step::Move(kind) => kind,
        };
        let (expected, state) = (oracle.export(), oracle.state());
        let engine = running.engine();
        let room = engine.room(None)();
        let (copy, report) = (engine.exporter(room), engine.reporter(None, None));
        let last = chain.nodes.len() as u16 - 1;
        let room = engine.room(Some(last))();
        let of_last = engine.reporter(room, Some(last));
        let moves = matches!(step, Step::Move(_));
        let mut next = kind.make(chain, RIGHT);
        let taken = match moves {
            true => move_to(chain, next.engine(), (chain, running.engine())),
            false => next.engine().import(expected.clone()),
        };
        if let Some(text) = unequal(&expected, &copy()) {
            return Some(format!("exports differ: {text}"));
        }
        if !is_native(chain) && report() != state {
            return Some("reports differ".to_owned());
        }
        let is_of_last = |entry: &StateEntry| entry.node == last;
        if !is_native(chain) && !of_last().iter().eq(state.iter().filter(|one| is_of_last(one))) {
            return Some("reports of the last function differ".to_owned());
        }
        let read = Snapshot::from_bytes(&expected.to_bytes());
        if read.as_ref() != Ok(&expected) {
            return Some("the state is another one after it was written".to_owned());
        }
        if let Err(why) = taken {
            return Some(format!("{kind:?} refuses the state: {why}"));
        }
        running = next;
        if let Some(text) = unequal(&expected, &running.engine().export()) {
            return Some(format!("{kind:?} takes another state than it gives: {text}"));
        }
    }
    None
}

/// Whether a chain has native functions. Their reports have sizes of flow records.
fn is_native(chain: &Chain) -> bool {
    chain.nodes.iter().any(|node| node.model.native.is_some())
}

/// A snapshot without the memory of native functions, which may save the same state in several
/// forms. After a reset, it has no connections either: functions that share a TCP stack then know
/// more of a connection than they would alone.
fn without_memory(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    let has_reset = snapshot.totals.created > 0;
    let functions = snapshot.functions.iter_mut();
    for shard in functions.flat_map(|one| &mut one.shards) {
        shard.memory = None;
        shard.stack = shard.stack.take().filter(|_| !has_reset);
    }
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
    let mut engine = kind.engine(chain);
    engine.import(snapshot)?;
    Ok(engine)
}
