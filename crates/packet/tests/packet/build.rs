//! Tests of new packets: answers to a packet, and packets from nothing.

use crate::samples::*;
use braid_packet::field::Header;
use braid_packet::{Field, Link, NewPayload, Packet, Shape, build_fresh, build_new, checksum};

fn get(packet: &Packet, field: Field) -> u128 {
    packet.get(&packet.parse(), field).unwrap()
}

/// Checks that the packet is well-formed, complete and has right checksums.
fn assert_valid(packet: &Packet) {
    let layout = packet.parse();
    assert_eq!(layout.malformed(), None);
    assert!(checksum::verify(packet, &layout).all_right());
    assert_eq!(usize::try_from(packet.wire_len).unwrap(), packet.data().len());
}

#[test]
fn reset_goes_back_with_exchanged_addresses() {
    let mut current = named("qinq");
    current.time_ns = 5;
    let fields = [
        (Field::TcpSport, 443),
        (Field::TcpDport, 0x1234),
        (Field::TcpFlags, 0x14),
        (Field::TcpSeq, 0x0506_0708),
    ];
    let reset = build_new(&current, Shape::Tcp4, true, &fields, NewPayload::Empty).unwrap();
    assert_valid(&reset);
    assert_eq!(reset.data().len(), 14 + 8 + 20 + 20);
    assert_eq!((reset.time_ns, reset.backward), (5, true));
    assert_eq!(get(&reset, Field::EthSrc), 0x0200_0000_0002);
    assert_eq!(get(&reset, Field::EthDst), 0x0200_0000_0001);
    assert_eq!(&reset.data()[12..22], &current.data()[12..22]);
    assert_eq!(get(&reset, Field::IpSrc), u128::from(DST4));
    assert_eq!(get(&reset, Field::IpDst), u128::from(SRC4));
    let tcp = [Field::TcpSport, Field::TcpDport, Field::TcpFlags, Field::TcpSeq, Field::TcpAck];
    assert_eq!(tcp.map(|field| get(&reset, field)), [443, 0x1234, 0x14, 0x0506_0708, 0]);
    assert_eq!((get(&reset, Field::IpTtl), get(&reset, Field::IpId)), (64, 0));
    assert_eq!((get(&reset, Field::TcpHlen), get(&reset, Field::TcpWindow)), (20, 0));
}

#[test]
fn onward_packet_keeps_addresses() {
    let current = named("tcp6");
    let new = build_new(&current, Shape::Udp6, false, &[(Field::UdpDport, 9)], NewPayload::Same);
    let new = new.unwrap();
    assert_valid(&new);
    assert_eq!((get(&new, Field::Ip6Src), get(&new, Field::Ip6Dst)), (SRC6, DST6));
    assert_eq!(get(&new, Field::EthSrc), 0x0200_0000_0001);
    assert_eq!(new.payload(&new.parse()), b"payload of odd length");
    assert_eq!((get(&new, Field::UdpLen), get(&new, Field::Ip6Len)), (29, 29));
    assert_eq!(new.backward, current.backward);
}

#[test]
fn icmp_error_quotes_the_packet_without_padding() {
    let mut data = eth(0x0800, &ip4(17, &udp(1000, 53, b"abc")));
    data.extend([0xee; 15]);
    let current = filled(Link::Ethernet, data);
    let fields = [(Field::IcmpType, 11), (Field::IpSrc, 0x0a00_0001)];
    let error = build_new(&current, Shape::Icmp, true, &fields, NewPayload::Quote(576)).unwrap();
    assert_valid(&error);
    let layout = error.parse();
    assert!(layout.has(Header::QuotedL4));
    assert_eq!(error.payload(&layout), &current.data()[14..14 + 31]);
    assert_eq!((get(&error, Field::IpSrc), get(&error, Field::IpDst)), (0x0a00_0001, SRC4.into()));
    assert_eq!(get(&error, Field::QuotedSport), 1000);
    let short = build_new(&current, Shape::Icmp, true, &fields, NewPayload::Quote(28)).unwrap();
    assert_eq!(short.payload(&short.parse()), &current.data()[14..14 + 28]);
}

#[test]
fn icmp6_error_has_a_right_pseudo_header() {
    let current = named("udp6");
    let fields = [(Field::Icmp6Rest, 1280), (Field::Icmp6Type, 2)];
    let error = build_new(&current, Shape::Icmp6, true, &fields, NewPayload::Quote(1232)).unwrap();
    assert_valid(&error);
    assert_eq!(checksum::verify(&error, &error.parse()).transport, Some(true));
    assert_eq!(error.quoted_flow_key(&error.parse()), current.flow_key(&current.parse()));
}

#[test]
fn echo_reply_takes_identifier_before_type() {
    let current = named("echo6");
    let fields = [(Field::Icmp6Id, 7), (Field::Icmp6Seq, 8), (Field::Icmp6Type, 129)];
    let reply = build_new(&current, Shape::Icmp6, true, &fields, NewPayload::Same).unwrap();
    assert_valid(&reply);
    assert_eq!((get(&reply, Field::Icmp6Id), get(&reply, Field::Icmp6Seq)), (7, 8));
}

#[test]
fn arp_reply_is_built_on_ethernet_only() {
    let fields = [(Field::ArpOp, 2), (Field::ArpSpa, 0x0a01_0209), (Field::ArpTpa, 0x0a01_0203)];
    let arp = |name: &str| build_new(&named(name), Shape::Arp, true, &fields, NewPayload::Same);
    let reply = arp("arp").unwrap();
    assert_valid(&reply);
    assert_eq!(reply.data().len(), 42);
    assert_eq!((get(&reply, Field::ArpOp), get(&reply, Field::ArpSpa)), (2, 0x0a01_0209));
    assert!(["raw", "cooked", "cooked2"].iter().all(|name| arp(name).is_none()));
}

