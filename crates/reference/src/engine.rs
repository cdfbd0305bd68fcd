//! The engine's data. `walk` moves packets from function to function, and `due` runs what is due.

use super::instance::Instance;
use super::schedule::{Expiries, Waiting};
use crate::trace::Observer;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, HOP_LIMIT, Outputs};
use braid_ir::graph::Graph;
use braid_ir::subscriptions::Subscriptions;

/// The reference engine.
pub struct Reference {
    /// The chain as the engine got it. Functions have the current values of parameters.
    pub(super) chain: Chain,
    pub(super) graph: Graph,
    pub(super) subscriptions: Subscriptions,
    /// Functions in the order of their position.
    pub(super) nodes: Vec<Instance>,
    /// The current time: the latest time of any packet or change.
    pub(super) now: u64,
    /// Whether a packet has entered yet.
    pub(super) started: bool,
    pub(super) expiries: Expiries,
    pub(super) waiting: Waiting,
    /// The number of the next entry or held packet.
    pub(super) ids: u64,
    pub(super) counters: Counters,
}

/// The state that an entering packet shares with its copies and answers.
pub(super) struct Walk<'a> {
    /// Number of function visits so far.
    pub(super) hops: u32,
    /// The worker that the packet belongs to.
    pub(super) worker: u16,
    pub(super) out: &'a mut dyn Outputs,
    pub(super) observer: &'a mut dyn Observer,
}

impl Walk<'_> {
    /// Whether this number of further visits stays within the limit.
    pub(super) fn fits(&self, visits: usize) -> bool {
        u32::try_from(visits).is_ok_and(|visits| self.hops.saturating_add(visits) <= HOP_LIMIT)
    }
}
