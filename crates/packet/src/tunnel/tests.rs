//! Tests of tunnels.

use super::*;
use crate::checksum::verify;
use crate::{Shape, build_fresh};
use braid_crypto::Key;

pub(super) const SHAPES: [Shape; 6] =
    [Shape::Tcp4, Shape::Udp4, Shape::Icmp, Shape::Tcp6, Shape::Udp6, Shape::Icmp6];

/// Contents of IPv4: addresses, 64 hops, an identification.
const IP4: &str = "00 00 00 00 1234 0000 40 00 0000 c0000201 c6336402";
const IP6: &str = "00000000 0000 00 40 20010db8000000000000000000000001 \
                   20010db8000000000000000000000002";

/// The bytes in hexadecimal digits, perhaps with spaces between.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn put(packet: &mut Packet, inner: Inner, parts: &[Header], bytes: &str) -> Result<bool, Cut> {
    let contents = hex(bytes);
    let words = bytes::words_of(&contents);
    let layout = packet.parse();
    encapsulate(packet, &layout, (inner, parts), (contents.len(), &words), None)
}

fn pop(packet: &mut Packet, inner: Inner, last: Header, offset: u128) -> Result<bool, Cut> {
    let layout = packet.parse();
    decapsulate(packet, &layout, (inner, last), offset, None)
}

/// The digits of bytes that count up.
pub(super) fn digits(range: std::ops::Range<u8>) -> String {
    range.map(|byte| format!("{byte:02x}")).collect()
}

/// Puts a packet into a tunnel whose last header needs a key.
pub(super) fn seal(
    packet: &mut Packet,
    parts: &[Header],
    headers: &[u8],
    seal: (&Association, u64),
) -> Result<bool, Cut> {
    let words = bytes::words_of(headers);
    let layout = packet.parse();
    encapsulate(packet, &layout, (Inner::Packet, parts), (headers.len(), &words), Some(seal))
}

/// Takes a packet out of a tunnel whose last header needs a key.
pub(super) fn open(
    packet: &mut Packet,
    last: Header,
    association: &Association,
) -> Result<bool, Cut> {
    let layout = packet.parse();
    decapsulate(packet, &layout, (Inner::Packet, last), 0, Some(association))
}

/// A key for sequence numbers of 32 bits.
pub(super) fn short(key: &Key) -> Association {
    Association { key: key.clone(), high: None }
}

pub(super) fn packet(shape: Shape, payload: &[u8]) -> Packet {
    build_fresh(Link::Ethernet, 0, shape, &[], payload).unwrap()
}

