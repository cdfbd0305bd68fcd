//! Tests that captured replies enter as answers to the requests as they left.

mod support;

use braid_io::MemorySink;
use braid_packet::{Field, Link, NewPayload, Packet, Shape, build_fresh, build_new};
use braid_runtime::follow::{Follow, FollowCounters};
use braid_runtime::{Input, Run, Sinks, Summary};
use support::*;

const CLIENT: End<'_> = ("10.0.0.1", 1000);
const SERVER: End<'_> = ("8.8.8.8", 53);
const PUBLIC: End<'_> = ("203.0.113.1", 7);

fn set(packet: &mut Packet, field: Field, value: u128) {
    let layout = packet.parse();
    assert!(packet.set(&layout, field, value));
}

/// Translates every source from the lan to PUBLIC, and back.
fn nat(ingress: u16, mut packet: Packet) -> Vec<(u16, Packet)> {
    let (address, port, to) = match ingress {
        0 => (Field::IpSrc, Field::L4Sport, PUBLIC),
        _ => (Field::IpDst, Field::L4Dport, CLIENT),
    };
    set(&mut packet, address, addr(to.0));
    set(&mut packet, port, to.1.into());
    vec![(1 - ingress, packet)]
}

struct Ran {
    entered: Vec<String>,
    packets: Vec<Packet>,
    left: Vec<Packet>,
    summary: Summary,
}

fn follow(
    handle: impl FnMut(u16, Packet) -> Vec<(u16, Packet)> + Send,
    captured: Vec<Packet>,
) -> Ran {
    let chain = lan_wan();
    let mut engine = Fake::new(handle);
    let mut sink = MemorySink::default();
    let summary = Run::new(&chain, &mut engine)
        .input(sources(captured))
        .sinks(Sinks::default().output("out", None, &mut sink))
        .follow(true)
        .run()
        .unwrap();
    let packets = engine.entered.iter().map(|(_, packet)| unmarked(packet)).collect();
    Ran { entered: entered(&engine), packets, left: sink.packets, summary }
}

fn unmarked(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    packet.mark = 0;
    packet
}

#[test]
fn reply_enters_as_the_answer_to_what_its_request_left_with() {
    let ran = follow(nat, vec![udp(0, CLIENT, SERVER), udp(1, SERVER, CLIENT)]);
    assert_eq!(ran.entered, ["0 10.0.0.1:1000 > 8.8.8.8:53", "1 8.8.8.8:53 > 203.0.113.1:7"]);
    // All bytes are right, including the checksums. Packets that leave carry no marks.
    assert_eq!(ran.packets[1], udp(1, SERVER, PUBLIC));
    assert_eq!(ran.left, [udp(0, PUBLIC, SERVER), udp(1, SERVER, CLIENT)]);
    let counters = FollowCounters { flows: 1, rewritten: 1, full: 0 };
    assert_eq!(ran.summary.follow, Some(counters));
}

#[test]
fn reply_enters_where_its_request_left_unless_its_input_is_named() {
    // The server's network is behind `a`, but requests leave by `b`.
    let chain = chain(&[("lan", &[10]), ("a", &[8]), ("b", &[])]);
    let handle = |ingress: u16, packet: Packet| match ingress {
        0 => nat(0, packet).into_iter().map(|(_, packet)| (2, packet)).collect(),
        _ => vec![(0, packet)],
    };
    let ingress_of_reply = |named: Option<u16>| {
        let mut engine = Fake::new(handle);
        let reply = Input { interface: named, ..sources(vec![udp(1, SERVER, CLIENT)]) };
        let request = sources(vec![udp(0, CLIENT, SERVER)]);
        let run = Run::new(&chain, &mut engine).input(request).input(reply).follow(true);
        run.run().unwrap();
        assert_eq!(ends(&engine.entered[1].1), "8.8.8.8:53 > 203.0.113.1:7");
        engine.entered[1].0
    };
    assert_eq!(ingress_of_reply(None), 2);
    assert_eq!(ingress_of_reply(Some(1)), 1);
}

