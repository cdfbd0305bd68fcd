//! Compares this parser and its checksums with an independent parser (etherparse).

use crate::samples::*;
use braid_packet::field::Header;
use braid_packet::{Access, FIELDS, Field, Layout, Link, Malformed, Packet};
use etherparse::err::packet::SliceError;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Compares fields of this parser with the oracle's values.
fn same(packet: &Packet, layout: &Layout, pairs: &[(Field, u128)]) {
    for (field, expected) in pairs {
        let (name, summary) = (field.info().name, packet.to_string());
        assert_eq!(packet.get(layout, *field), Some(*expected), "{name} of {summary}");
    }
}

fn compare_net(packet: &Packet, layout: &Layout, net: &NetSlice<'_>) {
    use Field::*;
    match net {
        NetSlice::Ipv4(ip) => {
            let ip = ip.header();
            let pairs = [
                (IpSrc, number(&ip.source())),
                (IpDst, number(&ip.destination())),
                (IpProto, u128::from(ip.protocol().0)),
                (IpTtl, u128::from(ip.ttl())),
                (IpDscp, u128::from(ip.dcp().value())),
                (IpEcn, u128::from(ip.ecn().value())),
                (IpId, u128::from(ip.identification())),
                (IpDf, u128::from(ip.dont_fragment())),
                (IpMf, u128::from(ip.more_fragments())),
                (IpFrag, u128::from(ip.fragments_offset().value())),
                (IpLen, u128::from(ip.total_len())),
                (IpHlen, u128::from(ip.ihl()) * 4),
                (IpChecksum, u128::from(ip.header_checksum())),
            ];
            same(packet, layout, &pairs);
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            let pairs = [
                (Ip6Src, number(&header.source())),
                (Ip6Dst, number(&header.destination())),
                (Ip6Next, u128::from(header.next_header().0)),
                (Ip6Ttl, u128::from(header.hop_limit())),
                (Ip6Tc, u128::from(header.traffic_class())),
                (Ip6Flow, u128::from(header.flow_label().value())),
                (Ip6Len, u128::from(header.payload_length())),
            ];
            same(packet, layout, &pairs);
        }
        NetSlice::Arp(arp) => {
            let pairs = [
                (ArpOp, u128::from(arp.operation().0)),
                (ArpSha, number(arp.sender_hw_addr())),
                (ArpSpa, number(arp.sender_protocol_addr())),
                (ArpTha, number(arp.target_hw_addr())),
                (ArpTpa, number(arp.target_protocol_addr())),
            ];
            if layout.has(Header::Arp) {
                same(packet, layout, &pairs);
            }
        }
    }
}

fn compare_transport(packet: &Packet, layout: &Layout, transport: &TransportSlice<'_>) {
    use Field::*;
    let (pairs, payload): (Vec<(Field, u128)>, &[u8]) = match transport {
        TransportSlice::Tcp(tcp) => (
            vec![
                (TcpSport, u128::from(tcp.source_port())),
                (TcpDport, u128::from(tcp.destination_port())),
                (TcpSeq, u128::from(tcp.sequence_number())),
                (TcpAck, u128::from(tcp.acknowledgment_number())),
                (TcpWindow, u128::from(tcp.window_size())),
                (TcpUrgent, u128::from(tcp.urgent_pointer())),
                (TcpHlen, u128::from(tcp.data_offset()) * 4),
                (L4Checksum, u128::from(tcp.checksum())),
            ],
            tcp.payload(),
        ),
        TransportSlice::Udp(udp) => (
            vec![
                (UdpSport, u128::from(udp.source_port())),
                (UdpDport, u128::from(udp.destination_port())),
                (UdpLen, u128::from(udp.length())),
                (L4Checksum, u128::from(udp.checksum())),
            ],
            udp.payload(),
        ),
        TransportSlice::Icmpv4(icmp) => (
            vec![
                (IcmpType, u128::from(icmp.type_u8())),
                (IcmpCode, u128::from(icmp.code_u8())),
                (IcmpRest, number(&icmp.bytes5to8())),
            ],
            &icmp.slice()[8..],
        ),
        TransportSlice::Icmpv6(icmp) => (
            vec![
                (Icmp6Type, u128::from(icmp.type_u8())),
                (Icmp6Code, u128::from(icmp.code_u8())),
                (Icmp6Rest, number(&icmp.bytes5to8())),
            ],
            &icmp.slice()[8..],
        ),
        TransportSlice::Igmp(_) => return,
    };
    same(packet, layout, &pairs);
    if !Header::behind_ports().any(|header| layout.has(header)) {
        assert_eq!(packet.payload(layout), payload);
    }
}

/// Whether the packet is malformed for a reason that the oracle does not check. It parses fewer
/// kinds of tags and IPv6 extension headers, and no options.
fn stricter(layout: &Layout) -> bool {
    use Malformed::*;
    matches!(
        layout.malformed_reason(),
        Some(
            EthLength
                | VlanDepth
                | MplsShort
                | MplsDepth
                | IpOptions
                | Ip6ExtensionLength
                | Ip6ExtensionDepth
                | EspShort
                | TcpOptions
                | UdpLength
                | GreShort
        )
    )
}

/// Whether the oracle reports an error that this parser does not check: the length of ICMP
/// timestamps, AH in later fragments, IGMP, ICMP of the other IP version, or the order of IPv6
/// extension headers.
fn oracle_is_stricter(packet: &Packet, layout: &Layout, error: &SliceError) -> bool {
    let timestamp = matches!(packet.get(layout, Field::IcmpType), Some(13 | 14));
    let foreign = match packet.get(layout, Field::InetProto) {
        Some(1) => layout.has(Header::Ip6),
        Some(58) => layout.has(Header::Ip4),
        proto => proto == Some(2),
    };
    let order = matches!(error, SliceError::Ipv6Exts(_));
    timestamp || foreign || order || layout.is_later_fragment()
}

