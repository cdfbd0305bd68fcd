//! Where fields are: the bytes and bits of every field that has some.

use crate::field::{Field, Header};
use crate::layout::Layout;
use crate::wire::quoted::Quoted;
use crate::wire::{arp, ethernet, gre, icmp, ipsec, ipv4, ipv6, tcp, udp, vlan, vxlan};

/// Where a field is: so many bits of a big-endian number, `shift` bits from its low end.
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

/// A field of `width` bits in a number of `len` bytes.
fn bits(offset: usize, len: usize, shift: u32, width: u32) -> Place {
    Place { offset, len, shift, width }
}

/// Where a field is in the packet; `None` when its header is absent or it has no bytes of its own.
pub(crate) fn place(layout: &Layout, field: Field) -> Option<Place> {
    let header = field.info().header;
    if !layout.has(header) {
        return None;
    }
    match header {
        Header::Eth | Header::Vlan | Header::Vlan2 | Header::Arp | Header::Mpls => {
            link_place(layout, field)
        }
        Header::Ip4 => ip4_place(layout.ip, field),
        Header::Ip6 => ip6_place(layout.ip, field),
        Header::Inet => inet_place(layout, field),
        Header::Quoted | Header::Quoted4 | Header::Quoted6 => {
            quoted_place(layout.quoted.as_ref()?, field)
        }
        Header::QuotedL4 | Header::QuotedEcho => quoted_place(layout.quoted.as_ref()?, field),
        _ => transport_place(layout, field),
    }
}

fn link_place(layout: &Layout, field: Field) -> Option<Place> {
    use Field::*;
    let tag = layout.vlan + vlan::TCI;
    let tag2 = tag + vlan::LEN;
    Some(match field {
        EthDst => bytes(ethernet::DST, 6),
        EthSrc => bytes(ethernet::SRC, 6),
        VlanTpid => bytes(layout.vlan + vlan::TPID, 2),
        VlanId => bits(tag, 2, 0, 12),
        VlanDei => bits(tag, 2, 12, 1),
        VlanPcp => bits(tag, 2, 13, 3),
        Vlan2Id => bits(tag2, 2, 0, 12),
        Vlan2Dei => bits(tag2, 2, 12, 1),
        Vlan2Pcp => bits(tag2, 2, 13, 3),
        ArpOp => bytes(layout.arp + arp::OP, 2),
        ArpSha => bytes(layout.arp + arp::SHA, 6),
        ArpSpa => bytes(layout.arp + arp::SPA, 4),
        ArpTha => bytes(layout.arp + arp::THA, 6),
        ArpTpa => bytes(layout.arp + arp::TPA, 4),
        MplsLabel => bits(layout.mpls, 4, 12, 20),
        MplsTc => bits(layout.mpls, 4, 9, 3),
        MplsBos => bits(layout.mpls, 4, 8, 1),
        MplsTtl => bits(layout.mpls, 4, 0, 8),
        _ => return None,
    })
}

fn ip4_place(ip: usize, field: Field) -> Option<Place> {
    use Field::*;
    let flags = ip + ipv4::FRAGMENT;
    Some(match field {
        IpSrc => bytes(ip + ipv4::SRC, 4),
        IpDst => bytes(ip + ipv4::DST, 4),
        IpProto => bytes(ip + ipv4::PROTO, 1),
        IpTtl => bytes(ip + ipv4::TTL, 1),
        IpTos => bytes(ip + ipv4::TOS, 1),
        IpDscp => bits(ip + ipv4::TOS, 1, 2, 6),
        IpEcn => bits(ip + ipv4::TOS, 1, 0, 2),
        IpId => bytes(ip + ipv4::ID, 2),
        IpDf => bits(flags, 2, 14, 1),
        IpMf => bits(flags, 2, 13, 1),
        IpFrag => bits(flags, 2, 0, 13),
        IpLen => bytes(ip + ipv4::TOTAL, 2),
        IpChecksum => bytes(ip + ipv4::CHECKSUM, 2),
        _ => return None,
    })
}

fn ip6_place(ip: usize, field: Field) -> Option<Place> {
    use Field::*;
    Some(match field {
        Ip6Src => bytes(ip + ipv6::SRC, 16),
        Ip6Dst => bytes(ip + ipv6::DST, 16),
        Ip6Next => bytes(ip + ipv6::NEXT, 1),
        Ip6Ttl => bytes(ip + ipv6::TTL, 1),
        Ip6Tc => bits(ip, 4, 20, 8),
        Ip6Flow => bits(ip, 4, 0, 20),
        Ip6Len => bytes(ip + ipv6::PAYLOAD, 2),
        _ => return None,
    })
}

