//! The passes from a chain to a residual program, in order.

use crate::synth::finish::Finish;
use crate::synth::place::place;
use crate::synth::{Stats, Synth};
use braid_ir::residual::{Residual, check};

/// Makes a program, with or without a part of its own for the main way.
pub(crate) fn run(mut synth: Synth<'_>, main_way_first: bool) -> (Residual, Stats) {
    let chain = synth.chain;
    // Symbolic execution: every way of every function, joined where ways meet.
    synth.follow();
    if main_way_first {
        // The likely way's conditions in one, and the way on which they hold.
        synth.main_way_first();
    }
    let stats = synth.stats;
    // One graph of blocks, without jumps to jumps.
    let mut graph = Finish::of(synth);
    // What nothing needs goes.
    graph.mark();
    graph.drop_dead();
    // Each value is computed where its users need it, as late as may be.
    let places = place(&graph);
    let program = graph.emit(&places);
    if cfg!(debug_assertions)
        && let Err(problems) = check(&program, chain)
    {
        panic!("a residual program that makes no sense: {}", problems.join("; "));
    }
    (program, stats)
}