#[test]
fn ip_in_ip_has_the_bytes_of_rfc_2003() {
    let mut tunnelled = packet(Shape::Udp4, b"abc");
    tunnelled.push_vlan(7);
    let before = tunnelled.clone();
    assert_eq!(put(&mut tunnelled, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    // 20 + 20 + 8 + 3 bytes, protocol 4. The sum of the other words is 4500 + 0033 + 1234 +
    // 4004 + c000 + 0201 + c633 + 6402 = 283a1, so the checksum is !(83a1 + 2) = 7c5c.
    let outer = hex("4500 0033 1234 0000 4004 7c5c c0000201 c6336402");
    let expected = [&before.data()[..18], &outer, &before.data()[18..]].concat();
    assert_eq!(tunnelled.data(), expected);
    assert_eq!(tunnelled.wire_len as usize, expected.len());
    assert_eq!(pop(&mut tunnelled, Inner::Packet, Header::Ip4, 0), Ok(true));
    assert_eq!(tunnelled, before);
}

#[test]
fn a_session_of_pppoe_has_the_bytes_of_rfc_2516() {
    for (shape, protocol) in [(Shape::Udp4, "0021"), (Shape::Udp6, "0057")] {
        let mut session = packet(shape, b"abc");
        session.push_vlan(7);
        // Padding of the link is neither counted nor lost.
        let last = session.data().len();
        assert!(session.insert(last, &[0xee; 5]));
        let before = session.clone();
        let parts = [Header::Pppoe, Header::Ppp];
        assert_eq!(put(&mut session, Inner::Packet, &parts, "0000 0123 0000 0000"), Ok(true));
        // Version and type 1, code 0, the session, and the bytes behind it: the packet and 2 more.
        let len = last - 18 + 2;
        let outer = hex(&format!("8864 1100 0123 {len:04x} {protocol}"));
        let expected = [&before.data()[..16], &outer, &before.data()[18..]].concat();
        assert_eq!(session.data(), expected);
        assert_eq!(
            put(&mut session.clone(), Inner::Packet, &parts, "00000123 00000000"),
            Ok(false)
        );
        assert_eq!(pop(&mut session.clone(), Inner::Packet, Header::Pppoe, 0), Ok(false));
        assert_eq!(pop(&mut session, Inner::Packet, Header::Ppp, 0), Ok(true));
        assert_eq!(session, before);
    }
}

pub(super) type Tunnel = (Inner, &'static [Header], String, Header);

pub(super) fn tunnels() -> Vec<Tunnel> {
    use Header::{Eth, Geneve, Gre, GreKey, Ip4, Ip6, Mpls, Ppp, Pppoe, Udp, Vxlan};
    let mac = "020000000001 020000000002 0000";
    let (ports, vni) = ("c001 12b5 0000 0000", "08000000 00002a00");
    let (geneve, key) = ("c001 17c1 0000 0000 00000000 00002a00", "20000000 00000007");
    let tunnel = |inner, parts: &'static [Header], bytes: &[&str], last| {
        (inner, parts, bytes.concat(), last)
    };
    vec![
        tunnel(Inner::Packet, &[Ip4], &[IP4], Ip4),
        tunnel(Inner::Packet, &[Ip6], &[IP6], Ip6),
        tunnel(Inner::Packet, &[Ip4, Gre], &[IP4, "00000000"], Gre),
        tunnel(Inner::Packet, &[Ip6, Gre, GreKey], &[IP6, key], Gre),
        tunnel(Inner::Packet, &[Ip4, Udp, Geneve], &[IP4, geneve], Geneve),
        tunnel(Inner::Packet, &[Ip6, Udp], &[IP6, "c001 0868 0000 0000"], Udp),
        tunnel(Inner::Packet, &[Mpls], &["0002a040"], Mpls),
        tunnel(Inner::Frame, &[Eth, Ip4, Udp, Vxlan], &[mac, IP4, ports, vni], Vxlan),
        tunnel(Inner::Frame, &[Eth, Ip6, Udp, Vxlan], &[mac, IP6, ports, vni], Vxlan),
        tunnel(Inner::Frame, &[Eth, Ip4, Gre], &[mac, IP4, "00000000"], Gre),
        tunnel(Inner::Frame, &[Eth, Ip6, Udp, Geneve], &[mac, IP6, geneve], Geneve),
        tunnel(Inner::Frame, &[Eth, Mpls], &[mac, "0002a040"], Mpls),
        tunnel(Inner::Packet, &[Pppoe, Ppp], &["0000 0007 0000 0000"], Ppp),
    ]
}

#[test]
fn tunnels_are_recognised_are_right_and_can_be_removed() {
    for shape in SHAPES {
        for payload in [&b"even"[..], b"odd"] {
            for (inner, parts, bytes, last) in tunnels() {
                let before = packet(shape, payload);
                let mut changed = before.clone();
                assert_eq!(put(&mut changed, inner, parts, &bytes), Ok(true));
                let layout = changed.parse();
                let has = |part: &&Header| !layout.has(**part);
                assert_eq!(parts.iter().find(has), None, "{shape:?} in {parts:?}");
                assert_eq!(layout.malformed(), None);
                let validity = verify(&changed, &layout);
                assert!(validity.all_right(), "{shape:?} in {parts:?}: {validity:?}");
                // The parser looks into sessions, and not into tunnels.
                let is_session = parts.contains(&Header::Pppoe);
                let sums = parts.contains(&Header::Ip6) && parts.contains(&Header::Udp);
                let sums = sums || is_session;
                assert_eq!(validity.transport.is_some(), sums, "{parts:?}");
                assert!(changed.data().ends_with(before.data().get(14..).unwrap()));
                assert_eq!(pop(&mut changed, inner, last, 0), Ok(true), "{parts:?}");
                assert_eq!(changed, before, "{shape:?} in {parts:?}");
            }
        }
    }
}

#[test]
fn tunnels_have_the_bytes_that_scapy_builds() {
    let lines = include_str!("scapy.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, inside, outside] = words[..] else { panic!("{line}") };
        let (inner, parts, bytes, last) = &tunnels()[number.parse::<usize>().unwrap()];
        let before = Packet::new(Link::Ethernet, 0, hex(inside));
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, *inner, parts, bytes), Ok(true));
        assert_eq!(changed.data(), hex(outside), "{parts:?}");
        assert_eq!(pop(&mut changed, *inner, *last, 0), Ok(true));
        assert_eq!(changed, before, "{parts:?}");
        count += 1;
    }
    assert_eq!(count, 3 * tunnels().len());
}

