//! The pass `thread-jumps`: redirects jumps past blocks that only jump.

use super::facts::Facts;
use super::graph::drop_unreachable;
use braid_ir::residual::{End, Residual};

/// Redirects jumps past blocks that only jump. A branch with two equal sides becomes a jump.
pub(super) fn thread(program: &mut Residual, _: &Facts) {
    let blocks = &mut program.blocks;
    // Jumps lead only to later blocks, so the jumps of later blocks are already redirected.
    for at in (0..blocks.len()).rev() {
        let mut end = blocks[at].end.clone();
        end.visit_targets_mut(&mut |target| {
            let there = &blocks[target.block.index()];
            if there.params.is_empty()
                && there.steps.is_empty()
                && let End::Jump(on) = &there.end
            {
                *target = on.clone();
            }
        });
        if let End::Branch { yes, no, .. } = &end
            && yes == no
        {
            end = End::Jump(yes.clone());
        }
        blocks[at].end = end;
    }
    drop_unreachable(blocks);
}