#[test]
fn without_following_the_capture_is_taken_literally() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let captured = vec![udp(0, CLIENT, SERVER), udp(1, SERVER, CLIENT)];
    let summary = Run::new(&chain, &mut engine).input(sources(captured.clone())).run().unwrap();
    assert_eq!(engine.entered, [(0, captured[0].clone()), (1, captured[1].clone())]);
    assert_eq!(summary.follow, None);
}

#[test]
fn untranslated_flows_are_taken_as_captured_and_not_remembered() {
    let captured = vec![udp(0, CLIENT, SERVER), udp(1, SERVER, CLIENT)];
    let ran = follow(through, captured.clone());
    assert_eq!(ran.packets, captured);
    assert_eq!(ran.summary.follow, Some(FollowCounters::default()));
}

#[test]
fn flow_started_outside_is_followed_back_in() {
    // Static NAT of 203.0.113.1 to 10.0.0.9, port kept.
    let handle = |ingress: u16, mut packet: Packet| {
        match ingress {
            0 => set(&mut packet, Field::IpSrc, addr("203.0.113.1")),
            _ => set(&mut packet, Field::IpDst, addr("10.0.0.9")),
        }
        vec![(1 - ingress, packet)]
    };
    let chain = chain(&[("lan", &[10]), ("wan", &[8])]);
    let mut engine = Fake::new(handle);
    let request = udp(0, SERVER, ("203.0.113.1", 80));
    let reply = udp(1, ("203.0.113.1", 80), SERVER);
    Run::new(&chain, &mut engine).input(sources(vec![request, reply])).follow(true).run().unwrap();
    assert_eq!(entered(&engine), ["1 8.8.8.8:53 > 203.0.113.1:80", "0 10.0.0.9:80 > 8.8.8.8:53"]);
}

#[test]
fn reply_that_leaves_untranslated_does_not_turn_the_flow_around() {
    // A load balancer without a row for replies: requests to 8.8.8.8 go to 8.8.8.9.
    let handle = |ingress: u16, mut packet: Packet| {
        if ingress == 0 {
            set(&mut packet, Field::IpDst, addr("8.8.8.9"));
        }
        vec![(1 - ingress, packet)]
    };
    let request = udp(0, CLIENT, SERVER);
    let reply = udp(1, SERVER, CLIENT);
    let ran = follow(handle, vec![request.clone(), reply, request]);
    assert_eq!(
        ran.entered,
        [
            "0 10.0.0.1:1000 > 8.8.8.8:53",
            "1 8.8.8.9:53 > 10.0.0.1:1000",
            "0 10.0.0.1:1000 > 8.8.8.8:53",
        ]
    );
}

#[test]
fn capture_that_starts_with_a_reply_is_followed_from_the_request_on() {
    let request = udp(0, CLIENT, SERVER);
    let reply = udp(1, SERVER, CLIENT);
    let handle = |ingress: u16, packet: Packet| match ingress {
        // A translator that lets packets without a mapping pass.
        1 if ends(&packet).ends_with("10.0.0.1:1000") => vec![(0, packet)],
        _ => nat(ingress, packet),
    };
    let ran = follow(handle, vec![reply.clone(), request.clone(), reply, request]);
    assert_eq!(
        ran.entered,
        [
            "1 8.8.8.8:53 > 10.0.0.1:1000",
            "0 10.0.0.1:1000 > 8.8.8.8:53",
            "1 8.8.8.8:53 > 203.0.113.1:7",
            "0 10.0.0.1:1000 > 8.8.8.8:53",
        ]
    );
}

#[test]
fn last_translation_counts_and_an_end_of_translation_too() {
    let mut ports = [7, 8, 0].into_iter();
    let handle = |ingress: u16, mut packet: Packet| {
        if ingress == 0 {
            match ports.next().unwrap() {
                0 => {}
                port => set(&mut packet, Field::L4Sport, port),
            }
        }
        vec![(1 - ingress, packet)]
    };
    let request = || udp(0, CLIENT, SERVER);
    let reply = || udp(1, SERVER, CLIENT);
    let ran = follow(handle, vec![request(), reply(), request(), reply(), request(), reply()]);
    let replies: Vec<&str> = ran.entered.iter().skip(1).step_by(2).map(String::as_str).collect();
    assert_eq!(
        replies,
        ["1 8.8.8.8:53 > 10.0.0.1:7", "1 8.8.8.8:53 > 10.0.0.1:8", "1 8.8.8.8:53 > 10.0.0.1:1000",]
    );
    assert_eq!(ran.summary.follow.unwrap().flows, 0);
}

