//! Limits: the monitor's memory, and that of a stream.

use braid_tcp::{Ended, Options, Why};

use braid_packet::FlowKey;

use super::{ACK, Client, SYN, Script, Server};

fn small() -> Script {
    Script::with(Options { memory: 64 << 10, ..Options::default() })
}

#[test]
fn connection_that_is_idle_for_the_longest_time_is_given_up() {
    let mut script = small();
    for client in 1..=1000 {
        script.client = client;
        script.send(Client, SYN, 100, 0, b"");
        assert!(script.monitor.memory() <= 64 << 10);
        // The first one stays in use.
        script.client = 1;
        script.send(Client, ACK, 101, 501, b"");
    }
    let counts = script.monitor.counts();
    assert_eq!((counts.connections, counts.segments), (1000, 2000));
    assert!(counts.given_up > 900, "{counts:?}");
    let told = script.finish();
    assert_eq!(told.reports.len(), 1000);
    let given_up = |report: &&braid_tcp::Report| report.sides.forward.ended == Ended::GivenUp;
    assert_eq!(told.reports.iter().filter(given_up).count() as u64, counts.given_up);
    let first = told.reports.iter().find(|report| report.flow.src == 1).unwrap();
    assert_eq!(first.sides.forward.ended, Ended::Capture);
}

#[test]
fn ended_connections_go_first_and_are_not_given_up() {
    let mut script = small();
    for client in 1..=500 {
        script.client = client;
        script.send(Client, SYN, 100, 0, b"");
        script.send(Server, super::RST | ACK, 0, 101, b"");
    }
    assert_eq!(script.monitor.counts().given_up, 0);
    assert!(script.monitor.memory() <= 64 << 10);
    let told = script.finish();
    assert!(told.reports.iter().all(|r| r.sides.backward.ended == Ended::Reset));
    assert_eq!(told.reports.len(), 500);
}

/// A flood from forged addresses: SYNs, which the server answers, and segments of no connection.
#[test]
fn flood_drives_out_no_connection_of_two_ends() {
    let mut script = small();
    for client in 1..=5 {
        script.client = client;
        script.open();
    }
    for client in 6..=1000 {
        script.client = client;
        if client % 2 == 0 {
            script.send(Client, SYN, 100, 0, b"");
            script.send(Server, SYN | ACK, 500, 101, b"");
            // The client has not seen the answer's number.
            script.send(Client, ACK, 101, 900, b"forged");
        } else {
            script.send(Client, ACK, 101, 501, b"forged");
        }
        assert!(script.monitor.memory() <= 64 << 10);
    }
    assert!(script.monitor.counts().given_up > 900, "{:?}", script.monitor.counts());
    for client in 1..=5 {
        script.client = client;
        script.send(Client, ACK, 101, 501, b"GET /");
    }
    assert_eq!(script.monitor.counts().connections, 1000);
    let told = script.finish();
    let first = told.reports.iter().filter(|report| report.flow.src <= 5);
    let delivered: Vec<u64> = first.map(|report| report.sides.forward.stream.delivered).collect();
    assert_eq!(delivered, [5; 5]);
}

#[test]
fn stream_over_its_memory_goes_on_behind_the_gap_and_others_stay() {
    let options = Options { stream_memory: 4000, ..Options::default() };
    let mut script = Script::with(options);
    script.open();
    script.send(Server, ACK, 502, 101, b"waits");
    for at in 0..50 {
        script.send(Client, ACK, 201 + at * 100, 501, &[b'x'; 100]);
    }
    assert_eq!(script.monitor.counts().memory_gaps, 1);
    script.send(Server, ACK, 501, 101, b"!");
    let told = script.finish();
    let (_, _, gap) = told.gaps[0];
    assert_eq!((gap.offset, gap.len, gap.why, told.gaps.len()), (0, 100, Why::Memory, 1));
    let [client, server] = told.texts();
    assert_eq!((client.len(), server.as_str()), (5100, "!waits"));
}

/// An attacker sends single bytes far ahead: each costs more memory than its byte.
#[test]
fn memory_of_many_small_pieces_is_counted() {
    let mut script = small();
    script.open();
    for at in 0..20_000 {
        script.send(Client, ACK, 103 + at * 2, 501, b"x");
        assert!(script.monitor.memory() <= 64 << 10);
    }
    let counts = script.monitor.counts();
    assert!(counts.memory_gaps > 19_000 && counts.given_up == 0, "{counts:?}");
    let report = script.finish().reports[0].sides.forward.stream;
    assert_eq!((report.delivered, report.gap_bytes), (20_000, 20_001));
}

#[test]
fn what_others_keep_for_connections_counts_towards_the_limit() {
    let mut script = small();
    for client in 1..=20 {
        script.client = client;
        script.send(Client, ACK, 1, 1, b"x");
        let flow = FlowKey { version: 4, src: client, dst: 2, proto: 6, sport: 1000, dport: 80 };
        script.monitor.charge(flow, 10_000);
        // The same amount again changes nothing.
        script.monitor.charge(flow.reversed(), 10_000);
    }
    assert!(script.monitor.memory() <= (64 << 10) + 10_000, "{}", script.monitor.memory());
    let given_up = script.monitor.counts().given_up;
    assert!((13..=15).contains(&given_up), "{given_up}");
}
