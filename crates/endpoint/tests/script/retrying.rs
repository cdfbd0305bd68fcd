//! Lost segments: timers, fast retransmission, recovery, probes.

use braid_endpoint::{Failure, Settings};

use crate::play::{PLAIN, Play};

const SACK: Settings = Settings { sack: true, ..PLAIN };

/// Acknowledges a first segment after 100 ms, so that the timeout is 300 ms.
fn measured(settings: Settings, syn: &str) -> Play {
    let mut play = Play::accept(settings, &format!("S 0 {syn}"));
    play.sent();
    // The answer is repeated, so that the handshake measures nothing.
    play.gets("S 0");
    play.sent();
    play.gets("A 1 ack 1 win 60000");
    play.writes(100);
    play.sent();
    play.wait(100);
    play.gets("A 1 ack 101 win 60000");
    play
}

#[test]
fn syn_is_repeated_for_three_minutes() {
    let mut play = Play::connect(PLAIN);
    play.sends(&["S 0 mss 100"]);
    for at in [1, 3, 7, 15, 31, 63, 123] {
        play.sends_at(at * 1000, &["S 0 mss 100"]);
    }
    play.sends_at(183_000, &[]);
    assert_eq!(play.status().failure, Some(Failure::TimedOut));
    assert!(play.status().is_over && play.endpoint.deadline().is_none());
}

#[test]
fn answer_to_a_syn_is_repeated_for_a_minute() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.sent();
    for at in [1, 3, 7, 15, 31] {
        play.sends_at(at * 1000, &["SA 0 ack 1 mss 100"]);
    }
    play.sends_at(63_000, &[]);
    assert_eq!(play.status().failure, Some(Failure::TimedOut));
}

#[test]
fn lost_syn_leaves_one_segment_and_a_longer_timeout() {
    let mut play = Play::connect(PLAIN);
    play.sent();
    play.sends_at(1000, &["S 0 mss 100"]);
    play.gets("SA 0 ack 1");
    play.writes(300);
    play.sends(&["A 1+100 ack 1"]);
    play.sends_at(4000, &["A 1+100 ack 1"]);
}

#[test]
fn lost_syn_does_not_end_slow_start() {
    let mut play = Play::connect(PLAIN);
    play.sent();
    play.sends_at(1000, &["S 0 mss 100"]);
    play.gets("SA 0 ack 1 win 60000");
    play.writes(4000);
    let mut acknowledged = 1;
    for count in [1, 2, 4, 8] {
        assert_eq!(play.sent().len(), count);
        for _ in 0..count {
            acknowledged += 100;
            play.gets(&format!("A 1 ack {acknowledged} win 60000"));
        }
    }
}

#[test]
fn segment_is_repeated_until_the_connection_fails() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(10);
    play.sends(&["PA 101+10 ack 1"]);
    let mut at = 100;
    for timeout in [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000] {
        at += timeout;
        play.sends_at(at, &["PA 101+10 ack 1"]);
    }
    play.sends_at(at + 60_000, &[]);
    assert_eq!(play.status().failure, Some(Failure::TimedOut));
}

#[test]
fn timeout_repeats_all_by_slow_start() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(500);
    assert_eq!(play.sent().len(), 5);
    play.sends_at(400, &["A 101+100 ack 1"]);
    play.gets("A 1 ack 201 win 60000");
    play.sends(&["A 201+100 ack 1", "A 301+100 ack 1"]);
    play.gets("A 1 ack 601 win 60000");
    assert!(play.status().is_all_acknowledged && play.endpoint.deadline().is_none());
}

#[test]
fn timeout_stays_long_until_a_segment_is_measured() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(100);
    play.sent();
    play.sends_at(400, &["PA 101+100 ack 1"]);
    play.gets("A 1 ack 201 win 60000");
    play.writes(100);
    play.sent();
    // A repeated segment measures nothing (Karn), so the timeout is still 600 ms.
    play.sends_at(1000, &["PA 201+100 ack 1"]);
}

