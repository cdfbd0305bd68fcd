//! Handmade packets, byte by byte, that reach every header and field.

use braid_packet::{Link, Packet, checksum};

pub const SRC4: u32 = 0x0a01_0203;
pub const DST4: u32 = 0xc633_6407;
pub const SRC6: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
pub const DST6: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_00ff;

/// Concatenates bytes.
pub fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn be16(value: usize) -> [u8; 2] {
    u16::try_from(value).unwrap().to_be_bytes()
}

pub fn eth(kind: u16, body: &[u8]) -> Vec<u8> {
    cat(&[&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &kind.to_be_bytes(), body])
}

/// The bytes behind a TPID: tag control information, type, body.
pub fn tag(tci: u16, kind: u16, body: &[u8]) -> Vec<u8> {
    cat(&[&tci.to_be_bytes(), &kind.to_be_bytes(), body])
}

pub fn ip4(proto: u8, body: &[u8]) -> Vec<u8> {
    ip4_with(proto, &[], 0x4000, body)
}

/// IPv4 with options (whole words) and with this word of flags and fragment offset.
pub fn ip4_with(proto: u8, options: &[u8], fragment: u16, body: &[u8]) -> Vec<u8> {
    let words = u8::try_from(5 + options.len() / 4).unwrap();
    let total = be16(20 + options.len() + body.len());
    cat(&[
        &[0x40 | words, 0xb9],
        &total,
        &[0x12, 0x34],
        &fragment.to_be_bytes(),
        &[64, proto, 0, 0],
        &SRC4.to_be_bytes(),
        &DST4.to_be_bytes(),
        options,
        body,
    ])
}

pub fn ip6(next: u8, body: &[u8]) -> Vec<u8> {
    let start = [0x6a, 0xb1, 0x23, 0x45];
    let addresses = (SRC6.to_be_bytes(), DST6.to_be_bytes());
    cat(&[&start, &be16(body.len()), &[next, 63], &addresses.0, &addresses.1, body])
}

/// TCP 4660 > 443, SYN ACK, with options (whole words).
pub fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = u8::try_from(5 + options.len() / 4).unwrap();
    let fixed =
        [0x12, 0x34, 0x01, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, words << 4, 0x12, 0xfa, 0xf0, 0, 0, 0, 9];
    cat(&[&fixed, options, payload])
}

pub fn udp(sport: u16, dport: u16, payload: &[u8]) -> Vec<u8> {
    let ports = (sport.to_be_bytes(), dport.to_be_bytes());
    cat(&[&ports.0, &ports.1, &be16(8 + payload.len()), &[0, 0], payload])
}

pub fn icmp(kind: u8, code: u8, rest: u32, payload: &[u8]) -> Vec<u8> {
    cat(&[&[kind, code, 0, 0], &rest.to_be_bytes(), payload])
}

/// MSS at an even offset, window scale and timestamps at odd offsets, SACK permitted.
pub const OPTIONS: [u8; 24] =
    [2, 4, 5, 0xb4, 4, 2, 1, 8, 10, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 7, 3, 3, 6, 0, 0, 0, 0];

/// The packet with right checksums.
pub fn filled(link: Link, data: Vec<u8>) -> Packet {
    let mut packet = Packet::new(link, 0, data);
    checksum::fill(&mut packet);
    packet
}

/// An IP packet with right checksums, to be quoted.
pub fn quotable(ip: Vec<u8>) -> Vec<u8> {
    filled(Link::RawIp, ip).data().to_vec()
}

pub fn ether4(body: &[u8]) -> Packet {
    filled(Link::Ethernet, eth(0x0800, body))
}

pub fn ether6(body: &[u8]) -> Packet {
    filled(Link::Ethernet, eth(0x86dd, body))
}

pub fn arp() -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4, 0, 1];
    message.extend([2, 0, 0, 0, 0, 1, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 1, 2, 9]);
    message
}

/// A Geneve header of a control packet, with an option of one word.
const GENEVE: [u8; 16] = [2, 0x80, 0x65, 0x58, 0x12, 0x34, 0x56, 0, 1, 2, 0x80, 1, 9, 9, 9, 9];

/// A PPPoE header of session 5 with this body.
pub fn pppoe(code: u8, body: &[u8]) -> Vec<u8> {
    cat(&[&[0x11, code, 0, 5], &be16(body.len()), body])
}

/// A packet of a PPPoE session.
fn session(protocol: u16, body: &[u8]) -> Packet {
    let ppp = cat(&[&protocol.to_be_bytes(), body]);
    filled(Link::Ethernet, eth(0x8864, &pppoe(0, &ppp)))
}

