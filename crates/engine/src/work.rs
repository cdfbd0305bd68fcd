//! The packet that a program works on, and the packets that it sends.

use braid_ir::engine::{Fault, Outputs, Watcher};
use braid_ir::model::{Area, Dest, Word};
use braid_packet::{Layout, Packet, bytes};

/// The state of a walk, which a packet shares with its copies and with packets built for it.
pub(crate) struct Walk<'a> {
    /// The number of visits of functions so far.
    pub(crate) hops: u32,
    /// The worker that the packet belongs to.
    pub(crate) worker: u16,
    pub(crate) out: &'a mut dyn Outputs,
    /// Sees the packets between functions. The packets then run function by function.
    pub(crate) watcher: Option<&'a mut dyn Watcher>,
    /// Whether the engine makes flow records.
    pub(crate) records: bool,
    /// Whether the packet has taken a record for a part of its path. It may have another one behind
    /// the function that no record contains.
    pub(crate) rests: bool,
}

impl Walk<'_> {
    /// A packet enters a function.
    pub(crate) fn enters(&mut self, node: u16, packet: &Packet) {
        if let Some(watcher) = &mut self.watcher {
            watcher.enters(node, packet);
        }
    }

    /// A packet leaves a function by a port.
    pub(crate) fn leaves(&mut self, node: u16, packet: &Packet) {
        if let Some(watcher) = &mut self.watcher {
            watcher.leaves(node, packet);
        }
    }
}

/// The occasion on which a program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It runs for a packet, which renews the entries that it finds.
    Packet,
    /// It runs for a timer.
    Timer,
    /// It runs for an ended entry. It cannot create entries.
    Expire,
}

/// The packet that a program works on.
pub(crate) struct Work<'a> {
    pub(crate) packet: &'a mut Packet,
    /// Where its headers are.
    pub(crate) layout: &'a mut Layout,
    /// Packets that the program sends before it ends.
    pub(crate) emissions: &'a mut Vec<Emission>,
}

/// A packet that a program sends.
pub(crate) struct Emission {
    pub(crate) dest: Dest,
    pub(crate) packet: Packet,
    pub(crate) origin: Origin,
}

/// How a packet that a program sends came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It is a copy of the current packet.
    Copied,
    /// It was built from fields.
    Built,
    /// Native code has made it, and it may be malformed.
    Made,
}

impl Work<'_> {
    /// Parses the packet again after a change.
    pub(crate) fn parse(&mut self) {
        *self.layout = self.packet.parse();
    }

    /// The payload. `None` if the capture has cut it.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        (!self.layout.payload_truncated()).then(|| self.packet.payload(self.layout))
    }

    /// Writes a number to an area. Returns false if the area ends before. The layout may be
    /// invalid afterwards.
    pub(crate) fn set_number(
        &mut self,
        place: (Area, Word),
        bytes: usize,
        value: Word,
    ) -> Result<bool, Fault> {
        let done = bytes::store(self.packet, self.layout, place, bytes, value);
        done.map_err(|_| Fault::Truncated)
    }

    /// Reads a string in an area into words. Returns false if the area ends before.
    pub(crate) fn string(
        &self,
        place: (Area, Word),
        len: Word,
        words: &mut [Word],
    ) -> Result<bool, Fault> {
        bytes::string(self.packet, self.layout, place, len, words).map_err(|_| Fault::Truncated)
    }

    /// The number in some bytes of an area. `None` if the area ends before.
    pub(crate) fn number(&self, place: (Area, Word), bytes: usize) -> Result<Option<Word>, Fault> {
        bytes::load(self.packet, self.layout, place, bytes).map_err(|_| Fault::Truncated)
    }
}
