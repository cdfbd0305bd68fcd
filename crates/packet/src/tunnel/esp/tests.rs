//! Tests of encrypted tunnels.

use super::*;
use crate::field::Header;
use crate::link::Link;
use crate::tunnel::tests::{self, digits, hex};
use crate::{Shape, build_fresh};
use braid_crypto::Keys;

/// The keys of the packets that scapy built.
fn keys() -> Keys {
    let (short, long, mac) = (digits(1..17), digits(1..33), digits(64..96));
    let mut keys = Keys::default();
    for line in [
        format!("0x1001 aes-128-gcm {short}a1a2a3a4"),
        format!("0x1002 aes-256-gcm 0x{long}b1b2b3b4"),
        format!("4099 aes-128-cbc-hmac-sha-256-128 {short}{mac}"),
        format!("4100 aes-256-cbc-hmac-sha-256-128 {long}{mac}"),
        format!("4101 hmac-sha-256-128 {mac}"),
    ] {
        keys.add(&line).unwrap();
    }
    keys
}

fn put(packet: &mut Packet, part: Header, headers: &[u8], with: (&Key, u64)) -> Result<bool, Cut> {
    tests::seal(packet, &[part, Header::Esp], headers, (&tests::short(with.0), with.1))
}

fn pop(packet: &mut Packet, key: &Key) -> Result<bool, Cut> {
    tests::open(packet, Header::Esp, &tests::short(key))
}

/// The contents of an IPv4 header and of ESP.
fn headers(seq: u32) -> Vec<u8> {
    let ip = hex("00000000123400004000" /* to the protocol */);
    let mut headers = [&ip[..], &hex("0000c0000201c6336402"), &hex("00001001")].concat();
    headers.extend(seq.to_be_bytes());
    headers
}

#[test]
fn packets_have_the_bytes_that_scapy_builds() {
    let keys = keys();
    let mut count = 0;
    for line in include_str!("scapy.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, version, seq, vector, inside, outside] = words[..] else { panic!("{line}") };
        let (seq, vector) = (seq.parse::<u32>().unwrap(), vector.parse::<u64>().unwrap());
        let (inside, outside) = (hex(inside), hex(outside));
        let number: u32 = number.parse().unwrap();
        let key = keys.get(number.into()).unwrap();
        let part = if version == "4" { Header::Ip4 } else { Header::Ip6 };
        let ip_len = if version == "4" { 20 } else { 40 };
        // The lengths and the checksum in the header are filled in, whatever they were.
        let mut headers = outside[..ip_len].to_vec();
        let length = if version == "4" { 2 } else { 4 };
        headers[length..length + 2].fill(9);
        headers.extend(number.to_be_bytes());
        headers.extend(seq.to_be_bytes());
        let before = Packet::new(Link::RawIp, 0, inside);
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, part, &headers, (key, vector)), Ok(true));
        assert_eq!(changed.data(), outside, "{line}");
        assert_eq!(pop(&mut changed, key), Ok(true));
        assert_eq!(changed, before, "{line}");
        count += 1;
    }
    assert_eq!(count, 5 * 2 * 2 * 9);
}