#[test]
fn timestamp_measures_a_repeated_segment() {
    let settings = Settings { timestamps: true, ..PLAIN };
    let mut play = Play::opened(settings, "win 60000 ts 1 0");
    play.writes(80);
    play.sends(&["PA 1+80 ack 1 ts 0 1"]);
    play.sends_at(200, &["PA 1+80 ack 1 ts 200 1"]);
    play.wait(100);
    play.gets("A 1 ack 81 ts 2 200");
    play.writes(80);
    play.sends(&["PA 81+80 ack 1 ts 300 2"]);
    play.sends_at(500, &["PA 81+80 ack 1 ts 500 2"]);
}

#[test]
fn timestamp_measures_although_a_later_segment_is_timed() {
    let settings = Settings { timestamps: true, ..PLAIN };
    let mut play = Play::opened(settings, "win 60000 ts 1 0");
    play.writes(30);
    play.sends(&["PA 1+30 ack 1 ts 0 1"]);
    play.sends_at(200, &["PA 1+30 ack 1 ts 200 1"]);
    play.writes(30);
    play.sends(&["PA 31+30 ack 1 ts 200 1"]);
    play.wait(100);
    play.gets("A 1 ack 31 ts 2 200 win 60000");
    play.sends(&[]);
    play.sends_at(500, &["PA 31+30 ack 1 ts 500 2"]);
}

#[test]
fn third_duplicate_repeats_the_segment() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(1000);
    assert_eq!(play.sent().len(), 10);
    let duplicate = "A 1 ack 101 win 60000";
    play.wait(200);
    play.gets(duplicate);
    play.gets(duplicate);
    play.sends(&[]);
    play.gets(duplicate);
    play.sends(&["A 101+100 ack 1"]);
    assert_eq!(play.endpoint.deadline(), Some(600_000_000), "300 ms from now");
    play.gets("A 1 ack 1101 win 60000");
    play.writes(1000);
    assert_eq!(play.sent().len(), 5, "the window is half of what was under way");
}

#[test]
fn partial_acknowledgement_repeats_the_next_hole() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(1000);
    play.sent();
    (0..3).for_each(|_| play.gets("A 1 ack 101 win 60000"));
    play.sends(&["A 101+100 ack 1"]);
    play.gets("A 1 ack 401 win 60000");
    play.sends(&["A 401+100 ack 1"]);
    play.gets("A 1 ack 1101 win 60000");
    play.sends(&[]);
}

#[test]
fn partial_acknowledgement_ends_what_its_duplicates_stood_for() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(2000);
    assert_eq!(play.sent().len(), 10);
    // Lost: 101 and 701. Duplicates tell of the eight others.
    (0..8).for_each(|_| play.gets("A 1 ack 101 win 60000"));
    let sent = play.sent();
    assert_eq!(sent[0], "A 101+100 ack 1");
    assert_eq!(sent.len(), 4, "half of the window is under way: {sent:?}");
    play.gets("A 1 ack 701 win 60000");
    play.sends(&["A 701+100 ack 1", "A 1401+100 ack 1"]);
}

#[test]
fn segments_with_data_or_other_windows_are_no_duplicates() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(1000);
    play.sent();
    for at in 0..5 {
        play.gets(&format!("A {}+10 ack 101 win 60000", 1 + 10 * at));
        play.gets(&format!("A {} ack 101 win {}", 11 + 10 * at, 50_000 + at));
        play.gets(&format!("A {}+10 ack 101 win {}", 11 + 10 * at, 50_000 + at));
    }
    assert!(play.sent().iter().all(|sent| !sent.contains('+')));
}

