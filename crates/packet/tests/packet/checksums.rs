//! Tests that checksums stay as right or wrong as they were and come out in canonical form.

use crate::samples::*;
use braid_packet::{Access, FIELDS, Field, Header, Link, Packet, checksum};
use proptest::prelude::*;

fn read16(packet: &Packet, at: usize) -> u16 {
    u16::from_be_bytes([packet.data()[at], packet.data()[at + 1]])
}

fn write16(packet: &mut Packet, at: usize, value: u16) {
    packet.data_mut()[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The offsets of all checksums in a sample, and whether UDP's rules apply to each.
fn sums(name: &str) -> Vec<(usize, bool)> {
    match name {
        "tcp" => vec![(24, false), (50, false)],
        "tcp6" => vec![(70, false)],
        "udp" => vec![(24, false), (44, true)],
        "udp6" => vec![(68, true)],
        "qinq" => vec![(32, false), (58, false)],
        "echo" => vec![(24, false), (36, false)],
        "echo6" => vec![(56, false)],
        "gre" => vec![(24, false), (38, false)],
        "vxlan" => vec![(24, false), (40, true)],
        "ah" => vec![(24, false), (64, true)],
        "esp" => vec![(24, false)],
        "unreachable" => vec![(24, false), (36, false), (52, false), (78, false)],
        "exceeded" => vec![(24, false), (36, false), (52, false), (64, false)],
        "unreachable6" => vec![(56, false), (108, true)],
        "too_big6" => vec![(56, false), (104, false)],
        "raw" => vec![(10, false), (26, true)],
        "cooked" => vec![(26, false), (52, false)],
        "cooked2" => vec![(66, true)],
        "geneve" => vec![(60, true)],
        "pppoe" => vec![(32, false), (58, false)],
        "pppoe6" => vec![(68, true)],
        _ => vec![],
    }
}

/// The packet that a sample quotes, as a packet of its own.
fn quoted(packet: &Packet) -> Option<Packet> {
    let layout = packet.parse();
    let quote = packet.payload(&layout).to_vec();
    layout.has(Header::Quoted).then(|| Packet::new(Link::RawIp, 0, quote))
}

/// Whether the GRE checksum is right, computed from scratch.
fn gre_right(packet: &Packet) -> bool {
    checksum::rfc1071(&packet.data()[34..]) == 0
}

fn all_right(name: &str, packet: &Packet) -> bool {
    let own = checksum::verify(packet, &packet.parse());
    let inner = quoted(packet).is_none_or(|p| checksum::verify(&p, &p.parse()).all_right());
    own.all_right() && inner && (name != "gre" || gre_right(packet))
}

#[test]
fn samples_have_right_checksums() {
    for (name, packet) in all() {
        assert!(all_right(name, &packet), "{name}");
    }
}

#[test]
fn wrong_byte_is_noticed() {
    let mut packet = named("tcp");
    packet.data_mut()[60] ^= 1;
    let validity = checksum::verify(&packet, &packet.parse());
    assert_eq!((validity.ip, validity.transport), (Some(true), Some(false)));
    packet.data_mut()[20] ^= 1;
    assert_eq!(checksum::verify(&packet, &packet.parse()).ip, Some(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(200)))]

    #[test]
    fn right_checksums_stay_right_after_any_writes(
        writes in prop::collection::vec((0..FIELDS.len(), any::<u128>()), 1..12),
    ) {
        for (name, mut packet) in all() {
            let layout = packet.parse();
            for (field, value) in &writes {
                // These fields decide which headers the message has, so the check would look at
                // other offsets.
                let field = FIELDS[*field].field;
                if !matches!(field, Field::IcmpType | Field::Icmp6Type | Field::UdpDport | Field::L4Dport) {
                    packet.set(&layout, field, *value);
                }
            }
            prop_assert!(all_right(name, &packet), "{}", name);
        }
    }

    #[test]
    fn wrong_checksums_stay_wrong_by_the_same_delta(
        writes in prop::collection::vec((0..FIELDS.len(), any::<u128>()), 1..12),
        wrong in prop::collection::vec(1u16..0xffff, 4),
    ) {
        for (name, right) in all() {
            let sums = sums(name);
            let mut bad = right.clone();
            // Outer checksums cover inner ones and are not adjusted for them, so all are wrong.
            for ((at, udp), wrong) in sums.iter().zip(&wrong) {
                let sum = u32::from(read16(&right, *at)) + u32::from(*wrong);
                let sum = u16::try_from(sum % 0xffff).unwrap();
                write16(&mut bad, *at, if *udp && sum == 0 { 0xffff } else { sum });
            }
            let delta = |at: usize, a: &Packet, b: &Packet| {
                (u32::from(read16(a, at)) + 0xffff - u32::from(read16(b, at))) % 0xffff
            };
            let before: Vec<_> = sums.iter().map(|(at, _)| delta(*at, &bad, &right)).collect();
            let (mut right, layout) = (right.clone(), right.parse());
            for (field, value) in &writes {
                let field = FIELDS[*field].field;
                right.set(&layout, field, *value);
                bad.set(&layout, field, *value);
            }
            let after: Vec<_> = sums.iter().map(|(at, _)| delta(*at, &bad, &right)).collect();
            prop_assert_eq!(before, after, "{}", name);
        }
    }
}

#[test]
fn covered_write_makes_canonical_even_without_a_change() {
    for (name, packet) in all() {
        let layout = packet.parse();
        for info in FIELDS.iter().filter(|info| info.access == Access::Rw) {
            let Some(value) = packet.get(&layout, info.field) else { continue };
            for form in [0x0000, 0xffff] {
                let mut changed = packet.clone();
                for (at, _) in sums(name) {
                    write16(&mut changed, at, form);
                }
                let before = changed.clone();
                assert!(changed.set(&layout, info.field, value));
                for (at, udp) in sums(name) {
                    let (old, new) = (read16(&before, at), read16(&changed, at));
                    // A UDP checksum of 0 means none and stays. Other checksums are in canonical
                    // form, or untouched if they do not cover the field.
                    let allowed = match (udp, form) {
                        (false, _) => [0x0000, old],
                        (true, _) => [old, old],
                    };
                    assert!(allowed.contains(&new), "{name} {} at {at}: {new:#x}", info.name);
                }
            }
        }
    }
}

#[test]
fn canonical_form_is_zero_for_ip_and_tcp() {
    let mut packet = named("tcp");
    write16(&mut packet, 24, 0xffff);
    write16(&mut packet, 50, 0xffff);
    let layout = packet.parse();
    let mut changed = packet.clone();
    assert!(changed.set(&layout, Field::TcpWindow, 0xfaf0));
    assert_eq!((read16(&changed, 24), read16(&changed, 50)), (0xffff, 0));
    let mut changed = packet.clone();
    assert!(changed.set(&layout, Field::IpTtl, 64));
    assert_eq!((read16(&changed, 24), read16(&changed, 50)), (0, 0xffff));
    let mut changed = packet;
    assert!(changed.set(&layout, Field::IpDst, u128::from(DST4)));
    assert_eq!((read16(&changed, 24), read16(&changed, 50)), (0, 0));
}

#[test]
fn udp_checksum_that_becomes_zero_is_written_as_ffff() {
    // Let the checksum be c and the source port p. The port p + c (in one's complement) makes the
    // checksum zero.
    let mut packet = named("udp");
    let layout = packet.parse();
    let target = (u32::from(read16(&packet, 44)) + 4321) % 0xffff;
    assert!(packet.set(&layout, Field::UdpSport, u128::from(target)));
    assert_eq!(read16(&packet, 44), 0xffff);
    assert!(checksum::verify(&packet, &layout).all_right());
}

#[test]
fn udp_without_checksum_stays_without() {
    let mut packet = named("udp");
    write16(&mut packet, 44, 0);
    let layout = packet.parse();
    assert!(packet.set(&layout, Field::UdpSport, 7));
    assert!(packet.set(&layout, Field::IpSrc, 7));
    assert_eq!(read16(&packet, 44), 0);
    assert_eq!(checksum::verify(&packet, &layout).transport, None);
}

#[test]
fn first_fragment_checksum_follows_the_rewrite() {
    // The first fragment holds the checksum of the whole datagram. A NAT must keep it right.
    let whole = ip4(17, &udp(1111, 53, &[9; 32]));
    let mut whole = filled(Link::RawIp, whole);
    let mut first = whole.data()[..44].to_vec();
    first[2..4].copy_from_slice(&44u16.to_be_bytes());
    first[6..8].copy_from_slice(&0x2000u16.to_be_bytes());
    let mut first = Packet::new(Link::RawIp, 0, first);
    for packet in [&mut whole, &mut first] {
        let layout = packet.parse();
        assert!(packet.set(&layout, Field::IpSrc, 0xcb00_7105));
        assert!(packet.set(&layout, Field::UdpSport, 40_000));
    }
    assert!(checksum::verify(&whole, &whole.parse()).all_right());
    assert_eq!(read16(&first, 26), read16(&whole, 26));
}

#[test]
fn later_fragment_payload_is_left_alone() {
    let body = [0x55; 24];
    let mut packet = ether4(&ip4_with(17, &[], 0x0002, &body));
    let layout = packet.parse();
    assert!(packet.set(&layout, Field::IpSrc, 1));
    assert_eq!(packet.payload(&layout), body);
    assert_eq!(checksum::verify(&packet, &layout).ip, Some(true));
}

#[test]
fn checksum_of_a_cut_tcp_header_still_follows_addresses() {
    let whole = named("tcp");
    let mut rewritten = whole.clone();
    assert!(rewritten.set(&whole.parse(), Field::IpDst, 0x0102_0304));
    let mut cut = Packet::snapped(Link::Ethernet, 0, &whole.data()[..53], 99);
    let layout = cut.parse();
    assert!(!layout.has(Header::Tcp));
    assert!(cut.set(&layout, Field::IpDst, 0x0102_0304));
    assert_eq!(cut.data(), &rewritten.data()[..53]);
    let mut shorter = Packet::snapped(Link::Ethernet, 0, &whole.data()[..51], 99);
    let layout = shorter.parse();
    assert!(shorter.set(&layout, Field::IpDst, 0x0102_0304));
    assert_eq!(shorter.data()[50], whole.data()[50]);
}

#[test]
fn destination_behind_a_source_route_is_not_in_the_pseudo_header() {
    let route = [131, 7, 4, 9, 9, 9, 9, 0];
    let mut packet = ether4(&ip4_with(6, &route, 0, &tcp(&[], b"")));
    let layout = packet.parse();
    let before = packet.get(&layout, Field::L4Checksum);
    assert!(packet.set(&layout, Field::IpDst, 77));
    assert_eq!(packet.get(&layout, Field::L4Checksum), before);
    assert!(checksum::verify(&packet, &layout).all_right());
    assert!(packet.set(&layout, Field::IpSrc, 77));
    assert_ne!(packet.get(&layout, Field::L4Checksum), before);
    assert!(checksum::verify(&packet, &layout).all_right());
}

#[test]
fn ipv6_destination_with_segments_left_is_not_in_the_pseudo_header() {
    let last = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let routing = cat(&[&[6, 2, 0, 1, 0, 0, 0, 0], &last]);
    let mut packet = ether6(&ip6(43, &cat(&[&routing, &tcp(&[], b"")])));
    let layout = packet.parse();
    let before = packet.get(&layout, Field::L4Checksum);
    assert!(packet.set(&layout, Field::Ip6Dst, 77));
    assert_eq!(packet.get(&layout, Field::L4Checksum), before);
    assert!(checksum::verify(&packet, &layout).all_right());
}

#[test]
fn quote_cut_before_its_checksum_keeps_the_error_right() {
    let quote = quotable(ip4(6, &tcp(&[], b"")));
    let mut packet = ether4(&ip4(1, &icmp(3, 1, 0, &quote[..28])));
    let layout = packet.parse();
    assert!(packet.set(&layout, Field::QuotedIpSrc, 0xcb00_7105));
    assert!(packet.set(&layout, Field::QuotedSport, 40_000));
    assert!(checksum::verify(&packet, &layout).all_right());
    assert_eq!(packet.get(&layout, Field::QuotedSport), Some(40_000));
    let inner = packet.payload(&layout);
    assert_eq!(checksum::rfc1071(&inner[..20]), 0);
}

#[test]
fn fields_of_a_quoted_ip_header_change_its_checksum_and_that_of_the_error() {
    use Field::{QuotedIpId, QuotedIpTos, QuotedIpTtl};
    let datagram = quotable(ip4(17, &udp(7, 53, b"data")));
    let mut packet = ether4(&ip4(1, &icmp(3, 1, 0, &datagram)));
    let layout = packet.parse();
    let quoted = packet.payload(&layout).to_vec();
    for (field, value) in [(QuotedIpTos, 0xb8), (QuotedIpId, 0xffff), (QuotedIpTtl, 1)] {
        assert!(packet.set(&layout, field, value));
        assert_eq!(packet.get(&layout, field), Some(value));
        assert!(checksum::verify(&packet, &layout).all_right());
        assert_eq!(checksum::rfc1071(&packet.payload(&layout)[..20]), 0);
    }
    let changed = packet.payload(&layout);
    assert_eq!((changed[1], &changed[4..6], changed[8]), (0xb8, &[0xff, 0xff][..], 1));
    // The quoted datagram's checksum covers none of them.
    assert_eq!(changed[20..], quoted[20..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    /// Sums of any bytes are those of their words, one after the other.
    #[test]
    fn sums_are_those_of_the_words(bytes in prop::collection::vec(any::<u8>(), 0..200), from in 0..4_usize) {
        let bytes = bytes.get(from..).unwrap_or_default();
        let word = |pair: &[u8]| u32::from(pair[0]) * 256 + pair.get(1).map_or(0, |low| u32::from(*low));
        let around = |sum: u32, word: u32| (sum + word) % 0x1_0000 + (sum + word) / 0x1_0000;
        let sum = bytes.chunks(2).map(word).fold(0, around);
        prop_assert_eq!(u32::from(checksum::Sum16::default().with(bytes).folded()), sum);
    }
}
