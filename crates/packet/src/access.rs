//! Reading and assigning fields. Every assignment keeps each checksum as right as it was.

use crate::checksum::{self, Delta};
use crate::field::{Access, Field, Header};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::wire::quoted::Quoted;
use crate::wire::{arp, ethernet, gre, icmp, ipsec, ipv4, ipv6, tcp, udp, vlan, vxlan};

/// Where a field is: so many bits of a big-endian number, `shift` bits from its low end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    shift: u32,
    width: u32,
}

impl Place {
    fn mask(self) -> u128 {
        u128::MAX >> (128 - self.width.clamp(1, 128))
    }
}

/// A field that fills `len` whole bytes.
fn bytes(offset: usize, len: usize) -> Place {
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
fn number(data: &[u8], place: Place) -> Option<u128> {
    let raw = data.get(place.offset..place.offset + place.len)?;
    Some(raw.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

impl Packet {
    /// A field's value; `None` when its header is absent. The layout must be this packet's.
    ///
    /// `pkt.time` is the packet's own time; an engine that lets time never go back sets it first.
    #[must_use]
    pub fn get(&self, layout: &Layout, field: Field) -> Option<u128> {
        if let Some(place) = place(layout, field) {
            let value = number(self.data(), place)? >> place.shift & place.mask();
            return Some(value);
        }
        if layout.has(field.info().header) { self.computed(layout, field) } else { None }
    }

    /// Fields that have no bytes of their own in the packet.
    fn computed(&self, layout: &Layout, field: Field) -> Option<u128> {
        use Field::*;
        let byte = |offset: usize| self.data().get(offset).copied();
        let wire = |len: usize| u128::try_from(len).ok();
        Some(match field {
            PktLen => u128::from(self.wire_len),
            PktPayloadLen => wire(layout.payload_len())?,
            PktTime => u128::from(self.time_ns),
            PktIngress => u128::from(self.ingress),
            PktBackward => u128::from(self.backward),
            PktFragment => u128::from(layout.is_fragment()),
            PktLaterFragment => u128::from(layout.is_later_fragment()),
            PktHeld => u128::from(self.held),
            PktTruncated => u128::from(wire(self.data().len())? < u128::from(self.wire_len)),
            EthType => u128::from(layout.ether_type),
            IpHlen => u128::from(byte(layout.ip)? & 15) * 4,
            Ip6Proto | InetProto => u128::from(layout.proto),
            InetVersion => u128::from(byte(layout.ip)? >> 4),
            InetSport | InetDport => 0,
            TcpHlen => u128::from(byte(layout.l4 + tcp::DATA_OFFSET)? >> 4) * 4,
            QuotedInetVersion => u128::from(layout.quoted?.version),
            QuotedProto => u128::from(layout.quoted?.proto),
            QuotedInetSport | QuotedInetDport => 0,
            _ => return None,
        })
    }

    /// Assigns a field (the low bits of the value, as many as the field has) and updates every
    /// checksum that covers it by the difference, so that a wrong one stays as wrong as it was.
    /// Returns false, and changes nothing, when its header is absent or the field is read-only.
    ///
    /// Checksums come out in canonical form (see [`crate::checksum`]) even if the value is the
    /// old one. Not kept: the integrity value of AH, and checksums of protocols that are not
    /// recognised.
    pub fn set(&mut self, layout: &Layout, field: Field, value: u128) -> bool {
        let Some((place, delta)) = self.write(layout, field, value) else { return false };
        self.follow(layout, field, place, delta);
        true
    }

    /// Assigns a field and leaves all checksums; how the bytes have changed.
    pub(crate) fn write(
        &mut self,
        layout: &Layout,
        field: Field,
        value: u128,
    ) -> Option<(Place, Delta)> {
        if field.info().access == Access::Ro {
            return None;
        }
        let place = place(layout, field)?;
        let old = number(self.data(), place)?;
        let mask = place.mask() << place.shift;
        let new = old & !mask | value << place.shift & mask;
        let raw = self.data_mut().get_mut(place.offset..place.offset + place.len)?;
        raw.copy_from_slice(new.to_be_bytes().get(16 - place.len..)?);
        Some((place, Delta::between(old, new, place.len)))
    }

    /// Updates the checksums that cover a field.
    fn follow(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        match field.info().header {
            Header::Ip4 => {
                self.follow_ip(layout.ip, place, delta);
                self.follow_address(layout, field, place, delta);
            }
            // Of these only the TTL is written.
            Header::Inet if layout.has(Header::Ip4) => {
                self.follow_ip(layout.ip, place, delta);
            }
            Header::Inet => {}
            Header::Ip6 => self.follow_address(layout, field, place, delta),
            Header::GreKey => {
                if let Some(at) = layout.gre_sum {
                    let delta = delta.at(place.offset.abs_diff(layout.l4));
                    checksum::update(self.data_mut(), at, delta, false);
                }
            }
            Header::Quoted4 | Header::Quoted6 | Header::QuotedL4 | Header::QuotedEcho => {
                self.follow_quoted(layout, field, place, delta);
            }
            Header::Eth | Header::Vlan | Header::Vlan2 | Header::Arp | Header::Mpls => {}
            _ => self.follow_transport(layout, delta.at(place.offset.abs_diff(layout.l4))),
        }
    }

    fn follow_ip(&mut self, ip: usize, place: Place, delta: Delta) -> Delta {
        let delta = delta.at(place.offset.abs_diff(ip));
        checksum::update(self.data_mut(), ip + ipv4::CHECKSUM, delta, false)
    }

    fn follow_transport(&mut self, layout: &Layout, delta: Delta) {
        if let Some(sum) = layout.sum {
            checksum::update(self.data_mut(), sum.at, delta, sum.is_udp());
        }
    }

    /// The pseudo header, if the field is an address that stands in it.
    fn follow_address(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        let covered = match field {
            Field::IpSrc | Field::Ip6Src => true,
            Field::IpDst | Field::Ip6Dst => place.offset == layout.pseudo_dst,
            _ => false,
        };
        if covered && layout.sum.is_some_and(|sum| sum.has_pseudo()) {
            self.follow_transport(layout, delta);
        }
    }

    /// The quoted packet's own checksums, and the error's, which covers them and the field.
    fn follow_quoted(&mut self, layout: &Layout, field: Field, place: Place, delta: Delta) {
        let Some(quoted) = layout.quoted else { return };
        let mut total = delta;
        if field.info().header == Header::Quoted4 {
            total = total.and(self.follow_ip(quoted.ip, place, delta));
        }
        let covered = match field {
            Field::QuotedIpSrc | Field::QuotedIp6Src => true,
            Field::QuotedIpDst | Field::QuotedIp6Dst => place.offset == quoted.pseudo_dst,
            _ => false,
        };
        if let Some(sum) = quoted.sum {
            let is_address = matches!(field.info().header, Header::Quoted4 | Header::Quoted6);
            if !is_address || covered && sum.has_pseudo() {
                let change = checksum::update(self.data_mut(), sum.at, delta, sum.is_udp());
                total = total.and(change);
            }
        }
        self.follow_transport(layout, total);
    }
}
