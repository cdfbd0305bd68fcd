//! Flow keys: the 5-tuple with its IP version.

use crate::field::{Field, Header};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::proto;
use crate::wire::ipv4;
use std::net::IpAddr;

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
    #[inline]
    pub fn of(packet: &Packet, layout: &Layout) -> Option<FlowKey> {
        Self::with_ports4(packet, layout).or_else(|| Self::read(packet, layout, Self::FIELDS))
    }

    /// The key of a packet with an IPv4 header and ports, which is the most common kind. This
    /// function does not need the field table.
    #[inline]
    fn with_ports4(packet: &Packet, layout: &Layout) -> Option<FlowKey> {
        let [(src, sport), (dst, dport)] = packet.ends4(layout)?;
        let (src, dst) = (src.into(), dst.into());
        Some(FlowKey { version: 4, src, dst, proto: layout.proto(), sport, dport })
    }

    /// The key of the packet that an ICMP error quotes. `None` when it quotes none.
    #[must_use]
    #[inline]
    pub fn of_quoted(packet: &Packet, layout: &Layout) -> Option<FlowKey> {
        if layout.has(Header::Quoted) {
            Self::read(packet, layout, Self::QUOTED_FIELDS)
        } else {
            None
        }
    }

    #[inline(never)]
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

    /// Whether the key decides a field's value, if the field's header is there.
    #[must_use]
    pub fn has_field(field: Field) -> bool {
        let key = |version, proto| Self { version, src: 0, dst: 0, proto, sport: 0, dport: 0 };
        let keys = [(4, proto::TCP), (6, proto::TCP), (4, proto::UDP)];
        keys.iter().any(|(version, proto)| key(*version, *proto).get(field).is_some())
    }

    /// The value of a field in the packets of a flow with this key. `None` for fields that the key
    /// does not decide, and for those of another IP version or protocol.
    #[must_use]
    pub fn get(self, field: Field) -> Option<u128> {
        let of = |version, value| (self.version == version).then_some(value);
        let with = |proto, port: u16| (self.proto == proto).then_some(port.into());
        let l4 = |port: u16| self.transport().map(|_| port.into());
        match field {
            Field::InetVersion => Some(self.version.into()),
            Field::InetSrc => Some(self.src),
            Field::InetDst => Some(self.dst),
            Field::InetProto => Some(self.proto.into()),
            Field::InetSport => Some(self.sport.into()),
            Field::InetDport => Some(self.dport.into()),
            Field::L4Sport => l4(self.sport),
            Field::L4Dport => l4(self.dport),
            Field::TcpSport => with(proto::TCP, self.sport),
            Field::TcpDport => with(proto::TCP, self.dport),
            Field::UdpSport => with(proto::UDP, self.sport),
            Field::UdpDport => with(proto::UDP, self.dport),
            Field::IpSrc => of(4, self.src),
            Field::IpDst => of(4, self.dst),
            Field::Ip6Src => of(6, self.src),
            Field::Ip6Dst => of(6, self.dst),
            _ => None,
        }
    }

    /// Whether the packets of a flow with this key have a header, as far as the key decides that.
    #[must_use]
    pub fn has(self, header: Header) -> bool {
        match header {
            Header::Ip4 => self.version == 4,
            Header::Ip6 => self.version == 6,
            Header::Inet => true,
            Header::Tcp | Header::Udp => self.transport() == Some(header),
            Header::L4 => self.transport().is_some(),
            _ => false,
        }
    }

    /// The header with ports.
    fn transport(self) -> Option<Header> {
        match self.proto {
            proto::TCP => Some(Header::Tcp),
            proto::UDP => Some(Header::Udp),
            _ => None,
        }
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
    /// The source and the destination address; `None` without an IPv4 header.
    #[must_use]
    #[inline]
    pub fn ip4_addresses(&self, layout: &Layout) -> Option<(u32, u32)> {
        let header = self.data().get(layout.ip()..).filter(|_| layout.has(Header::Ip4))?;
        let words = header.first_chunk::<{ ipv4::LEN }>()?.as_chunks::<4>().0;
        match *words {
            [_, _, _, src, dst] => Some((u32::from_be_bytes(src), u32::from_be_bytes(dst))),
            _ => None,
        }
    }

    /// The source and the destination address of a malformed packet whose first IP header is the
    /// malformed one; `None` for other packets, and if the header ends before its addresses do.
    #[must_use]
    pub fn malformed_addresses(&self, layout: &Layout) -> Option<(IpAddr, IpAddr)> {
        use crate::malformed::Malformed::{
            Ip6ExtensionDepth, Ip6ExtensionLength, Ip6PayloadLength, IpHeaderLength, IpOptions,
            IpTotalLength,
        };
        let is_of_ip = matches!(
            layout.malformed_reason()?,
            IpHeaderLength
                | IpTotalLength
                | IpOptions
                | Ip6PayloadLength
                | Ip6ExtensionLength
                | Ip6ExtensionDepth
        );
        if !is_of_ip || layout.has(Header::Ip4) || layout.has(Header::Ip6) {
            return None;
        }
        let header = self.data().get(layout.payload_offset()..)?;
        match header.first()? >> 4 {
            4 => {
                let (addresses, _) = header.get(12..)?.as_chunks::<4>();
                let &[src, dst, ..] = addresses else { return None };
                Some((src.into(), dst.into()))
            }
            _ => {
                let (addresses, _) = header.get(8..)?.as_chunks::<16>();
                let &[src, dst, ..] = addresses else { return None };
                Some((src.into(), dst.into()))
            }
        }
    }

    /// The source and the destination, each an address and a port; `None` unless the packet is IPv4
    /// with ports. Such a packet quotes no other one.
    #[must_use]
    #[inline]
    pub fn ends4(&self, layout: &Layout) -> Option<[(u32, u16); 2]> {
        if !layout.has(Header::L4) {
            return None;
        }
        let (src, dst) = self.ip4_addresses(layout)?;
        let &[a, b, c, d] = self.data().get(layout.l4()..)?.first_chunk()?;
        let [sport, dport] = [[a, b], [c, d]].map(u16::from_be_bytes);
        Some([(src, sport), (dst, dport)])
    }

    /// The packet's 5-tuple; `None` without an IP header.
    #[must_use]
    #[inline]
    pub fn flow_key(&self, layout: &Layout) -> Option<FlowKey> {
        FlowKey::of(self, layout)
    }

    /// The 5-tuple of the packet that this ICMP error quotes; `None` when it quotes none.
    #[must_use]
    #[inline]
    pub fn quoted_flow_key(&self, layout: &Layout) -> Option<FlowKey> {
        FlowKey::of_quoted(self, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::FlowKey;
    use crate::build::{Shape, build_fresh};
    use crate::{Field, Link, Packet};
    use std::net::IpAddr;

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

    #[test]
    fn malformed_ip_headers_have_addresses() {
        let ip4 = [(Field::IpSrc, 0x0a00_0001), (Field::IpDst, 0x0800_0002)];
        let ip6 = [(Field::Ip6Src, 1), (Field::Ip6Dst, 2)];
        // The place of a byte of a length that is too large, behind Ethernet.
        for (shape, fields, length, addresses) in [
            (Shape::Udp4, ip4, 14 + 2, ["10.0.0.1", "8.0.0.2"]),
            (Shape::Udp6, ip6, 14 + 4, ["::1", "::2"]),
        ] {
            let packet = build_fresh(Link::Ethernet, 0, shape, &fields, b"abc").unwrap();
            assert_eq!(packet.malformed_addresses(&packet.parse()), None);
            let mut bytes = packet.data().to_vec();
            bytes[length] = 0xff;
            let odd = Packet::new(Link::Ethernet, 0, bytes.clone());
            let [src, dst] = addresses.map(|address| address.parse::<IpAddr>().unwrap());
            assert_eq!(odd.malformed_addresses(&odd.parse()), Some((src, dst)));
        }
        let mut bytes = [0; 14];
        bytes[12..].copy_from_slice(&[8, 0]);
        let short = Packet::new(Link::Ethernet, 0, [&bytes[..], &[0x45; 5]].concat());
        assert!(short.parse().malformed().is_some());
        assert_eq!(short.malformed_addresses(&short.parse()), None);
    }

    #[test]
    fn key_of_ipv4_with_ports_has_the_values_of_its_fields() {
        let addresses = [(Field::IpSrc, 1 << 31), (Field::IpDst, 7)];
        let ports = [(Field::L4Sport, 53), (Field::L4Dport, 0xfffe)];
        for (shape, fields) in [
            (Shape::Tcp4, [addresses, ports].concat()),
            (Shape::Udp4, [addresses, ports].concat()),
            (Shape::Icmp, addresses.to_vec()),
            (Shape::Udp6, ports.to_vec()),
        ] {
            let packet = build_fresh(Link::Ethernet, 0, shape, &fields, b"abc").unwrap();
            let layout = packet.parse();
            let values = FlowKey::FIELDS.map(|field| packet.get(&layout, field).unwrap());
            assert_eq!(packet.flow_key(&layout).unwrap().words(), values, "{shape:?}");
        }
    }
}