#[test]
fn copies_and_built_packets_are_not_taken_for_the_request() {
    let handle = |ingress: u16, packet: Packet| {
        let copy = (1, packet.clone());
        let report = [(Field::IpDst, addr("9.9.9.9")), (Field::UdpDport, 9)];
        let built = build_new(&packet, Shape::Udp4, false, &report, NewPayload::Same).unwrap();
        let mut leaving = nat(ingress, packet);
        leaving.insert(0, copy);
        leaving.push((1, built));
        leaving
    };
    let ran = follow(handle, vec![udp(0, CLIENT, SERVER), udp(1, SERVER, CLIENT)]);
    assert_eq!(ran.entered[1], "1 8.8.8.8:53 > 203.0.113.1:7");
}

#[test]
fn what_goes_back_is_no_translation() {
    // Answers the request from the same interface.
    let handle = |ingress: u16, mut packet: Packet| {
        set(&mut packet, Field::IpSrc, addr("8.8.8.8"));
        vec![(ingress, packet)]
    };
    let ran = follow(handle, vec![udp(0, CLIENT, SERVER), udp(1, SERVER, CLIENT)]);
    assert_eq!(ran.entered[1], "1 8.8.8.8:53 > 10.0.0.1:1000");
}

#[test]
fn held_request_is_recognised_when_it_leaves() {
    let mut held = None;
    let handle = move |ingress: u16, packet: Packet| match (ingress, held.take()) {
        (0, None) => {
            held = Some(packet);
            vec![]
        }
        (0, Some(first)) => [nat(0, first), vec![(1, packet)]].concat(),
        _ => nat(ingress, packet),
    };
    let other = udp(1, ("10.0.0.2", 5), SERVER);
    let ran = follow(handle, vec![udp(0, CLIENT, SERVER), other, udp(2, SERVER, CLIENT)]);
    assert_eq!(ran.entered[2], "1 8.8.8.8:53 > 203.0.113.1:7");
}

fn echo(time_ns: u64, kind: u128, from: &str, to: &str, id: u128) -> Packet {
    let fields = [
        (Field::IpSrc, addr(from)),
        (Field::IpDst, addr(to)),
        (Field::IcmpType, kind),
        (Field::IcmpId, id),
    ];
    build_fresh(Link::Ethernet, time_ns, Shape::Icmp, &fields, b"ping").unwrap()
}

#[test]
fn echo_reply_gets_the_identifier_with_which_the_request_left() {
    let handle = |ingress: u16, mut packet: Packet| {
        if ingress == 0 {
            set(&mut packet, Field::IpSrc, addr(PUBLIC.0));
            set(&mut packet, Field::IcmpId, 77);
        }
        vec![(1 - ingress, packet)]
    };
    let request = echo(0, 8, CLIENT.0, SERVER.0, 1);
    let ran = follow(handle, vec![request, echo(1, 0, SERVER.0, CLIENT.0, 1)]);
    assert_eq!(ran.packets[1], echo(1, 0, SERVER.0, PUBLIC.0, 77));
}

/// A port unreachable error about a packet, sent from an address.
fn unreachable(about: &Packet, from: &str) -> Packet {
    let fields = [(Field::IcmpType, 3), (Field::IcmpCode, 3), (Field::IpSrc, addr(from))];
    build_new(about, Shape::Icmp, true, &fields, NewPayload::Quote(28)).unwrap()
}

#[test]
fn icmp_error_quotes_what_the_request_left_with() {
    let request = udp(0, CLIENT, SERVER);
    for from in ["9.9.9.9", SERVER.0] {
        let ran = follow(nat_of_requests, vec![request.clone(), unreachable(&request, from)]);
        let expected = unreachable(&udp(0, PUBLIC, SERVER), from);
        assert_eq!(ran.packets[1], expected, "{from}");
        assert_eq!(&ran.entered[1][..1], "1");
    }
}

fn nat_of_requests(ingress: u16, packet: Packet) -> Vec<(u16, Packet)> {
    if ingress == 0 { nat(ingress, packet) } else { vec![(0, packet)] }
}

