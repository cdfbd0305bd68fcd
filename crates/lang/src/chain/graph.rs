//! Checks the links: ports that lead nowhere, functions that no packet reaches, loops.
//!
//! A vertex of the graph is a function and a direction. A packet that enters by the right port goes
//! backward. A packet that enters by another port goes forward. So the two directions of a two-way
//! link are not a loop.

use std::collections::BTreeSet;

use braid_ir::chain::{Sink, Source};
use braid_ir::model::{LEFT, PortId, RIGHT};
use rustc_hash::FxHashMap;

use super::draft::{Draft, Link};
use super::{links, reach};
use crate::ast::Span;
use crate::diag::{Diagnostic, Diagnostics, codes};

/// A function and the direction of packets in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Vertex {
    node: u16,
    backward: bool,
}

/// Reports every error of the graph. Returns false if the graph is not wholly known: a link is
/// missing because of a reported error, or a model is unknown. Messages that follow from such a
/// graph would only confuse.
pub(super) fn check(draft: &Draft<'_>, diags: &mut Diagnostics) -> bool {
    let graph = Graph::new(draft);
    if draft.doubt || diags.has_errors() || draft.nodes.iter().any(|node| node.model.is_none()) {
        return false;
    }
    graph.interfaces(diags);
    graph.unlinked(diags);
    graph.unreachable(diags);
    graph.loops(diags);
    true
}

/// For each function, the functions that forward packets reach behind it.
pub(super) fn after(draft: &Draft<'_>) -> Vec<BTreeSet<u16>> {
    let graph = Graph::new(draft);
    let count = u16::try_from(draft.nodes.len()).unwrap_or(u16::MAX);
    (0..count)
        .map(|node| {
            let start = Vertex { node, backward: false };
            let mut seen = BTreeSet::new();
            let mut next: Vec<Vertex> = graph.onward(start);
            while let Some(vertex) = next.pop() {
                // A turn into the other direction does not lead to a later place on the path.
                if !vertex.backward && seen.insert(vertex.node) {
                    next.extend(graph.onward(vertex));
                }
            }
            seen
        })
        .collect()
}

struct Graph<'d, 'a> {
    draft: &'d Draft<'a>,
    to: FxHashMap<Source, Link>,
}

impl<'d, 'a> Graph<'d, 'a> {
    fn new(draft: &'d Draft<'a>) -> Self {
        let to = draft.links.iter().map(|link| (link.source, *link)).collect();
        Self { draft, to }
    }

    /// The function and direction that packets of a source enter, if the link ends at a function.
    fn enters(&self, source: Source) -> Option<Vertex> {
        match self.to.get(&source)?.sink {
            Sink::Interface(_) => None,
            Sink::Port(node, port) => Some(Vertex { node, backward: port == RIGHT }),
        }
    }

    fn ports(&self, node: u16) -> impl Iterator<Item = PortId> + use<> {
        let model = self.draft.nodes.get(usize::from(node)).and_then(|node| node.model.as_ref());
        let count = model.map_or(0, |model| model.ports.len());
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(PortId)
    }

    /// The next functions, by any port except the one that leads back.
    fn onward(&self, vertex: Vertex) -> Vec<Vertex> {
        let back = if vertex.backward { RIGHT } else { LEFT };
        self.ports(vertex.node)
            .filter(|port| *port != back)
            .filter_map(|port| self.enters(Source::Port(vertex.node, port)))
            .collect()
    }

    /// All vertices that packets from the interfaces reach by the ports that `exits` gives.
    fn reached(&self, exits: impl Fn(Vertex) -> Vec<PortId>) -> BTreeSet<Vertex> {
        let count = u16::try_from(self.draft.interfaces.len()).unwrap_or(u16::MAX);
        let mut next: Vec<Vertex> =
            (0..count).filter_map(|at| self.enters(Source::Interface(at))).collect();
        let mut seen = BTreeSet::new();
        while let Some(vertex) = next.pop() {
            if seen.insert(vertex) {
                let ports = exits(vertex).into_iter();
                next.extend(ports.filter_map(|port| self.enters(Source::Port(vertex.node, port))));
            }
        }
        seen
    }

