//! Counts of records that belong to functions and to the chain.

use crate::path::Path;
use braid_ir::chain::Chain;
use braid_ir::engine::NodeCounters;
use braid_ir::model::RowId;
use braid_native::bridge as native;
use std::collections::BTreeMap;

/// Counts of records that do not belong to a program's counters.
#[derive(Debug, Default)]
pub struct Counted {
    /// The traffic of native functions by function, direction and, if the function drops the
    /// packets, the number of its reason. The values are packets, bytes on entry, and bytes on
    /// leaving the function.
    natives: BTreeMap<(u16, bool, Option<u32>), [u64; 3]>,
    /// The number of copies that were sent.
    copied: u64,
    /// By interface: the number of packets and copies that left.
    left: Vec<u64>,
}

impl Counted {
    /// Adds packets that took records of this path.
    pub(crate) fn add(&mut self, path: &Path, packets: u64, bytes: u64) {
        for one in path.natives() {
            let key = (one.node, one.backward, one.drops);
            let behind = bytes.wrapping_add_signed(one.longer.wrapping_mul(packets.cast_signed()));
            let count = self.natives.entry(key).or_default();
            for (count, more) in count.iter_mut().zip([packets, bytes, behind]) {
                *count = count.wrapping_add(more);
            }
        }
    }

    /// Counts a copy that was sent by an interface.
    pub(crate) fn copy(&mut self, interface: u16) {
        self.copied += 1;
        self.leave(interface);
    }

    /// Counts a packet that left by an interface.
    #[expect(clippy::indexing_slicing, reason = "`resize` has made the vector long enough")]
    pub(crate) fn leave(&mut self, interface: u16) {
        let interface = usize::from(interface);
        if self.left.len() <= interface {
            self.left.resize(interface + 1, 0);
        }
        self.left[interface] += 1;
    }

    /// The number of copies that were sent.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Each interface, with the number of packets and copies that left by it.
    pub fn left(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.left.iter().copied())
    }

    /// Adds the counts to the counters of functions. `drop` gets the function, the row, the reason
    /// and the number of dropped packets.
    #[expect(
        clippy::indexing_slicing,
        reason = "the chain numbers its functions, and `nodes` has counters for each"
    )]
    pub fn add_to(
        &self,
        chain: &Chain,
        nodes: &mut [NodeCounters],
        mut drop: impl FnMut(u16, RowId, &str, u64),
    ) {
        for ((node, backward, drops), [packets, bytes, behind]) in &self.natives {
            let NodeCounters { forward, backward: back, rows, .. } = &mut nodes[usize::from(*node)];
            let came = if *backward { back } else { forward };
            let body = rows.get_mut(native::BODY.index());
            for (traffic, bytes) in [(came, bytes)].into_iter().chain(body.map(|row| (row, behind)))
            {
                traffic.packets += packets;
                traffic.bytes = traffic.bytes.wrapping_add(*bytes);
            }
            let reasons = &chain.nodes[usize::from(*node)].model.reasons;
            if let Some(reason) = drops.and_then(|reason| reasons.get(reason as usize)) {
                drop(*node, native::BODY, reason, *packets);
            }
        }
    }
}
