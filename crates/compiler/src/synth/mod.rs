//! Synthesis (SNF, "Synthesis steps"): the chain from a point on, executed symbolically for one
//! header shape, as one residual program.
//!
//! Functions are followed in topological order, and in each its blocks; where ways meet, what they
//! know is joined ([`join`]), so the program is a graph about as large as the functions together.
//! Fields are values while the program runs ([`cells`]); what is known about values ([`facts`])
//! decides conditions. Pure values are placed at the end, where they are needed ([`place`]).

mod bugs;
mod build;
mod cells;
mod exec;
mod facts;
mod finish;
mod fold;
mod headers;
mod join;
mod keys;
mod packet;
mod place;
pub(crate) mod range;
mod state;
mod tables;
mod terms;
mod values;
mod visit;

use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{RIGHT, RowId, Term};
use braid_ir::residual::{Extent, HeaderMask, Point, Residual, Site, Step, What};
use braid_packet::Field;
use bugs::Bug;
#[cfg(feature = "planted-bugs")]
pub use bugs::{BUGS, Bug as PlantedBug};
use build::{Blocks, Edge, Slot};
use headers::{Headers, bit};
use state::State;
use std::collections::HashMap;
use values::Values;

/// Most blocks of a program; functions that would come after that many are left to programs of
/// their own.
const MOST_BLOCKS: usize = 50_000;

/// Most functions in a row.
const MOST_VISITS: u32 = braid_ir::engine::HOP_LIMIT;

/// The program for packets with these headers ([`braid_packet::Layout::presence`]) from a point on.
///
/// The chain's models verify, and its parameters have values of their types.
#[must_use]
pub fn residual(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u32,
    extent: Extent,
) -> Residual {
    Synth::new(chain, graph, point, presence, extent).program()
}

/// As [`residual`], with a bug.
#[cfg(feature = "planted-bugs")]
#[must_use]
pub fn residual_with_bug(
    chain: &Chain,
    graph: &Graph,
    point: Point,
    presence: u32,
    extent: Extent,
    bug: PlantedBug,
) -> Residual {
    let mut synth = Synth::new(chain, graph, point, presence, extent);
    synth.bug = Some(bug);
    synth.program()
}

/// A synthesis under way.
struct Synth<'a> {
    chain: &'a Chain,
    graph: &'a Graph,
    start: Point,
    /// Headers of the packet as it enters the program.
    initial: u32,
    values: Values,
    blocks: Blocks,
    /// Points in topological order.
    order: Vec<Point>,
    place: HashMap<Point, usize>,
    /// Edges to each point.
    inbox: Vec<Vec<Edge>>,
    /// Headers whose presence matters.
    asked: u32,
    visits: u32,
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
}

impl<'a> Synth<'a> {
    fn new(
        chain: &'a Chain,
        graph: &'a Graph,
        start: Point,
        presence: u32,
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

    /// The program.
    fn program(mut self) -> Residual {
        let chain = self.chain;
        self.run();
        let program = self.finish();
        if cfg!(debug_assertions)
            && let Err(problems) = braid_ir::residual::check(&program, chain)
        {
            panic!("a residual program that makes no sense: {}", problems.join("; "));
        }
        program
    }

    fn run(&mut self) {
        let from = self.blocks.add(Vec::new());
        let state = State::new(Headers::exactly(self.initial));
        self.inbox[0].push(Edge { from, slot: Slot::Open, state });
        for number in 0..self.order.len() {
            let edges = std::mem::take(&mut self.inbox[number]);
            self.point(number, edges);
        }
    }

    fn finish(self) -> Residual {
        let care = self.asked & !bit(braid_packet::Header::Pkt);
        let shape = HeaderMask { care, present: self.initial & care };
        finish::finish(self, shape)
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

/// Points that packets may come to from a point on, each after all those before it. Going round is
/// left out, as are functions that others see packets beside.
fn order(chain: &Chain, graph: &Graph, start: Point) -> Vec<Point> {
    let mut search = Search { chain, graph, found: Vec::new(), state: HashMap::new() };
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
    /// The points that were entered.
    state: HashMap<Point, ()>,
}

impl Search<'_> {
    fn visit(&mut self, point: Point, depth: u32) {
        if self.state.contains_key(&point) || depth >= MOST_VISITS {
            return;
        }
        self.state.insert(point, ());
        if self.graph.group(point.node).len() == 1 {
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
            if self.graph.group(node).len() == 1 && !found.contains(&next) {
                found.push(next);
            }
        }
        // The last one searched comes first in the order.
        found
    }
}
