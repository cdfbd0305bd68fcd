//! Packet input and output: the traits for sources and sinks, capture files, packets in memory,
//! ports to network devices.
//!
//! A [`PacketSource`] returns packets one at a time, and a [`PacketSink`] takes them. A
//! [`Port`] is a device of the machine that receives and sends packets. [`CaptureReader`]
//! reads capture files and [`CaptureWriter`] writes them, both in memory that doesn't depend on the
//! file's size.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

pub mod capture;
mod device;
mod error;
mod facts;
mod link;
mod memory;
mod netlink;
mod offload;
mod port;
mod ports;
#[allow(unsafe_code, reason = "system calls that have no safe wrapper")]
mod sys;

pub use capture::{CaptureReader, CaptureWriter, Format, Precision, read_all};
pub use device::{Device, HOW_TO_GET_DPDK, dpdk_version, pool_for};
pub use error::{ReadError, Warning, WriteError};
pub use facts::{DeviceFacts, device_facts, has_xdp};
pub use link::{link_name, link_of_number, number_of_link};
pub use memory::{MemorySink, MemorySource};
pub use netlink::XdpSupport;
pub use port::{Ethernet, OpenError, Port, State, Unreceived, Unsent, wait};
#[cfg(feature = "dpdk")]
pub use ports::DpdkPort;
pub use ports::{Faults, Faulty, Lasting, PacketPort, Share, TapPort, XdpFacts, XdpPort};
pub use sys::XdpMode;

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
    /// would have to wait for the next one. Adds at least one packet if there is one. Returns whether
    /// there may be more.
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

    /// How much was read, if the end of the source is known.
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

/// How far a source has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes read, as stored (compressed).
    pub read: u64,
    /// Bytes in all.
    pub total: u64,
}
