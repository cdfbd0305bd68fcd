//! The executor: runs a chain's programs for packets, timers and ended state entries.

use crate::chain_counters::ChainCounters;
use crate::exec_context::Functions;
use crate::held::Waiting;
use crate::programs::{ProgramSet, Programs};
use crate::work::Emission;
use braid_flowcache::Host;
use braid_ir::engine::Outputs;
use braid_ir::graph::Graph;

/// The executor of a chain: its functions with their state, its programs, and the work that is due
/// later.
pub(crate) struct Executor {
    pub(crate) functions: Functions,
    pub(crate) graph: Graph,
    pub(crate) workers: u16,
    /// Whether a packet has entered yet.
    pub(crate) started: bool,
    /// The time before which no timer fires and no held packet is released (ns).
    pub(crate) wake: u64,
    pub(crate) waiting: Waiting,
    /// The number of the next held packet.
    pub(crate) ids: u64,
    pub(crate) chain_counters: ChainCounters,
    /// The packets in `chain_counters` that entered before this engine went on from a snapshot.
    pub(crate) packets_before: u64,
    pub(crate) programs: Programs,
    /// The packets that the running program has sent.
    pub(crate) emissions: Vec<Emission>,
}

impl Executor {
    /// The executor of a chain before its first packet.
    pub(crate) fn new(functions: Functions, graph: Graph, programs: Programs) -> Self {
        Self {
            graph,
            workers: functions.chain.workers.max(1),
            started: false,
            wake: u64::MAX,
            waiting: Waiting::default(),
            ids: 0,
            chain_counters: ChainCounters::new(&functions.chain),
            packets_before: 0,
            programs,
            emissions: Vec::new(),
            functions,
        }
    }

    /// The parts that the flow cache uses.
    #[inline(always)]
    pub(crate) fn host<'a>(
        &'a mut self,
        out: &'a mut dyn Outputs,
    ) -> Host<'a, ProgramSet, Functions> {
        let Programs { set, words, .. } = &mut self.programs;
        Host {
            programs: set,
            functions: &mut self.functions,
            graph: &self.graph,
            workers: self.workers,
            wake: self.wake,
            words,
            out,
        }
    }
}
