//! The interface of all generators.

use crate::Error;
use braid_packet::Packet;

/// A generator of packets.
pub trait Traffic {
    /// The next packet, or `None` at the end. Times never go back, except where the times of a
    /// repeated capture do.
    ///
    /// # Errors
    /// When a limit is reached or an input can't be read any further.
    fn next_packet(&mut self) -> Result<Option<Packet>, Error>;

    /// Number of flows so far. Both directions of a flow count once. `None` if flows are not
    /// counted.
    fn flows(&self) -> Option<u64>;

    /// How much of the traffic has been generated.
    fn progress(&self) -> Progress;
}

/// A generator's progress, in units of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Units that are done.
    pub done: u64,
    /// Units in all.
    pub total: u64,
}