/// Compares a whole Ethernet packet. Returns whether both saw a transport header.
pub fn compare(packet: &Packet) -> bool {
    let layout = packet.parse();
    // The oracle does not parse 802.3, and this parser does not parse MACsec.
    let kind = packet.get(&layout, Field::EthType).unwrap_or(0);
    // The oracle takes all bytes as payload when the IPv6 payload length is 0, jumbogram or not.
    let no_length = packet.get(&layout, Field::Ip6Len) == Some(0);
    if stricter(&layout) || no_length || kind <= 1500 || kind == 0x88e5 {
        return false;
    }
    let sliced = match SlicedPacket::from_ethernet(packet.data()) {
        Ok(sliced) => sliced,
        Err(error) => {
            let excused = oracle_is_stricter(packet, &layout, &error);
            assert!(excused || layout.malformed().is_some(), "{error}: {packet}");
            return false;
        }
    };
    if let Some(net) = &sliced.net {
        compare_net(packet, &layout, net);
    }
    // The oracle also accepts ICMP of the other IP version as ICMP.
    let foreign = match &sliced.transport {
        Some(TransportSlice::Icmpv4(_)) => layout.has(Header::Ip6),
        Some(TransportSlice::Icmpv6(_)) => layout.has(Header::Ip4),
        _ => false,
    };
    if let Some(transport) = &sliced.transport
        && !foreign
    {
        compare_transport(packet, &layout, transport);
    }
    let ours = [Header::L4, Header::Icmp, Header::Icmp6].iter().any(|h| layout.has(*h));
    ours && sliced.transport.is_some()
}

/// Whether the checksums of an Ethernet packet are right by the oracle. `None` when it finds none.
pub fn checksums_right(packet: &Packet) -> Option<bool> {
    let sliced = SlicedPacket::from_ethernet(packet.data()).ok()?;
    let (ip_right, transport_right) = match (sliced.net?, sliced.transport) {
        (NetSlice::Ipv4(ip), transport) => {
            let header = ip.header().to_header();
            let own = header.calc_header_checksum() == ip.header().header_checksum();
            (own, transport.map(|t| transport4_right(&t, ip.header())))
        }
        (NetSlice::Ipv6(ip), transport) => (true, transport.map(|t| transport6_right(&t, &ip))),
        _ => return None,
    };
    Some(ip_right && transport_right.unwrap_or(true))
}

fn transport4_right(transport: &TransportSlice<'_>, ip: etherparse::Ipv4HeaderSlice<'_>) -> bool {
    match transport {
        TransportSlice::Tcp(tcp) => {
            tcp.calc_checksum_ipv4(ip.source(), ip.destination()).unwrap() == tcp.checksum()
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let sum = header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload());
            sum.unwrap() == udp.checksum()
        }
        TransportSlice::Icmpv4(icmp) => {
            // The oracle's typed view omits bytes that a type leaves unused, so this sums the
            // bytes.
            etherparse::checksum::Sum16BitWords::new().add_slice(icmp.slice()).ones_complement()
                == 0
        }
        _ => true,
    }
}

fn transport6_right(transport: &TransportSlice<'_>, ip: &etherparse::Ipv6Slice<'_>) -> bool {
    let (src, dst) = (ip.header().source(), ip.header().destination());
    match transport {
        TransportSlice::Tcp(tcp) => tcp.calc_checksum_ipv6(src, dst).unwrap() == tcp.checksum(),
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            header.calc_checksum_ipv6_raw(src, dst, udp.payload()).unwrap() == udp.checksum()
        }
        TransportSlice::Icmpv6(icmp) => icmp.is_checksum_valid(src, dst),
        _ => true,
    }
}

#[test]
fn oracle_sees_the_samples_as_we_do() {
    let ethernet = all().into_iter().filter(|(_, packet)| packet.link == Link::Ethernet);
    let seen: Vec<_> = ethernet.filter(|(_, p)| compare(p)).map(|(name, _)| name).collect();
    let expected = [
        "tcp",
        "tcp6",
        "udp",
        "udp6",
        "qinq",
        "echo",
        "echo6",
        "vxlan",
        "ah",
        "unreachable",
        "exceeded",
        "unreachable6",
        "too_big6",
        "geneve",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn oracle_finds_the_samples_checksums_right() {
    for (name, packet) in all() {
        if packet.link == Link::Ethernet {
            assert_ne!(checksums_right(&packet), Some(false), "{name}");
        }
    }
    let mut wrong = named("udp6");
    *wrong.data_mut().last_mut().unwrap() ^= 1;
    assert_eq!(checksums_right(&wrong), Some(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(4000)))]

    #[test]
    fn oracle_sees_damaged_packets_as_we_do(
        index in 0usize..17,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let sample = all().swap_remove(index).1;
        prop_assert_eq!(sample.link, Link::Ethernet);
        let mut data = sample.data().to_vec();
        for (at, byte) in damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        compare(&Packet::new(Link::Ethernet, 0, data));
    }

    #[test]
    fn oracle_finds_checksums_right_after_writes(
        index in 0usize..17,
        writes in prop::collection::vec((0..FIELDS.len(), any::<u128>()), 1..12),
    ) {
        let mut packet = all().swap_remove(index).1;
        let layout = packet.parse();
        for (field, value) in writes {
            let info = &FIELDS[field];
            let is_type = matches!(info.field, Field::IcmpType | Field::Icmp6Type);
            if info.access == Access::Rw && !is_type {
                packet.set(&layout, info.field, value);
            }
        }
        prop_assert_ne!(checksums_right(&packet), Some(false));
    }
}