/// Packets that together have every header.
pub fn all() -> Vec<(&'static str, Packet)> {
    let payload = b"payload of odd length";
    let tcp_packet = ip4(6, &tcp(&OPTIONS, payload));
    let ah = [17, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    let vxlan = [8, 0, 0, 0, 0x12, 0x34, 0x56, 0];
    let gre = [0xa0, 0, 8, 0, 0, 0, 0, 0, 0xca, 0xfe, 0xba, 0xbe, 1, 2];
    let mut gre = gre;
    let gre_sum = checksum::rfc1071(&gre).to_be_bytes();
    gre[4..6].copy_from_slice(&gre_sum);
    let hop_by_hop = [17, 0, 1, 4, 0, 0, 0, 0];
    let quoted_echo = quotable(ip4(1, &icmp(8, 0, 0x0102_0003, b"ping")));
    let quoted_udp6 = quotable(ip6(17, &udp(5353, 53, payload)));
    let quoted_echo6 = quotable(ip6(58, &icmp(128, 0, 0x0102_0003, b"ping")));
    vec![
        ("tcp", ether4(&tcp_packet)),
        ("tcp6", ether6(&ip6(6, &tcp(&OPTIONS, payload)))),
        ("udp", ether4(&ip4_with(17, &[1, 1, 1, 0], 0, &udp(4321, 53, payload)))),
        ("udp6", ether6(&ip6(0, &cat(&[&hop_by_hop, &udp(4321, 53, payload)])))),
        (
            "qinq",
            filled(
                Link::Ethernet,
                eth(0x88a8, &tag(0x6064, 0x8100, &tag(0xb0c8, 0x0800, &tcp_packet))),
            ),
        ),
        ("arp", filled(Link::Ethernet, eth(0x0806, &cat(&[&arp(), &[0; 18]])))),
        (
            "mpls",
            filled(Link::Ethernet, eth(0x8847, &cat(&[&[0x12, 0x34, 0x5b, 63], &tcp_packet]))),
        ),
        ("echo", ether4(&ip4(1, &icmp(8, 0, 0x0102_0003, payload)))),
        ("echo6", ether6(&ip6(58, &icmp(129, 0, 0x0102_0003, payload)))),
        ("gre", ether4(&ip4(47, &gre))),
        ("vxlan", ether4(&ip4(17, &udp(50000, 4789, &cat(&[&vxlan, &eth(0x0800, &tcp_packet)]))))),
        ("ah", ether4(&ip4(51, &cat(&[&ah, &udp(500, 501, payload)])))),
        ("esp", ether4(&ip4(50, &[0, 0, 2, 2, 0, 0, 0, 6, 1, 2, 3, 4]))),
        ("unreachable", ether4(&ip4(1, &icmp(3, 3, 0, &quotable(tcp_packet.clone()))))),
        ("exceeded", ether4(&ip4(1, &icmp(11, 0, 0, &quoted_echo)))),
        ("unreachable6", ether6(&ip6(58, &icmp(1, 4, 0, &quoted_udp6)))),
        ("too_big6", ether6(&ip6(58, &icmp(2, 0, 1280, &quoted_echo6)))),
        ("raw", filled(Link::RawIp, ip4(17, &udp(1, 2, payload)))),
        ("cooked", filled(Link::Cooked, cooked(0x0800, &tcp_packet))),
        ("cooked2", filled(Link::Cooked2, cooked2(0x86dd, &ip6(17, &udp(1, 2, payload))))),
        (
            "geneve",
            ether6(&ip6(17, &udp(50000, 6081, &cat(&[&GENEVE, &eth(0x0800, &tcp_packet)])))),
        ),
        ("pppoe", session(0x0021, &tcp_packet)),
        ("pppoe6", session(0x0057, &ip6(17, &udp(1, 2, payload)))),
        (
            "pppoe_discovery",
            filled(Link::Ethernet, eth(0x8863, &cat(&[&pppoe(9, &[1, 1, 0, 0]), &[0; 36]]))),
        ),
    ]
}

pub fn cooked(protocol: u16, body: &[u8]) -> Vec<u8> {
    cat(&[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &protocol.to_be_bytes(), body])
}

pub fn cooked2(protocol: u16, body: &[u8]) -> Vec<u8> {
    let rest = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    cat(&[&protocol.to_be_bytes(), &rest, body])
}

/// The packet of [`all`] with this name.
pub fn named(name: &str) -> Packet {
    all().into_iter().find(|(n, _)| *n == name).unwrap().1
}
