//! Tests every field: where it is, that it can be written, and that nothing else changes.

use crate::samples::*;
use braid_packet::{Access, FIELDS, Field, checksum};
use proptest::prelude::*;

/// A field's value in a sample.
fn value(name: &str, field: Field) -> u128 {
    let packet = named(name);
    packet.get(&packet.parse(), field).unwrap()
}

#[test]
fn every_field_is_in_some_sample() {
    let samples = all();
    for info in FIELDS {
        let found = samples.iter().any(|(_, p)| p.get(&p.parse(), info.field).is_some());
        assert!(found, "{}", info.name);
    }
}

#[test]
fn addresses_and_ports_have_opposite_fields() {
    use Field::*;
    let pairs = [
        (EthDst, EthSrc),
        (ArpSha, ArpTha),
        (ArpSpa, ArpTpa),
        (IpSrc, IpDst),
        (Ip6Src, Ip6Dst),
        (InetSrc, InetDst),
        (InetSport, InetDport),
        (TcpSport, TcpDport),
        (UdpSport, UdpDport),
        (L4Sport, L4Dport),
        (QuotedInetSrc, QuotedInetDst),
        (QuotedInetSport, QuotedInetDport),
        (QuotedIpSrc, QuotedIpDst),
        (QuotedIp6Src, QuotedIp6Dst),
        (QuotedSport, QuotedDport),
    ];
    for info in FIELDS {
        let other = pairs.iter().find_map(|(a, b)| match info.field {
            field if field == *a => Some(*b),
            field if field == *b => Some(*a),
            _ => None,
        });
        assert_eq!(info.field.opposite(), other, "{}", info.name);
    }
}

#[test]
fn link_fields_are_read_where_they_are() {
    use Field::*;
    assert_eq!(value("tcp", EthDst), 0x0200_0000_0002);
    assert_eq!(value("tcp", EthSrc), 0x0200_0000_0001);
    assert_eq!(value("qinq", EthType), 0x0800);
    let tag = [VlanTpid, VlanPcp, VlanDei, VlanId].map(|field| value("qinq", field));
    assert_eq!(tag, [0x88a8, 3, 0, 0x064]);
    let tag = [Vlan2Pcp, Vlan2Dei, Vlan2Id].map(|field| value("qinq", field));
    assert_eq!(tag, [5, 1, 0x0c8]);
    let arp = [ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa].map(|field| value("arp", field));
    assert_eq!(arp, [1, 0x0200_0000_0001, 0x0a01_0203, 0, 0x0a01_0209]);
    let mpls = [MplsLabel, MplsTc, MplsBos, MplsTtl].map(|field| value("mpls", field));
    assert_eq!(mpls, [0x12345, 5, 1, 63]);
}

#[test]
fn network_fields_are_read_where_they_are() {
    use Field::*;
    let ip = [IpSrc, IpDst, IpProto, IpTtl, IpTos, IpDscp, IpEcn, IpId];
    assert_eq!(
        ip.map(|field| value("tcp", field)),
        [u128::from(SRC4), u128::from(DST4), 6, 64, 0xb9, 0x2e, 1, 0x1234]
    );
    let ip = [IpDf, IpMf, IpFrag, IpLen, IpHlen].map(|field| value("tcp", field));
    assert_eq!(ip, [1, 0, 0, 85, 20]);
    assert_eq!(value("udp", IpHlen), 24);
    let ip6 = [Ip6Src, Ip6Dst, Ip6Next, Ip6Proto, Ip6Ttl, Ip6Tc, Ip6Flow, Ip6Len];
    assert_eq!(ip6.map(|field| value("udp6", field)), [SRC6, DST6, 0, 17, 63, 0xab, 0x12345, 37]);
    let inet = [InetVersion, InetSrc, InetDst, InetProto, InetTtl, InetSport, InetDport];
    assert_eq!(
        inet.map(|field| value("udp", field)),
        [4, u128::from(SRC4), u128::from(DST4), 17, 64, 4321, 53]
    );
    assert_eq!(inet.map(|field| value("udp6", field)), [6, SRC6, DST6, 17, 63, 4321, 53]);
    assert_eq!((value("esp", InetSport), value("esp", InetDport)), (0, 0));
}

#[test]
fn transport_fields_are_read_where_they_are() {
    use Field::*;
    let tcp = [TcpSport, TcpDport, TcpSeq, TcpAck, TcpFlags, TcpWindow, TcpUrgent, TcpHlen];
    let expected = [0x1234, 443, 0x0102_0304, 0x0506_0708, 0x12, 0xfaf0, 9, 44];
    assert_eq!(tcp.map(|field| value("tcp", field)), expected);
    let options = [TcpMss, TcpWscale, TcpTsVal, TcpTsEcr].map(|field| value("tcp6", field));
    assert_eq!(options, [1460, 6, 0xdead_beef, 7]);
    assert_eq!([L4Sport, L4Dport, UdpLen].map(|field| value("udp", field)), [4321, 53, 29]);
    let icmp = [IcmpType, IcmpCode, IcmpId, IcmpSeq, IcmpRest].map(|field| value("echo", field));
    assert_eq!(icmp, [8, 0, 0x0102, 3, 0x0102_0003]);
    let icmp6 = [Icmp6Type, Icmp6Code, Icmp6Rest].map(|field| value("too_big6", field));
    assert_eq!(icmp6, [2, 0, 1280]);
    assert_eq!((value("echo6", Icmp6Id), value("echo6", Icmp6Seq)), (0x0102, 3));
    assert_eq!((value("gre", GreProto), value("gre", GreKey)), (0x0800, 0xcafe_babe));
    assert_eq!(value("vxlan", VxlanVni), 0x12_3456);
    let pppoe = [PppoeCode, PppoeSession, PppoeLen, PppProto];
    assert_eq!(pppoe.map(|field| value("pppoe", field)), [0, 5, 87, 0x0021]);
    assert_eq!((value("pppoe", IpHlen), value("pppoe6", UdpDport)), (20, 2));
    let geneve = [GeneveVni, GeneveProto, GeneveOptions, GeneveControl, GeneveCritical];
    assert_eq!(geneve.map(|field| value("geneve", field)), [0x12_3456, 0x6558, 8, 1, 0]);
    assert_eq!((value("ah", AhSpi), value("ah", AhSeq)), (0x101, 5));
    assert_eq!((value("esp", EspSpi), value("esp", EspSeq)), (0x202, 6));
}

