//! Messages of interfaces about their own addresses, and the messages that they receive.

use super::super::messages::BROADCAST;
use super::*;
use braid_packet::Header;
use braid_packet::checksum::{fill, verify};

#[test]
fn chains_without_addresses_have_no_hosts() {
    assert!(Hosts::new(&chain(vec![Interface::default()])).is_none());
    let mut hosts = Hosts::new(&chain(vec![Interface::default(), wan()])).unwrap();
    hosts.advance(BEGIN);
    let mut frames = vec![asks("203.0.113.9", "203.0.113.1")];
    assert_eq!(hosts.receive(0, &mut frames), 0);
    let mut packet = udp("10.0.0.1", "203.0.113.9", 3000);
    let before = packet.clone();
    assert_eq!(hosts.leave(0, &mut packet), Leaving::Sends);
    assert_eq!(packet, before);
    assert!(hosts.out().is_empty());
}

#[test]
fn arp_requests_for_own_addresses_are_answered() {
    let mut world = World::new(wan());
    let said = world.answers(asks("203.0.113.9", "203.0.113.1"));
    let [reply] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(macs(reply), (PEER, OWN));
    assert_eq!(get(reply, Field::ArpOp), 2);
    assert_eq!(get(reply, Field::ArpSha), 0x0200_0000_0001);
    assert_eq!(get(reply, Field::ArpSpa), word("203.0.113.1"));
    assert_eq!(get(reply, Field::ArpTha), 0x0200_0000_0099);
    assert_eq!(get(reply, Field::ArpTpa), word("203.0.113.9"));
    // A test whether somebody has the address is answered, too.
    let test = messages::question(PEER, None, ip("203.0.113.1"), None);
    assert_eq!(world.answers(test).len(), 1);
    assert_eq!(world.count("answered/arp"), 2);
    // For others, nobody answers, and the chain does not get the question either.
    assert!(world.answers(asks("203.0.113.9", "203.0.113.8")).is_empty());
}

#[test]
fn neighbour_solicitations_for_own_addresses_are_answered() {
    let mut world = World::new(wan());
    let said = world.answers(asks("fe80::9", "2001:db8::1"));
    let [reply] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(macs(reply), (PEER, OWN));
    assert_eq!(get(reply, Field::Ip6Src), word("2001:db8::1"));
    assert_eq!(get(reply, Field::Ip6Dst), word("fe80::9"));
    assert_eq!((get(reply, Field::Ip6Ttl), get(reply, Field::Icmp6Type)), (255, 136));
    assert_eq!(get(reply, Field::Icmp6Rest), 0xe000_0000);
    let expected = [&word("2001:db8::1").to_be_bytes()[..], &[2, 1], &OWN].concat();
    assert_eq!(reply.payload(&reply.parse()), expected);
    assert!(verify(reply, &reply.parse()).all_right());
    // A host that tests whether an address is free has no address yet, so the answer goes to all
    // hosts.
    let said = world.answers(messages::question(PEER, None, ip("2001:db8::1"), None));
    assert_eq!(get(&said[0], Field::Ip6Dst), word("ff02::1"));
    assert_eq!(get(&said[0], Field::Icmp6Rest), 0xa000_0000);
    assert_eq!(world.count("answered/ndp"), 2);
    assert!(world.answers(asks("fe80::9", "2001:db8::2")).is_empty());
}

#[test]
fn echo_requests_to_own_addresses_are_answered() {
    let mut world = World::new(wan());
    let request = |shape, fields: &[(Field, u128)], to: Mac| {
        let mut packet = build_fresh(LinkType::Ethernet, 0, shape, fields, b"some data").unwrap();
        packet.data_mut()[..6].copy_from_slice(&to);
        packet.data_mut()[6..12].copy_from_slice(&PEER);
        packet
    };
    let echo = |to: &str| {
        let fields = [
            (Field::IpSrc, word("10.9.9.9")),
            (Field::IpDst, word(to)),
            (Field::IcmpType, 8),
            (Field::IcmpRest, 0x1234_0007),
        ];
        request(Shape::Icmp, &fields, OWN)
    };
    let said = world.answers(echo("203.0.113.1").into_frame());
    assert_eq!(macs(&said[0]), (PEER, OWN));
    assert_eq!(get(&said[0], Field::IpSrc), word("203.0.113.1"));
    assert_eq!(get(&said[0], Field::IpDst), word("10.9.9.9"));
    assert_eq!((get(&said[0], Field::IcmpType), get(&said[0], Field::IcmpRest)), (0, 0x1234_0007));
    assert_eq!(said[0].payload(&said[0].parse()), b"some data");
    assert!(verify(&said[0], &said[0].parse()).all_right());
    let fields = [
        (Field::Ip6Src, word("2001:db8::9")),
        (Field::Ip6Dst, word("2001:db8::1")),
        (Field::Icmp6Type, 128),
    ];
    let said = world.answers(request(Shape::Icmp6, &fields, OWN).into_frame());
    assert_eq!(get(&said[0], Field::Icmp6Type), 129);
    assert!(verify(&said[0], &said[0].parse()).all_right());
    assert_eq!(world.count("answered/echo"), 2);
    // Requests to the function's address enter the chain, and so do fragments of requests.
    assert!(world.hear(echo("203.0.113.7").into_frame()));
    let mut part = echo("203.0.113.1");
    part.data_mut()[20] = 0x20;
    assert!(world.hear(part.into_frame()));
    // A wrong checksum is no request.
    let mut wrong = echo("203.0.113.1");
    *wrong.data_mut().last_mut().unwrap() ^= 1;
    assert!(world.answers(wrong.into_frame()).is_empty());
    assert_eq!(world.count("invalid"), 1);
}

