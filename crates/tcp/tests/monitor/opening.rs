//! Handshakes of all kinds, ends of all kinds, and connections between the same ends.

use braid_tcp::{Began, Direction, Ended, Opening, State, Why};

use super::{ACK, Client, FIN, RST, S, SYN, Say, Script, Server};

#[test]
fn handshake_data_and_half_close_reach_the_states_of_rfc_9293() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"request");
    script.send(Client, FIN | ACK, 108, 501, b"");
    script.send(Server, ACK, 501, 109, b"answer ");
    script.send(Client, ACK, 109, 508, b"");
    script.send(Server, ACK, 508, 109, b"goes on");
    script.send(Server, FIN | ACK, 515, 109, b"");
    script.send(Client, ACK, 109, 516, b"");
    let told = script.finish();
    assert_eq!(told.texts(), ["request", "answer goes on"]);
    let report = told.only();
    assert_eq!(report.opening, Opening::Handshake);
    let sides = report.sides;
    assert_eq!((sides.forward.state, sides.backward.state), (State::TimeWait, State::Ended));
    for side in [sides.forward, sides.backward] {
        assert_eq!((side.began, side.ended), (Began::Syn, Ended::Fin));
        assert_eq!((side.retransmissions, side.out_of_order, side.unacceptable), (0, 0, 0));
    }
    assert_eq!((sides.forward.traffic.packets, sides.backward.traffic.packets), (6, 4));
    assert_eq!(sides.forward.traffic.bytes, 6 * 54 + 7);
}

#[test]
fn simultaneous_open_and_close() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Server, SYN, 500, 0, b"");
    script.send(Client, SYN | ACK, 100, 501, b"");
    script.send(Server, SYN | ACK, 500, 101, b"");
    script.send(Client, FIN | ACK, 101, 501, b"ab");
    script.send(Server, FIN | ACK, 501, 101, b"cd");
    script.send(Client, ACK, 104, 504, b"");
    script.send(Server, ACK, 504, 104, b"");
    let told = script.finish();
    assert_eq!(told.texts(), ["ab", "cd"]);
    let report = told.only();
    assert_eq!(report.opening, Opening::Simultaneous);
    let (forward, backward) = (report.sides.forward, report.sides.backward);
    assert_eq!((forward.ended, backward.ended), (Ended::Fin, Ended::Fin));
    assert!(matches!(forward.state, State::TimeWait | State::FinWait2), "{:?}", forward.state);
    assert!(matches!(backward.state, State::TimeWait | State::Ended), "{:?}", backward.state);
}

/// The server answers with an ACK and a SYN of its own, and the client with SYN and ACK.
#[test]
fn split_handshakes_of_four_and_five_segments_open_the_connection() {
    for with_ack in [false, true] {
        let mut script = Script::new();
        script.send(Client, SYN, 100, 0, b"");
        if with_ack {
            script.send(Server, ACK, 77, 101, b"");
        }
        script.send(Server, SYN, 500, 0, b"");
        script.send(Client, SYN | ACK, 100, 501, b"");
        script.send(Server, ACK, 501, 101, b"");
        script.send(Client, ACK, 101, 501, b"to server");
        script.send(Server, ACK, 501, 110, b"to client");
        let told = script.finish();
        assert_eq!(told.texts(), ["to server", "to client"], "{with_ack}");
        let report = told.only();
        assert_eq!(report.opening, Opening::Simultaneous);
        let states = [report.sides.forward.state, report.sides.backward.state];
        assert_eq!(states, [State::Established; 2], "{with_ack}");
    }
}

#[test]
fn connection_is_picked_up_in_its_middle() {
    let mut script = Script::new();
    script.send(Server, ACK, 900, 5000, b"middle");
    script.send(Client, ACK, 5010, 906, b"late");
    script.send(Client, ACK, 5000, 906, b"first half");
    let told = script.finish();
    // The first packet came from the server, so its direction is forward.
    assert_eq!(told.texts(), ["middle", "first halflate"]);
    let report = told.only();
    assert_eq!(report.opening, Opening::MidStream);
    assert_eq!(report.sides.forward.began, Began::MidStream);
    assert_eq!(report.sides.backward.out_of_order, 1);
    assert_eq!(report.sides.forward.state, State::Established);
}

