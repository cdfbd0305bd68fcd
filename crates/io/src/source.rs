//! Sources and sinks of packets: captures, and packets in memory.

use crate::error::{ReadError, Warning, WriteError};
use braid_packet::{Burst, Packet, Pool};

/// A source of packets.
pub trait PacketSource {
    /// The next packet, or `None` at the end.
    ///
    /// # Errors
    /// When the source can't be read any further. It then returns no more packets.
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError>;

    /// As [`Self::next_packet`]. The packet's frame is of the pool, if the source can do this and
    /// the packet fits.
    ///
    /// # Errors
    /// As for [`Self::next_packet`].
    fn next_in(&mut self, _pool: &mut Pool) -> Result<Option<Packet>, ReadError> {
        self.next_packet()
    }

    /// Adds packets to a burst until it is full or the source has no more, or until the source
    /// would have to wait for the next one. Adds at least one packet if there is one. Returns
    /// whether there may be more.
    ///
    /// # Errors
    /// As for [`Self::next_packet`]. The packets before the error are in the burst.
    fn fill(&mut self, burst: &mut Burst, pool: &mut Pool) -> Result<bool, ReadError> {
        while !burst.is_full() {
            match self.next_in(pool)? {
                Some(packet) => burst.push(packet),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// A warning for the user at the end, such as that the file was cut off.
    fn warning(&self) -> Option<Warning> {
        None
    }

    /// The progress, if the end of the source is known.
    fn progress(&self) -> Option<Progress> {
        None
    }
}

/// A destination of packets.
pub trait PacketSink {
    /// Writes a packet.
    ///
    /// # Errors
    /// When the packet can't be written, with a remedy if there is one.
    fn write_packet(&mut self, packet: &Packet) -> Result<(), WriteError>;

    /// Writes the buffered data. No packet may follow.
    ///
    /// # Errors
    /// When the data can't be written.
    fn finish(&mut self) -> Result<(), WriteError>;
}

impl<T: PacketSource + ?Sized> PacketSource for &mut T {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        (**self).next_packet()
    }

    fn next_in(&mut self, pool: &mut Pool) -> Result<Option<Packet>, ReadError> {
        (**self).next_in(pool)
    }

    fn fill(&mut self, burst: &mut Burst, pool: &mut Pool) -> Result<bool, ReadError> {
        (**self).fill(burst, pool)
    }

    fn warning(&self) -> Option<Warning> {
        (**self).warning()
    }

    fn progress(&self) -> Option<Progress> {
        (**self).progress()
    }
}

impl<T: PacketSink + ?Sized> PacketSink for &mut T {
    fn write_packet(&mut self, packet: &Packet) -> Result<(), WriteError> {
        (**self).write_packet(packet)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        (**self).finish()
    }
}

/// The progress of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes read, as stored (compressed).
    pub read: u64,
    /// Bytes in all.
    pub total: u64,
}
