//! Names of connections and of streams.

use braid_packet::FlowKey;

use crate::seq::Seq;

use crate::direction::Direction;

/// Numbers the connections of a monitor, from 0, in the order of their first packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Default)]
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

/// A connection of saved ones, in a monitor that has taken them over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// The connection.
    pub connection: ConnectionId,
    /// The 5-tuple in the forward direction.
    pub flow: FlowKey,
    /// Whether both streams are as far as they were when the connection was saved.
    pub is_same: bool,
}

/// What is known of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The 5-tuple, with the client as the source.
    pub client: FlowKey,
    /// Whether both ends have agreed on it, or it was picked up later.
    pub is_established: bool,
    /// Whether both streams have ended.
    pub is_over: bool,
}

/// How far a stream has been delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The sequence number of its first byte, if that is known.
    pub base: Option<Seq>,
    /// The offset of the next byte to deliver, behind the FIN if that has been received.
    pub frontier: u64,
}

impl Progress {
    /// The sequence number of the byte at an offset.
    #[must_use]
    pub fn seq(self, offset: u64) -> Option<Seq> {
        let low = u32::try_from(offset & u64::from(u32::MAX)).unwrap_or(0);
        self.base.map(|base| base.plus(low))
    }
}