#[test]
fn extended_sequence_numbers_and_tunnels_in_udp_have_the_bytes_that_scapy_builds() {
    let keys = keys();
    let mut count = 0;
    for line in include_str!("scapy_more.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, version, high, udp, _, vector, inside, outside] = words[..] else {
            panic!("{line}")
        };
        let (inside, outside) = (hex(inside), hex(outside));
        let key = keys.get(number.parse().unwrap()).unwrap().clone();
        let right = Association { key, high: high.parse().ok() };
        let (part, ip_len) = if version == "4" { (Header::Ip4, 20) } else { (Header::Ip6, 40) };
        let (parts, len, last) = match udp {
            "udp" => (vec![part, Header::Udp, Header::Esp], ip_len + 16, Header::Udp),
            _ => (vec![part, Header::Esp], ip_len + 8, Header::Esp),
        };
        let before = Packet::new(Link::RawIp, 0, inside);
        let mut changed = before.clone();
        let seal = (&right, vector.parse().unwrap());
        assert_eq!(tests::seal(&mut changed, &parts, &outside[..len], seal), Ok(true));
        assert_eq!(changed.data(), outside, "{line}");
        for high in [None, Some(right.high.unwrap_or(0) ^ 1)] {
            let wrong = Association { high, ..right.clone() };
            let is_right = wrong == right;
            assert!(is_right || tests::open(&mut changed, last, &wrong) == Ok(false));
            assert_eq!(changed.data(), outside);
        }
        // Nobody looks at the checksum of UDP, which a NAT may have filled in (RFC 3948 §2.1).
        if udp == "udp" {
            changed.data_mut()[ip_len + 6..ip_len + 8].copy_from_slice(&[0x12, 0x34]);
        }
        assert_eq!(tests::open(&mut changed, last, &right), Ok(true));
        assert_eq!(changed, before, "{line}");
        count += 1;
    }
    // Each key: behind UDP with four upper halves, and without UDP with three by each version.
    assert_eq!(count, 5 * (4 + 3 + 3));
}

#[test]
fn datagrams_too_short_for_esp_stay_as_they_are() {
    let keys = keys();
    let association = tests::short(keys.get(0x1003).unwrap());
    // Beside a header of 8 bytes, there are a vector and a check value of 16 bytes each, and at
    // least one block.
    for len in 0..56 {
        let before = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], &vec![0; len]).unwrap();
        let mut changed = before.clone();
        assert_eq!(tests::open(&mut changed, Header::Udp, &association), Ok(false), "{len}");
        assert_eq!(changed, before);
    }
}

#[test]
fn udp_over_ipv6_has_a_checksum_of_the_encrypted_bytes() {
    let keys = keys();
    for (number, len) in (0x1001..=0x1005).flat_map(|number| [(number, 0), (number, 7)]) {
        let association = tests::short(keys.get(number).unwrap());
        let before = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], &vec![5; len]).unwrap();
        let ip = hex(
            "6000000000000040 20010db8000000000000000000000001 20010db8000000000000000000000002",
        );
        let headers = [&ip[..], &hex("1194119400000000"), &hex("0000100100000007")].concat();
        let mut changed = before.clone();
        let parts = [Header::Ip6, Header::Udp, Header::Esp];
        assert_eq!(tests::seal(&mut changed, &parts, &headers, (&association, 9)), Ok(true));
        // The sum over the pseudo-header and the datagram is that of a right checksum.
        let datagram = &changed.data()[40..];
        let sum = crate::checksum::Sum16::pseudo_header(17, datagram.len());
        let sum = sum.with(&changed.data()[8..40]).with(datagram);
        assert_eq!(sum.folded(), 0xffff);
        assert_ne!(&datagram[6..8], &[0, 0]);
        assert_eq!(tests::open(&mut changed, Header::Udp, &association), Ok(true));
        assert_eq!(changed, before);
    }
}

#[test]
fn a_changed_byte_or_another_key_is_refused_and_nothing_changes() {
    let keys = keys();
    for number in 0x1001..=0x1005 {
        let key = keys.get(number).unwrap();
        let mut sealed = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"a payload").unwrap();
        assert_eq!(put(&mut sealed, Header::Ip4, &headers(7), (key, 5)), Ok(true));
        for other in (0x1001..=0x1005).filter(|other| *other != number) {
            let mut changed = sealed.clone();
            assert_eq!(pop(&mut changed, keys.get(other).unwrap()), Ok(false));
            assert_eq!(changed, sealed);
        }
        for at in 34..sealed.data().len() {
            let mut wrong = sealed.clone();
            wrong.data_mut()[at] ^= 1;
            let mut changed = wrong.clone();
            assert_eq!(pop(&mut changed, key), Ok(false), "byte {at}");
            assert_eq!(changed, wrong);
        }
        assert_eq!(pop(&mut sealed, key), Ok(true));
    }
}

