//! Packets whose next hop does not answer, and packets without a gateway.

use super::*;
use braid_packet::checksum::verify;

/// The error that the interface has sent last.
fn error(world: &mut World) -> Packet {
    world.hosts.out().errors.pop().expect("an error")
}

#[test]
fn sender_of_a_packet_whose_next_hop_is_silent_is_told() {
    let mut world = World::new(wan());
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
    assert!(world.hosts.out().errors.is_empty(), "the neighbour may still answer");
    world.pass(4 * SECOND);
    assert_eq!(world.lost(), ["no_neighbour"; 2]);
    assert_eq!(world.hosts.out().errors.len(), 2);
    let told = error(&mut world);
    assert_eq!((told.ingress, told.backward), (0, false));
    assert_eq!(get(&told, Field::IpSrc), word("203.0.113.1"));
    assert_eq!(get(&told, Field::IpDst), word("198.51.100.1"));
    assert_eq!((get(&told, Field::IcmpType), get(&told, Field::IcmpCode)), (3, 1));
    assert_eq!(get(&told, Field::IcmpRest), 0);
    assert_eq!(get(&told, Field::QuotedIpDst), word("203.0.113.9"));
    assert_eq!(macs(&told).0, OWN);
    assert!(verify(&told, &told.parse()).all_right());
    // While the neighbour counts as silent, senders get an error at once.
    world.hosts.out().errors.clear();
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Lost("no_neighbour")));
    assert_eq!(get(&error(&mut world), Field::IcmpCode), 1);
    assert_eq!(world.count("answered/unreachable"), 3);
}

#[test]
fn sender_of_an_ipv6_packet_is_told_by_icmpv6() {
    let mut world = World::new(wan());
    let (leaving, _) = world.leave(udp("2001:db8:1::1", "2001:db8::9", 10));
    assert_eq!(leaving, Leaving::Waits);
    world.pass(4 * SECOND);
    let told = error(&mut world);
    assert_eq!((get(&told, Field::Icmp6Type), get(&told, Field::Icmp6Code)), (1, 3));
    assert_eq!(get(&told, Field::Ip6Src), word("2001:db8::1"));
    assert!(verify(&told, &told.parse()).all_right());
}

#[test]
fn sender_of_a_packet_without_a_gateway_is_told() {
    let mut world = World::new(Interface { gateways: Vec::new(), ..wan() });
    assert_eq!(world.send("192.0.2.1"), Err(Leaving::Lost("no_gateway")));
    let told = error(&mut world);
    assert_eq!((get(&told, Field::IcmpType), get(&told, Field::IcmpCode)), (3, 0));
    let (leaving, _) = world.leave(udp("2001:db8:1::1", "2001:db8:2::9", 10));
    assert_eq!(leaving, Leaving::Lost("no_gateway"));
    let told = error(&mut world);
    assert_eq!((get(&told, Field::Icmp6Type), get(&told, Field::Icmp6Code)), (1, 0));
}

#[test]
fn nobody_is_told_about_errors_and_packets_of_several_hosts() {
    let mut world = World::new(wan());
    world.send("203.0.113.9").unwrap_err();
    world.pass(4 * SECOND);
    world.hosts.out().errors.clear();
    let fields = [
        (Field::IpSrc, word("198.51.100.1")),
        (Field::IpDst, word("203.0.113.9")),
        (Field::IcmpType, 3),
    ];
    let icmp = build_fresh(LinkType::Ethernet, 0, Shape::Icmp, &fields, &[0; 28]).unwrap();
    let mut later = udp("198.51.100.1", "203.0.113.9", 10);
    later.data_mut()[21] = 8;
    let mut group = udp("198.51.100.1", "203.0.113.9", 10);
    group.data_mut()[0] = 1;
    let nobody = udp("0.0.0.0", "203.0.113.9", 10);
    for (at, packet) in [icmp, later, group, nobody].into_iter().enumerate() {
        assert_eq!(world.leave(packet).0, Leaving::Lost("no_neighbour"), "{at}");
        assert!(world.hosts.out().errors.is_empty(), "{at}");
    }
    // Packets to groups and to all hosts need no next hop.
    for to in ["224.0.0.9", "203.0.113.255", "255.255.255.255"] {
        assert!(world.send(to).is_ok(), "{to}");
    }
    assert_eq!(world.count("answered/unreachable"), 1);
}

#[test]
fn errors_about_silent_neighbours_have_a_limit() {
    let mut world = World::new(wan());
    world.send("203.0.113.9").unwrap_err();
    world.pass(4 * SECOND);
    world.hosts.out().errors.clear();
    let told = |world: &mut World| {
        (0..200).for_each(|_| assert!(world.send("203.0.113.9").is_err()));
        world.hosts.out().errors.drain(..).count()
    };
    assert_eq!(told(&mut world), 50);
    world.pass(100_000_000);
    assert_eq!(told(&mut world), 10, "100 a second");
}
