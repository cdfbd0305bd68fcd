//! Message segments are separated again, as the kernel does it, and compared with what they were.

use super::*;
use crate::offload::Offload;
use braid_packet::Pool;
use proptest::prelude::*;

/// What differs between a segment and the one that would follow the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Twist {
    None,
    Push,
    Fin,
    Ecn,
    Cwr,
    Urgent,
    Hole,
    OtherPort,
    OtherWindow,
    OtherTtl,
    OtherId,
    Fragment,
    WrongChecksum,
    WrongIpChecksum,
    ChecksumOfOnes,
    Padded,
    Udp,
}

/// A connection's next segment: IP version, bytes of payload, and what is different about it.
#[derive(Clone, Copy, Debug)]
struct Next {
    is_ip4: bool,
    payload: usize,
    twist: Twist,
}

/// Where a connection is: its sequence number and its next identification.
#[derive(Clone, Copy)]
struct Place {
    sequence: u32,
    id: u16,
}

fn segment(next: Next, place: &mut Place) -> Vec<u8> {
    let Next { is_ip4, payload, twist } = next;
    let is = |other: Twist| u8::from(twist == other);
    place.sequence = place.sequence.wrapping_add(5 * u32::from(is(Twist::Hole)));
    place.id = place.id.wrapping_add(u16::from(is(Twist::OtherId)));
    let flag = match twist {
        Twist::Push => PSH,
        Twist::Fin => FIN,
        Twist::Ecn => ECE,
        Twist::Cwr => 0x80,
        Twist::Urgent => 0x20,
        _ => 0,
    };
    let mut tcp = vec![0x12, 0x34, 0, 80 + is(Twist::OtherPort)];
    tcp.extend(place.sequence.to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x80, 0x10 | flag, 0x10, is(Twist::OtherWindow), 0, 0, 0, 0]);
    // Timestamps.
    tcp.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
    tcp.extend((0..payload).map(|at| u8::try_from(at % 251).unwrap()));
    let length = u16::try_from(tcp.len()).unwrap();
    let protocol = if twist == Twist::Udp { 17 } else { 6 };
    let ttl = 64 - is(Twist::OtherTtl);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if is_ip4 {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + length).to_be_bytes());
        frame.extend(place.id.to_be_bytes());
        frame.extend([0x40 - 0x20 * is(Twist::Fragment), 0, ttl, protocol, 0, 0]);
        frame.extend([10, 0, 0, 1, 192, 0, 2, 1]);
        let sum = rfc1071(&frame[14..]) ^ u16::from(is(Twist::WrongIpChecksum));
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([protocol, ttl]);
        frame.extend((0..32).map(|at| at * 7));
    }
    let addresses = &frame[if is_ip4 { 26.. } else { 22.. }];
    let pseudo = Sum16::default().with(addresses).with_word(6).with_word(length.into());
    let sum = |tcp: &[u8]| !pseudo.with(tcp).folded();
    if twist == Twist::ChecksumOfOnes && payload >= 2 {
        // The payload's first word brings the sum to all ones, so the right checksum is 0.
        tcp[32..34].fill(0);
        let word = sum(&tcp);
        tcp[32..34].copy_from_slice(&word.to_be_bytes());
        tcp[16..18].fill(0xff);
    } else {
        let sum = sum(&tcp) ^ u16::from(is(Twist::WrongChecksum));
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    }
    frame.extend(tcp);
    frame.extend(vec![0; is(Twist::Padded).into()]);
    place.sequence = place.sequence.wrapping_add(u32::try_from(payload).unwrap());
    place.id = place.id.wrapping_add(1);
    frame
}

fn burst(segments: &[Next]) -> Vec<Vec<u8>> {
    let mut place = Place { sequence: u32::MAX - 3000, id: u16::MAX - 3 };
    segments.iter().map(|next| segment(*next, &mut place)).collect()
}

/// The sizes of the joined parts of a burst. Checks that each part is what it was.
fn counts(burst: &[Vec<u8>], mtu: usize) -> Vec<usize> {
    let frames: Vec<Frame> = burst.iter().map(|bytes| Frame::of(bytes)).collect();
    let mut pool = Pool::new(512, 2048).unwrap();
    let mut rest = &frames[..];
    let mut counts = Vec::new();
    while !rest.is_empty() {
        let message = Message::of_first(rest, ETHERNET + mtu);
        let (together, behind) = rest.split_at(message.count);
        let (header, headers) = message.front.split_first_chunk().unwrap();
        let payloads = together.iter().map(|frame| &frame.bytes()[message.payload_at..]);
        let whole: Vec<u8> = [headers].into_iter().chain(payloads).flatten().copied().collect();
        let mut separated = Vec::new();
        Offload::parse(*header).finish(&whole, None, &mut pool, &mut separated).unwrap();
        let separated: Vec<_> = separated.iter().map(Frame::bytes).collect();
        assert_eq!(separated, together.iter().map(Frame::bytes).collect::<Vec<_>>());
        counts.push(message.count);
        rest = behind;
    }
    counts
}

