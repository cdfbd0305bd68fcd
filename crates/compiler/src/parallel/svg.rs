//! Service graphs as SVG: for each path the chain, and below it the graph with its mergers.

use super::chain::Path;
use super::dot::version_label;
use crate::picture::{Labelled, Picture};
use braid_ir::service_graph::{Fork, Node};

/// The height of a function's box. All measures here are in pixels.
const BOX: usize = 34;
/// The gap between boxes in a row.
const GAP: usize = 36;
/// The gap between branches.
const BETWEEN: usize = 22;
/// The distance from a fork to its branches, and from branches to their merger.
const REACH: usize = 96;
const MARGIN: usize = 24;
/// The left edge of rows. It leaves room for the words "chain" and "graph".
const LEFT: usize = 100;

/// The radius of a merger.
const MERGER: usize = 12;

const STYLE: &str = ".title{font-weight:bold;font-size:16px} .head{font-weight:bold} \
    .note{fill:#555} .copy{fill:#a04000;font-size:11px} .box{fill:#eef3fb;stroke:#2f5d9b} \
    .merge{fill:#fff3e0;stroke:#a04000} .line{stroke:#444}";

/// Draws the paths of a chain.
#[must_use]
pub fn svg(chain: &str, paths: &[Path]) -> String {
    let mut drawing = Drawing { picture: Picture::at_least((480, 0)), y: MARGIN };
    drawing.picture.text((MARGIN, drawing.y + 4), "title", &format!("chain {chain}"));
    drawing.y += 30;
    for path in paths {
        drawing.path(path);
    }
    let document = drawing.picture.document(MARGIN, 13, STYLE);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{document}")
}

/// A picture, row by row.
struct Drawing {
    picture: Picture,
    /// The top of the next row.
    y: usize,
}

/// The approximate width of a text in pixels.
fn text_width(text: &str) -> usize {
    text.chars().count().saturating_mul(8)
}

fn box_width(name: &str) -> usize {
    text_width(name).saturating_add(20).max(60)
}

/// The width and height of a part.
fn size(node: &Node, path: &Path) -> (usize, usize) {
    match node {
        Node::Function(function) => (box_width(name(path, *function)), BOX),
        Node::Sequence(parts) => {
            let sizes = parts.iter().map(|part| size(part, path));
            let gaps = GAP * parts.len().saturating_sub(1);
            let (width, height) =
                sizes.fold((0, 0), |(w, h), (more, high)| (w + more, h.max(high)));
            (width + gaps, height)
        }
        Node::Parallel(fork) => fork_size(fork, path),
    }
}

fn fork_size(fork: &Fork, path: &Path) -> (usize, usize) {
    let sizes = fork.branches.iter().map(|branch| size(&branch.node, path));
    let gaps = BETWEEN * fork.branches.len().saturating_sub(1);
    let (width, height) = sizes.fold((0, 0), |(w, h), (wide, more)| (w.max(wide), h + more));
    (width + 2 * REACH, height + gaps)
}

fn name(path: &Path, function: usize) -> &str {
    path.functions.get(function).map_or("", String::as_str)
}

impl Drawing {
    fn path(&mut self, path: &Path) {
        let summary = path.summary();
        self.picture.text((MARGIN, self.y + 4), "head", &path.title());
        self.picture.text((MARGIN, self.y + 22), "note", &summary);
        self.picture.reach((MARGIN + text_width(&summary), 0));
        self.y += 40;
        let parts = (0..path.functions.len()).map(Node::Function).collect();
        self.row("chain", &Node::Sequence(parts), path);
        self.row("graph", &path.graph.root, path);
        self.y += 14;
        self.picture.reach((0, self.y.saturating_sub(MARGIN)));
    }

    fn row(&mut self, what: &str, node: &Node, path: &Path) {
        let (width, height) = size(node, path);
        let middle = self.y + height.max(BOX) / 2;
        self.picture.text((MARGIN, middle + 4), "note", what);
        self.line(LEFT - 20, middle, LEFT, middle);
        self.node(node, LEFT, middle, path);
        self.line(LEFT + width, middle, LEFT + width + 20, middle);
        self.y += height.max(BOX) + 24;
    }

    /// Draws a part whose left end is at `x` and whose middle line is at `y`.
    fn node(&mut self, node: &Node, x: usize, y: usize, path: &Path) {
        match node {
            Node::Function(function) => self.function(name(path, *function), x, y),
            Node::Sequence(parts) => {
                let mut x = x;
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        self.line(x, y, x + GAP, y);
                        x += GAP;
                    }
                    self.node(part, x, y, path);
                    x += size(part, path).0;
                }
            }
            Node::Parallel(fork) => self.fork(fork, x, y, path),
        }
    }

    fn function(&mut self, name: &str, x: usize, y: usize) {
        self.picture.labelled(&Labelled {
            at: (x, y - BOX / 2),
            size: (box_width(name), BOX),
            class: "box",
            text: name,
            hint: None,
            centred: true,
        });
    }

    fn fork(&mut self, fork: &Fork, x: usize, y: usize, path: &Path) {
        let (width, height) = fork_size(fork, path);
        let end = x + width;
        let mut top = y - height / 2;
        for branch in &fork.branches {
            let (wide, high) = size(&branch.node, path);
            let middle = top + high / 2;
            let start = x + REACH + (width - 2 * REACH - wide) / 2;
            self.bend(x, y, start, middle);
            self.node(&branch.node, start, middle, path);
            self.bend(end - MERGER, y, start + wide, middle);
            let label = version_label(fork, branch.version);
            self.picture.text((x + 18, middle - 5), "copy", &label);
            top += high + BETWEEN;
        }
        self.picture.circle((end - MERGER, y), MERGER, "merge", "M");
    }

    fn line(&mut self, x1: usize, y1: usize, x2: usize, y2: usize) {
        self.picture.line("line", &[(x1, y1), (x2, y2)]);
    }

    /// A line from a fork or merger to a branch: vertical near the fork or merger, then horizontal.
    fn bend(&mut self, x: usize, y: usize, to_x: usize, to_y: usize) {
        let knee = if to_x > x { x + 12 } else { x.saturating_sub(12) };
        self.picture.line("line", &[(x, y), (knee, to_y), (to_x, to_y)]);
    }
}
