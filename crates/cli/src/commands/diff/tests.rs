//! Comparing captures finds all differences and nothing else.

use std::slice::from_ref;

use braid_io::MemorySource;
use braid_packet::{Field, Link, Packet, Shape, build_fresh};

use super::compare::{Comparison, Options, PacketDifference, What, compare};

/// An address and a port.
type End = (u128, u128);

const A: End = (0x0a00_0001, 1000);
const B: End = (0x0808_0808, 53);

/// A UDP packet with four bytes of payload over Ethernet.
fn udp(time_ns: u64, from: End, to: End) -> Packet {
    let fields = [
        (Field::IpSrc, from.0),
        (Field::IpDst, to.0),
        (Field::UdpSport, from.1),
        (Field::UdpDport, to.1),
    ];
    build_fresh(Link::Ethernet, time_ns, Shape::Udp4, &fields, b"data").unwrap()
}

fn compared(a: &[Packet], b: &[Packet], options: Options) -> Comparison {
    let mut sources = [MemorySource::new(a.to_vec()), MemorySource::new(b.to_vec())];
    let [a, b] = &mut sources;
    compare(a, b, options).unwrap()
}

#[test]
fn equal_captures_have_no_differences() {
    let packets = [udp(0, A, B), Packet::new(Link::RawIp, 1, vec![])];
    let comparison = compared(&packets, &packets, Options::default());
    assert!(comparison.is_equal());
    assert_eq!(comparison, Comparison { packets: [2, 2], ..Comparison::default() });
}

#[test]
fn fields_that_differ_are_named() {
    let a = udp(5, A, B);
    let mut b = udp(6, A, B);
    let layout = b.parse();
    b.set(&layout, Field::L4Dport, 54);
    let comparison = compared(from_ref(&a), from_ref(&b), Options::default());
    assert!(!comparison.is_equal());
    let [PacketDifference { number: 1, what: What::Fields(fields) }] = &comparison.shown[..] else {
        panic!("{comparison:?}");
    };
    let named: Vec<_> =
        fields.iter().map(|f| (f.what.as_str(), f.a.as_str(), f.b.as_str())).collect();
    assert_eq!(named[0], ("time", "5", "6"));
    assert_eq!(named[1], ("l4.dport", "53", "54"));
    // The checksum differs, too, and nothing else.
    assert_eq!((named[2].0, named.len()), ("l4.checksum", 3));

    let ignoring = Options { ignore_time: true, ..Options::default() };
    let comparison = compared(&[a], &[b], ignoring);
    let [PacketDifference { what: What::Fields(fields), .. }] = &comparison.shown[..] else {
        panic!("{comparison:?}");
    };
    assert_eq!(fields.len(), 2);
}

#[test]
fn times_alone_differ_unless_they_are_ignored() {
    let (a, b) = (udp(5, A, B), udp(6, A, B));
    assert_eq!(compared(from_ref(&a), from_ref(&b), Options::default()).different, 1);
    let ignoring = Options { ignore_time: true, ..Options::default() };
    assert!(compared(&[a], &[b], ignoring).is_equal());
}

#[test]
fn packets_of_one_capture_only_are_told_with_their_number() {
    let (a, b) = (udp(0, A, B), udp(1, B, A));
    let longer = [a.clone(), b.clone()];
    let comparison = compared(&longer, &longer[..1], Options::default());
    assert_eq!((comparison.packets, comparison.different), ([2, 1], 1));
    let what = What::OnlyFirst(b.to_string());
    assert_eq!(comparison.shown, [PacketDifference { number: 2, what }]);
    let comparison = compared(&[], &longer[..1], Options::default());
    let what = What::OnlySecond(a.to_string());
    assert_eq!(comparison.shown, [PacketDifference { number: 1, what }]);
}

#[test]
fn differences_past_the_limit_are_counted_only() {
    let a: Vec<Packet> = (0..5).map(|time| udp(time, A, B)).collect();
    let b: Vec<Packet> = (1..6).map(|time| udp(time, A, B)).collect();
    let comparison = compared(&a, &b, Options { limit: 2, ..Options::default() });
    assert_eq!((comparison.different, comparison.shown.len()), (5, 2));
}
