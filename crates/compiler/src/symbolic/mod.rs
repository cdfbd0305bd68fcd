//! Synthesis (SNF, "Synthesis steps"): executes the chain symbolically from one point on, for one
//! header shape. The result is one residual program.
//!
//! The execution follows functions in topological order, and the blocks of each function in their
//! order. Where paths meet, their states are joined (`join`), so the program is a graph about as
//! large as the functions together. While the program runs, fields are values (`cells`). Facts
//! about values (`facts`) decide conditions. At the end, pure values are placed where they are
//! needed (`place`).

mod build;
mod cells;
mod emit;
mod exec;
pub(crate) mod facts;
pub(crate) mod fold;
mod guard;
mod headers;
mod join;
mod keys;
mod mutants;
mod packet;
pub(crate) mod range;
mod state;
mod tables;
mod terms;
mod values;
mod visit;
mod vlan;

use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{BlockId, Model, RIGHT, RowId, Target, Term};
use braid_ir::residual::{End, Extent, HeaderMask, Point, Residual, Site, Step, What};
use braid_packet::Field;
use build::{Blocks, Edge, Slot};
use facts::Facts;
use headers::{Headers, bit};
#[cfg(feature = "mutants")]
pub use mutants::SYNTH_MUTANTS;
pub use mutants::SynthMutant;
use serde::Serialize;
use state::State;
use std::collections::{HashMap, HashSet};
use values::Values;

/// The maximum number of blocks of a program. Functions behind that limit get programs of their
/// own.
const MOST_BLOCKS: usize = 50_000;

/// Whether a function is small enough for programs: the time to make a program has a limit. Engines
/// interpret the model of a larger function.
#[must_use]
pub fn fits(model: &Model) -> bool {
    model.packet.blocks.len() <= MOST_BLOCKS
}

/// The maximum number of model blocks that are followed for one path alone, over all paths of a
/// program. In a table with many rows, each row that matches decides the conditions of all rows
/// behind it. Without a limit, the work would grow with the square of the number of rows. Past the
/// limit, paths meet at the next block.
const MOST_AHEAD: usize = 100_000;

/// The maximum number of functions in a row.
const MOST_VISITS: u32 = braid_ir::engine::HOP_LIMIT;

/// The task of a symbolic execution.
pub(crate) struct Input<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) graph: &'a Graph,
    pub(crate) point: Point,
    /// Headers of the packet ([`braid_packet::Layout::presence`]).
    pub(crate) presence: u128,
    pub(crate) extent: Extent,
    /// Whether the program first tests for the main path and has a part for it.
    pub(crate) guarded: bool,
    /// The mutant to build, if any.
    pub(crate) bug: Option<SynthMutant>,
}

/// The result of a symbolic execution.
pub(crate) struct Outcome {
    pub(crate) program: Residual,
    /// Whether the program first tests for the main path.
    pub(crate) guarded: bool,
    pub(crate) stats: Stats,
}

/// Follows all packets of the shape along all their paths.
pub(crate) fn execute(input: &Input<'_>) -> Outcome {
    let mut synth = Synth::new(input);
    synth.follow();
    if input.guarded {
        synth.main_way_first();
    }
    let shape = synth.shape();
    let Synth { start, values, blocks, visits, guarded, mut stats, ahead, .. } = synth;
    stats.followed += MOST_AHEAD - ahead;
    let program = emit::emit(&values, blocks, start, shape, visits);
    Outcome { program, guarded, stats }
}

/// The work that synthesis saved, over all paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// Conditions that were already decided.
    pub decided: usize,
    /// Lookups and faulting operations whose result was already known.
    pub reused: usize,
    /// Fields that were assigned again before they were written.
    pub overwritten: usize,
    /// Fields that were assigned although the packet then went no further.
    pub unwritten: usize,
    /// VLAN tags that were added and removed again, or removed and added again.
    pub cancelled: usize,
    /// Blocks of models that were followed. A block counts once for each path that reached it
    /// separately.
    #[serde(skip)]
    pub followed: usize,
}

/// The state of a running synthesis.
pub(crate) struct Synth<'a> {
    pub(crate) chain: &'a Chain,
    graph: &'a Graph,
    start: Point,
    /// Headers of the packet as it enters the program.
    initial: u128,
    values: Values,
    blocks: Blocks,
    /// Points in topological order.
    order: Vec<Point>,
    place: HashMap<Point, usize>,
    /// Edges to each point.
    inbox: Vec<Vec<Edge>>,
    /// Headers whose presence matters.
    asked: u128,
    visits: u32,
    /// How many more blocks of models may be followed for one path alone.
    ahead: usize,
    /// Whether the first block tests for the main path.
    guarded: bool,
    pub(crate) stats: Stats,
    bug: Option<SynthMutant>,
}