#[test]
fn icmp_error_of_the_request_destination_comes_from_where_the_request_went() {
    let handle = |ingress: u16, mut packet: Packet| {
        if ingress == 0 {
            set(&mut packet, Field::IpDst, addr("8.8.8.9"));
        }
        vec![(1 - ingress, packet)]
    };
    let request = udp(0, CLIENT, SERVER);
    let ran = follow(handle, vec![request.clone(), unreachable(&request, SERVER.0)]);
    assert_eq!(ran.packets[1], unreachable(&udp(0, CLIENT, ("8.8.8.9", 53)), "8.8.8.9"));
}

#[test]
fn icmp_error_about_an_unknown_packet_is_taken_as_captured() {
    let error = unreachable(&udp(0, CLIENT, SERVER), "9.9.9.9");
    let ran = follow(through, vec![error.clone()]);
    assert_eq!(ran.packets, [error]);
}

#[test]
fn ipv6_flows_are_followed() {
    let packet = |src: u128, dst: u128, sport: u128, dport: u128| {
        let fields = [
            (Field::Ip6Src, src),
            (Field::Ip6Dst, dst),
            (Field::TcpSport, sport),
            (Field::TcpDport, dport),
        ];
        build_fresh(Link::RawIp, 0, Shape::Tcp6, &fields, b"").unwrap()
    };
    let mut follow = Follow::default();
    let mut request = packet(1 << 100, 2, 3, 4);
    assert_eq!(follow.reply(&mut request.clone(), &request.parse()), None);
    let layout = request.parse();
    follow.enter(&mut request, &layout, 0);
    set(&mut request, Field::Ip6Src, u128::MAX);
    set(&mut request, Field::TcpSport, 9);
    follow.leave(&mut request, 1);
    assert!(request.tags.is_empty());
    let mut reply = packet(2, 1 << 100, 4, 3);
    let layout = reply.parse();
    assert_eq!(follow.reply(&mut reply, &layout), Some(1));
    assert_eq!(reply, packet(2, u128::MAX, 4, 9));
}

#[test]
fn flows_past_the_limit_are_counted_and_not_followed() {
    let mut follow = Follow::with_limit(1);
    let mut pass = |client: End<'_>| {
        let mut request = udp(0, client, SERVER);
        let layout = request.parse();
        follow.enter(&mut request, &layout, 0);
        set(&mut request, Field::L4Sport, 7);
        follow.leave(&mut request, 1);
        let mut reply = udp(0, SERVER, client);
        let layout = reply.parse();
        (follow.reply(&mut reply, &layout), follow.counters())
    };
    let counters = |flows, rewritten, full| FollowCounters { flows, rewritten, full };
    assert_eq!(pass(("10.0.0.1", 1)), (Some(1), counters(1, 1, 0)));
    assert_eq!(pass(("10.0.0.2", 1)), (None, counters(1, 1, 1)));
    // The remembered flow can still change.
    assert_eq!(pass(("10.0.0.1", 1)), (Some(1), counters(1, 2, 1)));
}

/// A fragment of a UDP packet, by the flags and the offset in the IPv4 header. Its checksum may be
/// wrong.
fn fragment(packet: &Packet, offset: u8, more: bool) -> Packet {
    let mut packet = packet.clone();
    set(&mut packet, Field::IpId, 321);
    let data = packet.data_mut();
    data[14 + 6] = if more { 0x20 } else { 0 };
    data[14 + 7] = offset;
    packet
}

#[test]
fn later_fragments_follow_their_first() {
    let reply = udp(1, SERVER, CLIENT);
    let captured = vec![
        udp(0, CLIENT, SERVER),
        fragment(&reply, 0, true),
        fragment(&reply, 1, false),
        // A fragment of another packet, whose first fragment is not in the capture.
        {
            let mut other = fragment(&reply, 1, false);
            set(&mut other, Field::IpId, 322);
            other
        },
    ];
    let ran = follow(nat_of_requests, captured);
    assert_eq!(
        ran.entered[1..],
        ["1 8.8.8.8:53 > 203.0.113.1:7", "1 8.8.8.8:0 > 203.0.113.1:0", "1 8.8.8.8:0 > 10.0.0.1:0",]
    );
}
