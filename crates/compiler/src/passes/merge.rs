//! The pass `merge-blocks`: joins a block to the only block that jumps to it.

use super::facts::Facts;
use super::graph::drop_unreachable;
use braid_ir::residual::{End, Residual};

/// Joins a block without parameters to the only block that jumps to it.
pub(super) fn merge(program: &mut Residual, _: &Facts) {
    let blocks = &mut program.blocks;
    let mut preds = vec![0; blocks.len()];
    for block in blocks.iter() {
        block.end.visit_targets(&mut |target| preds[target.block.index()] += 1);
    }
    // Jumps lead only to later blocks, so a block has absorbed its successor before it is absorbed
    // itself.
    for at in (0..blocks.len()).rev() {
        let End::Jump(target) = &blocks[at].end else { continue };
        let there = target.block.index();
        if preds[there] == 1 && blocks[there].params.is_empty() {
            let steps = std::mem::take(&mut blocks[there].steps);
            let end = blocks[there].end.clone();
            blocks[at].steps.extend(steps);
            blocks[at].end = end;
        }
    }
    drop_unreachable(blocks);
}