#[test]
fn answer_to_a_syn_that_was_not_seen_goes_backward() {
    let mut script = Script::new();
    script.send(Server, SYN | ACK, 500, 101, b"");
    script.send(Client, ACK, 101, 501, b"hello");
    let told = script.finish();
    assert_eq!(told.text(0, Direction::Forward), "hello");
    let report = told.only();
    assert_eq!((report.flow.sport, report.sides.backward.began), (1000, Began::Syn));
}

#[test]
fn data_on_a_syn_is_part_of_the_stream() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"early ");
    script.send(Server, SYN | ACK, 500, 107, b"");
    script.send(Client, ACK, 107, 501, b"bird");
    assert_eq!(script.finish().texts()[0], "early bird");
}

#[test]
fn refused_connection_ends_with_the_receivers_reset() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Server, RST | ACK, 0, 101, b"");
    let told = script.finish();
    let report = told.only();
    assert_eq!(report.opening, Opening::Incomplete);
    let ended = [report.sides.forward.ended, report.sides.backward.ended];
    assert_eq!(ended, [Ended::ResetByReceiver, Ended::Reset]);
}

#[test]
fn same_ends_open_a_new_connection_after_fin_and_after_reset() {
    let mut script = Script::new();
    script.open();
    script.send(Client, FIN | ACK, 101, 501, b"one");
    script.send(Server, FIN | ACK, 501, 105, b"");
    script.send(Client, ACK, 105, 502, b"");
    script.send(Client, SYN, 7000, 0, b"");
    script.send(Server, SYN | ACK, 9000, 7001, b"");
    script.send(Client, ACK, 7001, 9001, b"two");
    script.send(Server, RST, 9001, 0, b"");
    script.send(Server, SYN, 300, 0, b"");
    let told = script.finish();
    assert_eq!([0, 1].map(|at| told.text(at, Direction::Forward)), ["one", "two"]);
    let ends: Vec<Ended> = told.reports.iter().map(|r| r.sides.forward.ended).collect();
    assert_eq!(ends, [Ended::Fin, Ended::ResetByReceiver, Ended::Capture]);
    assert_eq!(told.reports[2].flow.sport, 80);
}

/// A client that takes the same number for its next connection hides nothing of it.
#[test]
fn syn_with_the_number_of_the_last_one_opens_a_new_connection_after_the_end() {
    type Ends = fn(&mut Script);
    let refused: Ends = |script| script.send(Client, RST, 101, 0, b"");
    let reset: Ends = |script| {
        script.send(Server, SYN | ACK, 500, 101, b"");
        script.send(Client, ACK, 101, 501, b"");
        script.send(Server, RST, 501, 0, b"");
    };
    let closed: Ends = |script| {
        script.send(Server, SYN | ACK, 500, 101, b"");
        script.send(Client, FIN | ACK, 101, 501, b"");
        script.send(Server, FIN | ACK, 501, 102, b"");
        script.send(Client, ACK, 102, 502, b"");
    };
    for ends in [refused, reset, closed] {
        let mut script = Script::new();
        script.send(Client, SYN, 100, 0, b"");
        // The same SYN again, before the end, is a repetition.
        script.send(Client, SYN, 100, 0, b"");
        ends(&mut script);
        script.send(Client, SYN, 100, 0, b"");
        script.send(Server, SYN | ACK, 9000, 101, b"");
        script.send(Client, ACK, 101, 9001, b"seen");
        let told = script.finish();
        assert_eq!(told.reports.len(), 2);
        assert_eq!(told.text(1, Direction::Forward), "seen");
        let second = told.reports.iter().find(|report| report.connection.0 == 1).unwrap();
        assert_eq!(second.opening, Opening::Handshake);
    }
}

