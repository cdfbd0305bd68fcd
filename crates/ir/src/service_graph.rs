//! A service graph (NFP, Sun et al., SIGCOMM 2017): which functions work on a packet side by side, which copies
//! of the packet they get, and how a merger makes one packet of the copies.
//!
//! Only data: the compiler makes it (`parallel`), and a runtime can follow it.

mod part;
mod tables;

pub use part::{Overlap, Part};
pub use tables::{Classification, Forwarding, Merging, Step, Tables, Target};

use serde::Serialize;

/// A service graph, or a part of one. Functions are numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// One function.
    Function(usize),
    /// One after the other.
    Sequence(Vec<Node>),
    /// Side by side, and then the merger.
    Parallel(Box<Fork>),
}

/// Branches side by side.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fork {
    /// The branches.
    pub branches: Vec<Branch>,
    /// Copies that are made before the branches begin.
    pub copies: Vec<Copy>,
    /// How their results become one packet.
    pub merge: Merge,
}

/// A branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Branch {
    /// The version of the packet that it works on.
    pub version: u32,
    /// What runs.
    pub node: Node,
}

/// How much of a packet is copied.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// The headers; lengths stay what they were, so that the copy is like a packet that the
    /// capture cut behind its headers (OP#2).
    Headers,
    /// All bytes.
    Full,
}

/// A copy of the packet.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Copy {
    /// The version that is copied.
    pub from: u32,
    /// The version that the copy is.
    pub to: u32,
    /// How much of it.
    pub extent: Extent,
}

/// How versions become one packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Merge {
    /// The version that becomes the result.
    pub into: u32,
    /// How many packets the merger waits for: one from each branch, a nil packet for a drop.
    pub expects: usize,
    /// In order.
    pub operations: Vec<Operation>,
    /// Whose word counts.
    pub verdict: Verdict,
}

/// A merge operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "operation")]
pub enum Operation {
    /// The part is as in another version; checksums follow.
    Modify {
        /// The part.
        part: Part,
        /// The version.
        from: u32,
        /// Only if this function wrote it in this packet.
        by: usize,
        /// Bits that one of these wrote stay.
        unless: Vec<usize>,
    },
    /// A header of another version is added where it is there: a VLAN tag behind the Ethernet addresses.
    Add {
        /// The header, by name.
        header: &'static str,
        /// The version.
        from: u32,
        /// Only if this function added it to this packet.
        by: usize,
        /// And none of these changed headers.
        unless: Vec<usize>,
    },
    /// A header is removed.
    Remove {
        /// The header, by name.
        header: &'static str,
        /// Only if this function removed it from this packet.
        by: usize,
        /// And none of these changed headers.
        unless: Vec<usize>,
    },
}

/// Whose word counts on what becomes of the packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A nil packet from any branch drops it; else it goes where this function sends it.
    AnyDrops(usize),
    /// `Priority`: the first of these functions that may drop packets (or did, by a fault) decides,
    /// else the last.
    FirstThatMayDrop(Vec<usize>),
}

impl Node {
    /// Functions on the longest way: what a packet waits for (NFP's equivalent chain length).
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
