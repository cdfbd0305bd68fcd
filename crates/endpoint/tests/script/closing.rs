//! How connections end (RFC 9293 §3.6).

use braid_endpoint::{Failure, Settings, TIME_WAIT_NS};
use braid_tcp::State;

use crate::play::{PLAIN, Play};

const TIME_WAIT: u64 = TIME_WAIT_NS / 1_000_000;

#[test]
fn first_to_close_waits_at_the_end() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.endpoint.close();
    play.sends(&["FA 1 ack 1"]);
    assert_eq!(play.status().state, State::FinWait1);
    play.gets("A 1 ack 2");
    assert_eq!(play.status().state, State::FinWait2);
    assert_eq!(play.endpoint.deadline(), None);
    play.gets("FA 1 ack 2");
    assert_eq!(play.status().state, State::TimeWait);
    play.sends(&["A 2 ack 2"]);
    play.sends_at(TIME_WAIT, &[]);
    let status = play.status();
    assert!(status.is_over && status.failure.is_none() && play.endpoint.deadline().is_none());
}

#[test]
fn repeated_fin_is_acknowledged_and_prolongs_the_wait() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.endpoint.close();
    play.sent();
    play.gets("FA 1 ack 2");
    play.sends(&["A 2 ack 2"]);
    play.wait(4000);
    play.gets("FA 1 ack 2");
    play.sends(&["A 2 ack 2"]);
    play.gets("RA 2 ack 2");
    assert_eq!(play.status().state, State::TimeWait, "a RST does not end the wait");
    play.sends_at(4000 + TIME_WAIT, &[]);
    assert!(play.status().is_over);
}

#[test]
fn second_to_close_is_over_at_once() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("FA 1+10 ack 1");
    play.sends(&["A 1 ack 12"]);
    assert_eq!(play.status().state, State::CloseWait);
    assert!(play.status().has_peer_closed);
    play.reads(10);
    play.writes(20);
    play.endpoint.close();
    assert_eq!(play.endpoint.room(), 0);
    play.sends(&["FPA 1+20 ack 12"]);
    assert_eq!(play.status().state, State::LastAck);
    play.gets("A 12 ack 22");
    assert!(play.status().is_over && play.status().is_all_acknowledged);
    assert_eq!(play.endpoint.deadline(), None);
}

#[test]
fn simultaneous_close_ends_both() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.endpoint.close();
    play.sends(&["FA 1 ack 1"]);
    play.gets("FA 1 ack 1");
    assert_eq!(play.status().state, State::Closing);
    play.sends(&["A 2 ack 2"]);
    play.gets("A 2 ack 2");
    assert_eq!(play.status().state, State::TimeWait);
}

#[test]
fn half_closed_connection_goes_on_to_receive() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(10);
    play.endpoint.close();
    play.sends(&["FPA 1+10 ack 1"]);
    play.gets("A 1+50 ack 12");
    play.gets("A 51+50 ack 12");
    play.sends(&["A 12 ack 101"]);
    play.reads(100);
}

#[test]
fn fin_in_front_of_missing_bytes_waits() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("FA 11+10 ack 1");
    play.sends(&["A 1 ack 1"]);
    assert!(!play.status().has_peer_closed);
    play.gets("A 1+10 ack 1");
    play.sends(&["A 1 ack 22"]);
    assert!(play.status().has_peer_closed);
    play.reads(20);
}

#[test]
fn bytes_behind_the_fin_do_not_count() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("FA 11+10 ack 1");
    play.gets("A 21+10 ack 1");
    play.gets("A 1+10 ack 1");
    play.gets("A 22+10 ack 1");
    play.reads(20);
}

#[test]
fn fin_in_front_of_bytes_does_not_count() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 21+10 ack 1");
    play.gets("FA 11+5 ack 1");
    play.gets("A 1+20 ack 1");
    play.reads(30);
    assert!(!play.status().has_peer_closed);
}

#[test]
fn abort_sends_a_reset() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.writes(10);
    play.sent();
    play.endpoint.abort();
    assert!(!play.status().is_over, "the RST is still to be sent");
    play.sends(&["RA 11 ack 1"]);
    assert!(play.status().is_over);
    assert_eq!(play.status().failure, Some(Failure::Aborted));
}

#[test]
fn abort_sends_nothing_where_the_peer_knows_of_no_connection() {
    let mut play = Play::connect(PLAIN);
    play.sent();
    play.endpoint.abort();
    assert!(play.status().is_over && play.sent().is_empty());
    let mut play = Play::opened(PLAIN, "win 1000");
    play.endpoint.close();
    play.sent();
    play.gets("FA 1 ack 2");
    play.sent();
    play.endpoint.abort();
    assert!(play.status().is_over && play.sent().is_empty());
}

#[test]
fn reset_ends_the_connection_and_leaves_what_has_come() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("A 1+10 ack 1");
    play.gets("R 11");
    assert_eq!(play.status().failure, Some(Failure::Reset));
    play.sends(&[]);
    play.reads(10);
    assert_eq!((play.endpoint.deadline(), play.endpoint.room()), (None, 0));
}

#[test]
fn reset_instead_of_the_last_acknowledgement_is_no_failure() {
    let mut play = Play::opened(PLAIN, "win 1000");
    play.gets("FA 1 ack 1");
    play.endpoint.close();
    play.sends(&["FA 1 ack 2"]);
    play.gets("R 2");
    assert!(play.status().is_over && play.status().failure.is_none());
}

#[test]
fn closing_before_the_answer_sends_the_fin_behind_the_handshake() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.sent();
    play.endpoint.close();
    play.gets("A 1 ack 1");
    play.sends(&["FA 1 ack 1"]);
    let mut play = Play::connect(PLAIN);
    play.endpoint.close();
    assert!(play.status().is_over && play.sent().is_empty());
}

#[test]
fn newer_syn_opens_the_next_connection_from_time_wait() {
    let settings = Settings { timestamps: true, ..PLAIN };
    let mut play = Play::opened(settings, "win 1000 ts 1 0");
    assert!(!play.makes_way_for("S 5000 ts 9 0"), "the connection is open");
    play.endpoint.close();
    play.sent();
    play.gets("FA 1 ack 2 ts 5 0");
    assert_eq!(play.status().state, State::TimeWait);
    for (syn, makes_way) in [
        ("S 3 ts 5 0", true),
        ("S 1 ts 6 0", true),
        ("S 2 ts 5 0", false),
        ("S 0", false),
        ("SA 5000 ts 9 0", false),
    ] {
        assert_eq!(play.makes_way_for(syn), makes_way, "{syn}");
    }
}
