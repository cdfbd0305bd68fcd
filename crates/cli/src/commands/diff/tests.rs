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
    let [PacketDifference { numbers: [Some(1), Some(1)], what: What::Fields(fields) }] =
        &comparison.shown[..]
    else {
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
    assert_eq!(compared(from_ref(&a), from_ref(&b), Options::default()).changed, 1);
    let ignoring = Options { ignore_time: true, ..Options::default() };
    assert!(compared(&[a], &[b], ignoring).is_equal());
}

#[test]
fn packets_of_one_capture_only_are_told_with_their_number() {
    let (a, b) = (udp(0, A, B), udp(1, B, A));
    let longer = [a.clone(), b.clone()];
    let comparison = compared(&longer, &longer[..1], Options::default());
    assert_eq!((comparison.packets, comparison.only), ([2, 1], [1, 0]));
    let only = |numbers, packet: &Packet| PacketDifference {
        numbers,
        what: What::Only(packet.to_string()),
    };
    assert_eq!(comparison.shown, [only([Some(2), None], &b)]);
    let comparison = compared(&[], &longer[..1], Options::default());
    assert_eq!(comparison.shown, [only([None, Some(1)], &a)]);
}

#[test]
fn differences_past_the_limit_are_counted_only() {
    let a: Vec<Packet> = (0..5).map(|time| udp(time, A, B)).collect();
    let b: Vec<Packet> = (5..10).map(|time| udp(time, A, B)).collect();
    let comparison = compared(&a, &b, Options { limit: 2, ..Options::default() });
    assert_eq!((comparison.different(), comparison.shown.len()), (5, 2));
}

/// A packet with a payload of its own.
fn numbered(number: u64, from: End) -> Packet {
    let fields = [
        (Field::IpSrc, from.0),
        (Field::IpDst, B.0),
        (Field::UdpSport, from.1),
        (Field::UdpDport, B.1),
    ];
    build_fresh(Link::Ethernet, number, Shape::Udp4, &fields, &number.to_be_bytes()).unwrap()
}

/// What a function that drops and adds packets and rewrites the others does is found exactly.
fn found_exactly(count: u64, is_dropped: impl Fn(u64) -> bool, is_added: impl Fn(u64) -> bool) {
    let a: Vec<Packet> = (0..count).map(|number| numbered(number, A)).collect();
    let mut b = Vec::new();
    for number in 0..count {
        if is_added(number) {
            b.push(udp(number, B, A));
        }
        if !is_dropped(number) {
            b.push(numbered(number, (0xc633_6401, 5000 + u128::from(number % 7))));
        }
    }
    let found = compared(&a, &b, Options { limit: usize::MAX, ..Options::default() });
    let dropped = (0..count).filter(|number| is_dropped(*number)).count() as u64;
    let added = (0..count).filter(|number| is_added(*number)).count() as u64;
    assert_eq!((found.changed, found.only), (count - dropped, [dropped, added]));
    for difference in &found.shown {
        if let [Some(a), None] = difference.numbers {
            assert!(is_dropped(a - 1));
        }
    }
}

#[test]
fn drops_and_insertions_are_found_among_rewritten_packets() {
    found_exactly(40, |number| number % 7 == 3, |number| number % 11 == 5);
    found_exactly(3000, |number| number % 100 == 3, |_| false);
    found_exactly(3000, |number| (500..1500).contains(&number), |number| number == 2000);
}

#[test]
fn long_runs_are_found_as_far_as_packets_are_read_ahead() {
    found_exactly(70_000, |number| (10..30_000).contains(&number), |_| false);
}

#[test]
fn equal_packets_among_many_are_told_apart_by_their_times() {
    let a: Vec<Packet> = (0..9).map(|time| udp(time, A, B)).collect();
    let b: Vec<Packet> = a.iter().filter(|packet| packet.time_ns != 4).cloned().collect();
    let found = compared(&a, &b, Options::default());
    assert_eq!((found.changed, found.only), (0, [1, 0]));
    assert_eq!(found.shown[0].numbers, [Some(5), None]);
}

#[test]
fn unlike_packets_are_not_one_that_was_changed() {
    let other = Packet::new(Link::RawIp, 0, vec![0x60; 40]);
    let found = compared(&[udp(0, A, B)], &[other], Options::default());
    assert_eq!((found.changed, found.only), (0, [1, 1]));
}

/// Whatever the captures hold, each packet is compared once, and the end comes.
#[test]
fn every_packet_is_accounted_for() {
    let mut rng = braid_externs::rng::Rng::new(1);
    for round in 0..braid_cases::cases(300) {
        let mut draw = |below: u64| rng.next_u64() % below;
        let kinds = 1 + draw(6);
        let lens = [draw(300), draw(300)];
        let mut capture = |len: u64| -> Vec<Packet> {
            let one = |_| {
                let end = (A.0 + u128::from(draw(kinds)), A.1);
                if draw(2) == 0 { udp(draw(3), end, B) } else { numbered(draw(kinds), end) }
            };
            (0..len).map(one).collect()
        };
        let (a, b) = (capture(lens[0]), capture(lens[1]));
        let options = Options { ignore_time: round % 2 == 0, limit: usize::MAX };
        let found = compared(&a, &b, options);
        assert_eq!(found.packets, lens);
        assert_eq!(lens[0] - found.only[0], lens[1] - found.only[1]);
        let both = compared(&a, &a, options);
        assert!(both.is_equal());
        for side in [0, 1] {
            let numbers = found.shown.iter().filter_map(|shown| shown.numbers[side]);
            assert!(numbers.is_sorted_by(|x, y| x < y), "{found:?}");
        }
    }
}