    fn interfaces(&self, diags: &mut Diagnostics) {
        for (at, interface) in self.draft.interfaces.iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            let Some(span) = interface.span else { continue };
            let touches = |link: &Link| {
                link.source == Source::Interface(at) || link.sink == Sink::Interface(at)
            };
            if !self.draft.links.iter().any(touches) {
                let message = format!("nothing is linked to the interface `{}`", interface.ir.name);
                diags.push(
                    Diagnostic::new(codes::UNLINKED_INTERFACE, message, span, "declared here")
                        .help("put it on a path, or remove it"),
                );
            }
        }
    }

    /// Reports ports that lead nowhere although packets may leave there.
    fn unlinked(&self, diags: &mut Diagnostics) {
        let mut memo: FxHashMap<Vertex, Vec<PortId>> = FxHashMap::default();
        for node in 0..self.draft.nodes.len() {
            let node = u16::try_from(node).unwrap_or(u16::MAX);
            for backward in [false, true] {
                memo.insert(Vertex { node, backward }, self.exits(node, backward));
            }
        }
        let exits = |vertex: Vertex| memo.get(&vertex).cloned().unwrap_or_default();
        let mut reported = BTreeSet::new();
        for vertex in self.reached(exits) {
            for port in exits(vertex) {
                let source = Source::Port(vertex.node, port);
                if !self.to.contains_key(&source) && reported.insert((vertex.node, port)) {
                    diags.push(self.nowhere(vertex, port));
                }
            }
        }
    }

    fn exits(&self, node: u16, backward: bool) -> Vec<PortId> {
        let model = self.draft.nodes.get(usize::from(node)).and_then(|node| node.model.as_ref());
        model.map_or_else(Vec::new, |model| reach::exits(model, backward).into_iter().collect())
    }

    fn nowhere(&self, vertex: Vertex, port: PortId) -> Diagnostic {
        let node = &self.draft.nodes[usize::from(vertex.node)];
        let name = &node.name;
        let port = links::port_name(self.draft, vertex.node, port);
        let direction = if vertex.backward { "backward" } else { "forward" };
        let message = format!("the port `{port}` of `{name}` leads nowhere");
        let label = format!("may send {direction} packets to its port `{port}`");
        Diagnostic::new(codes::UNLINKED_PORT, message, node.span, label)
            .help(format!("link it: `link {name}.{port} -> …;`"))
    }

    fn unreachable(&self, diags: &mut Diagnostics) {
        let reached = self.reached(|vertex| self.ports(vertex.node).collect());
        for (at, node) in self.draft.nodes.iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            if !reached.iter().any(|vertex| vertex.node == at) {
                let message = format!("no packet reaches `{}`", node.name);
                let label = "no link leads here from an interface";
                diags.push(
                    Diagnostic::new(codes::UNREACHABLE_FUNCTION, message, node.span, label)
                        .help("put it on a path, or remove it"),
                );
            }
        }
    }

    /// Finds loops by a depth-first search without recursion. An edge to a vertex that is still
    /// open closes a loop.
    fn loops(&self, diags: &mut Diagnostics) {
        let mut done: BTreeSet<Vertex> = BTreeSet::new();
        for node in 0..self.draft.nodes.len() {
            let node = u16::try_from(node).unwrap_or(u16::MAX);
            for backward in [false, true] {
                let start = Vertex { node, backward };
                if let Some(cycle) = self.search(start, &mut done) {
                    diags.push(self.looped(&cycle));
                    return;
                }
            }
        }
    }

    fn search(&self, start: Vertex, done: &mut BTreeSet<Vertex>) -> Option<Vec<Vertex>> {
        if done.contains(&start) {
            return None;
        }
        let mut open = vec![(start, self.onward(start))];
        while let Some((vertex, next)) = open.last_mut() {
            let vertex = *vertex;
            let Some(after) = next.pop() else {
                done.insert(vertex);
                open.pop();
                continue;
            };
            if let Some(from) = open.iter().position(|(vertex, _)| *vertex == after) {
                return Some(open[from..].iter().map(|(vertex, _)| *vertex).collect());
            }
            if !done.contains(&after) {
                open.push((after, self.onward(after)));
            }
        }
        None
    }

    fn looped(&self, cycle: &[Vertex]) -> Diagnostic {
        let closed = cycle.iter().chain(cycle.first());
        let names: Vec<&str> = closed.map(|vertex| self.draft.node_name(vertex.node)).collect();
        let message = format!("the links form a loop: {}", names.join(" -> "));
        let spans = self.spans(cycle);
        let first = spans.first().copied().unwrap_or(self.draft.ast.name.span);
        let mut diagnostic = Diagnostic::new(codes::CHAIN_LOOP, message, first, "part of the loop");
        for span in spans.iter().skip(1) {
            diagnostic = diagnostic.label(*span, "part of the loop");
        }
        diagnostic.help("a packet that goes on must not come to the same function again")
    }

    /// The links between the vertices of a cycle, without duplicates.
    fn spans(&self, cycle: &[Vertex]) -> Vec<Span> {
        let mut spans = Vec::new();
        for (at, from) in cycle.iter().enumerate() {
            let to = cycle[(at + 1) % cycle.len()];
            let links = self.ports(from.node).map(|port| Source::Port(from.node, port));
            let mut hits = links.filter(|source| self.enters(*source) == Some(to));
            let span = hits.next().and_then(|source| self.to.get(&source)).map(|link| link.span);
            spans.extend(span.filter(|span| !spans.contains(span)));
        }
        spans
    }
}
