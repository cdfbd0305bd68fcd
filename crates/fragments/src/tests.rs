//! Datagrams are cut, and come in any order, more than once, beside each other, with overlaps.

use crate::datagrams::{Brought, Datagrams, Limits};
use crate::fragment::{Fragment, Key};
use braid_packet::checksum::{rfc1071, verify};
use braid_packet::{Field, Link, Packet};
use proptest::prelude::*;
use std::ops::Range;

const LIMITS: Limits = Limits { memory: 1 << 20, timeout: 1_000 };

/// A datagram: an IP header, extension headers or options in front of what is cut, and the rest.
#[derive(Clone, Debug)]
struct Whole {
    is_v6: bool,
    id: u16,
    options: usize,
    body: Vec<u8>,
}

fn link(is_v6: bool) -> Vec<u8> {
    let kind: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
    [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat().into_iter().chain(kind).collect()
}

impl Whole {
    /// The frame with the bytes in this range, or with all of them as a whole packet.
    fn frame(&self, range: Range<usize>, has_more: bool) -> Packet {
        let part = &self.body[range.clone()];
        let mut bytes = link(self.is_v6);
        if self.is_v6 {
            let options = self.options * 8;
            let next = if options > 0 { 60 } else { 44 };
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend(u16::try_from(options + 8 + part.len()).unwrap().to_be_bytes());
            bytes.extend([next, 64]);
            bytes.extend([0x20, 1, 0xd, 0xb8].into_iter().chain([0; 11]).chain([1]));
            bytes.extend([0x20, 1, 0xd, 0xb8].into_iter().chain([0; 11]).chain([2]));
            if options > 0 {
                bytes.extend([44, u8::try_from(self.options - 1).unwrap(), 1]);
                bytes.extend([u8::try_from(options - 4).unwrap()]);
                bytes.extend(vec![0; options - 4]);
            }
            let field = u16::try_from(range.start).unwrap() | u16::from(has_more);
            bytes.extend([17, 0]);
            bytes.extend(field.to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(self.id.to_be_bytes());
        } else {
            let header = 20 + self.options * 4;
            let field = u16::try_from(range.start / 8).unwrap() | u16::from(has_more) << 13;
            let mut ip = vec![0x45 + u8::try_from(self.options).unwrap(), 0];
            ip.extend(u16::try_from(header + part.len()).unwrap().to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend(field.to_be_bytes());
            ip.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            ip.resize(header, 1);
            let sum = rfc1071(&ip).to_be_bytes();
            ip[10..12].copy_from_slice(&sum);
            bytes.extend(ip);
        }
        bytes.extend(part);
        Packet::new(Link::Ethernet, 0, &bytes)
    }

    fn whole(&self) -> Vec<u8> {
        self.frame(0..self.body.len(), false).data().to_vec()
    }

    /// Its fragments, cut at these places.
    fn cut(&self, places: &[usize]) -> Vec<Packet> {
        let mut places: Vec<usize> = places.iter().map(|place| place * 8).collect();
        places.retain(|place| *place > 0 && *place < self.body.len());
        places.extend([0, self.body.len()]);
        places.sort_unstable();
        places.dedup();
        let last = self.body.len();
        places.windows(2).map(|pair| self.frame(pair[0]..pair[1], pair[1] < last)).collect()
    }
}

fn fragment(packet: &Packet) -> (Key, Fragment) {
    let layout = packet.parse();
    assert!(layout.is_fragment(), "{:?}", packet.data());
    Fragment::of(packet, &layout).expect("a fragment")
}

fn add(datagrams: &mut Datagrams, packet: &Packet, now: u64) -> Brought {
    let (key, fragment) = fragment(packet);
    datagrams.add(key, fragment, now)
}

prop_compose! {
    fn whole()(
        is_v6: bool,
        id in 0..3_u16,
        options in 0..4_usize,
        body in prop::collection::vec(any::<u8>(), 9..600),
    ) -> Whole {
        Whole { is_v6, id, options, body }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn fragments_in_any_order_give_the_packet(
        one in whole(),
        places in prop::collection::vec(1..80_usize, 1..20),
        order in prop::collection::vec(any::<prop::sample::Index>(), 60),
        saved_at: usize,
    ) {
        let other = Whole { id: one.id + 1, ..one.clone() };
        let both = [one.cut(&places), other.cut(&places[1..])];
        prop_assume!(both.iter().all(|fragments| fragments.len() > 1));
        // Some fragments come twice.
        let mut all = both.concat();
        let again: Vec<Packet> = order.iter().step_by(7).map(|at| at.get(&all).clone()).collect();
        all.extend(again);
        let len = all.len();
        order.iter().enumerate().for_each(|(at, to)| all.swap(at % len, to.index(len)));
        let mut datagrams = Datagrams::new(LIMITS);
        let mut found = Vec::new();
        for (at, packet) in all.iter().enumerate() {
            match add(&mut datagrams, packet, 5) {
                Brought::Nothing => {}
                Brought::Whole(bytes) => found.push(bytes),
                Brought::Wrong => prop_assert!(false, "fragment {at} is wrong"),
            }
            if at == saved_at % len {
                let saved = datagrams.save();
                datagrams = Datagrams::new(LIMITS);
                prop_assert!(datagrams.restore(&saved).is_some());
                prop_assert_eq!(datagrams.save(), saved);
            }
        }
        // What comes behind the last fragment begins a datagram anew.
        prop_assert!(found.contains(&one.whole()) && found.contains(&other.whole()));
        prop_assert!(found.iter().all(|bytes| [one.whole(), other.whole()].contains(bytes)));
        datagrams.advance(5 + LIMITS.timeout);
        prop_assert_eq!((datagrams.shown().count(), datagrams.memory()), (0, 0));
    }

    #[test]
    fn fragments_that_share_bytes_give_no_packet(
        one in whole(),
        places in prop::collection::vec(1..70_usize, 1..6),
        (from, len) in (0..70_usize, 1..20_usize),
        turn: prop::sample::Index,
    ) {
        let mut fragments = one.cut(&places);
        let (start, end) = (from * 8, (from + len) * 8);
        prop_assume!(fragments.len() > 1 && end < one.body.len());
        let overlap = one.frame(start..end, true);
        prop_assume!(!fragments.iter().any(|one| one.data() == overlap.data()));
        let at = turn.index(fragments.len());
        fragments.insert(at, overlap);
        let mut datagrams = Datagrams::new(LIMITS);
        let brought: Vec<Brought> =
            fragments.iter().map(|packet| add(&mut datagrams, packet, 0)).collect();
        prop_assert_eq!(brought.last(), Some(&Brought::Wrong));
        prop_assert!(!brought.iter().any(|one| matches!(one, Brought::Whole(_))));
        // It stays wrong, also in another run, until it is forgotten.
        let mut next = Datagrams::new(LIMITS);
        prop_assert!(next.restore(&datagrams.save()).is_some());
        prop_assert_eq!(add(&mut next, &fragments[0], 1), Brought::Wrong);
    }

    #[test]
    fn any_fragments_keep_to_the_limits(
        all in prop::collection::vec((whole(), 0..9_000_usize, 0..300_usize, any::<bool>()), 0..80),
        memory in 0..20_000_usize,
    ) {
        let mut datagrams = Datagrams::new(Limits { memory, timeout: 40 });
        for (now, (one, offset, len, has_more)) in (0..).zip(all) {
            let body = vec![7; offset * 8 + len];
            let one = Whole { body, ..one };
            if offset * 8 + len > 0xfff8 || offset == 0 && !has_more {
                continue;
            }
            let packet = one.frame(offset * 8..offset * 8 + len, has_more);
            let (key, fragment) = fragment(&packet);
            if let Brought::Whole(bytes) = datagrams.add(key, fragment, now) {
                let whole = Packet::new(Link::Ethernet, 0, &bytes);
                prop_assert!(!whole.parse().is_fragment());
            }
            prop_assert!(datagrams.memory() <= memory);
        }
        datagrams.advance(1_000);
        prop_assert_eq!(datagrams.memory(), 0);
    }

    #[test]
    fn damaged_memory_is_refused(bytes in prop::collection::vec(any::<u8>(), 1..400)) {
        let _ = Datagrams::new(LIMITS).restore(&bytes);
    }
}

fn text(len: usize) -> Whole {
    let body = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
    Whole { is_v6: false, id: 7, options: 0, body }
}

#[test]
fn whole_packet_has_right_headers_and_the_mark_of_any_fragment() {
    for is_v6 in [false, true] {
        let one = Whole { is_v6, ..text(40) };
        let mut fragments = one.cut(&[2]);
        // "Don't fragment" goes, and a mark of congestion stays.
        match is_v6 {
            true => fragments[1].data_mut()[15] |= 0x30,
            false => fragments[1].data_mut()[15] |= 3,
        }
        let mut datagrams = Datagrams::new(LIMITS);
        assert_eq!(add(&mut datagrams, &fragments[1], 0), Brought::Nothing);
        let Brought::Whole(bytes) = add(&mut datagrams, &fragments[0], 0) else { panic!("waits") };
        let whole = Packet::new(Link::Ethernet, 0, &bytes);
        let layout = whole.parse();
        let class = if is_v6 { Field::Ip6Tc } else { Field::IpTos };
        assert_eq!(whole.get(&layout, class).map(|class| class & 3), Some(3));
        if !is_v6 {
            assert_eq!(verify(&whole, &layout).ip, Some(true));
        }
    }
}

#[test]
fn fragments_that_no_sender_makes_are_wrong() {
    let one = text(64);
    let wrong = [
        // Not a multiple of 8 bytes, and more to come.
        one.frame(0..12, true),
        // No bytes.
        one.frame(8..8, true),
        // Beyond the longest datagram.
        Whole { body: vec![0; 65_700], ..text(0) }.frame(65_528..65_600, false),
    ];
    for packet in wrong {
        let mut datagrams = Datagrams::new(LIMITS);
        assert_eq!(add(&mut datagrams, &packet, 0), Brought::Wrong, "{:?}", packet.data());
        assert_eq!(add(&mut datagrams, &one.frame(0..16, true), 0), Brought::Wrong);
    }
    // Two ends, and bytes behind the end.
    for more in [one.frame(16..32, false), one.frame(48..64, true)] {
        let mut datagrams = Datagrams::new(LIMITS);
        assert_eq!(add(&mut datagrams, &one.frame(32..48, false), 0), Brought::Nothing);
        assert_eq!(add(&mut datagrams, &more, 0), Brought::Wrong);
    }
    let mut datagrams = Datagrams::new(LIMITS);
    assert_eq!(add(&mut datagrams, &one.frame(32..48, true), 0), Brought::Nothing);
    assert_eq!(add(&mut datagrams, &one.frame(16..24, false), 0), Brought::Wrong);
}

#[test]
fn packets_that_are_too_long_with_their_link_header_are_wrong() {
    // 65,535 bytes with the headers of Ethernet and of IPv4, or one more.
    for (len, is_short) in [(65_501, true), (65_502, false)] {
        let one = Whole { body: vec![1; len], ..text(0) };
        let fragments = one.cut(&[4_000]);
        let mut datagrams = Datagrams::new(LIMITS);
        assert_eq!(add(&mut datagrams, &fragments[0], 0), Brought::Nothing);
        let brought = add(&mut datagrams, &fragments[1], 0);
        assert_eq!(brought == Brought::Whole(one.whole()), is_short);
        assert_eq!(brought == Brought::Wrong, !is_short);
    }
}

#[test]
fn fragments_of_other_datagrams_are_told_apart() {
    let first = text(32).cut(&[2]);
    let mut others = Vec::new();
    for (place, value) in [(29, 9), (33, 9), (23, 6), (18, 9)] {
        let mut packet = first[1].clone();
        packet.data_mut()[place] = value;
        others.push(packet);
    }
    let mut backward = first[1].clone();
    backward.backward = true;
    let mut vlan = first[1].clone();
    vlan.insert(12, &[0x81, 0, 0, 7]);
    others.extend([backward, vlan]);
    let mut datagrams = Datagrams::new(LIMITS);
    assert_eq!(add(&mut datagrams, &first[0], 0), Brought::Nothing);
    for other in &others {
        assert_eq!(add(&mut datagrams, other, 0), Brought::Nothing, "{:?}", other.data());
    }
    assert_eq!(datagrams.shown().count(), 7);
    assert_eq!(add(&mut datagrams, &first[1], 0), Brought::Whole(text(32).whole()));
}

#[test]
fn oldest_datagrams_are_given_up_by_time_and_by_memory() {
    let mut datagrams = Datagrams::new(Limits { memory: 2_000, timeout: 100 });
    let first = |id| Whole { id, ..text(32) }.cut(&[2]);
    for (id, now) in [(1, 0), (2, 50)] {
        assert_eq!(add(&mut datagrams, &first(id)[0], now), Brought::Nothing);
    }
    datagrams.advance(100);
    assert_eq!((datagrams.timed_out, datagrams.shown().count()), (1, 1));
    for id in 3..20 {
        add(&mut datagrams, &first(id)[0], 100);
    }
    let left: Vec<u32> = datagrams.shown().map(|(key, ..)| key.id).collect();
    assert_eq!(left, [16, 17, 18, 19]);
    assert_eq!(datagrams.given_up, 14);
    assert!(matches!(add(&mut datagrams, &first(19)[1], 100), Brought::Whole(_)));
}

#[test]
fn a_fragment_whose_bytes_are_cut_is_none() {
    let packet = text(64).frame(16..32, true);
    let whole = packet.data().to_vec();
    for len in 34..whole.len() {
        let cut = Packet::new(Link::Ethernet, 0, &whole[..len]);
        assert!(Fragment::of(&cut, &cut.parse()).is_none(), "{len}");
    }
}
