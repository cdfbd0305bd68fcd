//! Where fields are: the bytes and bits of every field that has some.

use crate::field::{Field, Header};
use crate::layout::{Layout, parts};
use crate::wire::{arp, ethernet, gre, icmp, ipsec, ipv4, ipv6, tcp, udp, vlan, vxlan};

/// What the offset of a field counts from. Where that is in a packet is in its [`Layout`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The packet's first byte.
    Packet,
    /// The ARP message.
    Arp,
    /// The topmost MPLS label stack entry.
    Mpls,
    /// The IP header.
    Ip,
    /// What is behind the IP header, its extensions and AH.
    L4,
    /// The authentication header.
    Ah,
    /// The TCP option with the maximum segment size.
    Mss,
    /// The TCP option with the window scale.
    Wscale,
    /// The TCP option with the timestamps.
    Ts,
    /// The GRE key.
    GreKey,
    /// The IP header of the quoted packet.
    QuotedIp,
    /// What is behind the quoted packet's IP headers.
    QuotedL4,
}

impl Base {
    /// Where a [`Layout`] holds the offset, in bytes from its start, and in how many bytes (2 or 4);
    /// `None` for the packet itself.
    #[must_use]
    pub fn in_layout(self) -> Option<(usize, usize)> {
        Some(match self {
            Base::Packet => return None,
            Base::Arp => (parts::ARP, 2),
            Base::Mpls => (parts::MPLS, 2),
            Base::Ip => (parts::IP, 2),
            Base::L4 => (parts::L4, 2),
            Base::Ah => (parts::AH, 2),
            Base::Mss => (parts::MSS, 2),
            Base::Wscale => (parts::WSCALE, 2),
            Base::Ts => (parts::TS, 2),
            Base::GreKey => (parts::GRE_KEY, 2),
            Base::QuotedIp => (parts::QUOTED_IP, 4),
            Base::QuotedL4 => (parts::QUOTED_L4, 4),
        })
    }
}

/// Where a field is in packets of a shape: so many bits of a big-endian number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    /// What the offset counts from.
    pub base: Base,
    /// Offset of the number's first byte.
    pub offset: u8,
    /// Bytes of the number, 1 to 16.
    pub len: u8,
    /// How many bits from its low end the field begins.
    pub shift: u8,
    /// Bits of the field that the packet has; the others of the field's width are 0.
    pub width: u8,
}

impl Spot {
    /// Where a field is in packets that have these headers (`None`: not known). `None` if the
    /// field's header is absent or not known to be present, if the field has no bytes of its own, or if
    /// where it is hangs on a header of which it is not known whether it is present.
    ///
    /// Where the header is present, the bytes are captured.
    pub fn of(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
        let header = field.info().header;
        if has(header) != Some(true) {
            return None;
        }
        match header {
            Header::Eth | Header::Vlan | Header::Vlan2 | Header::Arp | Header::Mpls => {
                link_spot(field)
            }
            Header::Ip4 => ip4_spot(Base::Ip, field),
            Header::Ip6 => ip6_spot(field),
            Header::Inet => inet_spot(field, has),
            Header::Quoted
            | Header::Quoted4
            | Header::Quoted6
            | Header::QuotedL4
            | Header::QuotedEcho => quoted_spot(field, has),
            _ => transport_spot(field, has),
        }
    }
}

/// A field that fills `len` whole bytes.
fn bytes_from(base: Base, offset: usize, len: u8) -> Spot {
    bits_from(base, offset, len, 0, len * 8)
}

/// A field of `width` bits in a number of `len` bytes.
fn bits_from(base: Base, offset: usize, len: u8, shift: u8, width: u8) -> Spot {
    Spot { base, offset: u8::try_from(offset).unwrap_or(u8::MAX), len, shift, width }
}