#[test]
fn ranges_tell_all_holes() {
    let mut play = measured(SACK, "win 60000 sackok");
    play.writes(1000);
    assert_eq!(play.sent().len(), 10);
    // Lost: 101, 301 and 501.
    play.gets("A 1 ack 101 win 60000 sack 201 301");
    play.gets("A 1 ack 101 win 60000 sack 401 501");
    play.sends(&[]);
    play.gets("A 1 ack 101 win 60000 sack 601 701");
    play.sends(&["A 101+100 ack 1"]);
    play.gets("A 1 ack 101 win 60000 sack 601 1101");
    play.sends(&["A 301+100 ack 1", "A 501+100 ack 1"]);
    play.gets("A 1 ack 301 win 60000 sack 601 1101");
    play.gets("A 1 ack 1101 win 60000");
    play.sends(&[]);
    assert!(play.status().is_all_acknowledged);
}

#[test]
fn ranges_outside_of_what_was_sent_do_not_count() {
    let mut play = measured(SACK, "win 60000 sackok");
    play.writes(500);
    play.sent();
    for block in ["201 9001", "301 201", "1 101", "-50 301", "101 201"] {
        (0..5).for_each(|_| play.gets(&format!("A 1 ack 101 win 60000 sack {block}")));
    }
    play.sends(&[]);
}

#[test]
fn ranges_are_forgotten_at_a_timeout() {
    let mut play = measured(SACK, "win 60000 sackok");
    play.writes(300);
    play.sent();
    play.gets("A 1 ack 101 win 60000 sack 201 301");
    play.sends_at(400, &["A 101+100 ack 1"]);
    play.gets("A 1 ack 201 win 60000");
    play.sends(&["A 201+100 ack 1", "PA 301+100 ack 1"]);
}

#[test]
fn closed_window_is_probed_as_long_as_the_peer_answers() {
    let mut play = measured(PLAIN, "win 60000");
    play.gets("A 1 ack 101 win 0");
    play.writes(100);
    play.sends(&[]);
    let mut at = 100;
    for timeout in
        [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 60_000, 60_000, 60_000, 60_000]
    {
        at += timeout;
        play.sends_at(at, &["A 100 ack 1"]);
        play.gets("A 1 ack 101 win 0");
    }
    play.gets("A 1 ack 101 win 100");
    play.sends(&["PA 101+100 ack 1"]);
    play.sends_at(at + 300, &["PA 101+100 ack 1"]);
}

#[test]
fn silent_peer_with_a_closed_window_is_given_up() {
    let mut play = measured(PLAIN, "win 60000");
    play.gets("A 1 ack 101 win 0");
    play.writes(100);
    play.sent();
    for _ in 0..10 {
        let at = play.endpoint.deadline().unwrap() / 1_000_000;
        play.sends_at(at, &["A 100 ack 1"]);
    }
    let at = play.endpoint.deadline().unwrap() / 1_000_000;
    play.sends_at(at, &[]);
    assert_eq!(play.status().failure, Some(Failure::TimedOut));
}

#[test]
fn window_that_closes_over_bytes_under_way_does_not_end_the_connection() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(10);
    play.sent();
    for _ in 0..20 {
        play.gets("A 1 ack 101 win 0");
        let at = play.endpoint.deadline().unwrap() / 1_000_000;
        play.sends_at(at, &["PA 101+10 ack 1"]);
    }
}

#[test]
fn small_window_is_used_after_a_while() {
    let mut play = measured(PLAIN, "win 60000");
    play.gets("A 1 ack 101 win 10");
    play.writes(100);
    play.sends(&[]);
    play.sends_at(400, &["A 101+10 ack 1"]);
}

#[test]
fn lost_fin_is_repeated() {
    let mut play = measured(PLAIN, "win 60000");
    play.writes(10);
    play.endpoint.close();
    play.sends(&["FPA 101+10 ack 1"]);
    play.sends_at(400, &["FPA 101+10 ack 1"]);
    play.gets("A 1 ack 111 win 60000");
    play.sends(&[]);
    play.sends_at(1000, &["FA 111 ack 1"]);
    play.gets("A 1 ack 112 win 60000");
    assert!(play.status().is_all_acknowledged);
}