fn inet_place(layout: &Layout, field: Field) -> Option<Place> {
    let version4 = layout.has(Header::Ip4);
    let (same4, same6) = match field {
        Field::InetSrc => (Field::IpSrc, Field::Ip6Src),
        Field::InetDst => (Field::IpDst, Field::Ip6Dst),
        Field::InetTtl => (Field::IpTtl, Field::Ip6Ttl),
        Field::InetSport | Field::InetDport => return port_place(layout, field),
        _ => return None,
    };
    if version4 { ip4_place(layout.ip, same4) } else { ip6_place(layout.ip, same6) }
}

fn port_place(layout: &Layout, field: Field) -> Option<Place> {
    if layout.has(Header::IcmpEcho) || layout.has(Header::Icmp6Echo) {
        return Some(bytes(layout.l4 + icmp::REST, 2));
    }
    let offset = if field == Field::InetSport { 0 } else { 2 };
    layout.has(Header::L4).then(|| bytes(layout.l4 + offset, 2))
}

fn transport_place(layout: &Layout, field: Field) -> Option<Place> {
    use Field::*;
    let l4 = layout.l4;
    let vxlan = l4 + udp::LEN;
    Some(match field {
        L4Sport | TcpSport | UdpSport => bytes(l4, 2),
        L4Dport | TcpDport | UdpDport => bytes(l4 + 2, 2),
        L4Checksum if layout.has(Header::Tcp) => bytes(l4 + tcp::CHECKSUM, 2),
        L4Checksum => bytes(l4 + udp::CHECKSUM, 2),
        TcpSeq => bytes(l4 + tcp::SEQ, 4),
        TcpAck => bytes(l4 + tcp::ACK, 4),
        TcpFlags => bytes(l4 + tcp::FLAGS, 1),
        TcpWindow => bytes(l4 + tcp::WINDOW, 2),
        TcpUrgent => bytes(l4 + tcp::URGENT, 2),
        TcpMss => bytes(layout.options.mss? + 2, 2),
        TcpWscale => bytes(layout.options.wscale? + 2, 1),
        TcpTsVal => bytes(layout.options.ts? + 2, 4),
        TcpTsEcr => bytes(layout.options.ts? + 6, 4),
        UdpLen => bytes(l4 + udp::LENGTH, 2),
        IcmpType | Icmp6Type => bytes(l4 + icmp::TYPE, 1),
        IcmpCode | Icmp6Code => bytes(l4 + icmp::CODE, 1),
        IcmpId | Icmp6Id => bytes(l4 + icmp::REST, 2),
        IcmpSeq | Icmp6Seq => bytes(l4 + icmp::SEQ, 2),
        IcmpRest | Icmp6Rest => bytes(l4 + icmp::REST, 4),
        GreProto => bytes(l4 + gre::PROTO, 2),
        GreKey => bytes(layout.gre_key, 4),
        VxlanVni => bytes(vxlan + vxlan::VNI, 3),
        AhSpi => bytes(layout.ah + ipsec::AH_SPI, 4),
        AhSeq => bytes(layout.ah + ipsec::AH_SEQ, 4),
        EspSpi => bytes(l4 + ipsec::ESP_SPI, 4),
        EspSeq => bytes(l4 + ipsec::ESP_SEQ, 4),
        _ => return None,
    })
}

fn quoted_place(quoted: &Quoted, field: Field) -> Option<Place> {
    use Field::*;
    let version4 = quoted.version == 4;
    Some(match field {
        QuotedIpSrc => bytes(quoted.ip + ipv4::SRC, 4),
        QuotedIpDst => bytes(quoted.ip + ipv4::DST, 4),
        QuotedIp6Src => bytes(quoted.ip + ipv6::SRC, 16),
        QuotedIp6Dst => bytes(quoted.ip + ipv6::DST, 16),
        QuotedInetSrc if version4 => bytes(quoted.ip + ipv4::SRC, 4),
        QuotedInetSrc => bytes(quoted.ip + ipv6::SRC, 16),
        QuotedInetDst if version4 => bytes(quoted.ip + ipv4::DST, 4),
        QuotedInetDst => bytes(quoted.ip + ipv6::DST, 16),
        QuotedSport => bytes(quoted.l4, 2),
        QuotedDport => bytes(quoted.l4 + 2, 2),
        QuotedId => bytes(quoted.l4 + icmp::REST, 2),
        QuotedInetSport if quoted.ports => bytes(quoted.l4, 2),
        QuotedInetDport if quoted.ports => bytes(quoted.l4 + 2, 2),
        QuotedInetSport | QuotedInetDport if quoted.echo => bytes(quoted.l4 + icmp::REST, 2),
        _ => return None,
    })
}

/// The big-endian number in up to 16 bytes.
pub(crate) fn number(data: &[u8], place: Place) -> Option<u128> {
    let raw = data.get(place.offset..place.offset + place.len)?;
    Some(raw.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
