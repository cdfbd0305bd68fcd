//! Numbers the versions of the packet in a service graph, and counts their costs.

use braid_ir::service_graph::{Copy, Extent};

/// Which branches of a graph may share a version of the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    /// Branches that do not conflict, as in the paper.
    Parts,
    /// None. Threads that share bytes would need atomic accesses to them.
    Nothing,
}

/// The numbering of versions, with counts of copies and mergers.
#[derive(Clone, Default, Debug)]
pub(super) struct Versions {
    copies: Vec<Copy>,
    pub(super) merges: usize,
}

/// The costs of a graph: full copies, copies of headers, mergers. Costs are compared in this order.
pub(super) type Cost = (usize, usize, usize);

impl Versions {
    pub(super) fn cost(&self) -> Cost {
        let full = self.copies.iter().filter(|copy| copy.extent == Extent::Full).count();
        (full, self.copies.len() - full, self.merges)
    }

    pub(super) fn copies(self) -> Vec<Copy> {
        self.copies
    }

    pub(super) fn copy(&mut self, from: u32, extent: Extent) -> Copy {
        let to = u32::try_from(self.copies.len()).unwrap_or(u32::MAX).saturating_add(2);
        let copy = Copy { from, to, extent };
        self.copies.push(copy);
        copy
    }
}