#[test]
fn tunnels_in_tunnels_come_off_one_by_one() {
    for (inner, parts, bytes, last) in tunnels() {
        for (next, more, contents, end) in tunnels() {
            // No field of UDP tells a label from an IP packet.
            if parts.contains(&Header::Mpls) && end == Header::Udp {
                continue;
            }
            // Only frames hold sessions.
            if parts.contains(&Header::Pppoe) && next == Inner::Packet {
                continue;
            }
            let mut changed = packet(Shape::Tcp4, b"abc");
            let before = changed.clone();
            assert_eq!(put(&mut changed, inner, parts, &bytes), Ok(true));
            let once = changed.clone();
            assert_eq!(put(&mut changed, next, more, &contents), Ok(true), "{parts:?} {more:?}");
            assert_eq!(pop(&mut changed, next, end, 0), Ok(true), "{parts:?} in {more:?}");
            assert_eq!(changed, once);
            assert_eq!(pop(&mut changed, inner, last, 0), Ok(true));
            assert_eq!(changed, before);
        }
    }
}

#[test]
fn headers_of_a_program_follow_as_bytes() {
    // GTP-U: flags, type, length, tunnel.
    let gtpu = format!("{IP4} 0868 0868 00000000 30ff 002b 00000007");
    let mut changed = packet(Shape::Tcp4, b"abc");
    let before = changed.clone();
    let parts = [Header::Ip4, Header::Udp];
    assert_eq!(put(&mut changed, Inner::Packet, &parts, &gtpu), Ok(true));
    let layout = changed.parse();
    assert!(changed.payload(&layout).starts_with(&hex("30ff002b00000007 45")));
    assert!(verify(&changed, &layout).all_right());
    assert_eq!(pop(&mut changed.clone(), Inner::Packet, Header::Pkt, 9), Ok(false));
    assert_eq!(pop(&mut changed, Inner::Packet, Header::Pkt, 8), Ok(true));
    assert_eq!(changed, before);
}

