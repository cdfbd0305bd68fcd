//! The points that a program covers, in topological order, and the paths that wait at each.

use super::build::{Edge, MOST_BLOCKS};
use super::headers::Headers;
use super::reads::{TagChanges, tag_changes};
use braid_ir::chain::{Chain, Node, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, Model, RIGHT, Term};
use braid_ir::residual::{Extent, Point};
use std::collections::{HashMap, HashSet};

/// The largest number of functions on a path.
const MOST_VISITS: u32 = braid_ir::engine::HOP_LIMIT;

/// Whether a function is small enough for residual programs, so that making a program does not take
/// too long. Engines interpret the models of larger functions.
#[must_use]
pub fn fits(model: &Model) -> bool {
    model.packet.blocks.len() <= MOST_BLOCKS
}

/// The points of a program.
pub(super) struct Points<'a> {
    pub(super) chain: &'a Chain,
    graph: &'a Graph,
    order: Vec<Point>,
    place: HashMap<Point, usize>,
    /// The least weight of the functions behind one that does what no record contains, if the
    /// program may end there.
    least: Option<u32>,
    /// For each point, how its function and those of later points change tags.
    tag_changes: Vec<TagChanges>,
    /// Edges to each point.
    inbox: Vec<Vec<Edge>>,
}

impl<'a> Points<'a> {
    /// The points from `start` on. No path waits at any of them.
    pub(super) fn new(chain: &'a Chain, graph: &'a Graph, start: Point, extent: Extent) -> Self {
        let order = match extent {
            Extent::Function => vec![start],
            Extent::Chain | Extent::Stretch(_) => order(chain, graph, start, None),
            Extent::UpTo(node) => order(chain, graph, start, Some(node)),
        };
        let place = order.iter().enumerate().map(|(number, point)| (*point, number)).collect();
        let inbox = order.iter().map(|_| Vec::new()).collect();
        let least = if let Extent::Stretch(least) = extent { Some(least) } else { None };
        let tag_changes = Vec::new();
        let mut points = Self { chain, graph, order, place, least, tag_changes, inbox };
        points.tag_changes = points.changes_behind();
        points
    }

    /// For each point, how its function and those of later points change tags.
    fn changes_behind(&self) -> Vec<TagChanges> {
        let mut behind = TagChanges::default();
        let each = (0..self.len()).rev().map(|number| {
            let here = tag_changes(&self.node(number).model);
            behind.pushes |= here.pushes;
            behind.pops |= here.pops;
            behind
        });
        let mut all: Vec<_> = each.collect();
        all.reverse();
        all
    }

    /// The number of points.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The point with this number.
    pub(super) fn point(&self, number: usize) -> Point {
        self.order[number]
    }

    /// The function at a point.
    pub(super) fn node(&self, number: usize) -> &'a Node {
        &self.chain.nodes[usize::from(self.order[number].node)]
    }

    /// How the function at a point and those of later points change tags.
    pub(super) fn tag_changes(&self, number: usize) -> TagChanges {
        self.tag_changes[number]
    }

    /// Whether the program ends behind the function at a point if it does what no record contains.
    pub(super) fn may_end(&self, number: usize) -> bool {
        let behind = (number + 1..self.len()).map(|later| self.node(later).model.weight());
        self.least.is_some_and(|least| behind.fold(0, u32::saturating_add) >= least)
    }

    /// The place to which packets go that leave the function at a point by a port.
    pub(super) fn sink(&self, number: usize, dest: Dest) -> Option<Sink> {
        let point = self.order[number];
        self.graph.next(point.node, port(dest, point.backward))
    }

    /// Whether packets with these headers go to a TCP stack at a point. Programs end in front of
    /// it. The presence of every header that the function there consults is known.
    pub(super) fn goes_to_stack(&self, number: usize, headers: &mut Headers) -> bool {
        let mut stacked = self.graph.stacked(self.order[number].node).iter();
        stacked.any(|header| headers.has(*header) == Ok(true))
    }

    /// The number of a point, if the program covers the link from the point `number` to it.
    pub(super) fn later(&self, number: usize, point: Point) -> Option<usize> {
        self.place.get(&point).copied().filter(|at| *at > number)
    }

    /// Adds an edge to a point.
    pub(super) fn send(&mut self, number: usize, edge: Edge) {
        self.inbox[number].push(edge);
    }

    /// Takes the edges that wait at a point.
    pub(super) fn take(&mut self, number: usize) -> Vec<Edge> {
        std::mem::take(&mut self.inbox[number])
    }
}

/// The points that packets may reach from a point, in topological order. The search leaves out
/// loops, including a return to a function from its other side. It also leaves out native
/// functions, functions that are too large, functions under `Priority` with others, and the
/// function `end`.
fn order(chain: &Chain, graph: &Graph, start: Point, end: Option<u16>) -> Vec<Point> {
    let mut search = Search { chain, graph, end, found: Vec::new(), entered: HashSet::new() };
    search.visit(start, 0);
    search.found.reverse();
    search.found
}

/// A depth-first search over points.
struct Search<'a> {
    chain: &'a Chain,
    graph: &'a Graph,
    /// A function that the search leaves out.
    end: Option<u16>,
    /// In the order in which the search left them.
    found: Vec<Point>,
    /// The functions that the search has entered. It enters no function in both directions. So the
    /// counters of a function on a path show an engine the packet's direction through it.
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
        self.end != Some(node)
            && self.graph.has_programs(node)
            && fits(&self.chain.nodes[usize::from(node)].model)
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
        // The point that the search left last comes first.
        found
    }
}
