//! Packets of many shapes: correct, malformed, cut.

use crate::random::Random;
use braid_packet::{Field, Link, Packet, Shape, build_fresh, checksum};

fn eth(kind: u16, tags: &[u16], body: &[u8]) -> Vec<u8> {
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for tag in tags {
        data.extend([0x81, 0]);
        data.extend(tag.to_be_bytes());
    }
    data.extend(kind.to_be_bytes());
    data.extend(body);
    data
}

fn ip4(options: &[u8], fragment: u16, proto: u8, body: &[u8]) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let total = (words * 4 + body.len()) as u16;
    let mut data = vec![0x40 | words as u8, 0xb9];
    data.extend(total.to_be_bytes());
    data.extend([0x12, 0x34]);
    data.extend(fragment.to_be_bytes());
    data.extend([64, proto, 0, 0, 10, 1, 2, 3, 198, 51, 100, 7]);
    data.extend(options);
    data.extend(body);
    data
}

fn ip6(next: u8, body: &[u8]) -> Vec<u8> {
    let mut data = vec![0x6a, 0xb1, 0x23, 0x45];
    data.extend((body.len() as u16).to_be_bytes());
    data.extend([next, 63, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    data.extend([0x20, 1, 0x0d, 0xb8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0xff]);
    data.extend(body);
    data
}

/// TCP options with the MSS at an even offset, and timestamps and window scale at odd offsets.
const OPTIONS: [u8; 24] =
    [2, 4, 5, 0xb4, 4, 2, 1, 8, 10, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 7, 3, 3, 6, 0, 0, 0, 0];

fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = 5 + options.len() as u8 / 4;
    let mut data = vec![
        0x12,
        0x34,
        0x01,
        0xbb,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        words << 4,
        0x12,
        0xfa,
        0xf0,
        0,
        0,
        0,
        9,
    ];
    data.extend(options);
    data.extend(payload);
    data
}

fn udp(dport: u16, payload: &[u8]) -> Vec<u8> {
    let mut data = vec![0x10, 0xe1];
    data.extend(dport.to_be_bytes());
    data.extend((8 + payload.len() as u16).to_be_bytes());
    data.extend([0, 0]);
    data.extend(payload);
    data
}

fn icmp(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut data = vec![kind, 0, 0, 0, 1, 2, 0, 3];
    data.extend(payload);
    data
}

fn filled(link: Link, data: Vec<u8>) -> Packet {
    let mut packet = Packet::new(link, 0, data);
    checksum::fill(&mut packet);
    packet
}

/// Packets with correct checksums, by name.
pub fn all() -> Vec<(&'static str, Packet)> {
    let payload = b"payload of odd length";
    let tcp_packet = ip4(&[], 0x4000, 6, &tcp(&OPTIONS, payload));
    let source_route = [131, 7, 4, 9, 9, 9, 9, 0];
    let vxlan = [&[8, 0, 0, 0, 0x12, 0x34, 0x56, 0][..], payload].concat();
    let ah = [17, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    let hop_by_hop = [17, 0, 1, 4, 0, 0, 0, 0];
    let mut routing = vec![6, 2, 0, 1, 0, 0, 0, 0];
    routing.extend([7; 16]);
    let gre = [0xa0, 0, 8, 0, 0, 0, 0, 0, 0xca, 0xfe, 0xba, 0xbe, 1, 2];
    let arp =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 1, 2, 9];
    let e4 = |body: &[u8]| filled(Link::Ethernet, eth(0x0800, &[], body));
    let e6 = |body: &[u8]| filled(Link::Ethernet, eth(0x86dd, &[], body));
    let quote = filled(Link::RawIp, tcp_packet.clone()).data().to_vec();
    vec![
        ("tcp", e4(&tcp_packet)),
        ("tcp without options", e4(&ip4(&[], 0, 6, &tcp(&[], b"x")))),
        ("tcp6", e6(&ip6(6, &tcp(&OPTIONS, payload)))),
        ("udp", e4(&ip4(&[], 0, 17, &udp(53, payload)))),
        ("udp options", e4(&ip4(&[1, 1, 1, 0], 0, 17, &udp(53, payload)))),
        ("source route", e4(&ip4(&source_route, 0, 6, &tcp(&[], payload)))),
        ("udp6", e6(&ip6(0, &[&hop_by_hop[..], &udp(53, payload)].concat()))),
        ("tcp6 routing", e6(&ip6(43, &[&routing[..], &tcp(&[], payload)].concat()))),
        ("icmp", e4(&ip4(&[], 0, 1, &icmp(8, payload)))),
        ("icmp6", e6(&ip6(58, &icmp(128, payload)))),
        ("unreachable", e4(&ip4(&[], 0, 1, &icmp(3, &quote)))),
        ("vlan", filled(Link::Ethernet, eth(0x0800, &[0x6064], &tcp_packet))),
        ("qinq", filled(Link::Ethernet, eth(0x86dd, &[0x6064, 0xb0c8], &ip6(17, &udp(9, b""))))),
        (
            "mpls",
            filled(
                Link::Ethernet,
                eth(0x8847, &[], &[&[0x12, 0x34, 0x5b, 63][..], payload].concat()),
            ),
        ),
        ("arp", filled(Link::Ethernet, eth(0x0806, &[], &arp))),
        ("vxlan", e4(&ip4(&[], 0, 17, &udp(4789, &vxlan)))),
        ("ah", e4(&ip4(&[], 0, 51, &[&ah[..], &udp(501, payload)].concat()))),
        ("gre", e4(&ip4(&[], 0, 47, &gre))),
        ("fragment", e4(&ip4(&[], 0x2000, 17, &udp(53, payload)))),
        ("later fragment", e4(&ip4(&[], 0x0003, 17, payload))),
        ("other", e4(&ip4(&[], 0, 99, payload))),
        ("raw", filled(Link::RawIp, ip4(&[], 0, 17, &udp(2, payload)))),
        (
            "built",
            build_fresh(Link::Ethernet, 0, Shape::Tcp6, &[(Field::TcpSport, 7)], b"").unwrap(),
        ),
    ]
}

/// A random packet of these, often with other bytes, with other checksums, or cut.
pub fn some(random: &mut Random) -> (&'static str, Packet) {
    let all = all();
    let (name, packet) = &all[random.below(all.len())];
    let mut packet = packet.clone();
    let layout = packet.parse();
    let sum = match packet.get(&layout, Field::InetProto) {
        Some(6) => Some(16),
        Some(17) => Some(6),
        Some(1 | 58) => Some(2),
        _ => None,
    };
    let ip = packet.data().windows(2).position(|two| two == [0x12, 0x34]).map(|at| at - 4);
    if random.chance(60) {
        // The place of the transport header in most samples.
        let l4 = layout.payload_offset().saturating_sub(match sum {
            Some(16) => 20,
            _ => 8,
        });
        let value = random.one_of(&[0u16, 0xffff, 0x1234, 0xff00]).to_be_bytes();
        for at in [sum.map(|sum| l4 + sum), ip.map(|ip| ip + 10)].into_iter().flatten() {
            if random.chance(70)
                && let Some(field) = packet.data_mut().get_mut(at..at + 2)
            {
                field.copy_from_slice(&value);
            }
        }
    }
    for _ in 0..random.below(4) {
        let at = random.below(packet.data().len());
        packet.data_mut()[at] = random.word() as u8;
    }
    if random.chance(30) {
        let (link, wire, mut data) = (packet.link, packet.wire_len, packet.data().to_vec());
        data.truncate(random.below(data.len() + 1));
        packet = Packet::snapped(link, 0, data, wire);
    }
    packet.ingress = random.below(4) as u16;
    packet.backward = random.chance(50);
    packet.held = random.chance(50);
    (name, packet)
}