impl<'a> Synth<'a> {
    fn new(input: &Input<'a>) -> Self {
        let Input { chain, graph, point: start, presence, extent, .. } = *input;
        let order = match extent {
            Extent::Function => vec![start],
            Extent::Chain => order(chain, graph, start),
        };
        let place = order.iter().enumerate().map(|(number, point)| (*point, number)).collect();
        let site = Site { node: start.node, block: 0, op: 0 };
        Self {
            chain,
            graph,
            start,
            initial: presence,
            values: Values::new(site),
            blocks: Blocks::default(),
            inbox: order.iter().map(|_| Vec::new()).collect(),
            order,
            place,
            asked: 0,
            visits: 0,
            ahead: MOST_AHEAD,
            guarded: false,
            stats: Stats::default(),
            bug: input.bug,
        }
    }

    /// Whether to build this mutant. Without the feature, the answer is always no.
    fn has_mutant(&self, bug: SynthMutant) -> bool {
        cfg!(feature = "mutants") && self.bug == Some(bug)
    }

    /// Follows all paths of all packets of the shape.
    pub(crate) fn follow(&mut self) {
        let entry = self.blocks.add(Vec::new());
        let general = self.blocks.add(Vec::new());
        self.run_from(general, Facts::default());
        self.blocks.all[entry].end = End::Jump(to(general));
    }

    /// Puts the test for the main path first, and follows the main path once more for packets that
    /// pass the test.
    pub(crate) fn main_way_first(&mut self) {
        let (entry, general) = (0, 1);
        if self.blocks.all.len() > MOST_BLOCKS / 2 {
            return;
        }
        if let Some(guard) = self.guard(general) {
            let main = self.blocks.add(Vec::new());
            self.blocks.all[entry].end =
                End::Branch { cond: guard.cond, yes: to(main), no: to(general) };
            self.guarded = true;
            self.run_from(main, guard.facts);
        }
    }

    /// Follows all paths from a block on.
    fn run_from(&mut self, from: usize, facts: Facts) {
        let mut state = State::new(Headers::exactly(self.initial));
        state.facts = facts.into();
        self.inbox[0].push(Edge { from, slot: Slot::Open, state });
        for number in 0..self.order.len() {
            let edges = std::mem::take(&mut self.inbox[number]);
            self.point(number, edges);
        }
    }

    /// The header shape that the program is for.
    pub(crate) fn shape(&self) -> HeaderMask {
        let care = self.asked & !bit(braid_packet::Header::Pkt);
        HeaderMask { care, present: self.initial & care }
    }

    /// Whether a field's header was present when the packet entered the program.
    fn was_present(&mut self, field: Field) -> bool {
        let header = bit(field.info().header);
        self.asked |= header;
        (self.initial | bit(braid_packet::Header::Pkt)) & header != 0
    }

    /// The row `fault` of a function.
    fn fault_row(&self, node: u16) -> RowId {
        let rows = self.chain.nodes[usize::from(node)].model.rows.len();
        RowId(u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX))
    }

    fn step(&mut self, at: usize, what: What) {
        let site = self.values.site;
        self.blocks.all[at].steps.push(Step { site, what, fault: None });
    }
}

/// The jump to a block without parameters.
fn to(block: usize) -> Target {
    Target { block: BlockId(u32::try_from(block).unwrap_or(u32::MAX)), args: Vec::new() }
}

/// Points that packets may reach from a point on, in topological order. The search leaves out
/// loops, including a return to a function from its other side. It also leaves out native functions
/// and functions that share a packet with other functions.
fn order(chain: &Chain, graph: &Graph, start: Point) -> Vec<Point> {
    let mut search = Search { chain, graph, found: Vec::new(), entered: HashSet::new() };
    search.visit(start, 0);
    search.found.reverse();
    search.found
}

/// A depth-first search over points.
struct Search<'a> {
    chain: &'a Chain,
    graph: &'a Graph,
    /// In the order in which the search left them.
    found: Vec<Point>,
    /// The functions that the search has entered. It enters no function in both directions, so an
    /// engine can tell a packet's direction through a function from the function's counters.
    entered: HashSet<u16>,
}

impl Search<'_> {
    fn visit(&mut self, point: Point, depth: u32) {
        if self.entered.contains(&point.node) || depth >= MOST_VISITS {
            return;
        }
        self.entered.insert(point.node);
        if self.can_follow(point.node) {
            for next in self.next(point) {
                self.visit(next, depth + 1);
            }
        }
        self.found.push(point);
    }

    fn can_follow(&self, node: u16) -> bool {
        self.graph.has_programs(node) && fits(&self.chain.nodes[usize::from(node)].model)
    }

    fn next(&self, point: Point) -> Vec<Point> {
        let program = &self.chain.nodes[usize::from(point.node)].model.packet;
        let mut found = Vec::new();
        for block in &program.blocks {
            let Term::Output { ports, .. } = &block.term else { continue };
            let [dest] = ports.as_slice() else { continue };
            let sink = self.graph.next(point.node, port(*dest, point.backward));
            let Some(Sink::Port(node, to)) = sink else { continue };
            let next = Point { node, backward: to == RIGHT, held: false };
            if self.can_follow(node) && !found.contains(&next) {
                found.push(next);
            }
        }
        // The point that was searched last comes first in the order.
        found
    }
}
