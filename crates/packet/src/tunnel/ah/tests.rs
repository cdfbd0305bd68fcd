//! Tests of authenticated tunnels.

use super::*;
use crate::link::Link;
use crate::tunnel::tests::{self, digits, hex};
use crate::{Shape, build_fresh};
use braid_crypto::{Key, Keys};

/// The key of the packets that scapy built, and another one, and one that encrypts.
fn keys() -> Keys {
    let (mac, other, short) = (digits(64..96), digits(65..97), digits(1..21));
    let mut keys = Keys::default();
    for line in [
        format!("0x1005 hmac-sha-256-128 {mac}"),
        format!("0x1006 hmac-sha-256-128 {other}"),
        format!("0x1007 aes-128-gcm {short}"),
    ] {
        keys.add(&line).unwrap();
    }
    keys
}

fn put(packet: &mut Packet, ip: Header, headers: &[u8], key: &Key) -> Result<bool, Cut> {
    tests::seal(packet, &[ip, Header::Ah], headers, (&tests::short(key), 0))
}

fn pop(packet: &mut Packet, key: &Key) -> Result<bool, Cut> {
    tests::open(packet, Header::Ah, &tests::short(key))
}

/// The contents of an IPv4 header and of AH.
fn headers() -> Vec<u8> {
    hex("000000001234000040000000c0000201c6336402000000000000100500000007")
}

#[test]
fn packets_have_the_bytes_that_scapy_builds() {
    let keys = keys();
    let key = keys.get(0x1005).unwrap();
    let mut count = 0;
    for line in include_str!("scapy.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [version, seq, inside, outside] = words[..] else { panic!("{line}") };
        let (inside, outside) = (hex(inside), hex(outside));
        let (ip, ip_len) = if version == "4" { (Header::Ip4, 20) } else { (Header::Ip6, 40) };
        // The lengths, the next headers and the checksum are filled in, whatever they were.
        let mut headers = outside[..ip_len].to_vec();
        let (length, next) = if version == "4" { (2, 9) } else { (4, 6) };
        headers[length..length + 2].fill(9);
        headers[next] = 9;
        headers.extend([9, 9, 0, 0, 0, 0, 0x10, 5]);
        headers.extend(seq.parse::<u32>().unwrap().to_be_bytes());
        let before = Packet::new(Link::RawIp, 0, inside);
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, ip, &headers, key), Ok(true));
        assert_eq!(changed.data(), outside, "{line}");
        assert_eq!(pop(&mut changed, key), Ok(true));
        assert_eq!(changed, before, "{line}");
        count += 1;
    }
    assert_eq!(count, 2 * 2 * 4);
}

#[test]
fn check_values_cover_the_upper_half_of_sequence_numbers() {
    let keys = keys();
    let mut count = 0;
    for line in include_str!("scapy_more.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [version, high, _, inside, outside] = words[..] else { panic!("{line}") };
        let (inside, outside) = (hex(inside), hex(outside));
        let (ip, ip_len) = if version == "4" { (Header::Ip4, 20) } else { (Header::Ip6, 40) };
        let key = keys.get(0x1005).unwrap().clone();
        let right = Association { key, high: Some(high.parse().unwrap()) };
        let before = Packet::new(Link::RawIp, 0, inside);
        let mut changed = before.clone();
        let headers = &outside[..ip_len + 12];
        assert_eq!(tests::seal(&mut changed, &[ip, Header::Ah], headers, (&right, 0)), Ok(true));
        assert_eq!(changed.data(), outside, "{line}");
        for high in [None, right.high.map(|high| high ^ 1 << 31)] {
            let wrong = Association { high, ..right.clone() };
            assert_eq!(tests::open(&mut changed, Header::Ah, &wrong), Ok(false));
            assert_eq!(changed.data(), outside);
        }
        assert_eq!(tests::open(&mut changed, Header::Ah, &right), Ok(true));
        assert_eq!(changed, before, "{line}");
        count += 1;
    }
    assert_eq!(count, 2 * 3);
}

#[test]
fn routers_may_change_some_bytes_of_the_ip_header_and_nobody_any_other() {
    let keys = keys();
    let key = keys.get(0x1005).unwrap();
    let mut sealed = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], b"a payload").unwrap();
    assert_eq!(put(&mut sealed, Header::Ip4, &headers(), key), Ok(true));
    assert_eq!(pop(&mut sealed.clone(), keys.get(0x1006).unwrap()), Ok(false));
    for at in 0..sealed.data().len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed.data_mut()[at] ^= 1 << bit;
            let wrong = changed.clone();
            // The type of service, the flag "do not fragment", the time to live, the checksum.
            let may = matches!((at, bit), (1 | 8 | 10 | 11, _) | (6, 6));
            // The reserved flag and a fragment's place: 6 and 7. A fragment is never opened.
            let is_reserved = (at, bit) == (6, 7);
            assert_eq!(pop(&mut changed, key), Ok(may || is_reserved), "byte {at}, bit {bit}");
            assert!(may || is_reserved || changed == wrong);
        }
    }
}

#[test]
fn keys_that_encrypt_and_options_in_front_are_refused() {
    let keys = keys();
    let (key, other) = (keys.get(0x1005).unwrap(), keys.get(0x1007).unwrap());
    let before = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"ab").unwrap();
    let mut packet = before.clone();
    assert_eq!(put(&mut packet, Header::Ip4, &headers(), other), Ok(false));
    assert_eq!(packet, before);
    assert_eq!(put(&mut packet, Header::Ip4, &headers(), key), Ok(true));
    assert_eq!(pop(&mut packet.clone(), other), Ok(false));
    // Four bytes of options that do nothing.
    let mut with_options = packet.clone();
    assert!(with_options.insert(34, &[1, 1, 1, 0]));
    with_options.data_mut()[14] = 0x46;
    with_options.data_mut()[17] += 4;
    assert!(with_options.parse().has(Header::Ah));
    assert_eq!(pop(&mut with_options, key), Ok(false));
    assert_eq!(pop(&mut packet, key), Ok(true));
    assert_eq!(packet, before);
}

#[test]
fn bytes_that_matter_must_be_captured() {
    let keys = keys();
    let key = keys.get(0x1005).unwrap();
    let plain = build_fresh(Link::Ethernet, 0, Shape::Udp4, &[], b"ab").unwrap();
    let padded = Packet::new(Link::Ethernet, 0, [plain.data(), &[0xee; 9]].concat());
    let mut sealed = padded.clone();
    assert_eq!(put(&mut sealed, Header::Ip4, &headers(), key), Ok(true));
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
    assert_eq!(put(&mut changed, Header::Ip4, &headers(), key), Err(Cut));
    assert_eq!(changed, cut);
}

#[test]
fn a_packet_that_would_be_too_long_stays_as_it_is() {
    let keys = keys();
    let key = keys.get(0x1005).unwrap();
    // 20 + 12 + 16 bytes in front.
    for (len, fits) in [(65_487, true), (65_488, false)] {
        let payload = vec![0; len - 28];
        let before = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], &payload).unwrap();
        let mut changed = before.clone();
        assert_eq!(put(&mut changed, Header::Ip4, &headers(), key), Ok(fits), "{len}");
        assert_eq!(changed == before, !fits);
        assert!(!fits || pop(&mut changed, key) == Ok(true) && changed == before);
    }
}
