//! Memberships in multicast groups.

use super::super::mld::{Query, groups, read, reports};
use super::*;
use braid_packet::Header;
use braid_packet::checksum::verify;
use std::net::Ipv6Addr;

fn ip6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A query with a response code, about a group (`::`: all groups).
pub(super) fn query(code: u16, group: &str) -> Vec<u8> {
    let [high, low] = code.to_be_bytes();
    let payload = [&ip6(group).octets()[..], &[2, 125, 0, 0]].concat();
    let fields = [
        (Field::EthDst, 0x3333_0000_0001),
        (Field::Ip6Src, word("fe80::fe")),
        (Field::Ip6Dst, word("ff02::1")),
        (Field::Ip6Ttl, 1),
        (Field::Icmp6Type, 130),
        (Field::Icmp6Rest, u128::from(u32::from_be_bytes([high, low, 0, 0]))),
    ];
    let plain = build_fresh(LinkType::Ethernet, 0, Shape::Icmp6, &fields, &payload).unwrap();
    // Behind the IPv6 header comes a hop-by-hop header with a router alert.
    let mut bytes = plain.data().to_vec();
    bytes.splice(54..54, [58, 0, 5, 2, 0, 0, 1, 0]);
    (bytes[19], bytes[20]) = (bytes[19] + 8, 0);
    bytes
}

/// The groups of a report, and the type of each record.
fn members(report: &Packet) -> Vec<(u8, Ipv6Addr)> {
    let layout = report.parse();
    assert_eq!(verify(report, &layout).transport, Some(true));
    assert_eq!((get(report, Field::Icmp6Type), get(report, Field::Ip6Ttl)), (143, 1));
    assert_eq!(get(report, Field::Ip6Dst), word("ff02::16"));
    assert_eq!(macs(report), ([0x33, 0x33, 0, 0, 0, 0x16], OWN));
    let records = report.payload(&layout).chunks_exact(20);
    assert_eq!(get(report, Field::Icmp6Rest), records.len() as u128);
    let address = |record: &[u8]| Ipv6Addr::from(*record[4..].first_chunk::<16>().unwrap());
    records.map(|record| (record[0], address(record))).collect()
}

fn is_report(packet: &&Packet) -> bool {
    let layout = packet.parse();
    layout.has(Header::Icmp6) && packet.get(&layout, Field::Icmp6Type) == Some(143)
}

#[test]
fn interface_joins_the_groups_of_its_addresses_before_it_asks_for_them() {
    let mut hosts = Hosts::new(&chain(vec![wan()])).unwrap();
    hosts.advance(BEGIN);
    hosts.device(0, Some(Ethernet { mac: OWN, mtu: 1500 }), true);
    let mut world = World { hosts, now_ns: BEGIN };
    let said = world.pass(3 * SECOND);
    assert!(is_report(&&said[0]), "{:?}", said[0]);
    let reports: Vec<_> = said.iter().filter(is_report).map(members).collect();
    // Reports may get lost, so there are several.
    assert_eq!(reports, vec![vec![(4, ip6("ff02::1:ff00:1"))]; 3]);
    // An interface without IPv6 joins nothing.
    let only4 = Interface { addresses: vec![own("203.0.113.1/24")], ..wan() };
    let mut hosts = Hosts::new(&chain(vec![only4])).unwrap();
    hosts.device(0, Some(Ethernet { mac: OWN, mtu: 1500 }), true);
    let mut world = World { hosts, now_ns: BEGIN };
    assert_eq!(world.pass(3 * SECOND).iter().filter(is_report).count(), 0);
}

#[test]
fn query_is_answered_within_its_time_once() {
    let mut world = World::new(wan());
    for _ in 0..100 {
        assert!(!world.hear(Frame::of(&query(10_000, "::"))), "a query is for the interface");
    }
    let said = world.pass(10 * SECOND);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(members(&said[0]), [(2, ip6("ff02::1:ff00:1"))]);
    world.hear(Frame::of(&query(1000, "ff02::1:ff00:1")));
    assert_eq!(world.pass(SECOND).len(), 1);
    world.hear(Frame::of(&query(1000, "ff02::1:ff00:2")));
    assert_eq!(world.pass(SECOND).len(), 0);
}

#[test]
fn malformed_queries_are_counted() {
    let good = query(1000, "::");
    let all = Query { group: None, within_ns: SECOND };
    assert_eq!(read(&good), Some(Some(all)));
    let mut world = World::new(wan());
    // Hop limit, source, next header, checksum, group.
    for (at, byte) in [(21, 64), (22, 0x20), (54, 17), (65, 1), (70, 1)] {
        let mut wrong = good.clone();
        wrong[at] = byte;
        assert_eq!(read(&wrong), Some(None), "{at}");
        world.hear(Frame::of(&wrong));
    }
    (63..good.len()).for_each(|length| assert_eq!(read(&good[..length]), Some(None), "{length}"));
    assert_eq!(world.count("invalid"), 5);
    assert_eq!(world.pass(2 * SECOND).len(), 0);
}

#[test]
fn response_codes_above_32767_are_floating_point_numbers() {
    for (code, ms) in [(0, 0), (32_767, 32_767), (0x8000, 0x8000), (0xffff, 0x1fff << 10)] {
        let within_ns = read(&query(code, "::")).flatten().unwrap().within_ns;
        assert_eq!(within_ns, ms * 1_000_000, "{code}");
    }
}

#[test]
fn many_groups_need_several_reports() {
    let addresses: Vec<_> = (0..150_u128).map(|low| Ipv6Addr::from(low).into()).collect();
    let groups = groups(&addresses);
    let frames = reports(OWN, Some(ip6("fe80::1")), &groups, true);
    let packets = frames.into_iter().map(|one| Packet::in_frame(LinkType::Ethernet, 0, one, 0));
    let packets: Vec<_> = packets.collect();
    assert!(packets.iter().all(|packet| packet.data().len() <= 14 + 1280));
    assert!(packets.iter().all(|packet| get(packet, Field::Ip6Src) == word("fe80::1")));
    let said: Vec<_> = packets.iter().flat_map(members).map(|(_, group)| group).collect();
    assert_eq!(said, Vec::from_iter(groups));
}
