//! Flow keys: the 5-tuple with its IP version.

use crate::field::Field;
use crate::layout::Layout;
use crate::packet::Packet;

/// Identifies a flow in one direction. The ports are those of `inet.sport` and `inet.dport`: of TCP
/// and UDP, or twice the identifier of an ICMP echo. Otherwise they are 0, as in fragments behind
/// the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FlowKey {
    /// 4 or 6.
    pub version: u8,
    /// Source address; IPv4 in the low 32 bits.
    pub src: u128,
    /// Destination address; IPv4 in the low 32 bits.
    pub dst: u128,
    /// Upper-layer protocol.
    pub proto: u8,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl FlowKey {
    /// The fields of a key in the order of its parts: IP version, source, destination, protocol,
    /// source port, destination port.
    pub const FIELDS: [Field; 6] = [
        Field::InetVersion,
        Field::InetSrc,
        Field::InetDst,
        Field::InetProto,
        Field::InetSport,
        Field::InetDport,
    ];

    /// The widths in bits of the parts of a key.
    pub const WIDTHS: [u16; 6] = [8, 128, 128, 8, 16, 16];

    /// The same fields of the packet that an ICMP error quotes.
    pub const QUOTED_FIELDS: [Field; 6] = [
        Field::QuotedInetVersion,
        Field::QuotedInetSrc,
        Field::QuotedInetDst,
        Field::QuotedProto,
        Field::QuotedInetSport,
        Field::QuotedInetDport,
    ];

    /// The key of a packet, if it has an IP header.
    #[must_use]
    pub fn of(packet: &Packet, layout: &Layout) -> Option<FlowKey> {
        Self::read(packet, layout, Self::FIELDS)
    }

    /// The key of the packet that an ICMP error quotes. `None` when it quotes none.
    #[must_use]
    pub fn of_quoted(packet: &Packet, layout: &Layout) -> Option<FlowKey> {
        Self::read(packet, layout, Self::QUOTED_FIELDS)
    }

    fn read(packet: &Packet, layout: &Layout, fields: [Field; 6]) -> Option<FlowKey> {
        let [version, src, dst, proto, sport, dport] = fields.map(|f| packet.get(layout, f));
        Some(FlowKey {
            version: u8::try_from(version?).ok()?,
            src: src?,
            dst: dst?,
            proto: u8::try_from(proto?).ok()?,
            sport: u16::try_from(sport?).ok()?,
            dport: u16::try_from(dport?).ok()?,
        })
    }

    /// The parts of the key, in the order of [`Self::FIELDS`].
    #[must_use]
    pub fn words(self) -> [u128; 6] {
        let FlowKey { version, src, dst, proto, sport, dport } = self;
        [version.into(), src, dst, proto.into(), sport.into(), dport.into()]
    }

    /// The key of the opposite direction.
    #[must_use]
    pub fn reversed(self) -> FlowKey {
        FlowKey { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, ..self }
    }

    /// One key for both directions, with the smaller (address, port) pair first.
    #[must_use]
    pub fn bidirectional(self) -> FlowKey {
        if (self.src, self.sport) <= (self.dst, self.dport) { self } else { self.reversed() }
    }
}

impl Packet {
    /// The packet's 5-tuple; `None` without an IP header.
    #[must_use]
    pub fn flow_key(&self, layout: &Layout) -> Option<FlowKey> {
        FlowKey::of(self, layout)
    }

    /// The 5-tuple of the packet that this ICMP error quotes; `None` when it quotes none.
    #[must_use]
    pub fn quoted_flow_key(&self, layout: &Layout) -> Option<FlowKey> {
        FlowKey::of_quoted(self, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::FlowKey;

    const KEY: FlowKey = FlowKey { version: 4, src: 9, dst: 2, proto: 6, sport: 1, dport: 7 };

    #[test]
    fn both_directions_have_one_bidirectional_key() {
        let reversed = FlowKey { src: 2, dst: 9, sport: 7, dport: 1, ..KEY };
        assert_eq!(KEY.reversed(), reversed);
        assert_eq!(KEY.bidirectional(), reversed);
        assert_eq!(reversed.bidirectional(), reversed);
    }

    #[test]
    fn equal_addresses_are_ordered_by_port() {
        let same = FlowKey { dst: 9, ..KEY };
        assert_eq!(same.bidirectional(), same);
        assert_eq!(same.reversed().bidirectional(), same);
    }
}
