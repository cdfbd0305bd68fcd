//! Counters of the chain as a whole.

use braid_ir::chain::Chain;
use braid_ir::model::RowId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The counters of the chain as a whole.
#[derive(Clone)]
pub(crate) struct ChainCounters {
    pub(crate) packets_in: u64,
    pub(crate) created: u64,
    pub(crate) copied: u64,
    pub(crate) consumed: u64,
    /// By interface.
    pub(crate) out: Vec<u64>,
    pub(crate) lost: BTreeMap<Cow<'static, str>, u64>,
    pub(crate) drops: BTreeMap<(u16, u32, String), u64>,
}

impl ChainCounters {
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

    /// Counts packets that leave by an interface.
    #[expect(clippy::indexing_slicing, reason = "packets leave by interfaces of the chain")]
    pub(crate) fn leave(&mut self, interface: u16, count: u64) {
        self.out[usize::from(interface)] += count;
    }

    /// Counts a packet that is lost for a reason.
    pub(crate) fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(Cow::Borrowed(reason)).or_default() += 1;
    }

    /// Counts packets that are dropped at a row of a function.
    pub(crate) fn count_drop(&mut self, node: u16, row: RowId, reason: &str, count: u64) {
        *self.drops.entry((node, row.0, reason.to_owned())).or_default() += count;
    }
}
