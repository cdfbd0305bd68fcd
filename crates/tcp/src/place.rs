//! Names of connections and of streams.

use braid_packet::FlowKey;

use crate::direction::Direction;

/// Numbers the connections of a monitor, from 0, in the order of their first packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A stream: a direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The connection.
    pub connection: ConnectionId,
    /// The direction.
    pub direction: Direction,
    /// The 5-tuple, with the stream's sender as the source.
    pub flow: FlowKey,
}
