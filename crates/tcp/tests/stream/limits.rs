//! Memory, acknowledgements, and the end of streams.

use braid_tcp::{Gap, Policy, Stream, Why};
use proptest::prelude::*;

use super::{Told, config};

const S: u64 = 1_000_000_000;

fn gap(offset: u64, len: u64, why: Why) -> Gap {
    Gap { offset, len, why }
}

#[test]
fn stream_over_its_memory_gives_up_the_first_gap_and_goes_on() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(10, 100, &[1; 100], &mut told);
    stream.segment(120, 100, &[2; 100], &mut told);
    assert_eq!(stream.shrink(400, &mut told), 0);
    assert_eq!(stream.shrink(300, &mut told), 1);
    assert_eq!((stream.frontier(), told.gaps.clone()), (110, vec![gap(0, 10, Why::Memory)]));
    stream.segment(5, 10, &[3; 10], &mut told);
    let counts = stream.counts();
    assert_eq!((counts.late_bytes, counts.repeated_bytes), (5, 5));
    assert_eq!(told.repeated, (10..15).map(|at| (at, 3)).collect::<Vec<_>>());
    stream.segment(110, 10, &[4; 10], &mut told);
    assert_eq!((stream.frontier(), stream.memory()), (220, 0));
}

#[test]
fn acknowledged_gap_is_given_up_after_the_patience() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(10, 5, b"abcde", &mut told);
    assert!(!stream.acknowledge(15, S, S, &mut told));
    assert!(!stream.acknowledge(15, 2 * S - 1, S, &mut told));
    assert!(stream.acknowledge(15, 2 * S, S, &mut told));
    assert_eq!((stream.frontier(), told.gaps), (15, vec![gap(0, 10, Why::Acknowledged)]));
}

#[test]
fn adjacent_gaps_are_remembered_as_one() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    for at in 1..=100 {
        // The capture has none of the bytes, and the receiver has them all.
        stream.segment((at - 1) * 10, 10, b"", &mut told);
        stream.acknowledge(at * 10, 0, 0, &mut told);
    }
    assert_eq!((told.gaps.len(), stream.frontier()), (100, 1000));
    stream.segment(0, 5, b"abcde", &mut told);
    let counts = stream.counts();
    assert_eq!((counts.late_bytes, counts.repeated_bytes), (5, 0));
}

#[test]
fn late_packet_within_the_patience_fills_the_gap() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(2, 2, b"cd", &mut told);
    stream.acknowledge(4, 0, S, &mut told);
    stream.segment(0, 2, b"ab", &mut told);
    stream.acknowledge(4, 5 * S, S, &mut told);
    assert_eq!(told.bytes, b"abcd".map(Some));
    assert!(told.gaps.is_empty());
}

#[test]
fn acknowledgement_of_bytes_that_were_not_sent_skips_nothing() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(0, 2, b"ab", &mut told);
    stream.acknowledge(1 << 30, 0, 0, &mut told);
    assert_eq!((stream.frontier(), told.gaps.len()), (2, 0));
    stream.segment(2, 2, b"cd", &mut told);
    stream.finish(&mut told);
    // At the end, the bytes that the receiver says to have are missing.
    assert_eq!(told.gaps, [gap(4, (1 << 30) - 4, Why::Acknowledged)]);
}

#[test]
fn bytes_that_the_capture_cut_off_are_a_gap() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(0, 10, b"abcd", &mut told);
    stream.segment(10, 6, b"efgh", &mut told);
    stream.finish(&mut told);
    assert_eq!(told.gaps, [gap(4, 6, Why::End), gap(14, 2, Why::End)]);
}

#[test]
fn bytes_behind_the_fin_are_counted_and_left_out() {
    for fin_first in [true, false] {
        let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
        if fin_first {
            stream.end_at(4);
        }
        stream.segment(3, 4, b"dxyz", &mut told);
        stream.segment(9, 2, b"!!", &mut told);
        if !fin_first {
            stream.end_at(4);
        }
        stream.segment(0, 3, b"abc", &mut told);
        assert!(stream.is_complete());
        stream.finish(&mut told);
        assert_eq!(told.bytes, b"abcd".map(Some));
        assert_eq!(stream.counts().surplus_bytes, 5);
        assert_eq!(stream.memory(), 0);
    }
}

#[test]
fn second_fin_and_fin_in_front_of_the_frontier_change_nothing() {
    let (mut stream, mut told) = (Stream::new(Policy::First), Told::default());
    stream.segment(0, 4, b"abcd", &mut told);
    stream.end_at(3);
    assert_eq!(stream.fin(), None);
    stream.end_at(6);
    stream.end_at(4);
    assert_eq!((stream.fin(), stream.is_complete()), (Some(6), false));
    stream.segment(4, 2, b"ef", &mut told);
    assert!(stream.is_complete());
}

proptest! {
    #![proptest_config(config())]

    /// Whatever comes, each byte is delivered or in a gap, once, and memory stays within its limit.
    #[test]
    fn memory_stays_within_its_limit_and_no_byte_is_lost_unsaid(
        sent in proptest::collection::vec(
            (0_i64..4000, 0_usize..200, 0_i64..5000, 0_u64..3), 0..80),
        limit in 0_usize..2000,
        fin in proptest::option::of(0_i64..4000),
    ) {
        let (mut stream, mut told) = (Stream::new(Policy::Linux), Told::default());
        let (mut now, mut most) = (0, 0);
        for (at, (offset, len, ack, wait)) in sent.into_iter().enumerate() {
            now += wait * S;
            most = most.max(u64::try_from(offset).unwrap() + len as u64).max(ack.cast_unsigned());
            stream.segment(offset, u32::try_from(len).unwrap(), &vec![7; len], &mut told);
            stream.shrink(limit, &mut told);
            prop_assert!(stream.memory() <= limit);
            stream.acknowledge(ack, now, S, &mut told);
            if let Some(fin) = fin.filter(|_| at == 20) {
                most = most.max(fin.cast_unsigned());
                stream.end_at(fin);
            }
        }
        stream.finish(&mut told);
        let counts = stream.counts();
        prop_assert_eq!(counts.delivered + counts.gap_bytes, stream.frontier());
        prop_assert_eq!(told.bytes.len() as u64, stream.frontier());
        prop_assert!(stream.frontier() <= most);
        prop_assert_eq!(stream.memory(), 0);
    }
}
