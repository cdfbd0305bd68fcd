//! The tables of a service graph (NFP §5): a packet's first steps (classification), the steps
//! behind each function and merger (forwarding), and the work of each merger (merging).

use super::merge::{Extent, Merge};
use serde::Serialize;

/// A target of packet references.
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
        /// The version that is the source of the copy.
        from: u32,
        /// The number of the copy.
        to: u32,
        /// The extent of the copy.
        extent: Extent,
    },
    /// Hands on a version without copying.
    Distribute {
        /// The version.
        version: u32,
        /// The targets. All of them get the version.
        targets: Vec<Target>,
    },
    /// The packet leaves the graph.
    Output {
        /// The version.
        version: u32,
    },
}

/// The classifier's work for a packet that takes the graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Classification {
    /// Number of the graph (the paper's match identifier).
    pub graph: usize,
    /// The number of copies of each packet, not including the packet itself.
    pub copies: usize,
    /// The first steps.
    pub steps: Vec<Step>,
}

/// The steps for a packet that a function or a merger has finished.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Forwarding {
    /// Number of the graph.
    pub graph: usize,
    /// The function or merger that has finished the packet.
    pub from: Target,
    /// The steps.
    pub steps: Vec<Step>,
    /// The paper's `ignore`: if the packet was dropped, this merger gets a nil packet, and the
    /// steps are not taken. `None`: the packet has ended.
    pub nil_to: Option<usize>,
}

/// The work of a merger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Merging {
    /// Number of the graph.
    pub graph: usize,
    /// Number of the merger.
    pub merger: usize,
    /// The merge operations and their inputs.
    #[serde(flatten)]
    pub merge: Merge,
}

/// The tables of a graph.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tables {
    /// One entry for the graph.
    pub classification: Classification,
    /// One entry for each function and merger.
    pub forwarding: Vec<Forwarding>,
    /// One entry for each merger.
    pub merging: Vec<Merging>,
}
