//! The output of an engine, for comparisons.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use braid_ir::engine::{Event, Outputs};
use braid_packet::Packet;

/// An engine's output: packets by interface, and a digest of all packets that does not depend on
/// their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Packets by interface.
    pub packets: BTreeMap<u16, u64>,
    /// Sum of the hashes of (interface, length on the wire, bytes) over all packets.
    pub digest: u64,
    /// Number of events.
    pub events: u64,
}

impl Seen {
    /// Records a packet that left by an interface.
    pub fn leaves(&mut self, interface: u16, packet: &Packet) {
        let mut hasher = DefaultHasher::new();
        (interface, packet.wire_len, packet.data()).hash(&mut hasher);
        self.digest = self.digest.wrapping_add(hasher.finish());
        *self.packets.entry(interface).or_default() += 1;
    }
}

impl Outputs for Seen {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.leaves(interface, &packet);
    }

    fn event(&mut self, _: Event) {
        self.events += 1;
    }
}