#[test]
fn other_packets_enter_and_frames_for_other_hosts_do_not() {
    let mut world = World::new(wan());
    let to = |mac: Mac| {
        let mut packet = udp("10.9.9.9", "203.0.113.1", 9);
        packet.data_mut()[..6].copy_from_slice(&mac);
        packet.into_frame()
    };
    assert!(world.hear(to(OWN)));
    assert!(world.hear(to(BROADCAST)));
    assert!(!world.hear(to(OTHER)));
    assert_eq!(world.count("for_other_hosts"), 1);
    // A frame that is too short for a header enters the chain, which counts it.
    assert!(world.hear(Frame::of(&[1, 2, 3])));
}

#[test]
fn functions_addresses_are_answered_until_a_host_has_them() {
    let mut world = World::new(wan());
    assert_eq!(world.answers(asks("203.0.113.9", "203.0.113.7")).len(), 1);
    assert!(world.answers(tells("203.0.113.7", OTHER)).is_empty());
    assert!(world.answers(asks("203.0.113.9", "203.0.113.7")).is_empty());
    assert_eq!(world.hosts.status(0).unwrap()["others_have"][0], "203.0.113.7");
    let warned = "wan: the host 02:00:00:00:00:77 on the link has the address 203.0.113.7 of a \
                  function, so the run does not answer for it";
    assert_eq!(world.hosts.warnings(), [warned]);
    // It is a neighbour like others then.
    assert_eq!(world.send("203.0.113.7"), Err(Leaving::Waits));
    let elsewhere = Interface { addresses: vec![own("203.0.112.1/24")], gateways: vec![], ..wan() };
    assert!(World::new(elsewhere).answers(asks("203.0.113.9", "203.0.113.7")).is_empty());
}

#[test]
fn new_address_of_a_function_is_answered() {
    let mut world = World::new(wan());
    let param = braid_ir::model::ParamId(0);
    let change = Change::Set(ParamValue::Scalar(word("203.0.113.8")));
    world.hosts.change(&Control { time_ns: 0, node: 0, param, change, line: None });
    assert!(world.answers(asks("203.0.113.9", "203.0.113.7")).is_empty());
    assert_eq!(world.answers(asks("203.0.113.9", "203.0.113.8")).len(), 1);
    let told = world.pass(SECOND);
    let is_told =
        |p: &Packet| p.parse().has(Header::Arp) && get(p, Field::ArpSpa) == word("203.0.113.8");
    assert!(told.iter().any(is_told));
}

/// The type of reports of memberships (`mld`).
const REPORT: u128 = 143;

