//! Tests of the differences between packets.

use crate::samples::*;
use braid_packet::{Field, Packet, diff_fields};
use proptest::prelude::*;

fn texts(a: &Packet, b: &Packet) -> Vec<String> {
    diff_fields(a, b).into_iter().map(|d| format!("{} {} {}", d.what, d.a, d.b)).collect()
}

#[test]
fn equal_packets_do_not_differ() {
    for (name, packet) in all() {
        let mut later = packet.clone();
        later.time_ns += 1;
        assert_eq!(diff_fields(&packet, &later), [], "{name}");
    }
}

#[test]
fn rewritten_field_differs_with_its_checksums() {
    let a = named("udp");
    let mut b = a.clone();
    assert!(b.set(&a.parse(), Field::IpSrc, 0x0a01_0204));
    let found = texts(&a, &b);
    assert_eq!(found[0], "ip.src 10.1.2.3 10.1.2.4");
    assert!(found[1].starts_with("ip.checksum 0x"));
    assert!(found[2].starts_with("l4.checksum 0x"));
    assert_eq!(found.len(), 3);
}

#[test]
fn icmp_checksum_is_named() {
    let a = named("echo");
    let mut b = a.clone();
    assert!(b.set(&a.parse(), Field::IcmpSeq, 4));
    let found = texts(&a, &b);
    assert_eq!(found[0], "icmp.seq 3 4");
    assert!(found[1].starts_with("icmp.checksum 0x"));
    assert_eq!(found.len(), 2);
}

#[test]
fn payload_differs_at_an_offset() {
    let a = named("echo");
    let mut b = a.clone();
    b.data_mut()[14 + 20 + 8 + 5] = b'X';
    // The payload is "payload of odd length" from its sixth letter on, with an X for the a.
    assert_eq!(texts(&a, &b), ["payload[5] 6164206f66206f64… 5864206f66206f64…"]);
}

#[test]
fn quoted_field_is_not_listed_as_payload_again() {
    let a = named("unreachable");
    let mut b = a.clone();
    b.data_mut()[14 + 20 + 8 + 15] = 9;
    assert_eq!(texts(&a, &b), ["quoted.ip.src 10.1.2.3 10.1.2.9"]);
}

#[test]
fn missing_tag_differs_as_absent() {
    let a = named("qinq");
    let mut b = a.clone();
    assert!(b.pop_vlan());
    let found = texts(&a, &b);
    assert!(found.contains(&"pkt.len 107 103".to_owned()), "{found:?}");
    assert!(found.contains(&"vlan2.id 200 absent".to_owned()), "{found:?}");
    assert!(found.contains(&"captured 107 103".to_owned()), "{found:?}");
}

#[test]
fn padding_differs_by_byte() {
    let a = named("arp");
    let mut b = a.clone();
    b.data_mut()[50] = 7;
    b.data_mut()[51] = 8;
    assert_eq!(texts(&a, &b), ["byte[50] 0000 0708"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(2000)))]

    #[test]
    fn packets_differ_exactly_when_their_bytes_do(
        index in 0usize..20,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let a = all().swap_remove(index).1;
        let mut data = a.data().to_vec();
        for (at, byte) in damage {
            let at = at.index(data.len());
            data[at] = byte;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        let b = Packet::snapped(a.link, 0, data, a.wire_len);
        prop_assert_eq!(diff_fields(&a, &b).is_empty(), a.data() == b.data());
    }
}
