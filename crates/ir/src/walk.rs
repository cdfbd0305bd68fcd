//! Where a packet is on its walk along the links of a chain.

use crate::chain::Sink;
use crate::engine::HOP_LIMIT;
use crate::model::RIGHT;
use crate::residual::Point;

/// Where a packet is when its walk is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// It leaves by this interface.
    Interface(u16),
    /// It was dropped, consumed or lost, or waits in a queue.
    Gone,
}

/// Where a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// In front of a function.
    Point(Point),
    /// On its way out by this interface, which is not counted yet.
    Leaves(u16),
    /// Where no link leads on.
    Unlinked,
    /// At the end of its walk.
    End(Reached),
}

/// Where a packet is that was dropped, consumed or lost.
pub const GONE: At = At::End(Reached::Gone);

/// Where a packet is behind a link.
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

/// Whether so many more visits stay within the limit.
#[must_use]
#[inline]
pub fn fits(hops: u32, visits: u32) -> bool {
    hops.saturating_add(visits) <= HOP_LIMIT
}
