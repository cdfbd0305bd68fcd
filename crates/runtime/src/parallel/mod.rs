//! The engine `parallel` (NFP, Sun et al., SIGCOMM 2017, §5): the functions of a chain in stages,
//! each on a thread of its own.
//!
//! Packets stay in their frames. Bundles of them move between threads over rings. The hub is the
//! thread that calls the engine. It classifies packets, merges versions, and runs the first stage.
//! Each stage processes bundles in the order in which their packets arrived, whatever side they
//! come from, and sends each bundle on by itself. So functions see what they see in sequence. A
//! burst is done when all of its packets are back. Between two bursts, all stages rest, and the hub
//! may use their engines.
//!
//! A stage that is an isolated function alone hands bundles over to its process ahead. Where cores
//! are scarce, the hub does that.

mod bell;
mod bundle;
mod engine;
mod entering;
mod hub;
mod merger;
mod options;
mod parts;
mod stage;
mod sync;
mod tables;

use crate::steer::Steerer;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine};
use braid_ir::graph::is_isolated;
use braid_ir::service_graph::stages::{Entry, Stage as PlannedStage, Stages};
use bundle::{Copier, Handle};
use entering::Entering;
use hub::{Hub, MOST};
pub use options::Options;
#[cfg(feature = "mutants")]
pub use options::{MUTANTS, Mutant};
use rtrb::{Consumer, Producer, RingBuffer};
use stage::{Core, Rings, Shared, SharedCore, Stage};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tables::Tables;

/// A chain in stages.
pub struct Parallel {
    /// For each function, its stage.
    stage_of: Vec<usize>,
    entries: Vec<Entry>,
    /// By route: its stages.
    routes: Vec<Vec<usize>>,
    options: Options,
    /// Whether packets may carry logs of writes.
    has_logs: bool,
    /// For each function, whether it is native.
    natives: Vec<bool>,
    cores: Vec<SharedCore>,
    steerer: Steerer,
    /// What stages do not count: packets that enter, leave at once, or are lost where they enter.
    own: Counters,
    /// The packets that each stage lost before it took over a state.
    before: Vec<Counters>,
    hub: Hub,
    entering: Entering,
    threads: Vec<JoinHandle<()>>,
}

impl Parallel {
    /// The engine of a chain that is divided into stages. `make` makes the engine of each stage,
    /// which must leave packets in their places in a burst, as compiled engines do. [`engine()`]
    /// also takes chains that are one stage.
    ///
    /// # Errors
    /// The error of `make`, or of the system if it has no thread.
    pub fn new<E: From<std::io::Error>>(
        chain: &Chain,
        plan: &Stages,
        options: Options,
        make: impl FnMut(Chain) -> Result<Box<dyn Engine>, E>,
    ) -> Result<Self, E> {
        let count = plan.stages.len();
        let chains = plan.stages.iter().map(|stage| stage.chain.clone());
        let engines: Vec<Box<dyn Engine>> = chains.map(make).collect::<Result<_, E>>()?;
        let core = |engine| Arc::new(Mutex::new(Core::new(engine)));
        let cores: Vec<SharedCore> = engines.into_iter().map(core).collect();
        let shared = Arc::new(Shared::new(bells(chain, plan, options.cores)));
        let tables = Tables::new(plan, options);
        let mut ends = Ends::new(count);
        let forwards = Arc::new(tables.stages);
        let onward = u16::try_from(chain.interfaces.len()).unwrap_or(u16::MAX);
        let mut made = Vec::new();
        let mut used = Vec::new();
        for ((number, stage), core) in plan.stages.iter().enumerate().zip(&cores) {
            let (back, copies) = RingBuffer::new(MOST);
            used.push(back);
            made.push(Stage {
                number,
                core: core.clone(),
                forwards: forwards.clone(),
                onward,
                is_apart: stage.is_apart,
                inputs: ends.inputs(number + 1),
                used: copies,
                rings: ends.rings(number + 1, &shared),
                copier: Copier::new(number + 1),
                waiting: Vec::new(),
                is_process: is_process(chain, stage),
                begun: VecDeque::new(),
                is_open: false,
                turn: 0,
                sorted: Vec::new(),
                options,
            });
        }
        let (inputs, rings) = (ends.inputs(0), ends.rings(0, &shared));
        let (own, others): (Vec<Stage>, Vec<Stage>) =
            made.into_iter().partition(|stage| shared.bell_of.get(stage.number) == Some(&0));
        let mut threads = Vec::new();
        for stage in others {
            let name = format!("braid-stage-{}", stage.number);
            let thread = std::thread::Builder::new().name(name);
            threads.push(thread.spawn(move || stage::work(stage))?);
        }
        let hub =
            Hub::new((own, inputs, used, rings), (tables.first, tables.mergers), count, options);
        let stage_of = (0..).zip(&chain.nodes).map(|(node, _)| {
            plan.stages.iter().position(|stage| stage.functions.contains(&node)).unwrap_or(0)
        });
        Ok(Self {
            stage_of: stage_of.collect(),
            entries: plan.entries.clone(),
            routes: plan.routes.iter().map(|route| route.stages.clone()).collect(),
            options,
            natives: chain.nodes.iter().map(|node| node.model.native.is_some()).collect(),
            has_logs: plan.stages.iter().any(|stage| !stage.logged.is_empty()),
            cores,
            steerer: Steerer::new(chain.clone()),
            own: Counters::default(),
            before: vec![Counters::default(); count],
            hub,
            entering: Entering::default(),
            threads,
        })
    }
}

