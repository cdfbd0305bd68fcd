//! The SYN proxy between clients and services that open, use, close and open connections again,
//! while packets come twice, late or not at all.

use crate::{LEFT, RIGHT, Run, field, packets};
use braid_packet::{Field, Packet};
use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;

const MS: u64 = 1_000_000;

/// What a client and its service know of their connection.
#[derive(Clone, Copy, Default)]
struct Ends {
    /// The client's first number, and the number of the SYN-ACK that it has got.
    client: u32,
    cookie: Option<u32>,
    /// The service's first number.
    service: u32,
    /// The service has got a SYN with the client's first number.
    asked: Option<u32>,
    /// The difference between the numbers that the client and the service see.
    difference: Option<u32>,
}

fn number(packet: &Packet, which: Field) -> u32 {
    u32::try_from(field(packet, which)).expect("32 bits")
}

fn from_client(nth: usize, rest: &str) -> String {
    format!("tcp 10.0.0.{}:4000 > 192.0.2.1:80 {rest}", nth + 1)
}

fn from_service(nth: usize, rest: &str) -> String {
    format!("tcp 192.0.2.1:80 > 10.0.0.{}:4000 {rest}", nth + 1)
}

/// Options of a SYN, some of them.
fn options(rng: &mut Rng, stamps: &str) -> String {
    let some =
        ["mss=1460", "sackok", stamps, "wscale=7"].map(|one| if rng.one_in(3) { "" } else { one });
    some.join(" ")
}

/// The client sends a SYN. The answer comes at once.
fn open(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, ends: &mut Ends) {
    ends.client = rng.word();
    let rest = format!("S seq={} {}", ends.client, options(rng, "ts=7,0"));
    let outputs = run.packet(LEFT, now, &from_client(nth, &rest));
    let [(LEFT, answer)] = packets(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(field(answer, Field::TcpFlags), 0x12);
    assert_eq!(field(answer, Field::TcpWindow), 0);
    assert_eq!(number(answer, Field::TcpAck), ends.client.wrapping_add(1));
    ends.cookie = Some(number(answer, Field::TcpSeq));
}

/// A packet of the client that is no SYN: it opens the connection, or belongs to it.
fn send(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, ends: &mut Ends) {
    let Some(cookie) = ends.cookie else { return };
    let sent = if rng.one_in(2) { 0 } else { rng.short().into() };
    let seq = ends.client.wrapping_add(1).wrapping_add(sent);
    let ack = cookie.wrapping_add(1).wrapping_add(rng.below(3) as u32 * 100);
    let flags = *rng.pick(&["A", "A", "A", "PA", "FA", "R"]);
    let rest = format!("{flags} seq={seq} ack={ack} win={} bytes={}", rng.short(), rng.below(20));
    let outputs = run.packet(LEFT, now, &from_client(nth, &rest));
    let Some(&(side, packet)) = packets(&outputs).first() else { return };
    assert_eq!(side, RIGHT);
    if field(packet, Field::TcpFlags) == 0x02 {
        assert_eq!(number(packet, Field::TcpSeq), ends.client);
        assert_eq!(field(packet, Field::PktPayloadLen), 0);
        ends.asked = Some(cookie);
        ends.difference = None;
    } else if flags != "R" {
        let difference = ends.difference.expect("an open connection");
        assert_eq!(number(packet, Field::TcpAck), ack.wrapping_sub(difference));
        assert_eq!(number(packet, Field::TcpSeq), seq);
    }
}

/// The service answers the SYN, which opens the connection.
fn accept(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, ends: &mut Ends) {
    let Some(cookie) = ends.asked.filter(|&asked| Some(asked) == ends.cookie) else { return };
    ends.service = rng.word();
    let ack = ends.client.wrapping_add(1);
    let rest = format!("SA seq={} ack={ack} {}", ends.service, options(rng, "ts=9,7"));
    let outputs = run.packet(RIGHT, now, &from_service(nth, &rest));
    let [(RIGHT, answer), (LEFT, window)] = packets(&outputs)[..] else { return };
    assert_eq!(number(answer, Field::TcpSeq), ack);
    assert_eq!(number(answer, Field::TcpAck), ends.service.wrapping_add(1));
    assert_eq!(number(window, Field::TcpSeq), cookie.wrapping_add(1));
    assert_eq!(number(window, Field::TcpAck), ack);
    assert_eq!([answer, window].map(|packet| field(packet, Field::TcpFlags)), [0x10; 2]);
    ends.difference = Some(cookie.wrapping_sub(ends.service));
    ends.asked = None;
}

/// A packet of the service in an open connection.
fn serve(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, ends: &Ends) -> bool {
    let seq = ends.service.wrapping_add(1).wrapping_add(rng.short().into());
    let flags = *rng.pick(&["A", "PA", "PA", "FA", "RA"]);
    let rest = format!("{flags} seq={seq} ack={} bytes={}", ends.client, rng.below(20));
    let outputs = run.packet(RIGHT, now, &from_service(nth, &rest));
    let Some(&(side, packet)) = packets(&outputs).first() else { return false };
    assert_eq!(side, LEFT);
    let difference = ends.difference.expect("an open connection");
    assert_eq!(number(packet, Field::TcpSeq), seq.wrapping_add(difference));
    true
}

#[test]
fn both_ends_see_their_own_numbers() {
    let (mut opened, mut served) = (0, 0);
    for seed in budget::seeds(24) {
        let mut rng = Rng::new(seed);
        let mut run = Run::new(
            "syn_proxy(key: 7, period: 2 s, answer: 1 s, idle: 3 s, close: 1 s, connections: 2)",
        );
        let (mut ends, mut now) = ([Ends::default(); 3], 10_000 * MS);
        for _ in 0..400 {
            now += if rng.one_in(3) { rng.range(0, 400) * MS } else { MS };
            let nth = rng.below(3);
            let of = &mut ends[nth];
            match rng.below(12) {
                0 => open(&mut run, &mut rng, now, nth, of),
                1..6 => send(&mut run, &mut rng, now, nth, of),
                6..8 => {
                    accept(&mut run, &mut rng, now, nth, of);
                    opened += u32::from(of.difference.is_some());
                }
                _ => served += u32::from(serve(&mut run, &mut rng, now, nth, of)),
            }
        }
        run.compare_engines(seed);
    }
    assert!(opened > 100 && served > 300, "{opened}, {served}");
}
