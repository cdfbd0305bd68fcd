//! Packets in memory as a source and a sink, for tests and for callers that generate packets.

use crate::error::{ReadError, WriteError};
use crate::source::{PacketSink, PacketSource};
use braid_packet::Packet;
use std::collections::VecDeque;

/// A source of packets from memory.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    packets: VecDeque<Packet>,
}

impl MemorySource {
    /// A source of these packets, in order.
    pub fn new(packets: impl IntoIterator<Item = Packet>) -> Self {
        Self { packets: packets.into_iter().collect() }
    }
}

impl PacketSource for MemorySource {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        Ok(self.packets.pop_front())
    }
}

/// A sink that keeps packets in memory.
#[derive(Clone, Debug, Default)]
pub struct MemorySink {
    /// The packets that were written, in order.
    pub packets: Vec<Packet>,
}

impl PacketSink for MemorySink {
    fn write_packet(&mut self, packet: &Packet) -> Result<(), WriteError> {
        self.packets.push(packet.clone());
        Ok(())
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}
