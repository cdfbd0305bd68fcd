//! A service graph (NFP, Sun et al., SIGCOMM 2017): the functions that work on a packet side by
//! side, the copies of the packet that they get, and the way a merger makes one packet of the
//! copies.
//!
//! This is only data. The compiler makes it (`parallel`), and a runtime can follow it.

mod merge;
mod part;
pub mod stages;
mod tables;

pub use merge::{Copy, Extent, Merge, Operation, Verdict};
pub use part::{Overlap, Part};
pub use tables::{Classification, Forwarding, Merging, Step, Tables, Target};

use serde::Serialize;

/// A service graph, or a part of one. Functions are numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// One function.
    Function(usize),
    /// Parts in sequence.
    Sequence(Vec<Node>),
    /// Branches side by side, and then the merger.
    Parallel(Box<Fork>),
}

/// Branches side by side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fork {
    /// The branches.
    pub branches: Vec<Branch>,
    /// Copies that are made before the branches begin.
    pub copies: Vec<Copy>,
    /// How the results of the branches become one packet.
    pub merge: Merge,
}

/// A branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Branch {
    /// The version of the packet that it works on.
    pub version: u32,
    /// The part of the graph that runs.
    pub node: Node,
}

impl Node {
    /// The number of functions on the longest path, which a packet waits for (NFP's equivalent
    /// chain length).
    #[must_use]
    pub fn equivalent_length(&self) -> usize {
        match self {
            Node::Function(_) => 1,
            Node::Sequence(parts) => parts.iter().map(Node::equivalent_length).sum(),
            Node::Parallel(fork) => {
                fork.branches.iter().map(|b| b.node.equivalent_length()).max().unwrap_or(0)
            }
        }
    }

    /// As text: `vpn -> (monitor | firewall) -> balance`.
    #[must_use]
    pub fn text(&self, name: &dyn Fn(usize) -> String) -> String {
        match self {
            Node::Function(function) => name(*function),
            Node::Sequence(parts) => {
                parts.iter().map(|part| part.text(name)).collect::<Vec<_>>().join(" -> ")
            }
            Node::Parallel(fork) => {
                let branches = fork.branches.iter().map(|b| b.node.text(name));
                format!("({})", branches.collect::<Vec<_>>().join(" | "))
            }
        }
    }
}