#[test]
fn padding_stays_outside_of_ip_and_inside_of_frames() {
    let plain = packet(Shape::Udp4, b"ab");
    let padded = Packet::new(Link::Ethernet, 0, [plain.data(), &[0xee; 9]].concat());
    let mut changed = padded.clone();
    assert_eq!(put(&mut changed, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    assert_eq!(changed.parse().payload_len(), plain.data().len() - 14);
    assert_eq!(pop(&mut changed, Inner::Packet, Header::Ip4, 0), Ok(true));
    assert_eq!(changed, padded);
    let (inner, parts, bytes, last) = &tunnels()[7];
    assert_eq!(put(&mut changed, *inner, parts, bytes), Ok(true));
    // The outer frame may be padded as well.
    let mut more = Packet::new(Link::Ethernet, 0, [changed.data(), &[0xdd; 5]].concat());
    assert_eq!(pop(&mut more, *inner, *last, 0), Ok(true));
    assert_eq!(more, padded);
}

#[test]
fn nothing_changes_where_it_cannot() {
    let plain = packet(Shape::Udp4, b"\x10bcdef");
    let mut fragment = plain.clone();
    assert_eq!(put(&mut fragment, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    fragment.data_mut()[14 + 6] = 0x20;
    let arp = Packet::new(Link::Ethernet, 0, hex("020000000001020000000002 0806 0001"));
    let mut session = hex("020000000001020000000002 8864 1100 0001");
    session.extend([0, 36, 0, 0x21]);
    session.extend(&plain.data()[14..]);
    let session = Packet::new(Link::Ethernet, 0, session);
    assert!(session.parse().has(Header::Udp));
    let raw = Packet::new(Link::RawIp, 0, &plain.data()[14..]);
    let long = packet(Shape::Udp4, &vec![0; 65_535 - 28 - 19]);
    for (before, inner) in [
        (&arp, Inner::Packet),
        (&session, Inner::Packet),
        (&raw, Inner::Frame),
        (&long, Inner::Packet),
    ] {
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, inner, &[Header::Ip4], IP4), Ok(false));
        assert_eq!(changed, *before);
    }
    assert_eq!(put(&mut raw.clone(), Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    // A link without EtherTypes holds no labels, neither outside nor inside of IP.
    let mut labelled = raw.clone();
    assert_eq!(put(&mut labelled, Inner::Packet, &[Header::Mpls], "0002a040"), Ok(false));
    assert_eq!(labelled, raw);
    assert_eq!(put(&mut labelled, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    labelled.data_mut()[9] = proto::MPLS;
    assert_eq!(pop(&mut labelled, Inner::Packet, Header::Ip4, 0), Ok(false));
    let gre = |kind: &str| {
        let mut frame = plain.clone();
        put(&mut frame, Inner::Packet, &[Header::Ip4, Header::Gre], &format!("{IP4} 00000000"))
            .unwrap();
        frame.data_mut()[36..38].copy_from_slice(&hex(kind));
        frame
    };
    for (before, inner, last, offset) in [
        (&plain, Inner::Packet, Header::Ip4, 0),
        (&plain, Inner::Packet, Header::Gre, 0),
        (&plain, Inner::Packet, Header::Udp, 0),
        (&plain, Inner::Packet, Header::Tcp, 0),
        (&plain, Inner::Packet, Header::Udp, 6),
        (&plain, Inner::Packet, Header::Udp, u128::MAX),
        (&plain, Inner::Frame, Header::Udp, 0),
        (&fragment, Inner::Packet, Header::Ip4, 0),
        (&gre("6558"), Inner::Packet, Header::Gre, 0),
        (&gre("86dd"), Inner::Packet, Header::Gre, 0),
        (&gre("0800"), Inner::Frame, Header::Gre, 0),
        (&session, Inner::Packet, Header::Udp, 0),
    ] {
        let mut changed = before.clone();
        assert_eq!(pop(&mut changed, inner, last, offset), Ok(false), "{last:?} {offset}");
        assert_eq!(changed, *before);
    }
}

#[test]
fn bytes_that_matter_must_be_captured() {
    let whole = packet(Shape::Tcp4, b"abcdef");
    let cut = |packet: &Packet, lacks: usize| {
        let data = packet.data();
        Packet::snapped(Link::Ethernet, 0, &data[..data.len() - lacks], packet.wire_len)
    };
    let short = cut(&whole, 1);
    let udp6 = format!("{IP6} c001 0868 0000 0000");
    let mut changed = short.clone();
    let parts = [Header::Ip6, Header::Udp];
    assert_eq!(put(&mut changed, Inner::Packet, &parts, &udp6), Err(Cut));
    assert_eq!(changed, short);
    // IPv4 needs none of the bytes inside.
    assert_eq!(put(&mut changed, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    assert_eq!(changed.parse().payload_len(), whole.data().len() - 14);
    assert_eq!(pop(&mut changed, Inner::Packet, Header::Ip4, 0), Ok(true));
    assert_eq!(changed, short);
    let mut outer = whole.clone();
    assert_eq!(put(&mut outer, Inner::Packet, &[Header::Ip4], IP4), Ok(true));
    let headers = cut(&outer, whole.data().len() - 14);
    assert_eq!(pop(&mut headers.clone(), Inner::Packet, Header::Ip4, 0), Err(Cut));
}
