//! What is sent: sizes, windows, the congestion window.

use braid_endpoint::Settings;

use crate::play::{PLAIN, Play};

#[test]
fn segments_have_the_size_that_both_allow() {
    let mut play = Play::opened(PLAIN, "win 1000 mss 90");
    play.writes(200);
    play.sends(&["A 1+90 ack 1", "A 91+90 ack 1", "PA 181+20 ack 1"]);
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(150);
    play.sends(&["A 1+100 ack 1", "PA 101+50 ack 1"]);
}

#[test]
fn options_take_room_in_segments() {
    let settings = Settings { timestamps: true, sack: true, ..PLAIN };
    let mut play = Play::opened(settings, "win 1000 mss 1000 sackok ts 1 0");
    play.writes(88);
    play.sends(&["PA 1+88 ack 1 ts 0 1"]);
    play.gets("A 11+10 ack 89 win 1000 ts 2 0");
    play.writes(88);
    play.sends(&["A 89+76 ack 1 ts 0 1 sack 11 21", "PA 165+12 ack 1 ts 0 1 sack 11 21"]);
}

#[test]
fn small_writes_are_not_collected() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(1);
    play.sends(&["PA 1+1 ack 1"]);
    play.writes(1);
    play.sends(&["PA 2+1 ack 1"]);
}

#[test]
fn buffer_is_bounded() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(5000);
    assert_eq!(play.endpoint.room(), 0);
    play.sent();
    play.gets("A 1 ack 501");
    assert_eq!(play.endpoint.room(), 500);
}

#[test]
fn windows_of_the_peer_are_kept() {
    let mut play = Play::opened(PLAIN, "win 250");
    play.writes(1000);
    play.sends(&["A 1+100 ack 1", "A 101+100 ack 1"]);
    play.gets("A 1 ack 101 win 150");
    play.sends(&[]);
    play.gets("A 1 ack 201 win 150");
    play.sends(&["A 201+100 ack 1"]);
    play.gets("A 1 ack 101 win 1000");
    play.sends(&[]);
}

#[test]
fn fin_waits_for_room_in_the_window() {
    let mut play = Play::opened(PLAIN, "win 10");
    play.writes(10);
    play.endpoint.close();
    play.sends(&["PA 1+10 ack 1"]);
    play.gets("A 1 ack 11 win 1");
    play.sends(&["FA 11 ack 1"]);
}

#[test]
fn half_of_the_largest_window_is_sent() {
    let mut play = Play::opened(PLAIN, "win 60");
    play.writes(1000);
    play.sends(&["A 1+60 ack 1"]);
    play.gets("A 1 ack 61 win 29");
    play.sends(&[]);
    play.gets("A 1 ack 61 win 30");
    play.sends(&["A 61+30 ack 1"]);
}

#[test]
fn congestion_window_grows_from_ten_segments() {
    let mut play = Play::opened(PLAIN, "win 60000");
    play.writes(4000);
    assert_eq!(play.sent().len(), 10);
    play.gets("A 1 ack 101 win 60000");
    assert_eq!(play.sent().len(), 2);
    // Nine segments leave the window, and it grows by half of them.
    play.gets("A 1 ack 1001 win 60000");
    assert_eq!(play.sent().len(), 9 + 4);
}

#[test]
fn congestion_window_does_not_grow_unused() {
    let mut play = Play::opened(PLAIN, "win 60000");
    for round in 0..50 {
        play.writes(100);
        assert_eq!(play.sent().len(), 1);
        play.gets(&format!("A 1 ack {} win 60000", 101 + 100 * round));
    }
    play.writes(4000);
    assert_eq!(play.sent().len(), 10);
}

#[test]
fn idle_connection_restarts_with_the_initial_window() {
    let mut play = Play::opened(PLAIN, "win 60000");
    play.writes(4000);
    assert_eq!(play.sent().len(), 10);
    for ack in (1..=10).map(|count| 1 + 100 * count) {
        play.gets(&format!("A 1 ack {ack} win 60000"));
    }
    assert_eq!(play.sent().len(), 20);
    play.gets("A 1 ack 3001 win 60000");
    assert_eq!(play.sent().len(), 10);
    play.gets("A 1 ack 4001 win 60000");
    play.writes(2000);
    assert_eq!(play.sent().len(), 20);
    play.gets("A 1 ack 6001 win 60000");
    play.wait(5000);
    play.writes(4000);
    assert_eq!(play.sent().len(), 10);
}

#[test]
fn idle_endpoints_are_small() {
    let mut play = Play::opened(Settings::default(), "win 1000 wscale 7 sackok ts 1 0");
    play.writes(3000);
    play.sent();
    play.gets("A 1+1000 ack 3001 win 1000 ts 1 0");
    play.reads(1000);
    assert!(play.endpoint.memory() <= 1024, "{} bytes", play.endpoint.memory());
}

/// A router drops what is longer than its next link takes.
#[test]
fn segments_get_shorter_when_a_link_takes_no_longer_ones() {
    let settings = Settings { mss: 1000, ..PLAIN };
    let mut play = Play::opened(settings, "win 60000 mss 1000");
    play.writes(2500);
    play.sends(&["A 1+1000 ack 1", "A 1001+1000 ack 1", "PA 2001+500 ack 1"]);
    // Numbers that are not under way, and sizes that are no smaller, change nothing.
    for (number, most) in [(0, 600), (2501, 600), (1, 1000), (1, 4000)] {
        assert!(!play.too_long(number, most), "{number}, {most}");
    }
    play.sends(&[]);
    assert!(play.too_long(1001, 600));
    let again = ["A 1+600 ack 1", "A 601+600 ack 1", "A 1201+600 ack 1", "A 1801+600 ack 1"];
    play.sends(&[&again[..], &["PA 2401+100 ack 1"]].concat());
    // The message comes again for the other segments.
    assert!(!play.too_long(2001, 600));
    play.sends(&[]);
    play.gets("A 1 ack 2501 win 60000");
    play.writes(700);
    play.sends(&["A 2501+600 ack 1", "PA 3101+100 ack 1"]);
    // No link takes that little.
    assert!(play.too_long(2501, 1));
    assert_eq!(play.sent().first().map(String::as_str), Some("A 2501+88 ack 1"));
}