fn link_spot(field: Field) -> Option<Spot> {
    use Field::*;
    let tag = ethernet::TYPE + vlan::TCI;
    let tag2 = tag + vlan::LEN;
    Some(match field {
        EthDst => bytes_from(Base::Packet, ethernet::DST, 6),
        EthSrc => bytes_from(Base::Packet, ethernet::SRC, 6),
        VlanTpid => bytes_from(Base::Packet, ethernet::TYPE + vlan::TPID, 2),
        VlanId => bits_from(Base::Packet, tag, 2, 0, 12),
        VlanDei => bits_from(Base::Packet, tag, 2, 12, 1),
        VlanPcp => bits_from(Base::Packet, tag, 2, 13, 3),
        Vlan2Id => bits_from(Base::Packet, tag2, 2, 0, 12),
        Vlan2Dei => bits_from(Base::Packet, tag2, 2, 12, 1),
        Vlan2Pcp => bits_from(Base::Packet, tag2, 2, 13, 3),
        ArpOp => bytes_from(Base::Arp, arp::OP, 2),
        ArpSha => bytes_from(Base::Arp, arp::SHA, 6),
        ArpSpa => bytes_from(Base::Arp, arp::SPA, 4),
        ArpTha => bytes_from(Base::Arp, arp::THA, 6),
        ArpTpa => bytes_from(Base::Arp, arp::TPA, 4),
        MplsLabel => bits_from(Base::Mpls, 0, 4, 12, 20),
        MplsTc => bits_from(Base::Mpls, 0, 4, 9, 3),
        MplsBos => bits_from(Base::Mpls, 0, 4, 8, 1),
        MplsTtl => bits_from(Base::Mpls, 0, 4, 0, 8),
        _ => return None,
    })
}

fn ip4_spot(base: Base, field: Field) -> Option<Spot> {
    use Field::*;
    Some(match field {
        IpSrc => bytes_from(base, ipv4::SRC, 4),
        IpDst => bytes_from(base, ipv4::DST, 4),
        IpProto => bytes_from(base, ipv4::PROTO, 1),
        IpTtl => bytes_from(base, ipv4::TTL, 1),
        IpTos => bytes_from(base, ipv4::TOS, 1),
        IpDscp => bits_from(base, ipv4::TOS, 1, 2, 6),
        IpEcn => bits_from(base, ipv4::TOS, 1, 0, 2),
        IpId => bytes_from(base, ipv4::ID, 2),
        IpDf => bits_from(base, ipv4::FRAGMENT, 2, 14, 1),
        IpMf => bits_from(base, ipv4::FRAGMENT, 2, 13, 1),
        IpFrag => bits_from(base, ipv4::FRAGMENT, 2, 0, 13),
        IpLen => bytes_from(base, ipv4::TOTAL, 2),
        IpChecksum => bytes_from(base, ipv4::CHECKSUM, 2),
        _ => return None,
    })
}

fn ip6_spot(field: Field) -> Option<Spot> {
    use Field::*;
    Some(match field {
        Ip6Src => bytes_from(Base::Ip, ipv6::SRC, 16),
        Ip6Dst => bytes_from(Base::Ip, ipv6::DST, 16),
        Ip6Next => bytes_from(Base::Ip, ipv6::NEXT, 1),
        Ip6Ttl => bytes_from(Base::Ip, ipv6::TTL, 1),
        Ip6Tc => bits_from(Base::Ip, 0, 4, 20, 8),
        Ip6Flow => bits_from(Base::Ip, 0, 4, 0, 20),
        Ip6Len => bytes_from(Base::Ip, ipv6::PAYLOAD, 2),
        _ => return None,
    })
}

fn inet_spot(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
    let (same4, same6) = match field {
        Field::InetSrc => (Field::IpSrc, Field::Ip6Src),
        Field::InetDst => (Field::IpDst, Field::Ip6Dst),
        Field::InetTtl => (Field::IpTtl, Field::Ip6Ttl),
        Field::InetSport | Field::InetDport => return port_spot(field, has),
        _ => return None,
    };
    if has(Header::Ip4)? { ip4_spot(Base::Ip, same4) } else { ip6_spot(same6) }
}

fn port_spot(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
    if has(Header::L4) == Some(true) {
        return Some(bytes_from(Base::L4, if field == Field::InetSport { 0 } else { 2 }, 2));
    }
    let echo = has(Header::IcmpEcho) == Some(true) || has(Header::Icmp6Echo) == Some(true);
    echo.then(|| bytes_from(Base::L4, icmp::REST, 2))
}