#[test]
fn quoted_fields_are_read_where_they_are() {
    use Field::*;
    let quoted = [QuotedIpSrc, QuotedIpDst, QuotedProto, QuotedSport, QuotedDport];
    assert_eq!(
        quoted.map(|field| value("unreachable", field)),
        [u128::from(SRC4), u128::from(DST4), 6, 0x1234, 443]
    );
    let header = [QuotedIpTos, QuotedIpId, QuotedIpTtl].map(|field| value("unreachable", field));
    let quoted_packet = named("unreachable");
    let ip = &quoted_packet.payload(&quoted_packet.parse())[..9];
    let expected = [ip[1].into(), u16::from_be_bytes([ip[4], ip[5]]).into(), ip[8].into()];
    assert_eq!(header, expected);
    let quoted = [QuotedIp6Src, QuotedIp6Dst, QuotedProto, QuotedInetSport, QuotedInetDport];
    assert_eq!(quoted.map(|field| value("unreachable6", field)), [SRC6, DST6, 17, 5353, 53]);
    let echo = [QuotedId, QuotedInetVersion, QuotedInetSport].map(|f| value("too_big6", f));
    assert_eq!(echo, [0x0102, 6, 0x0102]);
}

#[test]
fn packet_attributes_are_those_of_the_packet() {
    use Field::*;
    let mut packet = named("udp");
    (packet.time_ns, packet.ingress, packet.backward, packet.held) = (77, 3, true, true);
    let layout = packet.parse();
    let attributes = [PktLen, PktPayloadLen, PktTime, PktIngress, PktBackward, PktHeld];
    let values = attributes.map(|field| packet.get(&layout, field).unwrap());
    assert_eq!(values, [14 + 24 + 8 + 21, 21, 77, 3, 1, 1]);
    let flags = [PktFragment, PktLaterFragment, PktTruncated];
    assert_eq!(flags.map(|field| packet.get(&layout, field).unwrap()), [0, 0, 0]);
}

#[test]
fn read_only_fields_refuse_to_be_set() {
    for (name, packet) in all() {
        let layout = packet.parse();
        for info in FIELDS.iter().filter(|info| info.access == Access::Ro) {
            let mut changed = packet.clone();
            assert!(!changed.set(&layout, info.field, 1), "{name} {}", info.name);
            assert_eq!(changed, packet);
        }
    }
}

/// Whether the other field shares bits with the field that was set, or follows from it.
fn related(set: Field, other: Field) -> bool {
    use Field::*;
    let groups: &[&[Field]] = &[
        &[IpTos, IpDscp],
        &[IpTos, IpEcn],
        &[IpTtl, InetTtl],
        &[Ip6Ttl, InetTtl],
        &[IpSrc, InetSrc],
        &[Ip6Src, InetSrc],
        &[IpDst, InetDst],
        &[Ip6Dst, InetDst],
        &[L4Sport, TcpSport, UdpSport, InetSport],
        &[L4Dport, TcpDport, UdpDport, InetDport],
        &[IcmpId, IcmpRest, InetSport, InetDport],
        &[IcmpSeq, IcmpRest],
        &[Icmp6Id, Icmp6Rest, InetSport, InetDport],
        &[Icmp6Seq, Icmp6Rest],
        &[QuotedIpSrc, QuotedInetSrc],
        &[QuotedIp6Src, QuotedInetSrc],
        &[QuotedIpDst, QuotedInetDst],
        &[QuotedIp6Dst, QuotedInetDst],
        &[QuotedSport, QuotedInetSport],
        &[QuotedDport, QuotedInetDport],
        &[QuotedId, QuotedInetSport, QuotedInetDport],
    ];
    let checksum = matches!(other, IpChecksum | L4Checksum);
    set == other || checksum || groups.iter().any(|g| g.contains(&set) && g.contains(&other))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(64)))]

    #[test]
    fn set_field_reads_back_and_leaves_the_others(value: u128) {
        for (name, packet) in all() {
            let layout = packet.parse();
            for info in FIELDS.iter().filter(|info| info.access == Access::Rw) {
                let mut changed = packet.clone();
                if !changed.set(&layout, info.field, value) {
                    prop_assert_eq!(&changed, &packet);
                    continue;
                }
                let mask = u128::MAX >> (128 - info.width);
                for other in FIELDS {
                    let (before, after) =
                        (packet.get(&layout, other.field), changed.get(&layout, other.field));
                    if other.field == info.field {
                        prop_assert_eq!(after, Some(value & mask), "{} {}", name, info.name);
                    } else if !related(info.field, other.field) {
                        prop_assert_eq!(after, before, "{} {} {}", name, info.name, other.name);
                    }
                }
                prop_assert!(checksum::verify(&changed, &layout).all_right(), "{}", info.name);
            }
        }
    }
}
