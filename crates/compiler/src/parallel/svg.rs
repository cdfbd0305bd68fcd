//! Service graphs as SVG: for each way the chain, and below it the graph with its mergers.

use super::chain::Way;
use super::dot::version_label;
use crate::xml::escaped;
use braid_ir::service_graph::{Fork, Node};
use std::fmt::Write as _;

/// Height of a function's box, in pixels as all measures here.
const BOX: u32 = 34;
/// Between a box and the next one in a row.
const GAP: u32 = 36;
/// Between branches.
const BETWEEN: u32 = 22;
/// From a fork, or to a merger.
const REACH: u32 = 96;
const MARGIN: u32 = 24;
/// Where rows begin: room for the words "chain" and "graph".
const LEFT: u32 = 100;

/// The ways of a chain.
#[must_use]
pub fn svg(chain: &str, ways: &[Way]) -> String {
    let mut picture = Picture { body: String::new(), width: 480, y: MARGIN };
    picture.label(MARGIN, picture.y + 4, "title", &format!("chain {chain}"));
    picture.y += 30;
    for way in ways {
        picture.way(way);
    }
    let (width, height) = (picture.width + MARGIN, picture.y);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <style>.title{{font-weight:bold;font-size:16px}}.head{{font-weight:bold}}\
         .note{{fill:#555}}.copy{{fill:#a04000;font-size:11px}}\
         .box{{fill:#eef3fb;stroke:#2f5d9b}}.merge{{fill:#fff3e0;stroke:#a04000}}\
         .line{{fill:none;stroke:#444}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
        picture.body
    )
}

/// What has been drawn.
struct Picture {
    body: String,
    width: u32,
    /// Where the next row begins.
    y: u32,
}

/// A count of characters as a number of pixels, near enough.
fn text_width(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX).saturating_mul(8)
}

fn box_width(name: &str) -> u32 {
    text_width(name).saturating_add(20).max(60)
}

/// Width and height of a part.
fn size(node: &Node, way: &Way) -> (u32, u32) {
    match node {
        Node::Function(function) => (box_width(name(way, *function)), BOX),
        Node::Sequence(parts) => {
            let sizes = parts.iter().map(|part| size(part, way));
            let gaps = GAP * u32::try_from(parts.len().saturating_sub(1)).unwrap_or(0);
            let (width, height) =
                sizes.fold((0, 0), |(w, h), (more, high)| (w + more, h.max(high)));
            (width + gaps, height)
        }
        Node::Parallel(fork) => fork_size(fork, way),
    }
}

fn fork_size(fork: &Fork, way: &Way) -> (u32, u32) {
    let sizes = fork.branches.iter().map(|branch| size(&branch.node, way));
    let gaps = BETWEEN * u32::try_from(fork.branches.len().saturating_sub(1)).unwrap_or(0);
    let (width, height) = sizes.fold((0, 0), |(w, h), (wide, more)| (w.max(wide), h + more));
    (width + 2 * REACH, height + gaps)
}

fn name(way: &Way, function: usize) -> &str {
    way.functions.get(function).map_or("", String::as_str)
}

impl Picture {
    fn way(&mut self, way: &Way) {
        self.label(MARGIN, self.y + 4, "head", &way.title());
        self.label(MARGIN, self.y + 22, "note", &way.summary());
        self.width = self.width.max(MARGIN + text_width(&way.summary()));
        self.y += 40;
        let parts = (0..way.functions.len()).map(Node::Function).collect();
        self.row("chain", &Node::Sequence(parts), way);
        self.row("graph", &way.graph.root, way);
        self.y += 14;
    }

    fn row(&mut self, what: &str, node: &Node, way: &Way) {
        let (width, height) = size(node, way);
        let middle = self.y + height.max(BOX) / 2;
        self.label(MARGIN, middle + 4, "note", what);
        self.line(LEFT - 20, middle, LEFT, middle);
        self.node(node, LEFT, middle, way);
        self.line(LEFT + width, middle, LEFT + width + 20, middle);
        self.width = self.width.max(LEFT + width + 20);
        self.y += height.max(BOX) + 24;
    }

    /// Draws a part whose left end is at `x` and whose middle line is at `y`.
    fn node(&mut self, node: &Node, x: u32, y: u32, way: &Way) {
        match node {
            Node::Function(function) => self.function(name(way, *function), x, y),
            Node::Sequence(parts) => {
                let mut x = x;
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        self.line(x, y, x + GAP, y);
                        x += GAP;
                    }
                    self.node(part, x, y, way);
                    x += size(part, way).0;
                }
            }
            Node::Parallel(fork) => self.fork(fork, x, y, way),
        }
    }

    fn function(&mut self, name: &str, x: u32, y: u32) {
        let (width, top) = (box_width(name), y - BOX / 2);
        let _ = writeln!(
            self.body,
            "<rect class=\"box\" x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{BOX}\" rx=\"4\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x + width / 2,
            y + 4,
            escaped(name)
        );
    }

    fn fork(&mut self, fork: &Fork, x: u32, y: u32, way: &Way) {
        let (width, height) = fork_size(fork, way);
        let end = x + width;
        let mut top = y - height / 2;
        for branch in &fork.branches {
            let (wide, high) = size(&branch.node, way);
            let middle = top + high / 2;
            let start = x + REACH + (width - 2 * REACH - wide) / 2;
            self.bend(x, y, start, middle);
            self.node(&branch.node, start, middle, way);
            self.bend(end - 12, y, start + wide, middle);
            let label = version_label(fork, branch.version);
            self.label(x + 18, middle - 5, "copy", &label);
            top += high + BETWEEN;
        }
        let _ = writeln!(
            self.body,
            "<circle class=\"merge\" cx=\"{}\" cy=\"{y}\" r=\"12\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">M</text>",
            end - 12,
            end - 12,
            y + 5
        );
    }

    fn line(&mut self, x1: u32, y1: u32, x2: u32, y2: u32) {
        let _ = writeln!(self.body, "<path class=\"line\" d=\"M{x1} {y1}L{x2} {y2}\"/>");
    }

    /// A line from a fork or merger to a branch: up or down near the former, then across.
    fn bend(&mut self, x: u32, y: u32, to_x: u32, to_y: u32) {
        let knee = if to_x > x { x + 12 } else { x.saturating_sub(12) };
        let _ = writeln!(
            self.body,
            "<path class=\"line\" d=\"M{x} {y}L{knee} {to_y}L{to_x} {to_y}\"/>"
        );
    }

    fn label(&mut self, x: u32, y: u32, class: &str, text: &str) {
        if !text.is_empty() {
            let text = escaped(text);
            let _ =
                writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
        }
    }
}
