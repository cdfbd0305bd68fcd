//! How connections begin (RFC 9293 §3.5).

use braid_endpoint::{Agreed, Failure, Settings};
use braid_tcp::State;

use crate::play::{PLAIN, Play};

const ALL: Settings = Settings { wscale: true, sack: true, timestamps: true, ..PLAIN };

#[test]
fn active_open_sends_syn_and_acknowledges_the_answer() {
    let mut play = Play::connect(PLAIN);
    play.sends(&["S 0 mss 100"]);
    assert_eq!(play.window, 1000);
    assert_eq!(play.status().state, State::SynSent);
    play.gets("SA 0 ack 1 mss 300");
    play.sends(&["A 1 ack 1"]);
    assert_eq!(play.status().state, State::Established);
    assert_eq!(play.endpoint.deadline(), None);
}

#[test]
fn bytes_written_early_leave_with_the_handshake() {
    let mut play = Play::connect(PLAIN);
    play.writes(30);
    play.sends(&["S 0 mss 100"]);
    play.gets("SA 0 ack 1");
    play.sends(&["PA 1+30 ack 1"]);
}

#[test]
fn passive_open_answers_and_waits_for_the_acknowledgement() {
    let mut play = Play::accept(PLAIN, "S 0 mss 80");
    play.sends(&["SA 0 ack 1 mss 100"]);
    assert_eq!(play.status().state, State::SynReceived);
    play.gets("A 1 ack 1");
    assert_eq!(play.status().state, State::Established);
    play.sends(&[]);
    assert_eq!(play.endpoint.agreed().mss, 88, "80 bytes are too few to believe");
}

#[test]
fn deferred_answer_waits_until_it_may_go() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.endpoint.defer();
    play.sends(&[]);
    play.gets("S 0");
    play.sends(&[]);
    assert_eq!(play.endpoint.deadline(), None);
    play.endpoint.proceed();
    play.sends(&["SA 0 ack 1 mss 100"]);
}

#[test]
fn deferred_open_can_be_refused() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.endpoint.defer();
    play.endpoint.abort();
    play.sends(&["RA 0 ack 1"]);
    assert!(play.status().is_over);
}

#[test]
fn repeated_syn_is_answered_again() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.sends(&["SA 0 ack 1 mss 100"]);
    play.gets("S 0");
    play.sends(&["SA 0 ack 1 mss 100"]);
    play.sends(&[]);
}

#[test]
fn simultaneous_open_connects_both() {
    let mut play = Play::connect(PLAIN);
    play.sends(&["S 0 mss 100"]);
    play.gets("S 0 mss 100");
    assert_eq!(play.status().state, State::SynReceived);
    play.sends(&["SA 0 ack 1 mss 100"]);
    play.gets("SA 0 ack 1 mss 100");
    assert_eq!(play.status().state, State::Established);
}

#[test]
fn refused_connection_is_over() {
    let mut play = Play::connect(PLAIN);
    play.sent();
    play.gets("R 0 ack 1");
    play.gets("RA 0 ack 7");
    assert_eq!(play.status().state, State::SynSent, "neither RST answers the SYN");
    play.gets("RA 0 ack 1");
    assert_eq!(play.status().failure, Some(Failure::Refused));
    assert!(play.status().is_over && play.endpoint.deadline().is_none());
}

#[test]
fn wrong_answer_to_the_syn_is_rejected() {
    let mut play = Play::connect(PLAIN);
    play.sent();
    play.gets("SA 0 ack 9");
    play.sends(&["R 9"]);
    play.gets("SA 0 ack 1");
    assert_eq!(play.status().state, State::Established);
}

#[test]
fn wrong_acknowledgement_of_the_answer_is_rejected() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.sent();
    play.gets("A 1 ack 2");
    play.sends(&["R 2"]);
    assert_eq!(play.status().state, State::SynReceived);
}

#[test]
fn options_are_offered_and_agreed_on() {
    let mut play = Play::connect(ALL);
    play.sends(&["S 0 mss 100 wscale 0 sackok ts 0 0"]);
    play.gets("SA 0 ack 1 mss 90 wscale 20 sackok ts 5 0");
    let agreed = Agreed { mss: 90, wscale: Some((0, 14)), sack: true, timestamps: true };
    assert_eq!(play.endpoint.agreed(), agreed);
    play.sends(&["A 1 ack 1 ts 0 5"]);
}

#[test]
fn options_that_one_side_lacks_are_not_used() {
    let mut play = Play::accept(ALL, "S 0");
    play.sends(&["SA 0 ack 1 mss 100"]);
    let agreed = Agreed { mss: 100, wscale: None, sack: false, timestamps: false };
    assert_eq!(play.endpoint.agreed(), agreed);
    let mut play = Play::accept(PLAIN, "S 0 wscale 2 sackok ts 5 0");
    play.sends(&["SA 0 ack 1 mss 100"]);
    assert_eq!(play.endpoint.agreed(), agreed);
}

#[test]
fn windows_are_scaled_after_the_handshake() {
    let settings = Settings { receive: 1 << 20, wscale: true, ..PLAIN };
    let mut play = Play::accept(settings, "S 0 wscale 3 win 100");
    play.sends(&["SA 0 ack 1 mss 100 wscale 5"]);
    assert_eq!(play.window, u16::MAX, "the window of a SYN is not scaled");
    play.gets("A 1 ack 1 win 50");
    play.writes(1000);
    let sent = play.sent();
    assert_eq!(sent.len(), 4, "the peer has told 400 bytes: {sent:?}");
    assert_eq!(u32::from(play.window), (1 << 20) >> 5);
}

#[test]
fn first_reset_of_the_peer_ends_the_handshake() {
    let mut play = Play::accept(PLAIN, "S 0");
    play.sent();
    play.gets("R 1");
    assert_eq!(play.status().failure, Some(Failure::Reset));
    assert!(!play.status().is_established);
}
