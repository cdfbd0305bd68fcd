//! Synthesis (SNF, "Synthesis steps"): executes the chain symbolically from one point on, for one
//! header shape. The result is one residual program.
//!
//! The execution follows functions in topological order, and the blocks of each function in their
//! order. Where paths meet, their states are joined (`join`), so the program is a graph of about
//! the size of all functions together. During the execution, fields are values (`cells`), and facts
//! about values (`facts`) decide conditions. Pure values get their places in the end (`emit`).
//!
//! `follow` is on top: it leads paths (`build`) through points and through the blocks of a function
//! (`visit`). For each operation it asks `exec`, and for each end of a block `terms`. All of them
//! add to one program under construction (`draft`). A packet's bytes lag behind the values of its
//! fields; `write` brings them up to date. `handlers` lets the handlers of an event follow where it
//! is published; `faults` keeps their faults from ending the packet.

mod announce;
mod arriving;
mod build;
mod cells;
mod draft;
mod emit;
mod enter;
mod exec;
pub(crate) mod facts;
mod faults;
mod fields;
pub(crate) mod fold;
mod follow;
mod guard;
mod handlers;
mod headers;
mod join;
mod keys;
mod mutants;
mod options;
mod packet;
mod points;
pub(crate) mod range;
mod reads;
mod split;
mod state;
mod tables;
mod terms;
mod tunnel;
mod values;
mod visit;
mod vlan;
mod waiting;
mod write;

pub(crate) use arriving::{Arriving, arriving};
pub use draft::Stats;
#[cfg(feature = "mutants")]
pub use mutants::SYNTH_MUTANTS;
pub use mutants::SynthMutant;
pub use points::fits;

use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual, Site};
use braid_packet::Header;
use draft::Draft;
use follow::Synth;
use points::Points;

/// The task of a symbolic execution.
pub(crate) struct Input<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) graph: &'a Graph,
    pub(crate) point: Point,
    /// Headers of the packet ([`braid_packet::Layout::presence`]).
    pub(crate) presence: u128,
    pub(crate) extent: Extent,
    /// Whether the program begins with a test for the main path and has a part for it.
    pub(crate) guarded: bool,
    /// The active mutant, if any.
    pub(crate) bug: Option<SynthMutant>,
}

/// The result of a symbolic execution.
pub(crate) struct Outcome {
    pub(crate) program: Residual,
    /// Whether the program begins with a test for the main path.
    pub(crate) guarded: bool,
    pub(crate) stats: Stats,
}

/// Follows all packets of the header shape along all their paths.
pub(crate) fn execute(input: &Input<'_>) -> Outcome {
    let Input { chain, graph, point, presence, extent, guarded, bug } = *input;
    let site = Site { node: point.node, block: 0, op: 0 };
    let draft = Draft::new(presence, site, bug);
    let mut synth = Synth::new(draft, Points::new(chain, graph, point, extent));
    synth.follow();
    let guarded = guarded && synth.main_path_first();
    let (mut draft, visits) = synth.done();
    let stats = draft.stats;
    if tunnel::goes_on_in_tunnel(&draft.blocks.all) {
        draft.entering.asked |= headers::EVERY & !Header::bits(Header::PASSING);
    }
    let program = emit::emit(&draft.values, draft.blocks, point, draft.entering.shape(), visits);
    Outcome { program, guarded, stats }
}
