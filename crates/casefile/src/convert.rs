//! Converts between the testkit's packets and those of the crate `packet`.

use crate::packet::{Frame, LinkKind, Spec};
use braid_packet::{Link, Packet};

/// The packet of a frame.
#[must_use]
pub fn packet_of(frame: &Frame, time_ns: u64) -> Packet {
    let link = match frame.link {
        LinkKind::Ethernet => Link::Ethernet,
        LinkKind::RawIp => Link::RawIp,
        LinkKind::Cooked => Link::Cooked,
        LinkKind::Cooked2 => Link::Cooked2,
    };
    Packet::snapped(link, time_ns, frame.data.clone(), frame.wire_len)
}

/// The frame of a packet.
#[must_use]
pub fn frame_of(packet: &Packet) -> Frame {
    let link = match packet.link {
        Link::Ethernet => LinkKind::Ethernet,
        Link::RawIp => LinkKind::RawIp,
        Link::Cooked => LinkKind::Cooked,
        Link::Cooked2 => LinkKind::Cooked2,
    };
    Frame { link, data: packet.data().to_vec(), wire_len: packet.wire_len }
}

impl Spec {
    /// The packet with this arrival time.
    #[must_use]
    pub fn at(&self, time_ns: u64) -> Packet {
        packet_of(&self.frame(), time_ns)
    }
}