fn transport_spot(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
    use Field::*;
    let l4 = |offset: usize, len: u8| bytes_from(Base::L4, offset, len);
    Some(match field {
        L4Sport | TcpSport | UdpSport => l4(0, 2),
        L4Dport | TcpDport | UdpDport => l4(2, 2),
        L4Checksum if has(Header::Tcp)? => l4(tcp::CHECKSUM, 2),
        L4Checksum => l4(udp::CHECKSUM, 2),
        TcpSeq => l4(tcp::SEQ, 4),
        TcpAck => l4(tcp::ACK, 4),
        TcpFlags => l4(tcp::FLAGS, 1),
        TcpWindow => l4(tcp::WINDOW, 2),
        TcpUrgent => l4(tcp::URGENT, 2),
        TcpMss => bytes_from(Base::Mss, 2, 2),
        TcpWscale => bytes_from(Base::Wscale, 2, 1),
        TcpTsVal => bytes_from(Base::Ts, 2, 4),
        TcpTsEcr => bytes_from(Base::Ts, 6, 4),
        UdpLen => l4(udp::LENGTH, 2),
        IcmpType | Icmp6Type => l4(icmp::TYPE, 1),
        IcmpCode | Icmp6Code => l4(icmp::CODE, 1),
        IcmpId | Icmp6Id => l4(icmp::REST, 2),
        IcmpSeq | Icmp6Seq => l4(icmp::SEQ, 2),
        IcmpRest | Icmp6Rest => l4(icmp::REST, 4),
        GreProto => l4(gre::PROTO, 2),
        GreKey => bytes_from(Base::GreKey, 0, 4),
        VxlanVni => l4(udp::LEN + vxlan::VNI, 3),
        AhSpi => bytes_from(Base::Ah, ipsec::AH_SPI, 4),
        AhSeq => bytes_from(Base::Ah, ipsec::AH_SEQ, 4),
        EspSpi => l4(ipsec::ESP_SPI, 4),
        EspSeq => l4(ipsec::ESP_SEQ, 4),
        _ => return None,
    })
}

fn quoted_spot(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
    use Field::*;
    let ip = |offset: usize, len: u8| bytes_from(Base::QuotedIp, offset, len);
    let l4 = |offset: usize| bytes_from(Base::QuotedL4, offset, 2);
    Some(match field {
        QuotedIpSrc => ip(ipv4::SRC, 4),
        QuotedIpDst => ip(ipv4::DST, 4),
        QuotedIp6Src => ip(ipv6::SRC, 16),
        QuotedIp6Dst => ip(ipv6::DST, 16),
        QuotedInetSrc if has(Header::Quoted4)? => ip(ipv4::SRC, 4),
        QuotedInetSrc => ip(ipv6::SRC, 16),
        QuotedInetDst if has(Header::Quoted4)? => ip(ipv4::DST, 4),
        QuotedInetDst => ip(ipv6::DST, 16),
        QuotedSport => l4(0),
        QuotedDport => l4(2),
        QuotedId => l4(icmp::REST),
        QuotedInetSport if has(Header::QuotedL4)? => l4(0),
        QuotedInetDport if has(Header::QuotedL4)? => l4(2),
        QuotedInetSport | QuotedInetDport if has(Header::QuotedEcho)? => l4(icmp::REST),
        _ => return None,
    })
}

/// Where a field is in a packet: so many bits of a big-endian number, `shift` bits from its low end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) shift: u32,
    width: u32,
}

impl Place {
    /// The field's bits, at the low end.
    pub(crate) fn mask(self) -> u128 {
        u128::MAX >> (128 - self.width.clamp(1, 128))
    }
}

/// A field that fills `len` whole bytes.
pub(crate) fn bytes(offset: usize, len: usize) -> Place {
    Place { offset, len, shift: 0, width: u32::try_from(len * 8).unwrap_or(128) }
}

/// Where a field is in the packet; `None` when its header is absent or it has no bytes of its own.
pub(crate) fn place(layout: &Layout, field: Field) -> Option<Place> {
    let spot = Spot::of(field, &|header| Some(layout.has(header)))?;
    Some(Place {
        offset: layout.base(spot.base) + usize::from(spot.offset),
        len: usize::from(spot.len),
        shift: u32::from(spot.shift),
        width: u32::from(spot.width),
    })
}

/// The big-endian number in up to 16 bytes.
pub(crate) fn number(data: &[u8], place: Place) -> Option<u128> {
    let raw = data.get(place.offset..place.offset + place.len)?;
    Some(raw.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
