//! What is told of received bytes: acknowledgements, windows, ranges.

use braid_endpoint::Settings;

use crate::play::{PLAIN, Play};

const SACK: Settings = Settings { sack: true, ..PLAIN };

#[test]
fn one_segment_is_acknowledged_later_and_two_at_once() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+10 ack 1");
    play.sends(&[]);
    play.sends_at(40, &["A 1 ack 11"]);
    play.gets("A 11+10 ack 1");
    play.sends(&[]);
    play.gets("A 21+10 ack 1");
    play.sends(&["A 1 ack 31"]);
    assert_eq!(play.endpoint.deadline(), None);
}

#[test]
fn data_carries_the_acknowledgement() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+10 ack 1");
    play.writes(5);
    play.sends(&["PA 1+5 ack 11"]);
    play.gets("A 11 ack 6");
    assert_eq!(play.endpoint.deadline(), None);
}

#[test]
fn bytes_out_of_order_are_kept_and_told_at_once() {
    let mut play = Play::opened(SACK, "win 1000 sackok");
    play.gets("A 11+10 ack 1");
    play.sends(&["A 1 ack 1 sack 11 21"]);
    play.gets("A 41+10 ack 1");
    play.sends(&["A 1 ack 1 sack 41 51 11 21"]);
    play.gets("A 21+10 ack 1");
    play.sends(&["A 1 ack 1 sack 11 31 41 51"]);
    play.gets("A 1+10 ack 1");
    play.sends(&["A 1 ack 31 sack 41 51"]);
    play.reads(30);
    play.gets("A 25+20 ack 1");
    play.sends(&["A 1 ack 51"]);
    play.reads(20);
}

#[test]
fn each_segment_out_of_order_has_a_duplicate_without_sack() {
    let mut play = Play::opened(PLAIN, "win 1000");
    for at in [11, 21, 31] {
        play.gets(&format!("A {at}+10 ack 1"));
    }
    play.writes(5);
    play.sends(&["PA 1+5 ack 1", "A 6 ack 1", "A 6 ack 1", "A 6 ack 1"]);
    play.gets("A 51+10 ack 1");
    play.gets("A 61+10 ack 1");
    play.gets("A 1+10 ack 1");
    play.sends(&["A 6 ack 41"]);
}

#[test]
fn overlapping_bytes_are_taken_once() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 15+20 ack 1");
    play.gets("A 10+30 ack 1");
    play.gets("A 1+20 ack 1");
    play.reads(39);
}

#[test]
fn window_shrinks_with_what_waits_and_opens_in_large_steps() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+500 ack 1");
    play.gets("A 501+500 ack 1");
    play.sends(&["A 1 ack 1001"]);
    assert_eq!(play.window, 0);
    play.endpoint.consume(50);
    play.sends(&[]);
    play.gets("A 1000 ack 1");
    play.sends(&["A 1 ack 1001"]);
    assert_eq!(play.window, 0, "50 bytes would be a silly window");
    play.endpoint.consume(60);
    play.gets("A 1000 ack 1");
    play.sends(&["A 1 ack 1001"]);
    assert_eq!(play.window, 110);
    play.endpoint.consume(250);
    play.sends(&["A 1 ack 1001"]);
    assert_eq!(play.window, 360);
}

#[test]
fn segment_at_a_closed_window_is_answered_and_its_acknowledgement_counts() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(10);
    play.sent();
    play.gets("A 1+1000 ack 1");
    play.sends_at(40, &["A 11 ack 1001"]);
    play.gets("A 1001+1 ack 11");
    play.sends(&["A 11 ack 1001"]);
    assert!(play.status().is_all_acknowledged);
    play.reads(1000);
}

#[test]
fn fin_at_a_closed_window_counts() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+1000 ack 1");
    play.gets("FA 1001 ack 1");
    play.sends(&["A 1 ack 1002"]);
    assert!(play.status().has_peer_closed);
    play.reads(1000);
    play.sends(&[]);
}

#[test]
fn ranges_have_a_limit() {
    let settings = Settings { receive: 60_000, ..SACK };
    let mut play = Play::opened(settings, "win 1000 sackok");
    for range in 0..2000 {
        play.gets(&format!("A {}+1 ack 1", 11 + 10 * range));
    }
    play.gets("A 1+10 ack 1");
    play.reads(11);
    assert!(play.endpoint.memory() < 40_000, "{}", play.endpoint.memory());
    for at in 12..20_000 {
        play.gets(&format!("A {at}+1 ack 1"));
    }
    play.reads(19_988);
}
