//! The L7 load balancer between clients and servers that open, use, close and open connections
//! again, while packets come twice, late or not at all.

use crate::{LEFT, RIGHT, Run, field, packets};
use braid_ir::model::Word;
use braid_packet::{Field, Packet};
use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use braid_testkit::record::Output;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const VIP: Word = 0xc000_0201;
/// The last bytes of the servers' addresses: those of images, and those of everything else.
const GROUPS: [&[u8]; 2] = [&[1], &[2, 3]];
const FUNCTION: &str = "l7_load_balancer(
    vip: 192.0.2.1, key: 7, period: 2 s, answer: 1 s, idle: 3 s, close: 1 s, connections: 4,
    servers: [
      { addr: 198.51.100.1, port: 80 },
      { addr: 198.51.100.2, port: 80 },
      { addr: 198.51.100.3, port: 80 },
    ],
    groups: [{ first: 1, count: 2 }, { first: 0, count: 1 }],
    rules: { \"GET /img/\" },
)";

/// What a client and its server know of their connection.
#[derive(Clone, Copy, Default)]
struct Ends {
    /// The client's first number, and the number of the SYN-ACK that it has got.
    client: u32,
    cookie: Option<u32>,
    /// Whether the client asks for images.
    images: bool,
    /// The last byte of the address of the server that has got a SYN with the client's number.
    asked: Option<u8>,
    /// The server's first number, once it has answered.
    server: u32,
    /// The difference between the numbers that the client and the server see.
    difference: Option<u32>,
    /// The server of the connection before. It gets what comes before the next request.
    before: Option<u8>,
}

/// What the run has seen.
#[derive(Default)]
struct Seen {
    asked: usize,
    refused: usize,
    requests: usize,
    to_servers: usize,
    to_clients: usize,
}

fn number(packet: &Packet, which: Field) -> u32 {
    u32::try_from(field(packet, which)).expect("32 bits")
}

fn from_client(nth: usize, rest: &str) -> String {
    format!("tcp 10.0.0.{}:4000 > 192.0.2.1:80 {rest}", nth + 1)
}

fn from_server(server: u8, nth: usize, rest: &str) -> String {
    format!("tcp 198.51.100.{server}:80 > 10.0.0.{}:4000 {rest}", nth + 1)
}

/// The place of the client with this address.
fn client(addr: Word) -> usize {
    usize::try_from(addr & 0xff).expect("a small number") - 1
}

/// Checks the packets that leave.
fn check(outputs: &[Output], all: &mut [Ends], seen: &mut Seen) {
    for (side, packet) in packets(outputs) {
        let flags = field(packet, Field::TcpFlags);
        if side == LEFT {
            // A server's packet that belongs to no connection passes as it is.
            let src = field(packet, Field::IpSrc);
            assert!(src == VIP || src >> 8 == 0x00c6_3364, "{src:#x}");
            continue;
        }
        let ends = &mut all[client(field(packet, Field::IpSrc))];
        let server = u8::try_from(field(packet, Field::IpDst) & 0xff).expect("a byte");
        assert!(GROUPS[usize::from(!ends.images)].contains(&server), "server {server}");
        if flags == 0x02 {
            assert_eq!(number(packet, Field::TcpSeq), ends.client);
            assert_eq!(field(packet, Field::PktPayloadLen), 0);
            (ends.asked, ends.difference, ends.before) = (Some(server), None, None);
            seen.asked += 1;
        } else if ends.before != Some(server) {
            assert_eq!(ends.asked, Some(server), "a packet to another server");
            let difference = ends.difference.expect("a server that has answered");
            let cookie = ends.cookie.expect("a cookie");
            // The client acknowledges what it has, from the function's first byte on.
            let seen_by_client = number(packet, Field::TcpAck).wrapping_add(difference);
            assert!(flags & 4 != 0 || seen_by_client.wrapping_sub(cookie) < 1000);
            seen.to_servers += 1;
            seen.requests += usize::from(
                number(packet, Field::TcpSeq) == ends.client.wrapping_add(1)
                    && field(packet, Field::PktPayloadLen) > 0,
            );
        }
    }
}

fn options(rng: &mut Rng, stamps: &str) -> String {
    let some =
        ["mss=1460", "sackok", stamps, "wscale=7"].map(|one| if rng.one_in(3) { "" } else { one });
    some.join(" ")
}

/// The client sends a SYN. The answer comes at once.
fn open(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, all: &mut [Ends], seen: &mut Seen) {
    let isn = rng.word();
    let rest = format!("S seq={isn} {}", options(rng, "ts=7,0"));
    let outputs = run.packet(LEFT, now, &from_client(nth, &rest));
    // What has waited belongs to the connection before.
    let (last, before) = outputs.split_last().expect("an answer");
    check(before, all, seen);
    let last = std::slice::from_ref(last);
    let [(LEFT, answer)] = packets(last)[..] else { panic!("{outputs:?}") };
    assert_eq!(field(answer, Field::TcpFlags), 0x12);
    assert_eq!(number(answer, Field::TcpAck), isn.wrapping_add(1));
    let cookie = Some(number(answer, Field::TcpSeq));
    let before = all[nth].difference.and(all[nth].asked).or(all[nth].before);
    // The same pages, so that the server before is one that the client may ask for.
    let images = if before.is_some() { all[nth].images } else { rng.one_in(2) };
    all[nth] = Ends { client: isn, cookie, images, before, ..Ends::default() };
}

