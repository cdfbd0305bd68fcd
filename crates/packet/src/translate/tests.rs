//! Tests of the translation. Expected bytes are built from the fields that RFC 7915 names.

use super::*;
use crate::checksum::verify;
use crate::field::Field;

const V4: [u128; 2] = [0xc000_0201, 0xc633_6407];
const V6: [u128; 2] = [0x2001_0db8 << 96 | 0x11, 0x64_ff9b << 96 | 0xc633_6407];
/// Addresses that a packet with those above is translated to, and a quoted packet.
const TO4: Addresses = Addresses { own: V4, quoted: Some([V4[1], V4[0]]) };
const TO6: Addresses = Addresses { own: V6, quoted: Some([V6[1], V6[0]]) };

fn header4(proto: u8, len: usize, [src, dst]: [u128; 2], fragment: u16) -> Vec<u8> {
    let total = u16::try_from(20 + len).unwrap();
    let mut header = vec![0x45, 0xb8];
    header.extend(total.to_be_bytes());
    header.extend([0x12, 0x34]);
    header.extend(fragment.to_be_bytes());
    header.extend([57, proto, 0, 0]);
    header.extend(u32::try_from(src).unwrap().to_be_bytes());
    header.extend(u32::try_from(dst).unwrap().to_be_bytes());
    let sum = rfc1071(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn header6(next: u8, len: usize, [src, dst]: [u128; 2]) -> Vec<u8> {
    let mut header = vec![0x6b, 0x80, 0, 0];
    header.extend(u16::try_from(len).unwrap().to_be_bytes());
    header.extend([next, 57]);
    header.extend(src.to_be_bytes());
    header.extend(dst.to_be_bytes());
    header
}

fn frame(kind: u16, parts: &[&[u8]]) -> Packet {
    let mut data = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    data.extend(kind.to_be_bytes());
    data.extend(parts.concat());
    Packet::new(Link::Ethernet, 7, data)
}

/// A packet of a version around a message, with its checksums filled in.
fn packet(to: Version, proto: u8, message: &[u8]) -> Packet {
    let mut packet = match to {
        Version::Ip4 => frame(0x0800, &[&header4(proto, message.len(), V4, 0), message]),
        Version::Ip6 => frame(0x86dd, &[&header6(proto, message.len(), V6), message]),
    };
    checksum::fill(&mut packet);
    packet
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    [&[0x30, 0x39, 0, 53, len[0], len[1], 0, 0], payload].concat()
}

fn tcp(payload: &[u8]) -> Vec<u8> {
    let header = [0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    [&header, payload].concat()
}

fn echo(kind: u8) -> Vec<u8> {
    vec![kind, 0, 0, 0, 0x30, 0x39, 0, 1, b'o', b'd', b'd']
}

fn go(packet: &mut Packet, to: Version, addresses: Addresses) -> Result<bool, Cut> {
    let layout = packet.parse();
    translate(packet, &layout, to, addresses)
}

/// Asserts that a packet can be translated, and that all of its checksums are right then.
fn done(packet: &mut Packet, to: Version, addresses: Addresses) {
    assert_eq!(go(packet, to, addresses), Ok(true));
    let layout = packet.parse();
    assert_eq!(layout.malformed(), None);
    let wrong = verify(packet, &layout);
    assert!(wrong.all_right(), "{wrong:?}: {:02x?}", packet.data());
}

fn refused(mut packet: Packet, to: Version, addresses: Addresses) {
    let before = packet.clone();
    assert_eq!(go(&mut packet, to, addresses), Ok(false));
    assert_eq!(packet, before);
}

#[test]
fn transport_of_one_version_becomes_that_of_the_other() {
    let kinds = |to| match to {
        Version::Ip4 => [(6, tcp(b"bytes")), (17, udp(b"byte")), (47, vec![1; 9]), (1, echo(8))],
        Version::Ip6 => [(6, tcp(b"bytes")), (17, udp(b"byte")), (47, vec![1; 9]), (58, echo(128))],
    };
    let (four, six) = (kinds(Version::Ip4), kinds(Version::Ip6));
    for ((proto4, message4), (proto6, message6)) in four.into_iter().zip(six) {
        let was = packet(Version::Ip4, proto4, &message4);
        let is = packet(Version::Ip6, proto6, &message6);
        let mut now = was.clone();
        done(&mut now, Version::Ip6, TO6);
        assert_eq!(now, is);
        done(&mut now, Version::Ip4, TO4);
        // Only the identification cannot come back.
        let mut without = was;
        without.data_mut()[18..20].fill(0);
        checksum::fill(&mut without);
        assert_eq!(now, without);
    }
}

#[test]
fn wrong_checksums_stay_wrong() {
    for (proto, at, message) in [(6, 16, tcp(b"x")), (17, 6, udp(b"x")), (58, 2, echo(128))] {
        let mut packet = packet(Version::Ip6, proto, &message);
        packet.data_mut()[54 + at] ^= 1;
        assert_eq!(go(&mut packet, Version::Ip4, TO4), Ok(true));
        assert_eq!(verify(&packet, &packet.parse()).transport, Some(false));
    }
}

#[test]
fn wrong_header_is_refused() {
    let mut packet = packet(Version::Ip4, 17, &udp(b"x"));
    packet.data_mut()[22] ^= 1;
    refused(packet, Version::Ip6, TO6);
}

#[test]
fn missing_checksum_of_udp_is_computed() {
    let mut packet = packet(Version::Ip4, 17, &udp(b"without"));
    packet.data_mut()[40..42].fill(0);
    let cut = Packet::snapped(Link::Ethernet, 7, &packet.data()[..44], packet.wire_len);
    done(&mut packet, Version::Ip6, TO6);
    assert_ne!(packet.data()[60..62], [0, 0]);
    assert_eq!(go(&mut cut.clone(), Version::Ip6, TO6), Err(Cut));
    // The sum of these bytes is zero, which UDP writes as ffff.
    let zero = |at: u16| {
        let mut packet = self::packet(Version::Ip4, 17, &udp(&at.to_be_bytes()));
        packet.data_mut()[40..42].fill(0);
        done(&mut packet, Version::Ip6, TO6);
        u16::from_be_bytes([packet.data()[60], packet.data()[61]])
    };
    let one = zero(0);
    assert_eq!(zero(one), u16::MAX);
}

#[test]
fn padding_tags_and_options_are_cared_for() {
    let options = [1, 7, 3, 4];
    let mut header = header4(17, 4 + 9, V4, 0);
    (header[0], header[10], header[11]) = (0x46, 0, 0);
    let tag = [0, 5, 0x08, 0];
    let mut packet = frame(0x8100, &[&tag, &header, &options, &udp(b"x"), &[9; 6]]);
    checksum::fill(&mut packet);
    done(&mut packet, Version::Ip6, TO6);
    assert_eq!(packet.data()[12..18], [0x81, 0, 0, 5, 0x86, 0xdd]);
    assert_eq!((packet.data().len(), packet.wire_len), (18 + 40 + 9, 18 + 40 + 9));
}

#[test]
fn source_routes_matter_until_they_have_ended() {
    let with = |pointer: u8| {
        let mut header = header4(17, 8 + 8, V4, 0);
        (header[0], header[10], header[11]) = (0x47, 0, 0);
        let mut packet = frame(0x0800, &[&header, &[131, 7, pointer, 10, 0, 0, 1, 0], &udp(b"")]);
        checksum::fill(&mut packet);
        packet
    };
    refused(with(4), Version::Ip6, TO6);
    done(&mut with(8), Version::Ip6, TO6);
}

#[test]
fn fragments_keep_their_places() {
    // The first and the last fragment of a datagram, in units of 8 bytes.
    let part =
        |fragment: u16, body: &[u8]| frame(0x0800, &[&header4(17, body.len(), V4, fragment), body]);
    let mut first_body = udp(&[1; 8]);
    first_body[6] = 7;
    for (fragment, body) in [(0x2000, &first_body[..]), (0x0002, &[3; 5])] {
        let was = part(fragment, body);
        let mut now = was.clone();
        assert_eq!(go(&mut now, Version::Ip6, TO6), Ok(true));
        let layout = now.parse();
        assert!(layout.is_fragment());
        assert_eq!(now.data()[54..62], {
            let field = (fragment & 0x1fff) << 3 | u16::from(fragment & 0x2000 != 0);
            let [high, low] = field.to_be_bytes();
            [17, 0, high, low, 0, 0, 0x12, 0x34]
        });
        assert_eq!(go(&mut now, Version::Ip4, TO4), Ok(true));
        assert_eq!(now, was);
    }
    // A first fragment without a checksum, which only the whole datagram could have.
    first_body[6..8].fill(0);
    refused(part(0x2000, &first_body), Version::Ip6, TO6);
    refused(frame(0x0800, &[&header4(1, 16, V4, 0x2000), &[8; 16]]), Version::Ip6, TO6);
}

#[test]
fn whole_packet_with_a_fragment_header_may_be_fragmented() {
    let rest = [&[17, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd], &udp(&[5; 1300])[..]].concat();
    let mut packet = packet(Version::Ip6, 44, &rest);
    done(&mut packet, Version::Ip4, TO4);
    assert_eq!(packet.data()[18..22], [0xcc, 0xdd, 0, 0]);
    // Without one, only packets that each IPv6 link carries may be.
    for (len, df) in [(1260 - 28, 0), (1261 - 28, 1)] {
        let mut packet = self::packet(Version::Ip6, 17, &udp(&vec![5; len]));
        done(&mut packet, Version::Ip4, TO4);
        assert_eq!(packet.get(&packet.parse(), Field::IpDf), Some(df));
    }
}

#[test]
fn extensions_are_left_out_and_routes_refused() {
    let with = |routing: [u8; 8]| {
        let hop = [43, 0, 1, 4, 0, 0, 0, 0];
        packet(Version::Ip6, 0, &[&hop, &routing, &udp(b"x")[..]].concat())
    };
    let mut packet = with([17, 0, 0, 0, 0, 0, 0, 0]);
    done(&mut packet, Version::Ip4, TO4);
    assert_eq!(packet.data().len(), 14 + 20 + 9);
    refused(with([17, 0, 0, 1, 0, 0, 0, 0]), Version::Ip4, TO4);
}

#[test]
fn what_has_no_counterpart_is_refused() {
    for proto in [2, 51, 58, 60, 135, 139, 140] {
        refused(packet(Version::Ip4, proto, &[0; 40]), Version::Ip6, TO6);
    }
    for message in [vec![13, 0, 0, 0, 0, 0, 0, 0], vec![8, 0, 0]] {
        refused(packet(Version::Ip4, 1, &message), Version::Ip6, TO6);
    }
    refused(packet(Version::Ip6, 58, &[135, 0, 0, 0, 0, 0, 0, 0]), Version::Ip4, TO4);
    refused(packet(Version::Ip6, 1, &echo(8)), Version::Ip4, TO4);
    // Not of the other version.
    refused(packet(Version::Ip4, 17, &udp(b"")), Version::Ip4, TO4);
    refused(packet(Version::Ip6, 17, &udp(b"")), Version::Ip6, TO6);
}

/// An ICMP error of a version about a datagram in the opposite direction.
fn error(from: Version, start: [u8; 8]) -> Packet {
    let inner = udp(b"quoted");
    match from {
        Version::Ip4 => {
            let quote = packet_bytes(from, [V4[1], V4[0]], 17, &inner);
            packet(from, 1, &[&start, &quote[..]].concat())
        }
        Version::Ip6 => {
            let quote = packet_bytes(from, [V6[1], V6[0]], 17, &inner);
            packet(from, 58, &[&start, &quote[..]].concat())
        }
    }
}

/// A packet of a version without its link header.
fn packet_bytes(version: Version, addresses: [u128; 2], proto: u8, message: &[u8]) -> Vec<u8> {
    let mut packet = match version {
        Version::Ip4 => frame(0x0800, &[&header4(proto, message.len(), addresses, 0), message]),
        Version::Ip6 => frame(0x86dd, &[&header6(proto, message.len(), addresses), message]),
    };
    checksum::fill(&mut packet);
    packet.data()[14..].to_vec()
}

#[test]
fn errors_and_what_they_quote_are_translated() {
    // RFC 7915, §4.2 and §5.2, by type, code and the rest of the header.
    let to6: &[([u8; 8], Option<[u8; 8]>)] = &[
        ([3, 0, 0, 0, 0, 0, 0, 0], Some([1, 0, 0, 0, 0, 0, 0, 0])),
        ([3, 2, 0, 0, 0, 0, 0, 0], Some([4, 1, 0, 0, 0, 0, 0, 6])),
        ([3, 3, 0, 0, 0, 0, 0, 0], Some([1, 4, 0, 0, 0, 0, 0, 0])),
        // The MTU grows by 20 bytes, and is at least 1280.
        ([3, 4, 0, 0, 0, 0, 5, 120], Some([2, 0, 0, 0, 0, 0, 5, 140])),
        ([3, 4, 0, 0, 0, 0, 2, 64], Some([2, 0, 0, 0, 0, 0, 5, 0])),
        ([3, 10, 0, 0, 0, 0, 0, 0], Some([1, 1, 0, 0, 0, 0, 0, 0])),
        ([3, 14, 0, 0, 0, 0, 0, 0], None),
        ([4, 0, 0, 0, 0, 0, 0, 0], None),
        ([5, 1, 0, 0, 10, 0, 0, 1], None),
        ([11, 1, 0, 0, 0, 0, 0, 0], Some([3, 1, 0, 0, 0, 0, 0, 0])),
        ([12, 0, 0, 0, 9, 0, 0, 0], Some([4, 0, 0, 0, 0, 0, 0, 6])),
        ([12, 0, 0, 0, 4, 0, 0, 0], None),
        ([12, 1, 0, 0, 0, 0, 0, 0], None),
    ];
    let to4: &[([u8; 8], Option<[u8; 8]>)] = &[
        ([1, 0, 0, 0, 0, 0, 0, 0], Some([3, 1, 0, 0, 0, 0, 0, 0])),
        ([1, 1, 0, 0, 0, 0, 0, 0], Some([3, 10, 0, 0, 0, 0, 0, 0])),
        ([1, 4, 0, 0, 0, 0, 0, 0], Some([3, 3, 0, 0, 0, 0, 0, 0])),
        ([1, 5, 0, 0, 0, 0, 0, 0], None),
        ([2, 0, 0, 0, 0, 0, 5, 0], Some([3, 4, 0, 0, 0, 0, 4, 236])),
        ([3, 0, 0, 0, 0, 0, 0, 0], Some([11, 0, 0, 0, 0, 0, 0, 0])),
        ([4, 0, 0, 0, 0, 0, 0, 7], Some([12, 0, 0, 0, 8, 0, 0, 0])),
        ([4, 0, 0, 0, 0, 0, 0, 2], None),
        ([4, 1, 0, 0, 0, 0, 0, 40], Some([3, 2, 0, 0, 0, 0, 0, 0])),
        ([4, 2, 0, 0, 0, 0, 0, 0], None),
    ];
    for (to, addresses, table) in [(Version::Ip6, TO6, to6), (Version::Ip4, TO4, to4)] {
        for (was, is) in table {
            let mut packet = error(to.other(), *was);
            let Some(is) = is else {
                refused(packet, to, addresses);
                continue;
            };
            done(&mut packet, to, addresses);
            let at = 14 + to.header_len();
            assert_eq!(packet.data()[at..at + 2], is[..2]);
            assert_eq!(packet.data()[at + 4..at + 8], is[4..]);
            let mut quote = packet_bytes(to, addresses.quoted.unwrap(), 17, &udp(b"quoted"));
            if to == Version::Ip6 {
                assert_eq!(packet.data()[at + 8..], quote);
            } else {
                // The quoted IPv4 packet has no identification.
                quote[4..6].fill(0);
                quote[10..12].fill(0);
                let sum = rfc1071(&quote[..20]);
                quote[10..12].copy_from_slice(&sum.to_be_bytes());
                assert_eq!(packet.data()[at + 8..], quote);
            }
        }
    }
}

#[test]
fn missing_mtu_is_the_next_plateau() {
    for (total, mtu) in [(1500, 1512), (1006, 1280), (40, 1280), (40_000, 32_020)] {
        let header = header4(17, total - 20, [V4[1], V4[0]], 0);
        let message = [&[3, 4, 0, 0, 0, 0, 0, 0], &header[..], &[0; 8]].concat();
        let mut packet = packet(Version::Ip4, 1, &message);
        done(&mut packet, Version::Ip6, TO6);
        assert_eq!(packet.data()[58..62], u32::try_from(mtu).unwrap().to_be_bytes());
    }
}

#[test]
fn mtu_leaves_room_for_a_fragment_header() {
    let datagram = [&[17, 0, 0, 1, 0, 0, 0, 9], &udp(&[1; 8])[..]].concat();
    let quote = packet_bytes(Version::Ip6, [V6[1], V6[0]], 44, &datagram);
    let mut packet = packet(Version::Ip6, 58, &[&[2, 0, 0, 0, 0, 0, 5, 220], &quote[..]].concat());
    done(&mut packet, Version::Ip4, TO4);
    assert_eq!(packet.data()[38..42], 1472_u32.to_be_bytes());
}

#[test]
fn quoted_message_that_is_cut_is_translated_or_refused() {
    let about = |message: &[u8], kept: usize| {
        let quote = packet_bytes(Version::Ip4, [V4[1], V4[0]], 1, message);
        let kept = &quote[..20 + kept];
        packet(Version::Ip4, 1, &[&[11, 0, 0, 0, 0, 0, 0, 0], kept].concat())
    };
    let whole = packet_bytes(Version::Ip6, [V6[1], V6[0]], 58, &echo(128));
    for kept in [0, 1, 4, 7] {
        let mut packet = about(&echo(8), kept);
        done(&mut packet, Version::Ip6, TO6);
        assert_eq!(packet.data()[62..], whole[..40 + kept]);
        // An error about a timestamp, and about another error.
        if kept > 0 {
            refused(about(&[13, 0, 0, 0, 0, 0, 0, 0], kept), Version::Ip6, TO6);
            refused(about(&[3, 4, 0, 0, 0, 0, 5, 20], kept), Version::Ip6, TO6);
        }
    }
}

#[test]
fn checksums_of_other_transports_follow() {
    // DCCP and UDP-Lite (which covers 8 bytes here) have checksums at the same place as UDP.
    for proto in [33, 136] {
        let sum_of = |addresses: [u128; 2], message: &[u8]| {
            let len = u32::try_from(message.len()).unwrap();
            let sum = addresses.iter().fold(Sum16::default(), |s, a| s.with(&a.to_be_bytes()));
            sum.with_word(len).with_word(proto.into()).with(&message[..8]).folded()
        };
        let mut message = [0x30, 0x39, 0, 53, 0, 8, 0, 0, b'u', b'n', b'c'];
        let sum = !sum_of(V4, &message);
        message[6..8].copy_from_slice(&sum.to_be_bytes());
        let mut packet = packet(Version::Ip4, proto, &message);
        done(&mut packet, Version::Ip6, TO6);
        assert_eq!(sum_of(V6, &packet.data()[54..]), 0xffff);
    }
}

#[test]
fn errors_are_no_longer_than_the_version_allows() {
    let quote = packet_bytes(Version::Ip6, [V6[1], V6[0]], 17, &udp(&[1; 1000]));
    let mut packet = packet(Version::Ip6, 58, &[&[3, 0, 0, 0, 0, 0, 0, 0], &quote[..]].concat());
    done(&mut packet, Version::Ip4, TO4);
    assert_eq!(packet.data().len(), 14 + 576);
    let quote = packet_bytes(Version::Ip4, [V4[1], V4[0]], 17, &udp(&[1; 1400]));
    let mut packet =
        self::packet(Version::Ip4, 1, &[&[11, 0, 0, 0, 0, 0, 0, 0], &quote[..]].concat());
    done(&mut packet, Version::Ip6, TO6);
    assert_eq!(packet.data().len(), 14 + 1280);
}

#[test]
fn quotes_that_end_early_and_extensions_behind_them() {
    // The quoted datagram ends behind its ports, and an extension of RFC 4884 follows.
    let quote = packet_bytes(Version::Ip4, [V4[1], V4[0]], 17, &udp(&[1; 200]))[..128].to_vec();
    let extension = [0x20, 0, 0, 0, 0, 8, 1, 1, 0, 0, 0, 0];
    let message = [&[11, 0, 0, 0, 0, 32, 0, 0], &quote[..], &extension].concat();
    let mut packet = packet(Version::Ip4, 1, &message);
    done(&mut packet, Version::Ip6, TO6);
    assert_eq!(packet.data().len(), 14 + 40 + 8 + 40 + 108);
    let short = [&[11, 0, 0, 0, 0, 0, 0, 0], &quote[..24]].concat();
    let mut packet = self::packet(Version::Ip4, 1, &short);
    done(&mut packet, Version::Ip6, TO6);
    assert_eq!(packet.data()[14 + 40 + 8 + 40..], [0x30, 0x39, 0, 53]);
    let no_header = [&[11, 0, 0, 0, 0, 0, 0, 0], &quote[..19]].concat();
    refused(self::packet(Version::Ip4, 1, &no_header), Version::Ip6, TO6);
}

#[test]
fn quoted_echo_is_translated() {
    let quote = packet_bytes(Version::Ip4, [V4[1], V4[0]], 1, &echo(8));
    let mut packet = packet(Version::Ip4, 1, &[&[11, 0, 0, 0, 0, 0, 0, 0], &quote[..]].concat());
    let (other, wrong) = (packet.clone(), &mut packet.clone());
    done(&mut packet, Version::Ip6, TO6);
    let expected = packet_bytes(Version::Ip6, [V6[1], V6[0]], 58, &echo(128));
    assert_eq!(packet.data()[62..], expected);
    // Errors need the addresses of what they quote, and a right checksum.
    refused(other, Version::Ip6, Addresses { quoted: None, ..TO6 });
    wrong.data_mut()[50] ^= 1;
    refused(wrong.clone(), Version::Ip6, TO6);
    // An error about an error.
    let inner = packet_bytes(Version::Ip4, [V4[1], V4[0]], 1, &[3, 1, 0, 0, 0, 0, 0, 0]);
    refused(
        self::packet(Version::Ip4, 1, &[&[11, 0, 0, 0, 0, 0, 0, 0], &inner[..]].concat()),
        Version::Ip6,
        TO6,
    );
}

#[test]
fn capture_that_lacks_bytes_is_cut() {
    let whole = packet(Version::Ip6, 6, &tcp(b"payload"));
    for len in 54..whole.data().len() {
        let mut cut = Packet::snapped(Link::Ethernet, 7, &whole.data()[..len], whole.wire_len);
        let before = cut.clone();
        let outcome = go(&mut cut, Version::Ip4, TO4);
        if len < 54 + 18 {
            assert_eq!((outcome, cut), (Err(Cut), before));
        } else {
            assert_eq!(outcome, Ok(true));
            assert_eq!(cut.wire_len, whole.wire_len - 20);
        }
    }
}