#[test]
fn other_ip_version_has_zero_addresses() {
    let new = build_new(&named("tcp6"), Shape::Udp4, false, &[], NewPayload::Quote(40)).unwrap();
    assert_valid(&new);
    assert_eq!((get(&new, Field::IpSrc), get(&new, Field::IpDst)), (0, 0));
    assert_eq!(new.payload(&new.parse()), &named("tcp6").data()[14..54]);
}

#[test]
fn cooked_header_turns_its_direction() {
    let new = build_new(&named("cooked"), Shape::Tcp4, true, &[], NewPayload::Empty).unwrap();
    assert_valid(&new);
    let mut header = cooked(0x0800, &[]);
    header[1] = 4;
    assert_eq!(&new.data()[..16], header);
    let new = build_new(&named("cooked2"), Shape::Udp4, false, &[], NewPayload::Empty).unwrap();
    assert_eq!(&new.data()[..20], cooked2(0x0800, &[]));
    let back = build_new(&named("cooked2"), Shape::Udp4, true, &[], NewPayload::Empty).unwrap();
    assert_eq!(back.data()[10], 4);
}

#[test]
fn answer_in_a_pppoe_session_stays_in_it() {
    for (name, shape) in [("pppoe", Shape::Tcp4), ("pppoe6", Shape::Icmp6), ("pppoe", Shape::Udp6)]
    {
        let current = named(name);
        let built = build_new(&current, shape, true, &[], NewPayload::Empty).unwrap();
        assert_valid(&built);
        assert_eq!(get(&built, Field::PppoeSession), 5);
        let len = u128::try_from(built.data().len() - 20).unwrap();
        assert_eq!(get(&built, Field::PppoeLen), len);
        assert_eq!(built.parse().has(Header::Ip4), shape == Shape::Tcp4);
    }
}

#[test]
fn packet_without_link_header_gives_none() {
    let cut = Packet::new(Link::Ethernet, 0, vec![0; 13]);
    assert!(build_new(&cut, Shape::Tcp4, true, &[], NewPayload::Empty).is_none());
    let raw = Packet::new(Link::RawIp, 0, vec![]);
    assert!(build_new(&raw, Shape::Tcp4, true, &[], NewPayload::Quote(9)).is_some());
}

#[test]
fn foreign_and_read_only_assignments_do_nothing() {
    let with = |fields: &[(Field, u128)]| {
        build_new(&named("tcp"), Shape::Udp4, false, fields, NewPayload::Empty).unwrap()
    };
    let plain = with(&[]);
    assert_eq!(with(&[(Field::TcpSeq, 1), (Field::IpLen, 9), (Field::Ip6Flow, 3)]), plain);
}

#[test]
fn payload_is_cut_to_what_lengths_can_say() {
    let long = vec![1; 70_000];
    let udp4 = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], &long).unwrap();
    assert_valid(&udp4);
    assert_eq!(udp4.data().len(), 65_535);
    let tcp6 = build_fresh(Link::RawIp, 0, Shape::Tcp6, &[], &long).unwrap();
    assert_valid(&tcp6);
    assert_eq!(tcp6.data().len(), 40 + 65_535);
    // The length of a PPPoE header counts the IP header, too.
    let mut data = named("pppoe").data()[..22].to_vec();
    data.extend(ip4(17, &udp(1, 2, &[1; 65_505])));
    data[18..20].copy_from_slice(&u16::MAX.to_be_bytes());
    let current = Packet::new(Link::Ethernet, 0, data);
    assert!(current.parse().has(Header::Udp));
    for shape in [Shape::Tcp4, Shape::Tcp6] {
        assert_valid(&build_new(&current, shape, false, &[], NewPayload::Same).unwrap());
    }
}

#[test]
fn fresh_packets_are_valid_on_every_link() {
    let fields = [(Field::InetTtl, 9), (Field::IpSrc, 1), (Field::Ip6Src, 2), (Field::L4Dport, 3)];
    for link in [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2] {
        for shape in [Shape::Icmp, Shape::Icmp6, Shape::Tcp4, Shape::Tcp6, Shape::Udp4, Shape::Udp6]
        {
            let packet = build_fresh(link, 1, shape, &fields, b"abc").unwrap();
            assert_valid(&packet);
            assert_eq!(get(&packet, Field::InetTtl), 9);
        }
        assert_eq!(build_fresh(link, 1, Shape::Arp, &[], &[]).is_some(), link == Link::Ethernet);
    }
}

#[test]
fn damage_to_a_repeated_payload_stays_recognisable() {
    for (name, shape) in [("tcp", Shape::Tcp4), ("udp", Shape::Udp4), ("tcp6", Shape::Udp6)] {
        let mut current = named(name);
        braid_packet::checksum::fill(&mut current);
        let last = current.data().len() - 1;
        current.data_mut()[last] ^= 0x10;
        let transport = |packet: &Packet| checksum::verify(packet, &packet.parse()).transport;
        assert_eq!(transport(&current), Some(false), "{name}");
        let fields = [(Field::L4Dport, 9)];
        let mut same = build_new(&current, shape, true, &fields, NewPayload::Same).unwrap();
        assert_eq!(transport(&same), Some(false), "{name}");
        // Without the damage it would be right.
        let last = same.data().len() - 1;
        same.data_mut()[last] ^= 0x10;
        assert_eq!(transport(&same), Some(true), "{name}");
        let empty = build_new(&current, shape, true, &fields, NewPayload::Empty).unwrap();
        assert_eq!(transport(&empty), Some(true), "{name}");
    }
}