/// Whether a stage is an isolated function alone.
fn is_process(chain: &Chain, stage: &PlannedStage) -> bool {
    let [function] = stage.functions[..] else { return false };
    chain.nodes.get(usize::from(function)).is_some_and(|node| is_isolated(&node.model))
}

/// By stage: the bell of its thread. The hub, with bell 0, runs the first stage, and, where cores
/// are scarce, those whose work processes do.
fn bells(chain: &Chain, plan: &Stages, cores: usize) -> Vec<usize> {
    let processes = plan.stages.iter().filter(|stage| is_process(chain, stage)).count();
    let is_scarce = cores < plan.stages.len() + processes;
    let mut count = 0;
    let bell = |(number, stage)| {
        let is_own = number > 0 && !(is_scarce && is_process(chain, stage));
        count += usize::from(is_own);
        if is_own { count } else { 0 }
    };
    plan.stages.iter().enumerate().map(bell).collect()
}

/// The engine of a chain by its plan: with stages, or the engine that `make` makes for a chain that
/// is one stage.
///
/// # Errors
/// As [`Parallel::new`].
pub fn engine<E: From<std::io::Error>>(
    chain: &Chain,
    plan: &Stages,
    options: Options,
    mut make: impl FnMut(Chain) -> Result<Box<dyn Engine>, E>,
) -> Result<Box<dyn Engine>, E> {
    match plan.stages.len() {
        0 | 1 => make(chain.clone()),
        _ => Ok(Box::new(Parallel::new(chain, plan, options, make)?)),
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        self.hub.end();
        for thread in self.threads.drain(..) {
            // The hub has reported a panic of the thread.
            drop(thread.join());
        }
    }
}

/// A ring of bundles between two threads, in its two ends.
type Ring = (Option<Producer<Handle>>, Option<Consumer<Handle>>);

/// The ends of the rings between all threads, by sender and receiver. Thread 0 is the hub.
struct Ends(Vec<Vec<Ring>>);

impl Ends {
    fn new(stages: usize) -> Self {
        let ring = |from: usize, to: usize| {
            // All copies of all packets may be on the way to the hub.
            let room = if to == 0 { MOST * 16 } else { MOST };
            let (send, receive) = RingBuffer::new(room);
            if from == to { (None, None) } else { (Some(send), Some(receive)) }
        };
        let of = |from| (0..=stages).map(|to| ring(from, to)).collect();
        Ends((0..=stages).map(of).collect())
    }

    fn inputs(&mut self, to: usize) -> Vec<Consumer<Handle>> {
        self.0.iter_mut().filter_map(|from| from.get_mut(to)?.1.take()).collect()
    }

    fn rings(&mut self, from: usize, shared: &Arc<Shared>) -> Rings {
        let mut ends = self.0.get_mut(from).into_iter().flatten().map(|ring| ring.0.take());
        let hub = ends.next().flatten();
        Rings { shared: shared.clone(), hub, stages: ends.collect() }
    }
}