fn plain(payload: usize) -> Next {
    Next { is_ip4: true, payload, twist: Twist::None }
}

const ALL: [Twist; 17] = [
    Twist::None,
    Twist::Push,
    Twist::Fin,
    Twist::Ecn,
    Twist::Cwr,
    Twist::Urgent,
    Twist::Hole,
    Twist::OtherPort,
    Twist::OtherWindow,
    Twist::OtherTtl,
    Twist::OtherId,
    Twist::Fragment,
    Twist::WrongChecksum,
    Twist::WrongIpChecksum,
    Twist::ChecksumOfOnes,
    Twist::Padded,
    Twist::Udp,
];

#[test]
fn segments_of_one_size_leave_together() {
    for is_ip4 in [true, false] {
        let next = |payload| Next { is_ip4, ..plain(payload) };
        let sizes = [1400, 1400, 1400, 900, 1400, 1400, 1401, 1401];
        assert_eq!(counts(&burst(&sizes.map(next)), 1500), [4, 2, 2]);
        // Acknowledgements have nothing to join.
        assert_eq!(counts(&burst(&[next(0), next(0), next(1400)]), 1500), [1, 1, 1]);
    }
}

#[test]
fn joined_segments_keep_to_the_length_of_a_packet() {
    let counts = counts(&burst(&[plain(1400); 50]), 1500);
    assert_eq!(counts, [46, 4]);
}

#[test]
fn what_exceeds_the_mtu_leaves_alone() {
    let segments = burst(&[plain(1400); 2]);
    assert_eq!(counts(&segments, 1400 + 32 + 20), [2]);
    assert_eq!(counts(&segments, 1400 + 32 + 19), [1, 1]);
}

/// Which parts three segments leave in if the second one is different, or only the third one.
#[test]
fn only_segments_that_stay_the_same_are_joined() {
    for twist in ALL {
        let with = |place: usize| {
            let mut segments = [plain(1000); 3];
            segments[place].twist = twist;
            counts(&burst(&segments), 1500)
        };
        let (second, third) = match twist {
            Twist::None => (vec![3], vec![3]),
            // A part ends with these flags.
            Twist::Push | Twist::Fin => (vec![2, 1], vec![3]),
            // What follows a hole in the numbers follows the segment behind the hole.
            Twist::Hole | Twist::OtherId => (vec![1, 2], vec![2, 1]),
            _ => (vec![1, 1, 1], vec![2, 1]),
        };
        assert_eq!(with(1), second, "{twist:?}");
        assert_eq!(with(2), third, "{twist:?}");
    }
    let ip6 = |place: usize| {
        let mut segments = [Next { is_ip4: false, ..plain(1000) }; 3];
        segments[place].twist = Twist::WrongChecksum;
        counts(&burst(&segments), 1500)
    };
    assert_eq!((ip6(0), ip6(2)), (vec![1, 2], vec![2, 1]));
}

fn nexts() -> impl Strategy<Value = Vec<Next>> {
    let twist = prop_oneof![4 => Just(Twist::None), 1 => prop::sample::select(&ALL[..])];
    let payload = prop_oneof![4 => Just(1000_usize), 1 => 0..1400_usize];
    prop::collection::vec((prop::bool::weighted(0.9), payload, twist), 1..64).prop_map(|all| {
        let next = |(is_ip4, payload, twist)| Next { is_ip4, payload, twist };
        all.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    /// Bursts come out as they went in, byte for byte.
    #[test]
    fn bursts_stay_as_they_are(nexts in nexts()) {
        let burst = burst(&nexts);
        prop_assert_eq!(counts(&burst, 1500).iter().sum::<usize>(), burst.len());
    }

    /// So do segments with a byte that is another one.
    #[test]
    fn damaged_bursts_stay_as_they_are(at in 0..1066_usize, place in 0..3_usize, bits in 1..=255_u8) {
        let mut burst = burst(&[plain(1000); 3]);
        burst[place][at] ^= bits;
        prop_assert_eq!(counts(&burst, 1500).iter().sum::<usize>(), 3);
    }
}
