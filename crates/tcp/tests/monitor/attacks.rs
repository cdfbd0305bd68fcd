//! Segments that a receiver does not take: forged, old, or outside of its window. And keep-alives.

use braid_tcp::{Ended, State};

use super::{ACK, Client, FIN, RST, S, SYN, Say, Script, Server, Told};

#[test]
fn reset_counts_only_at_the_next_byte() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"ab");
    script.send(Client, RST, 150, 0, b"");
    script.send(Client, RST, 200_000_000, 0, b"");
    script.send(Client, ACK, 103, 501, b"cd");
    script.send(Client, RST, 105, 0, b"why");
    let told = script.finish();
    assert_eq!(told.texts()[0], "abcd");
    let side = told.only().sides.forward;
    assert_eq!((side.wrong_resets, side.ended, side.ignored_bytes), (2, Ended::Reset, 3));
    assert_eq!(told.only().sides.backward.ended, Ended::ResetByReceiver);
}

#[test]
fn reset_that_does_not_acknowledge_the_syn_resets_nothing() {
    for (flags, ack) in [(RST, 0), (RST | ACK, 100), (RST | ACK, 90), (RST | ACK, 5000)] {
        let mut script = Script::new();
        script.send(Client, SYN, 100, 0, b"");
        script.send(Server, flags, 0, ack, b"");
        script.send(Server, SYN | ACK, 500, 101, b"");
        script.send(Client, ACK, 101, 501, b"ab");
        let told = script.finish();
        assert_eq!(told.texts()[0], "ab");
        assert_eq!(told.only().sides.backward.wrong_resets, 1);
    }
}

#[test]
fn reset_in_the_window_is_doubtful_if_nothing_else_ends_the_stream() {
    for ends in [false, true] {
        let mut script = Script::new();
        script.open();
        script.send(Client, RST, 150, 0, b"");
        if ends {
            script.send(Client, FIN | ACK, 101, 501, b"");
        }
        let ended = script.finish().only().sides.forward.ended;
        assert_eq!(ended, if ends { Ended::Fin } else { Ended::DoubtfulReset });
    }
}

#[test]
fn forged_syns_and_answers_change_nothing() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Server, SYN | ACK, 4000, 7777, b"");
    script.send(Server, SYN | ACK, 500, 101, b"");
    script.send(Client, ACK, 101, 501, b"ab");
    script.send(Client, SYN, 90_000, 0, b"");
    script.send(Client, ACK, 103, 501, b"cd");
    let told = script.finish();
    assert_eq!(told.texts()[0], "abcd");
    let sides = told.only().sides;
    assert_eq!((sides.forward.unacceptable, sides.backward.unacceptable), (1, 1));
    assert_eq!(sides.forward.state, State::Established);
}

#[test]
fn segment_without_ack_is_dropped_as_a_receiver_drops_it() {
    let mut script = Script::new();
    script.open();
    script.send(Client, 0, 101, 0, b"evil");
    script.send(Client, ACK, 101, 501, b"good");
    let told = script.finish();
    assert_eq!(told.texts()[0], "good");
    let side = told.only().sides.forward;
    assert_eq!((side.unacceptable, side.ignored_bytes), (1, 4));
}

fn scaled(client: Option<u8>, server: Option<u8>) -> Script {
    let mut script = Script::new();
    script.say(Client, Say { wscale: client, ..Say::new(SYN, 100, 0, b"") });
    script.say(Server, Say { wscale: server, ..Say::new(SYN | ACK, 500, 101, b"") });
    script.say(Client, Say::new(ACK, 101, 501, b""));
    script.say(Server, Say { window: 1000, ..Say::new(ACK, 501, 101, b"") });
    script
}