/// The end of the old connection is missing in the capture.
#[test]
fn answered_syn_opens_a_new_connection_though_the_old_one_is_open() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"one");
    let syn = Say { wscale: Some(3), ..Say::new(SYN, 700_000_000, 0, b"") };
    script.say(Client, syn);
    let answer = Say::new(SYN | ACK, 9000, 700_000_001, b"");
    script.say(Server, Say { wscale: Some(7), ..answer });
    script.send(Client, ACK, 700_000_001, 9001, b"two");
    let told = script.finish();
    assert_eq!([0, 1].map(|at| told.text(at, Direction::Forward)), ["one", "two"]);
    let second = told.reports.iter().find(|report| report.connection.0 == 1).unwrap();
    assert_eq!(second.opening, Opening::Handshake);
    assert_eq!(second.sides.forward.window_scale, Some(3));
    assert_eq!(told.reports[0].sides.forward.ended, Ended::Reopened);
}

/// Linux ignores a RST that answers its SYN with a wrong time stamp.
#[test]
fn forged_reset_of_a_syn_does_not_hide_the_connection() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Server, RST | ACK, 0, 101, b"");
    script.send(Server, FIN | ACK, 0, 101, b"");
    script.send(Client, RST, 101, 0, b"");
    script.send(Server, SYN | ACK, 500, 101, b"");
    script.send(Client, ACK, 101, 501, b"one");
    script.send(Server, ACK, 501, 104, b"two");
    let told = script.finish();
    let texts = [Direction::Forward, Direction::Backward].map(|of| told.text(1, of));
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(told.reports[0].sides.backward.ended, Ended::Reset);
    let second = told.reports.iter().find(|report| report.connection.0 == 1).unwrap();
    assert_eq!(second.opening, Opening::Handshake);
}

#[test]
fn late_packets_of_an_ended_connection_open_no_new_one() {
    let mut script = Script::new();
    script.open();
    script.send(Client, RST, 101, 0, b"");
    script.send(Server, ACK, 501, 101, b"too late");
    script.now_ns += 30 * S;
    script.send(Server, ACK, 501, 101, b"too late");
    let told = script.finish();
    let side = told.only().sides.backward;
    assert_eq!((side.after_end, side.ignored_bytes, side.stream.delivered), (2, 16, 0));
}

#[test]
fn fin_acknowledged_over_a_gap_ends_the_stream_with_the_gap() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"ab");
    script.send(Client, FIN | ACK, 106, 501, b"fg");
    script.send(Server, FIN | ACK, 501, 109, b"");
    script.send(Client, ACK, 109, 502, b"");
    let told = script.finish();
    assert_eq!(told.texts()[0], "ab...fg");
    let [(0, Direction::Forward, gap)] = told.gaps[..] else { panic!("{:?}", told.gaps) };
    assert_eq!((gap.offset, gap.len, gap.why), (2, 3, Why::Acknowledged));
    assert_eq!(told.only().sides.forward.ended, Ended::Fin);
}

#[test]
fn capture_of_one_side_shows_what_the_other_side_must_have_sent() {
    let mut script = Script::new();
    script.send(Client, SYN, 100, 0, b"");
    script.send(Client, ACK, 101, 501, b"GET");
    script.send(Client, ACK, 104, 1501, b"");
    let told = script.finish();
    let side = told.only().sides;
    assert_eq!((side.backward.began, side.backward.stream.gap_bytes), (Began::Unseen, 1000));
    assert_eq!(told.texts()[0], "GET");
}

#[test]
fn ipv4_and_ipv6_with_equal_numbers_are_different_connections() {
    let mut script = Script::new();
    script.open();
    script.send(Client, ACK, 101, 501, b"four");
    script.version = 6;
    script.open();
    script.send(Client, ACK, 101, 501, b"six");
    let told = script.finish();
    assert_eq!([0, 1].map(|at| told.text(at, Direction::Forward)), ["four", "six"]);
}
