//! The position of a packet on its walk along the links of a chain.

use crate::chain::{HOP_LIMIT, Sink};
use crate::model::RIGHT;
use crate::residual::Point;
pub use braid_packet::Reached;

/// The position of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// In front of a function.
    Point(Point),
    /// About to leave by this interface, but not counted there yet.
    Leaves(u16),
    /// At a port or an interface without a link.
    Unlinked,
    /// At the end of its walk.
    End(Reached),
}

/// The position of a packet that was dropped, consumed or lost.
pub const ENDED: At = At::End(Reached::Ended);

/// The position of a packet behind a link.
#[must_use]
pub fn onward(sink: Option<Sink>) -> At {
    match sink {
        None => At::Unlinked,
        Some(Sink::Interface(interface)) => At::Leaves(interface),
        Some(Sink::Port(node, port)) => {
            At::Point(Point { node, backward: port == RIGHT, held: false })
        }
    }
}

/// Whether this number of further visits stays within the limit.
#[must_use]
#[inline]
pub fn fits(hops: u32, visits: u32) -> bool {
    hops.saturating_add(visits) <= HOP_LIMIT
}
