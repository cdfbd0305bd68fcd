//! Service graphs in the language of Graphviz. For each path, the drawing shows the chain and below
//! it the graph.

use super::chain::Path;
use braid_ir::service_graph::{Extent, Fork, Node};
use std::fmt::Write as _;

/// The paths of a chain in the language of Graphviz.
#[must_use]
pub fn dot(chain: &str, paths: &[Path]) -> String {
    let mut text = format!("digraph {} {{\n", quoted(chain));
    text.push_str("  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for path in paths {
        let mut writer = Writer { text: &mut text, path, forks: 0 };
        writer.cluster("chain", &path.title(), &|writer, before| {
            let parts: Vec<Node> = (0..path.functions.len()).map(Node::Function).collect();
            writer.node(&Node::Sequence(parts), "c", before)
        });
        writer.cluster("graph", &path.summary(), &|writer, before| {
            writer.node(&path.graph.root, "g", before)
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
    path: &'t Path,
    forks: usize,
}

/// The start of an edge that has no end yet: the name of a node, and the label of the edge.
type Loose = (String, String);

impl Writer<'_> {
    fn cluster(&mut self, what: &str, label: &str, body: &dyn Fn(&mut Writer<'_>, Loose) -> Loose) {
        let number = self.path.number;
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

    /// Draws a part of the graph after the edge `before`. Returns the edge that leaves the part.
    fn node(&mut self, node: &Node, prefix: &str, before: Loose) -> Loose {
        match node {
            Node::Function(function) => {
                let name = format!("{prefix}{}_{function}", self.path.number);
                let label = self.path.functions.get(*function).map_or("", String::as_str);
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
        let name = format!("{prefix}{}_fork{}", self.path.number, self.forks);
        let merger = format!("{prefix}{}_merge{}", self.path.number, self.forks);
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

/// The label of an edge to a branch. It is empty for a branch that works on the existing version.
pub(super) fn version_label(fork: &Fork, version: u32) -> String {
    let copy = fork.copies.iter().find(|copy| copy.to == version);
    copy.map_or_else(String::new, |copy| match copy.extent {
        Extent::Headers => format!("v{version}: headers"),
        Extent::Full => format!("v{version}: full copy"),
    })
}