#[test]
fn interface_asks_for_its_addresses_first_and_then_tells_of_them_twice() {
    let mut world = World { hosts: Hosts::new(&chain(vec![wan()])).unwrap(), now_ns: BEGIN };
    world.hosts.advance(BEGIN);
    assert!(world.said().is_empty(), "nothing is known of the device");
    world.hosts.device(0, Some(Ethernet { mac: OWN, mtu: 1500 }), true);
    world.hosts.advance(BEGIN);
    let asked = world.said();
    let arp: Vec<_> = asked.iter().filter(|p| p.parse().has(Header::Arp)).collect();
    let fields = |p: &&Packet| (get(p, Field::ArpOp), get(p, Field::ArpSpa), get(p, Field::ArpTpa));
    let expected = [(1, 0, word("203.0.113.1")), (1, 0, word("203.0.113.7"))];
    assert_eq!(arp.iter().map(fields).collect::<Vec<_>>(), expected);
    let ndp = |p: &&Packet| p.parse().has(Header::Icmp6) && get(p, Field::Icmp6Type) != REPORT;
    let ndp: Vec<_> = asked.iter().filter(ndp).collect();
    assert_eq!(ndp.len(), 1);
    assert_eq!(get(ndp[0], Field::Ip6Src), 0);
    assert_eq!(get(ndp[0], Field::Ip6Dst), word("ff02::1:ff00:1"));
    // A host has the function's address, so the interface does not tell of this one.
    assert!(world.answers(answer("203.0.113.7", OTHER)).is_empty());
    for wait in [SECOND / 2, 2 * SECOND] {
        let told = world.pass(wait);
        let own = |p: &Packet| match p.parse().has(Header::Arp) {
            true => (get(p, Field::ArpOp), get(p, Field::ArpSpa), get(p, Field::ArpTpa)),
            false => (get(p, Field::Icmp6Type), get(p, Field::Ip6Src), get(p, Field::Ip6Dst)),
        };
        let arp = (1, word("203.0.113.1"), word("203.0.113.1"));
        let expected = [arp, (136, word("2001:db8::1"), word("ff02::1"))];
        let told = told.iter().map(own).filter(|(kind, _, _)| *kind != REPORT);
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
    assert!(world.pass(10 * SECOND).is_empty());
    // A device that comes back tells its neighbours again.
    world.hosts.device(0, None, false);
    world.hosts.device(0, Some(Ethernet { mac: OWN, mtu: 1500 }), true);
    assert!(!world.pass(SECOND).is_empty());
}

#[test]
fn functions_addresses_are_answered_again_when_their_host_is_silent() {
    let mut world = World::new(wan());
    world.pass(5 * SECOND);
    world.answers(tells("203.0.113.7", OTHER));
    for _ in 0..5 {
        // The host is asked, and still has the address.
        let asked = world.pass(21 * SECOND);
        assert!(asked.iter().any(|packet| get(packet, Field::ArpTpa) == word("203.0.113.7")));
        world.answers(tells("203.0.113.7", OTHER));
        assert!(world.answers(asks("203.0.113.9", "203.0.113.7")).is_empty());
    }
    for _ in 0..4 {
        world.pass(21 * SECOND);
    }
    assert_eq!(world.answers(asks("203.0.113.9", "203.0.113.7")).len(), 1);
    assert_eq!(world.hosts.warnings(), Vec::<String>::new());
}

#[test]
fn own_address_of_another_host_is_defended_and_warned_of() {
    let mut world = World::new(wan());
    let said = world.answers(tells("203.0.113.1", OTHER));
    assert_eq!(get(&said[0], Field::ArpSpa), word("203.0.113.1"));
    // Two hosts that both defend an address do not fill the link.
    assert!(world.answers(tells("203.0.113.1", OTHER)).is_empty());
    let warnings = world.hosts.warnings();
    assert_eq!(
        warnings,
        ["wan: the host 02:00:00:00:00:77 on the link has the same address 203.0.113.1"]
    );
    assert_eq!(world.answers(asks("203.0.113.9", "203.0.113.1")).len(), 1);
}

/// A frame with a neighbour solicitation, changed.
fn changed_solicitation(change: impl FnOnce(&mut Packet)) -> Frame {
    let mut packet = Packet::in_frame(LinkType::Ethernet, 0, asks("fe80::9", "2001:db8::1"), 0);
    change(&mut packet);
    fill(&mut packet);
    packet.into_frame()
}

#[test]
fn neighbour_discovery_from_elsewhere_or_malformed_is_not_heard() {
    let mut world = World::new(wan());
    let byte =
        |at: usize, value: u8| changed_solicitation(move |packet| packet.data_mut()[at] = value);
    assert_eq!(world.answers(byte(21, 255)).len(), 1, "this one is sound");
    let invalid = [
        // From another link: the hop limit is not 255.
        byte(21, 254),
        // The code is not 0.
        byte(55, 1),
        // The target is a multicast address.
        byte(62, 0xff),
        // The source is one.
        byte(22, 0xff),
        // An option of length 0.
        byte(79, 0),
        // A longer option than there is.
        byte(79, 2),
        // The MAC address is one of several hosts.
        byte(80, 3),
        // A source that is missing comes without a MAC address.
        changed_solicitation(|packet| packet.data_mut()[22..38].fill(0)),
    ];
    let count = invalid.len() as u64;
    for (at, frame) in invalid.into_iter().enumerate() {
        assert!(world.answers(frame).is_empty(), "{at}");
    }
    let mut wrong = asks("fe80::9", "2001:db8::1");
    wrong.bytes_mut()[56] ^= 1;
    assert!(world.answers(wrong).is_empty());
    assert_eq!(world.count("invalid"), count + 1);
    assert_eq!(world.count("answered/ndp"), 1);
}

#[test]
fn impossible_arp_is_not_heard() {
    let mut world = World::new(wan());
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = asks("203.0.113.9", "203.0.113.1");
        frame.bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let invalid = [
        changed(22, &[3]),
        changed(22, &[0; 6]),
        changed(28, &[224, 0, 0, 1]),
        changed(28, &[127, 0, 0, 1]),
        changed(20, &[0, 3]),
        changed(18, &[8]),
    ];
    let count = invalid.len() as u64;
    for (at, frame) in invalid.into_iter().enumerate() {
        assert!(world.answers(frame).is_empty(), "{at}");
    }
    let mut cut = asks("203.0.113.9", "203.0.113.1");
    cut.truncate(41);
    assert!(world.answers(cut).is_empty());
    assert_eq!(world.count("invalid"), count + 1);
}
