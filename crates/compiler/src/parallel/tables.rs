//! The three tables (NFP §5) as data: where a packet begins and what is expected of it
//! (classification), where it goes from each function (forwarding), how its versions become one
//! again (merging).

use super::versions::{Extent, Fork, Merge, Node};
use serde::Serialize;

/// Where packet references go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A function, by number.
    Function(usize),
    /// A merger, by number.
    Merger(usize),
}

/// An action of the classifier, of a function's runtime or of a merger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Step {
    /// Copies a version.
    Copy {
        /// The version that is copied.
        from: u32,
        /// The version that the copy is.
        to: u32,
        /// How much of it.
        extent: Extent,
    },
    /// Hands on a version without copying.
    Distribute {
        /// The version.
        version: u32,
        /// To all of these.
        targets: Vec<Target>,
    },
    /// The packet leaves the graph.
    Output {
        /// The version.
        version: u32,
    },
}

/// What the classifier does with a packet that takes the graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Classification {
    /// Number of the graph (the paper's match identifier).
    pub graph: usize,
    /// Copies that are made of each packet, itself not counted.
    pub copies: usize,
    /// The first steps.
    pub steps: Vec<Step>,
}

/// What happens to a packet that a function, or a merger, is done with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Forwarding {
    /// Number of the graph.
    pub graph: usize,
    /// Who is done with it.
    pub from: Target,
    /// The steps.
    pub steps: Vec<Step>,
    /// The paper's `ignore`: where the packet was dropped, the steps are not taken, and this merger
    /// gets a nil packet. Without one the packet has ended.
    pub nil_to: Option<usize>,
}

/// What a merger does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Merging {
    /// Number of the graph.
    pub graph: usize,
    /// Number of the merger.
    pub merger: usize,
    /// What it does.
    #[serde(flatten)]
    pub merge: Merge,
}

/// The tables of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tables {
    /// One entry a graph.
    pub classification: Classification,
    /// One entry a function and merger.
    pub forwarding: Vec<Forwarding>,
    /// One entry a merger.
    pub merging: Vec<Merging>,
}

/// The tables of the graph with this number.
#[must_use]
pub fn tables(graph: usize, root: &Node, copies: usize) -> Tables {
    let mut writer = Writer { graph, forwarding: Vec::new(), merging: Vec::new() };
    let steps = writer.start(root, 1, vec![Step::Output { version: 1 }], None);
    writer.forwarding.sort_by_key(|entry| match entry.from {
        Target::Function(function) => (0, function),
        Target::Merger(merger) => (1, merger),
    });
    writer.merging.sort_by_key(|entry| entry.merger);
    let classification = Classification { graph, copies, steps };
    Tables { classification, forwarding: writer.forwarding, merging: writer.merging }
}

struct Writer {
    graph: usize,
    forwarding: Vec<Forwarding>,
    merging: Vec<Merging>,
}

impl Writer {
    /// The steps that start a part of the graph on a version; behind it come the steps `then`.
    fn start(
        &mut self,
        node: &Node,
        version: u32,
        then: Vec<Step>,
        nil_to: Option<usize>,
    ) -> Vec<Step> {
        match node {
            Node::Function(function) => {
                let from = Target::Function(*function);
                self.forwarding.push(Forwarding { graph: self.graph, from, steps: then, nil_to });
                vec![Step::Distribute { version, targets: vec![from] }]
            }
            Node::Sequence(parts) => {
                parts.iter().rev().fold(then, |then, part| self.start(part, version, then, nil_to))
            }
            Node::Parallel(fork) => self.fork(fork, then, nil_to),
        }
    }

    fn fork(&mut self, fork: &Fork, then: Vec<Step>, nil_to: Option<usize>) -> Vec<Step> {
        let merger = self.merging.len();
        self.merging.push(Merging { graph: self.graph, merger, merge: fork.merge.clone() });
        let from = Target::Merger(merger);
        self.forwarding.push(Forwarding { graph: self.graph, from, steps: then, nil_to });
        let copies = fork.copies.iter();
        let mut steps: Vec<Step> = copies
            .map(|copy| Step::Copy { from: copy.from, to: copy.to, extent: copy.extent })
            .collect();
        for branch in &fork.branches {
            let version = branch.version;
            let to_merger = vec![Step::Distribute { version, targets: vec![from] }];
            for step in self.start(&branch.node, version, to_merger, Some(merger)) {
                join(&mut steps, step);
            }
        }
        // Copies are made before anybody can write to what is copied.
        steps.sort_by_key(|step| !matches!(step, Step::Copy { .. }));
        steps
    }
}

/// Adds a step; a version that is distributed already goes to more targets.
fn join(steps: &mut Vec<Step>, step: Step) {
    if let Step::Distribute { version, targets: more } = &step {
        for known in steps.iter_mut() {
            if let Step::Distribute { version: same, targets } = known
                && same == version
            {
                targets.extend(more);
                return;
            }
        }
    }
    steps.push(step);
}
