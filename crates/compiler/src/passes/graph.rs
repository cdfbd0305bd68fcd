//! The graph of a program's blocks: reachability and dominators.

use braid_ir::model::BlockId;
use braid_ir::residual::Block;

/// Dominators of blocks.
pub(super) struct Dominators {
    /// The immediate dominator of each block: the last block before it that lies on all paths to
    /// it. Block 0 is its own.
    parent: Vec<usize>,
    depth: Vec<usize>,
}

impl Dominators {
    pub(super) fn of(blocks: &[Block]) -> Self {
        let mut found = Self { parent: vec![0; blocks.len()], depth: vec![0; blocks.len()] };
        for (at, preds) in preds(blocks).iter().enumerate() {
            let common = preds.iter().map(|(pred, _)| *pred).reduce(|a, b| found.meet(a, b));
            if let Some(common) = common {
                found.parent[at] = common;
                found.depth[at] = found.depth[common] + 1;
            }
        }
        found
    }

    /// The immediate dominator of a block.
    pub(super) fn parent(&self, block: usize) -> usize {
        self.parent[block]
    }

    /// The last block that lies on all paths to both blocks.
    pub(super) fn meet(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if self.depth[a] >= self.depth[b] {
                a = self.parent[a];
            } else {
                b = self.parent[b];
            }
        }
        a
    }

    /// Whether all paths to `b` lead through `a`.
    pub(super) fn dominates(&self, a: usize, b: usize) -> bool {
        self.meet(a, b) == a
    }
}

/// For each block, the jumps to it, as (block, number of the target in that block's end).
pub(super) fn preds(blocks: &[Block]) -> Vec<Vec<(usize, usize)>> {
    let mut preds = vec![Vec::new(); blocks.len()];
    for (at, block) in blocks.iter().enumerate() {
        for (slot, target) in block.end.targets().into_iter().enumerate() {
            preds[target.block.index()].push((at, slot));
        }
    }
    preds
}

/// Removes blocks that no path from block 0 leads to.
pub(crate) fn drop_unreachable(blocks: &mut Vec<Block>) {
    let mut reached = vec![false; blocks.len()];
    let mut new = Vec::with_capacity(blocks.len());
    if let Some(entry) = reached.first_mut() {
        *entry = true;
    }
    let mut count = 0;
    for (at, block) in blocks.iter().enumerate() {
        new.push(BlockId(count));
        if reached[at] {
            count += 1;
            block.end.visit_targets(&mut |target| reached[target.block.index()] = true);
        }
    }
    let mut kept = reached.iter();
    blocks.retain(|_| kept.next() == Some(&true));
    for block in blocks {
        block.end.visit_targets_mut(&mut |target| target.block = new[target.block.index()]);
    }
}
