//! Packet input and output: the source and sink traits, capture files, in-memory interfaces, live
//! interfaces.
//!
//! A [`PacketSource`] gives packets one at a time and a [`PacketSink`] takes them; an [`Interface`]
//! is a device of the machine, and does both as packets come and go. Capture files are read by [`CaptureReader`] and
//! written by [`CaptureWriter`], both in memory that doesn't depend on the file's size.
#![deny(unsafe_code)]

pub mod capture;
mod error;
mod link;
mod live;
mod memory;
mod offload;
#[allow(unsafe_code, reason = "system calls that have no safe wrapper")]
mod sys;

pub use capture::{CaptureReader, CaptureWriter, Format, Precision, read_all};
pub use error::{ReadError, Warning, WriteError};
pub use link::{link_name, link_of_number, number_of_link};
pub use live::{Device, Interface, OpenError, Received, Unreceived, Unsent, wait};
pub use memory::{MemorySink, MemorySource};

use braid_packet::Packet;

/// Where packets come from.
pub trait PacketSource {
    /// The next packet, or `None` at the end.
    ///
    /// # Errors
    /// When the source can't be read any further; it then gives no more packets.
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError>;

    /// Something that the person should know after the end, such as that the file is cut off.
    fn warning(&self) -> Option<Warning> {
        None
    }

    /// How much was read, where the source has an end that is known.
    fn progress(&self) -> Option<Progress> {
        None
    }
}

/// Where packets go.
pub trait PacketSink {
    /// Takes a packet.
    ///
    /// # Errors
    /// When it can't be written, with the remedy where there is one.
    fn write_packet(&mut self, packet: &Packet) -> Result<(), WriteError>;

    /// Writes what is still buffered. No packet may follow.
    ///
    /// # Errors
    /// When it can't be written.
    fn finish(&mut self) -> Result<(), WriteError>;
}

impl<T: PacketSource + ?Sized> PacketSource for &mut T {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        (**self).next_packet()
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
