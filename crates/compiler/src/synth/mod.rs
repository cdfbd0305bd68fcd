//! Synthesis (SNF, "Synthesis steps"): the chain from a point on, executed symbolically for one
//! header shape, as one residual program.
//!
//! Functions are followed in topological order, and in each its blocks; where ways meet, what they
//! know is joined (`join`), so the program is a graph about as large as the functions together.
//! Fields are values while the program runs (`cells`); what is known about values (`facts`)
//! decides conditions. Pure values are placed at the end, where they are needed (`place`).

mod bugs;
mod build;
mod cells;
mod exec;
pub(crate) mod facts;
pub(crate) mod finish;
pub(crate) mod fold;
mod guard;
mod headers;
mod join;
mod keys;
mod packet;
pub(crate) mod place;
pub(crate) mod range;
mod state;
mod tables;
mod terms;
mod values;
mod visit;
mod vlan;

use crate::pipeline;
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{BlockId, RIGHT, RowId, Target, Term};
use braid_ir::residual::{End, Extent, HeaderMask, Point, Residual, Site, Step, What};
use braid_packet::Field;
use bugs::Bug;
#[cfg(feature = "planted-bugs")]
pub use bugs::{BUGS, Bug as PlantedBug};
use build::{Blocks, Edge, Slot};
use facts::Facts;
use headers::{Headers, bit};
use serde::Serialize;
use state::State;
use std::collections::{HashMap, HashSet};
use values::Values;

/// Most blocks of a program; functions that would come after that many are left to programs of
/// their own.
const MOST_BLOCKS: usize = 50_000;

/// Most functions in a row.
const MOST_VISITS: u32 = braid_ir::engine::HOP_LIMIT;

/// The program for packets with these headers ([`braid_packet::Layout::presence`]) from a point on.
///
/// The chain's models verify, and its parameters have values of their types. The point is in front of no native
/// function: of those no programs can be made.
#[must_use]
pub fn residual(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
) -> Residual {
    pipeline::run(Synth::new(chain, graph, point, presence, extent), true).0
}

/// As [`residual`], but without a part for the main way: each way is there once. And what putting the
/// functions together has saved.
#[must_use]
pub fn general(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
) -> (Residual, Stats) {
    pipeline::run(Synth::new(chain, graph, point, presence, extent), false)
}

/// What synthesis found that need not be done, over all ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// Conditions that were decided already.
    pub decided: usize,
    /// Lookups and faulting operations whose result was there already.
    pub reused: usize,
    /// Fields that were assigned anew before they were written.
    pub overwritten: usize,
    /// Fields that were assigned to packets which then went no further.
    pub unwritten: usize,
    /// VLAN tags that were added and removed again, or removed and added again.
    pub cancelled: usize,
}

/// As [`residual`], with a bug.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn residual_with_bug(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u128,
    extent: Extent,
    bug: PlantedBug,
) -> Residual {
    let mut synth = Synth::new(chain, graph, point, presence, extent);
    synth.bug = Some(bug);
    pipeline::run(synth, true).0
}

/// A synthesis under way.
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
    /// Whether the first block tests for the main way.
    guarded: bool,
    pub(crate) stats: Stats,
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
}

impl<'a> Synth<'a> {
    fn new(
        chain: &'a Chain,
        graph: &'a Graph,
        start: Point,
        presence: u128,
        extent: Extent,
    ) -> Self {
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
            guarded: false,
            stats: Stats::default(),
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }

    /// Whether the synthesis is to have a bug.
    #[cfg(feature = "planted-bugs")]
    fn has_bug(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether the synthesis is to have a bug: never.
    #[cfg(not(feature = "planted-bugs"))]
    #[allow(clippy::unused_self, reason = "it has one with the feature")]
    fn has_bug(&self, _: Bug) -> bool {
        false
    }

    /// Follows all ways of all packets of the shape.
    pub(crate) fn follow(&mut self) {
        let entry = self.blocks.add(Vec::new());
        let general = self.blocks.add(Vec::new());
        self.run_from(general, Facts::default());
        self.blocks.all[entry].end = End::Jump(to(general));
    }

    /// Tests first for what the main way takes, and follows it once more for packets that have it.
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

    /// Follows all ways from a block on.
    fn run_from(&mut self, from: usize, facts: Facts) {
        let mut state = State::new(Headers::exactly(self.initial));
        state.facts = facts.into();
        self.inbox[0].push(Edge { from, slot: Slot::Open, state });
        for number in 0..self.order.len() {
            let edges = std::mem::take(&mut self.inbox[number]);
            self.point(number, edges);
        }
    }

    /// The shape that the program is for.
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

/// The way to a block without parameters.
fn to(block: usize) -> Target {
    Target { block: BlockId(u32::try_from(block).unwrap_or(u32::MAX)), args: Vec::new() }
}

/// Points that packets may come to from a point on, each after all those before it. Going round is
/// left out, also by coming back to a function from its other side, as are functions that others see packets beside,
/// and native ones.
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
    /// In the order in which they were left.
    found: Vec<Point>,
    /// The functions that were entered. None is entered in both directions: an engine can then tell
    /// from its counters which way packets go through it.
    entered: HashSet<u16>,
}

impl Search<'_> {
    fn visit(&mut self, point: Point, depth: u32) {
        if self.entered.contains(&point.node) || depth >= MOST_VISITS {
            return;
        }
        self.entered.insert(point.node);
        if self.graph.has_programs(point.node) {
            for next in self.next(point) {
                self.visit(next, depth + 1);
            }
        }
        self.found.push(point);
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
            if self.graph.has_programs(node) && !found.contains(&next) {
                found.push(next);
            }
        }
        // The last one searched comes first in the order.
        found
    }
}