#[test]
fn padding_of_the_frame_stays_and_bytes_that_matter_must_be_captured() {
    let keys = keys();
    let key = keys.get(0x1003).unwrap();
    let plain = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"ab").unwrap();
    let padded = Packet::new(Link::Ethernet, 0, [plain.data(), &[0xee; 9]].concat());
    let mut sealed = padded.clone();
    assert_eq!(put(&mut sealed, Header::Ip4, &headers(1), (key, 1)), Ok(true));
    assert!(sealed.data().ends_with(&[0xee; 9]));
    for lacks in [9, 10, 30] {
        let data = &sealed.data()[..sealed.data().len() - lacks];
        let cut = Packet::snapped(Link::Ethernet, 0, data, sealed.wire_len);
        let mut changed = cut.clone();
        let expected = if lacks == 9 { Ok(true) } else { Err(Cut) };
        assert_eq!(pop(&mut changed, key), expected, "{lacks}");
        assert_eq!(changed == cut, expected.is_err());
    }
    assert_eq!(pop(&mut sealed, key), Ok(true));
    assert_eq!(sealed, padded);
    let data = &plain.data()[..plain.data().len() - 1];
    let cut = Packet::snapped(Link::Ethernet, 0, data, plain.wire_len);
    let mut changed = cut.clone();
    assert_eq!(put(&mut changed, Header::Ip4, &headers(1), (key, 1)), Err(Cut));
    assert_eq!(changed, cut);
}

/// A packet of ESP with these bytes inside, which end in padding, its length and the next header.
fn holding(key: &Key, inside: &[u8]) -> Packet {
    let mut data = inside.to_vec();
    let iv = key.iv(3);
    let iv = &iv[..key.iv_len()];
    let clear = hex("0000100100000007");
    let tag = key.encrypt(iv, (&clear, &[]), &mut data).unwrap();
    let len = u8::try_from(20 + 8 + iv.len() + data.len() + TAG).unwrap();
    let mut bytes = hex("4500000000000000403200000a0000010a000002");
    bytes[3] = len;
    Packet::new(Link::RawIp, 0, [&bytes[..], &clear, iv, &data, &tag].concat())
}

#[test]
fn only_packets_with_right_padding_come_out() {
    let keys = keys();
    let key = keys.get(0x1001).unwrap();
    let mut inside = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], b"ab").unwrap().data().to_vec();
    inside.extend([1, 2]);
    let with = |end: [u8; 2]| [&inside[..], &end].concat();
    let mut right = holding(key, &with([2, 4]));
    assert_eq!(pop(&mut right, key), Ok(true));
    assert_eq!(right.data(), &inside[..inside.len() - 2]);
    // No such version, a dummy packet (RFC 4303 §2.6), padding beyond the start, wrong padding, no
    // packet at all.
    for end in [[2, 41], [2, 59], [200, 4], [3, 4], [34, 4]] {
        let before = holding(key, &with(end));
        let mut changed = before.clone();
        assert_eq!(pop(&mut changed, key), Ok(false), "{end:?}");
        assert_eq!(changed, before, "{end:?}");
    }
    for inside in [&[][..], &[4], &[0, 4]] {
        let before = holding(key, inside);
        let mut changed = before.clone();
        assert_eq!(pop(&mut changed, key), Ok(false), "{inside:?}");
        assert_eq!(changed, before);
    }
}

#[test]
fn a_packet_that_would_be_too_long_stays_as_it_is() {
    let keys = keys();
    let key = keys.get(0x1001).unwrap();
    // 20 + 8 + 8 bytes in front, at least 2 + 16 behind, and a multiple of 4 between: 65,480 + 2 is
    // not one, so 65,478 bytes are the most.
    for (len, fits) in [(65_478, true), (65_479, false)] {
        let payload = vec![0; len - 28];
        let before = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], &payload).unwrap();
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, Header::Ip4, &headers(1), (key, 1)), Ok(fits), "{len}");
        assert_eq!(changed == before, !fits);
        assert!(!fits || pop(&mut changed, key) == Ok(true) && changed == before);
    }
}