/// The server's window is 1000, and twice 512,000 with a scale of 9, plus what is allowed for
/// packets that the capture lacks.
#[test]
fn window_scale_counts_only_if_both_sides_sent_it() {
    let far = 101 + 600_000;
    for (client, server, scale) in [
        (None, None, None),
        (None, Some(9), None),
        (Some(9), None, None),
        (Some(2), Some(9), Some(9)),
    ] {
        let mut script = scaled(client, server);
        script.send(Client, ACK, far, 501, b"far");
        let told = script.finish();
        let sides = told.only().sides;
        assert_eq!(sides.backward.window_scale, scale);
        let is_outside = scale.is_none();
        assert_eq!(sides.forward.out_of_window, u64::from(is_outside), "{client:?} {server:?}");
        assert_eq!(sides.forward.stream.delivered, if is_outside { 0 } else { 3 });
    }
}

/// A capture that lacks a segment and all later acknowledgements still gives the rest of the
/// stream.
#[test]
fn window_counts_only_while_its_receiver_is_heard() {
    for (idle_ns, delivered) in [(0, 0), (3 * S, 3)] {
        let mut script = scaled(None, None);
        script.now_ns += idle_ns;
        script.send(Client, ACK, 101 + 600_000, 501, b"far");
        let side = script.finish().only().sides.forward;
        assert_eq!(side.stream.delivered, delivered);
        assert_eq!(side.out_of_window, u64::from(delivered == 0));
    }
}

#[test]
fn scale_above_14_is_14() {
    let sides = scaled(Some(200), Some(3)).finish().only().sides;
    assert_eq!(sides.forward.window_scale, Some(14));
}

/// The last segment has an old timestamp and the number of the next byte.
fn with_timestamps(both: bool, idle_ns: u64) -> Told {
    let mut script = Script::new();
    let at = |timestamp: u32, say| Say { timestamp: Some(timestamp), ..say };
    script.say(Client, at(1000, Say::new(SYN, 100, 0, b"")));
    let answer = Say::new(SYN | ACK, 500, 101, b"");
    script.say(Server, if both { at(70, answer) } else { answer });
    script.say(Client, at(1001, Say::new(ACK, 101, 501, b"ab")));
    script.now_ns += idle_ns;
    script.say(Client, at(900, Say::new(ACK, 103, 501, b"xx")));
    script.say(Client, at(1002, Say::new(ACK, 103, 501, b"cd")));
    script.finish()
}

#[test]
fn old_timestamps_are_left_out_if_both_sides_use_them() {
    let told = with_timestamps(true, 0);
    assert_eq!(told.texts()[0], "abcd");
    let side = told.only().sides.forward;
    assert_eq!((side.old_timestamps, side.ignored_bytes, side.timestamps), (1, 2, true));
    let told = with_timestamps(false, 0);
    assert_eq!(told.texts()[0], "abxx");
    assert_eq!(told.only().sides.forward.old_timestamps, 0);
}

#[test]
fn timestamp_is_no_measure_after_24_days() {
    assert_eq!(with_timestamps(true, 24 * 24 * 3600 * S).texts()[0], "abxx");
}

#[test]
fn keep_alives_are_recognised_and_are_no_retransmissions() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"ab");
    script.send(Server, ACK, 501, 103, b"");
    script.send(Client, ACK, 102, 501, b"");
    script.send(Client, ACK, 102, 501, b"\0");
    script.send(Client, ACK, 103, 501, b"cd");
    let told = script.finish();
    assert_eq!(told.texts()[0], "abcd");
    let side = told.only().sides.forward;
    assert_eq!((side.keep_alives, side.retransmissions), (2, 0));
}

#[test]
fn retransmissions_are_told_from_reordered_segments() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Client, SYN, 100, 0, b"");
    script.send(Server, SYN | ACK, 500, 101, b"");
    script.send(Client, ACK, 104, 501, b"def");
    script.send(Client, ACK, 101, 501, b"abc");
    script.send(Client, ACK, 101, 501, b"abc");
    script.send(Client, FIN | ACK, 107, 501, b"");
    script.send(Client, FIN | ACK, 107, 501, b"");
    let told = script.finish();
    assert_eq!(told.texts()[0], "abcdef");
    let side = told.only().sides.forward;
    assert_eq!((side.retransmissions, side.out_of_order), (3, 1));
    assert_eq!(side.stream.repeated_bytes, 3);
}
