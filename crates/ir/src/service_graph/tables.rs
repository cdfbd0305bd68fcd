//! The tables of a service graph (NFP §5): the first steps of a packet (classification), the steps behind each
//! function and merger (forwarding), and how a merger makes one packet of several versions (merging).

use super::{Extent, Merge};
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
