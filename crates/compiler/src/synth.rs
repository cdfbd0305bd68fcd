//! Synthesis (SNF, "Synthesis steps"): turns the chain from a point on into one residual program
//! for one header shape. Symbolic execution makes the program, and the passes rewrite it.

use crate::passes::{Facts, PASSES};
use crate::symbolic::{Input, Outcome, execute};
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual, check};

#[cfg(feature = "mutants")]
pub use crate::symbolic::{SYNTH_MUTANTS, SynthMutant};
pub use crate::symbolic::{Stats, fits};

/// The name of the stage before all passes, for [`residual_after`].
pub const SYMBOLIC: &str = "symbolic-execution";

/// Makes the program for packets with these headers ([`braid_packet::Layout::presence`]) from a
/// point on.
///
/// The caller makes sure that the chain's models verify and that parameters have values of their
/// types. The point must not be at a native function or at a function that is too large ([`fits`]),
/// which have no programs.
#[must_use]
pub fn residual(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
) -> Residual {
    run(&Input { chain, graph, point, presence, extent, guarded: true, bug: None }, None).0
}

/// As [`residual`], but without a part for the main path, so that the program has each path once.
/// Also returns the work that joining the functions has saved.
#[must_use]
pub fn general(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
) -> (Residual, Stats) {
    run(&Input { chain, graph, point, presence, extent, guarded: false, bug: None }, None)
}

/// As [`residual`], but only up to the pass with this name, or up to [`SYMBOLIC`] before all
/// passes. `None` if no pass has the name.
#[must_use]
pub fn residual_after(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
    after: &str,
) -> Option<Residual> {
    let exists = after == SYMBOLIC || PASSES.iter().any(|pass| pass.name == after);
    let input = Input { chain, graph, point, presence, extent, guarded: true, bug: None };
    exists.then(|| run(&input, Some(after)).0)
}

/// As [`residual`], but with a mutant.
#[cfg(feature = "mutants")]
#[must_use]
pub fn residual_with_mutant(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
    bug: SynthMutant,
) -> Residual {
    let bug = Some(bug);
    run(&Input { chain, graph, point, presence, extent, guarded: true, bug }, None).0
}

fn run(input: &Input<'_>, after: Option<&str>) -> (Residual, Stats) {
    let Outcome { mut program, guarded, stats } = execute(input);
    let facts = Facts { guarded };
    assert_sound(&program, input.chain, SYMBOLIC);
    if after == Some(SYMBOLIC) {
        return (program, stats);
    }
    for pass in &PASSES {
        (pass.run)(&mut program, &facts);
        assert_sound(&program, input.chain, pass.name);
        if after == Some(pass.name) {
            break;
        }
    }
    (program, stats)
}

/// Checks a program in debug builds, so that a pass that leaves a malformed program is found at
/// once.
fn assert_sound(program: &Residual, chain: &Chain, stage: &str) {
    if cfg!(debug_assertions)
        && let Err(problems) = check(program, chain)
    {
        panic!("after {stage}, the program makes no sense: {}", problems.join("; "));
    }
}