/// A packet of the client that is no SYN: its request, or a later one.
fn send(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, all: &mut [Ends], seen: &mut Seen) {
    let Some(cookie) = all[nth].cookie else { return };
    let first = all[nth].client.wrapping_add(1);
    let ack = cookie.wrapping_add(1);
    let rest = match rng.below(4) {
        0 => format!("A seq={first} ack={ack}"),
        1 => {
            let flags = *rng.pick(&["A", "PA", "FA", "R"]);
            let seq = first.wrapping_add(u32::from(rng.short()));
            let ack = ack.wrapping_add(rng.below(9) as u32 * 100);
            format!("{flags} seq={seq} ack={ack} bytes={}", rng.below(20))
        }
        _ => {
            let path = if all[nth].images { "GET /img/a" } else { "GET /a" };
            format!("PA seq={first} ack={ack} \"{path} HTTP/1.1\"")
        }
    };
    let outputs = run.packet(LEFT, now, &from_client(nth, &rest));
    check(&outputs, all, seen);
}

/// The server answers the SYN, and takes the connection or refuses it.
fn accept(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, all: &mut [Ends], seen: &mut Seen) {
    let Ends { asked: Some(server), difference: None, cookie: Some(cookie), client, .. } = all[nth]
    else {
        return;
    };
    let ack = client.wrapping_add(1);
    if rng.one_in(4) {
        let refusal = from_server(server, nth, &format!("RA seq=0 ack={ack}"));
        let outputs = run.packet(RIGHT, now, &refusal);
        check(&outputs, all, seen);
        seen.refused += 1;
        return;
    }
    let isn = rng.word();
    let rest = format!("SA seq={isn} ack={ack} {}", options(rng, "ts=9,7"));
    all[nth].server = isn;
    all[nth].difference = Some(cookie.wrapping_sub(isn));
    let outputs = run.packet(RIGHT, now, &from_server(server, nth, &rest));
    check(&outputs, all, seen);
}

/// A packet of the server in an open connection.
fn serve(run: &mut Run, rng: &mut Rng, now: u64, nth: usize, all: &mut [Ends], seen: &mut Seen) {
    let Ends { asked: Some(server), difference: Some(difference), server: isn, .. } = all[nth]
    else {
        return;
    };
    let seq = isn.wrapping_add(1).wrapping_add(rng.short().into());
    let flags = *rng.pick(&["A", "PA", "PA", "PA", "FA", "RA"]);
    let bytes = 1 + rng.below(20);
    let rest = format!("{flags} seq={seq} ack={} bytes={bytes}", all[nth].client);
    let outputs = run.packet(RIGHT, now, &from_server(server, nth, &rest));
    let mut answer = packets(&outputs).into_iter().filter(|(side, packet)| {
        *side == LEFT
            && client(field(packet, Field::IpDst)) == nth
            && field(packet, Field::IpSrc) == VIP
    });
    if let Some((_, packet)) = answer.next_back() {
        assert_eq!(number(packet, Field::TcpSeq), seq.wrapping_add(difference));
        seen.to_clients += 1;
    }
    let kept: Vec<Output> =
        outputs.into_iter().filter(|output| !matches!(output, Output::Packet(LEFT, _))).collect();
    check(&kept, all, seen);
}

#[test]
fn requests_choose_servers_and_both_ends_see_their_own_numbers() {
    let mut seen = Seen::default();
    for seed in budget::seeds(24) {
        let mut rng = Rng::new(seed);
        let mut run = Run::new(FUNCTION);
        let (mut all, mut now) = ([Ends::default(); 3], 10_000 * MS);
        for _ in 0..400 {
            now += match rng.below(40) {
                0 => rng.range(0, 1500) * MS,
                1..8 => MS,
                _ => 20 * US,
            };
            let nth = rng.below(3);
            let step = match rng.below(12) {
                0 => open,
                1..6 => send,
                6..8 => accept,
                _ => serve,
            };
            step(&mut run, &mut rng, now, nth, &mut all, &mut seen);
        }
        run.compare_engines(seed);
    }
    let Seen { asked, refused, requests, to_servers, to_clients } = seen;
    let found = format!("{asked} asked, {refused} refused, {requests}, {to_servers}, {to_clients}");
    assert!(asked > 300 && refused > 30 && requests > 100, "{found}");
    assert!(to_servers > 200 && to_clients > 300, "{found}");
}
