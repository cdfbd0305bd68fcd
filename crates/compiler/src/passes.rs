//! The passes that turn the residual program of symbolic execution into the one that engines run.
//!
//! [`PASSES`] lists them in order. Each pass rewrites a program and leaves a program that
//! [`braid_ir::residual::check`] accepts.

mod counters;
mod dead;
mod facts;
mod graph;
mod jumps;
mod merge;
mod place;
mod purity;
mod spots;

pub use facts::Facts;
pub(crate) use graph::drop_unreachable;

use braid_ir::residual::Residual;

/// A pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name, for `braid ir --after`.
    pub name: &'static str,
    /// The reason for the pass, for `braid ir`.
    pub reason: &'static str,
    /// Rewrites a program.
    pub run: fn(&mut Residual, &Facts),
}

/// All passes, in the order in which they run.
pub const PASSES: [Pass; 4] = [
    Pass {
        name: "thread-jumps",
        reason: "a jump to a block that only jumps goes to where that block goes",
        run: jumps::thread,
    },
    Pass {
        name: "merge-blocks",
        reason: "if only one jump leads to a block, the block continues the block that jumps",
        run: merge::merge,
    },
    Pass {
        name: "remove-dead",
        reason: "a value that nothing needs is not computed, and a counter that nothing adds to is not kept",
        run: dead::remove,
    },
    Pass {
        name: "place",
        reason: "a value is computed as late as its users allow, and not on paths without users",
        run: place::place,
    },
];
