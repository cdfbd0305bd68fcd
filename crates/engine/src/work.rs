//! What a program works on, and what it sends.

use braid_ir::engine::Outputs;
use braid_ir::model::Dest;
use braid_packet::{Layout, Packet};

/// What a packet that entered, its copies and its answers have in common.
pub(crate) struct Walk<'a> {
    /// Visits of functions so far.
    pub(crate) hops: u32,
    /// The worker that the packet belongs to.
    pub(crate) worker: u16,
    pub(crate) out: &'a mut dyn Outputs,
}

/// For what a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// For a packet, which renews the entries that it finds.
    Packet,
    /// For a timer.
    Timer,
    /// For an entry that ended: new entries are refused.
    Expire,
}

/// The packet that a program works on.
pub(crate) struct Work<'a> {
    pub(crate) packet: &'a mut Packet,
    /// Where its headers are.
    pub(crate) layout: &'a mut Layout,
    /// Packets that the program sends, before it is done.
    pub(crate) emissions: &'a mut Vec<Emission>,
}

/// A packet that a program sends.
pub(crate) struct Emission {
    pub(crate) dest: Dest,
    pub(crate) packet: Packet,
    /// Whether it was built, not copied.
    pub(crate) created: bool,
}

impl Work<'_> {
    /// Finds the headers anew, after a change.
    pub(crate) fn parse(&mut self) {
        *self.layout = self.packet.parse();
    }

    /// The payload, if the capture has all of it.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        (!self.layout.payload_truncated()).then(|| self.packet.payload(self.layout))
    }
}
