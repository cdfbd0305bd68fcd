//! A TCP segment: the facts in a packet that the monitor needs.

use braid_packet::{Field, FlowKey, Header, Layout, Packet};

use crate::seq::Seq;

/// The flags of a segment, from bit 7 down: CWR ECE URG ACK PSH RST SYN FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// FIN.
    pub const FIN: Flags = Flags(1);
    /// SYN.
    pub const SYN: Flags = Flags(2);
    /// RST.
    pub const RST: Flags = Flags(4);
    /// PSH.
    pub const PSH: Flags = Flags(8);
    /// ACK.
    pub const ACK: Flags = Flags(16);

    /// These flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// These flags without those of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }
}

/// A TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// The 5-tuple, from sender to receiver.
    pub flow: FlowKey,
    /// The packet's time (ns).
    pub time_ns: u64,
    /// The packet's length on the wire (bytes).
    pub wire_len: u32,
    /// The sequence number.
    pub seq: Seq,
    /// The acknowledgement number; it has a meaning if ACK is set.
    pub ack: Seq,
    /// The flags.
    pub flags: Flags,
    /// The window, not scaled.
    pub window: u16,
    /// The window scale option.
    pub wscale: Option<u8>,
    /// Whether the option "SACK permitted" is there.
    pub sack_ok: bool,
    /// The value of the timestamps option.
    pub timestamp: Option<u32>,
    /// The length of the payload on the wire (bytes).
    pub len: u32,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// Whether its checksum is right, or was not verified.
    pub is_right: bool,
}

impl<'a> Segment<'a> {
    /// The segment in a packet; `None` without a TCP header.
    #[must_use]
    pub fn of(packet: &'a Packet, layout: &Layout) -> Option<Self> {
        if !layout.has(Header::Tcp) {
            return None;
        }
        let flow = packet.flow_key(layout)?;
        // Two ports of 16 bits, two numbers of 32 bits, offset, flags, window.
        let header = packet.data().get(layout.l4()..)?.first_chunk::<16>()?;
        let &[_, _, _, _, s0, s1, s2, s3, a0, a1, a2, a3, _, flags, w0, w1] = header;
        let option = |field| packet.get(layout, field);
        let (wscale, timestamp) = (option(Field::TcpWscale), option(Field::TcpTsVal));
        Some(Self {
            flow,
            time_ns: packet.time_ns,
            wire_len: packet.wire_len,
            seq: Seq(u32::from_be_bytes([s0, s1, s2, s3])),
            ack: Seq(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags(flags),
            window: u16::from_be_bytes([w0, w1]),
            wscale: wscale.and_then(|value| u8::try_from(value).ok()),
            sack_ok: layout.has(Header::TcpSackOk),
            timestamp: timestamp.and_then(|value| u32::try_from(value).ok()),
            len: u32::try_from(layout.payload_len()).unwrap_or(u32::MAX),
            payload: packet.payload(layout),
            is_right: true,
        })
    }

    /// The sequence number of the payload's first byte. SYN has a number of its own.
    #[must_use]
    pub fn first_byte(&self) -> Seq {
        self.seq.plus(u32::from(self.flags.has(Flags::SYN)))
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn has(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    /// Whether the segment has neither SYN nor FIN nor RST.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Flags(flags) = self.flags;
        flags & (Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0) == 0
    }
}

/// The facts in a SYN that its connection keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syn {
    /// The initial sequence number.
    pub isn: Seq,
    /// The window scale option.
    pub wscale: Option<u8>,
    /// Whether the option "SACK permitted" is there.
    pub sack_ok: bool,
    /// The value of the timestamps option.
    pub timestamp: Option<u32>,
    /// Whether its checksum is right, or was not verified.
    pub is_right: bool,
}

impl Syn {
    /// The SYN in a segment.
    #[must_use]
    pub fn of(segment: &Segment<'_>) -> Self {
        let Segment { seq: isn, wscale, sack_ok, timestamp, is_right, .. } = *segment;
        Self { isn, wscale, sack_ok, timestamp, is_right }
    }
}
