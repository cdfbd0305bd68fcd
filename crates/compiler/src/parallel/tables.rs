//! Writes the tables of a service graph (NFP §5).

use braid_ir::service_graph::{
    Classification, Fork, Forwarding, Merging, Node, Step, Tables, Target,
};

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
    /// The steps that start a part of the graph on a version of the packet. The steps `then` follow
    /// the part.
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
        // Copies come first, before any function can write to the copied version.
        steps.sort_by_key(|step| !matches!(step, Step::Copy { .. }));
        steps
    }
}

/// Adds a step. If the list already distributes the version, extends that step's targets.
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
