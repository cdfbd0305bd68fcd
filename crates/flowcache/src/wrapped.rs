//! Packets between the function that puts them into a tunnel and the function that takes them out
//! of it. A record needs neither of the two steps. The functions between them find the outer
//! headers, which are the same for all packets of the record.

use crate::effects::{OuterHeaders, Stored};
use crate::key::is_link;
use braid_ir::model::Word;
use braid_packet::tunnel::{Inner, added_len, decapsulate};
use braid_packet::{Field, Header, Layout, Packet};
use std::ops::Range;

/// What a field of outer headers depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depends {
    Nothing,
    /// The packet's length on the wire, plus a constant.
    WireLength,
    /// The length in the IP header inside, plus a constant.
    InnerLength,
    /// Something else in the packet.
    Packet,
}

/// A packet with outer headers around it.
pub(crate) struct Wrapped {
    pub(crate) packet: Packet,
    pub(crate) layout: Layout,
    /// Where the outer headers begin.
    start: usize,
    pub(crate) outer: OuterHeaders,
}

impl Wrapped {
    /// Puts a packet into outer headers. `None` unless the parser recognises all of these headers,
    /// in all packets of the record, and takes what is behind them for the payload.
    pub(crate) fn new(inside: &Packet, outer: &OuterHeaders) -> Option<Self> {
        let known: usize = outer.parts.iter().filter_map(|part| added_len(*part)).sum();
        let has_ip = outer.parts.iter().any(|part| matches!(part, Header::Ip4 | Header::Ip6));
        if known != outer.envelope.len() || !has_ip {
            return None;
        }
        let mut packet = inside.clone();
        if !outer.envelope.add(&mut packet, &inside.parse(), |_| ()) {
            return None;
        }
        let layout = packet.parse();
        let start = match outer.envelope.inner() {
            Inner::Frame => 0,
            Inner::Packet => layout.ip(),
        };
        let is_whole = layout.malformed().is_none()
            && !layout.is_encapsulated()
            && layout.payload_offset() <= start + known;
        let wrapped = Self { packet, layout, start, outer: outer.clone() };
        // The port tells the parser what follows.
        let dport = wrapped.place(Field::UdpDport);
        (is_whole && dport.is_none_or(|dport| !wrapped.is_stored(&dport))).then_some(wrapped)
    }

    /// The place of a field in the outer headers.
    fn place(&self, field: Field) -> Option<Range<usize>> {
        self.outer.envelope.place(self.start, &self.layout, field)
    }

    /// Whether records differ in some of these bytes.
    fn is_stored(&self, range: &Range<usize>) -> bool {
        let overlaps = |one: &Stored| one.at < range.end && range.start < one.at + one.from.len;
        self.outer.stored.iter().any(overlaps)
    }

    /// Whether a field belongs to the outer headers. The link header may be in front of them.
    pub(crate) fn has(&self, field: Field) -> bool {
        self.outer.envelope.inner() == Inner::Frame || field == Field::EthType || !is_link(field)
    }

    /// What a field of the outer headers depends on.
    pub(crate) fn depends(&self, field: Field) -> Depends {
        match field {
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                Depends::Nothing
            }
            _ if self.place(field).is_some_and(|place| !self.is_stored(&place)) => Depends::Nothing,
            _ if !self.outer.envelope.counts(self.start, &self.layout, field) => Depends::Packet,
            _ => match self.outer.envelope.inner() {
                Inner::Frame => Depends::WireLength,
                Inner::Packet => Depends::InnerLength,
            },
        }
    }

    /// Assigns a field of the outer headers. `None` if this changes which headers there are.
    pub(crate) fn set(&mut self, field: Field, value: Word) -> Option<()> {
        self.place(field)?;
        let done = self.packet.set(&self.layout, field, value);
        let layout = self.packet.parse();
        let is_same = layout.presence() == self.layout.presence() && layout.malformed().is_none();
        (done && is_same).then_some(())
    }

    /// Whether a function removes these outer headers if it removes everything up to `offset` bytes
    /// behind the header `last`. `inside` is the packet without them.
    pub(crate) fn ends(&self, inside: &Packet, outer: (Inner, Header), offset: Word) -> bool {
        let mut packet = self.packet.clone();
        let done = decapsulate(&mut packet, &self.layout, outer, offset, None) == Ok(true);
        let is_same = packet.data().get(self.start..) == inside.data().get(self.start..);
        done && is_same && packet.wire_len == inside.wire_len
    }
}
