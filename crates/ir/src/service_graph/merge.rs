//! Copies of a packet, and the way one packet is made of them.

use super::part::Part;
use serde::Serialize;

/// The extent of a copy.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// The headers. Lengths stay the same, so the copy is like a packet that the capture cut behind
    /// its headers (OP#2).
    Headers,
    /// All bytes.
    Full,
}

/// A copy of the packet.
#[derive(Clone, core::marker::Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Copy {
    /// The version that is the source of the copy.
    pub from: u32,
    /// The number of the copy.
    pub to: u32,
    /// The extent of the copy.
    pub extent: Extent,
}

/// How versions become one packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Merge {
    /// The version that becomes the result.
    pub into: u32,
    /// The number of packets that the merger waits for: one from each branch. A nil packet stands
    /// for a drop.
    pub expects: usize,
    /// The merge operations, in order.
    pub operations: Vec<Operation>,
    /// The rule that decides the packet's fate.
    pub verdict: Verdict,
}

/// A merge operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "operation")]
pub enum Operation {
    /// Takes the part from another version. Checksums follow.
    Modify {
        /// The part.
        part: Part,
        /// The version.
        from: u32,
        /// Only if this function wrote the part in this packet.
        by: usize,
        /// Bits that one of these functions wrote stay unchanged.
        unless: Vec<usize>,
    },
    /// Adds a header that another version has, in its place: a VLAN tag behind the Ethernet
    /// addresses.
    Add {
        /// The header, by name.
        header: &'static str,
        /// The version.
        from: u32,
        /// Only if this function added it to this packet.
        by: usize,
        /// Only if none of these functions changed headers.
        unless: Vec<usize>,
    },
    /// Removes a header.
    Remove {
        /// The header, by name.
        header: &'static str,
        /// Only if this function removed it from this packet.
        by: usize,
        /// Only if none of these functions changed headers.
        unless: Vec<usize>,
    },
}

/// The function that decides the packet's fate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A nil packet from any branch drops the packet. Otherwise this function decides where it
    /// goes.
    AnyDrops(usize),
    /// `Priority`: the first of these functions that may drop packets, or that dropped this packet
    /// by a fault, decides. Otherwise the last function decides.
    FirstThatMayDrop(Vec<usize>),
    /// `Priority` at a distance: a function between the related ones that ends the packet or leads
    /// it elsewhere decides. Otherwise, it is as for [`Self::FirstThatMayDrop`].
    BetweenOrFirst {
        /// The functions between.
        between: Vec<usize>,
        /// The related functions, the one with the highest priority first.
        first: Vec<usize>,
    },
}
