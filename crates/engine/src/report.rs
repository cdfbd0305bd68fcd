//! What an engine says about itself: counters.

use crate::Compiled;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, NodeCounters};
use braid_ir::model::RowId;
use std::collections::BTreeMap;

/// What is counted for the chain as a whole.
pub(crate) struct Tally {
    pub(crate) packets_in: u64,
    pub(crate) created: u64,
    pub(crate) copied: u64,
    pub(crate) consumed: u64,
    /// By interface.
    out: Vec<u64>,
    lost: BTreeMap<&'static str, u64>,
    drops: BTreeMap<(u16, u32, String), u64>,
}

impl Tally {
    pub(crate) fn new(chain: &Chain) -> Self {
        Self {
            packets_in: 0,
            created: 0,
            copied: 0,
            consumed: 0,
            out: vec![0; chain.interfaces.len()],
            lost: BTreeMap::new(),
            drops: BTreeMap::new(),
        }
    }

    /// A packet leaves by an interface.
    pub(crate) fn leave(&mut self, interface: u16) {
        self.out[usize::from(interface)] += 1;
    }

    /// A packet is lost for a reason.
    pub(crate) fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(reason).or_default() += 1;
    }

    /// A packet is dropped at a row of a function.
    pub(crate) fn count_drop(&mut self, node: u16, row: RowId, reason: &str) {
        *self.drops.entry((node, row.0, reason.to_owned())).or_default() += 1;
    }
}

impl Compiled {
    pub(crate) fn report_counters(&self) -> Counters {
        let instances = &self.functions.instances;
        let nodes = (0..).zip(instances).map(|(node, instance)| {
            let tables = self.functions.store.counters(node);
            NodeCounters { tables, ..instance.counters.clone() }
        });
        let some = |(number, count): (u16, &u64)| (*count > 0).then_some((number, *count));
        let lost = self.tally.lost.iter();
        Counters {
            packets_in: self.tally.packets_in,
            created: self.tally.created,
            copied: self.tally.copied,
            out: (0..).zip(&self.tally.out).filter_map(some).collect(),
            consumed: self.tally.consumed,
            held: instances.iter().flat_map(|instance| &instance.held).sum(),
            lost: lost.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            drops: self.tally.drops.clone(),
            nodes: nodes.collect(),
        }
    }
}
