//! Service graphs in Graphviz's language: for each path the chain and its graph, one below the
//! other.

use super::chain::Way;
use braid_ir::service_graph::{Extent, Fork, Node};
use std::fmt::Write as _;

/// Draws the paths of a chain.
#[must_use]
pub fn dot(chain: &str, ways: &[Way]) -> String {
    let mut text = format!("digraph {} {{\n", quoted(chain));
    text.push_str("  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for way in ways {
        let mut writer = Writer { text: &mut text, way, forks: 0 };
        writer.cluster("chain", &way.title(), &|writer, before| {
            let parts: Vec<Node> = (0..way.functions.len()).map(Node::Function).collect();
            writer.node(&Node::Sequence(parts), "c", before)
        });
        writer.cluster("graph", &way.summary(), &|writer, before| {
            writer.node(&way.graph.root, "g", before)
        });
    }
    text.push_str("}\n");
    text
}

/// A quoted string in Graphviz's language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

struct Writer<'t> {
    text: &'t mut String,
    way: &'t Way,
    forks: usize,
}

/// An unconnected start of an edge: the node's name, and the edge's label.
type Loose = (String, String);

impl Writer<'_> {
    fn cluster(&mut self, what: &str, label: &str, body: &dyn Fn(&mut Writer<'_>, Loose) -> Loose) {
        let number = self.way.number;
        let (start, end) = (format!("{what}{number}_in"), format!("{what}{number}_out"));
        let _ = writeln!(self.text, "  subgraph cluster_{what}_{number} {{");
        let _ = writeln!(self.text, "    label={};", quoted(label));
        let _ = writeln!(self.text, "    {start} [shape=point]; {end} [shape=point];");
        let (last, label) = body(self, (start, String::new()));
        self.edge(&last, &end, &label);
        self.text.push_str("  }\n");
    }

    fn edge(&mut self, from: &str, to: &str, label: &str) {
        let _ = match label {
            "" => writeln!(self.text, "    {from} -> {to};"),
            _ => writeln!(self.text, "    {from} -> {to} [label={}];", quoted(label)),
        };
    }

    /// Draws a part of the graph behind an unconnected start, and returns its own.
    fn node(&mut self, node: &Node, prefix: &str, before: Loose) -> Loose {
        match node {
            Node::Function(function) => {
                let name = format!("{prefix}{}_{function}", self.way.number);
                let label = self.way.functions.get(*function).map_or("", String::as_str);
                let _ = writeln!(self.text, "    {name} [label={}];", quoted(label));
                self.edge(&before.0, &name, &before.1);
                (name, String::new())
            }
            Node::Sequence(parts) => {
                parts.iter().fold(before, |before, part| self.node(part, prefix, before))
            }
            Node::Parallel(fork) => self.fork(fork, prefix, before),
        }
    }

    fn fork(&mut self, fork: &Fork, prefix: &str, before: Loose) -> Loose {
        self.forks += 1;
        let name = format!("{prefix}{}_fork{}", self.way.number, self.forks);
        let merger = format!("{prefix}{}_merge{}", self.way.number, self.forks);
        let _ = writeln!(self.text, "    {name} [shape=point];");
        let _ = writeln!(self.text, "    {merger} [shape=circle, label=\"merge\"];");
        self.edge(&before.0, &name, &before.1);
        for branch in &fork.branches {
            let label = version_label(fork, branch.version);
            let (last, label_after) = self.node(&branch.node, prefix, (name.clone(), label));
            self.edge(&last, &merger, &label_after);
        }
        (merger, String::new())
    }
}

/// The label of an edge to a branch. It is empty if the branch works on the existing version.
pub(super) fn version_label(fork: &Fork, version: u32) -> String {
    let copy = fork.copies.iter().find(|copy| copy.to == version);
    copy.map_or_else(String::new, |copy| match copy.extent {
        Extent::Headers => format!("v{version}: headers"),
        Extent::Full => format!("v{version}: full copy"),
    })
}
