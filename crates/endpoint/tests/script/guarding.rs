//! Segments that may be forged or old (RFC 5961, RFC 7323 §5).

use braid_endpoint::{Failure, Incoming, Settings, refusal};
use braid_tcp::{Flags, Seq, State};

use crate::play::{PLAIN, Play};

const TIMESTAMPS: Settings = Settings { timestamps: true, ..PLAIN };

#[test]
fn reset_in_the_window_is_only_answered() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("R 500");
    play.sends(&["A 1 ack 1"]);
    play.gets("R 2000");
    play.sends(&[]);
    assert_eq!(play.status().state, State::Established);
    play.gets("R 1");
    assert_eq!(play.status().failure, Some(Failure::Reset));
}

#[test]
fn syn_in_a_connection_is_only_answered() {
    let mut play = Play::opened(PLAIN, "win 1000");
    for syn in ["S 1", "S 500", "SA 0 ack 1", "S 5000"] {
        play.gets(syn);
        play.sends(&["A 1 ack 1"]);
    }
    assert_eq!(play.status().state, State::Established);
}

#[test]
fn answers_have_a_limit_in_each_period() {
    let mut play = Play::opened(PLAIN, "win 1000");
    let mut count = 0;
    for _ in 0..30 {
        play.gets("R 500");
        count += play.sent().len();
    }
    assert_eq!(count, 10);
    play.wait(5000);
    play.gets("R 500");
    play.sends(&["A 1 ack 1"]);
}

#[test]
fn segment_outside_of_the_window_is_answered_and_does_not_count() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1001+10 ack 1");
    play.sends(&["A 1 ack 1"]);
    play.gets("A 1+10 ack 1");
    play.reads(10);
    play.sends_at(40, &["A 1 ack 11"]);
    play.gets("A 1+10 ack 1");
    play.sends(&["A 1 ack 11"]);
    play.gets("A 10 ack 1");
    play.sends(&["A 1 ack 11"]);
    play.reads(0);
}

#[test]
fn data_across_the_edge_is_cut() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+990 ack 1");
    play.gets("A 981+100 ack 1");
    play.sends(&["A 1 ack 1001"]);
    assert_eq!(play.window, 0);
    play.reads(1000);
}

#[test]
fn acknowledgements_of_unsent_or_long_past_bytes_are_answered() {
    let mut play = Play::opened(PLAIN, "win 200");
    play.gets("A 1+10 ack 2");
    play.sends(&["A 1 ack 1"]);
    play.gets("A 1+10 ack -300");
    play.sends(&["A 1 ack 1"]);
    play.reads(0);
    play.gets("A 1+10 ack 0");
    play.reads(10);
}

#[test]
fn segment_without_ack_does_not_count() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("P 1+10");
    play.reads(0);
    play.sends(&[]);
}

#[test]
fn segment_with_an_old_timestamp_does_not_count() {
    let mut play = Play::opened(TIMESTAMPS, "win 1000 ts 1 0");
    play.gets("A 1+10 ack 1 ts 200 0");
    play.gets("A 11+10 ack 1 ts 199 0");
    play.sends(&["A 1 ack 11 ts 0 200"]);
    play.reads(10);
    play.gets("A 11+10 ack 1");
    play.reads(0);
    play.sends(&[]);
    play.gets("R 11");
    assert_eq!(play.status().failure, Some(Failure::Reset), "a RST needs no timestamp");
}

#[test]
fn old_timestamp_counts_after_a_long_pause() {
    let mut play = Play::opened(TIMESTAMPS, "win 1000 ts 1 0");
    play.wait(25 * 24 * 3_600_000);
    play.gets("A 1+10 ack 1 ts 0 0");
    play.reads(10);
}

#[test]
fn timestamp_of_a_later_segment_is_not_echoed() {
    let mut play = Play::opened(TIMESTAMPS, "win 1000 ts 1 0");
    play.gets("A 11+10 ack 1 ts 200 0");
    play.sends(&["A 1 ack 1 ts 0 1"]);
    play.gets("A 1+10 ack 1 ts 150 0");
    play.sends(&["A 1 ack 21 ts 0 150"]);
}

#[test]
fn segment_without_connection_is_refused() {
    let segment = |flags| Incoming {
        seq: Seq(10),
        ack: Seq(20),
        flags,
        window: 0,
        options: &[],
        payload: &[0; 5],
    };
    let answer = refusal(&segment(Flags::SYN)).unwrap();
    assert_eq!((answer.seq, answer.ack, answer.flags), (Seq(0), Seq(16), Flags(0x14)));
    let answer = refusal(&segment(Flags::ACK)).unwrap();
    assert_eq!((answer.seq, answer.flags), (Seq(20), Flags::RST));
    assert!(refusal(&segment(Flags::RST)).is_none());
}
