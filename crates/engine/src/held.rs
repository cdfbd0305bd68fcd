//! Held packets.

use braid_ir::model::QueueId;
use braid_packet::Packet;
use std::collections::BTreeMap;

/// A held packet.
pub(crate) struct Held {
    pub(crate) packet: Packet,
    /// The number of visits of functions so far.
    pub(crate) hops: u32,
    pub(crate) worker: u16,
}

/// Held packets, by release time (ns), function, queue and order of arrival.
pub(crate) type Waiting = BTreeMap<(u64, u16, QueueId, u64), Held>;
