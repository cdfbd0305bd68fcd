//! Packet sockets with rings.

use std::time::{Duration, Instant};

use braid_io::{Fanout, PacketOptions, PacketPort, Steering, by_word};
use braid_packet::Pool;

use crate::traffic::{carry, flood, frames, hosts_talk, pool, receive, send};
use crate::world::{Space, spaces};

#[test]
fn packet_ports_carry_every_frame_both_ways() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    let mut pool = pool();
    // More frames than the ring has slots.
    let frames = frames(6000, 1514);
    carry(&mut pool, &mut a, &mut b, &frames);
    carry(&mut pool, &mut b, &mut a, &frames);
}

#[test]
fn frames_beyond_a_full_ring_are_counted() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    flood(&mut pool(), &mut a, &mut b);
}

#[test]
fn frames_longer_than_a_slot_arrive_in_order() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    // The slots of `b` were made for the smaller MTU.
    here.ip("link set va mtu 9000");
    there.ip("link set vb mtu 9000");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut pool = pool();
    carry(&mut pool, &mut a, &mut b, &frames(2000, 9014));
    carry(&mut pool, &mut b, &mut a, &frames(500, 9014));
}

#[test]
fn hosts_talk_over_packet_ports() {
    spaces!(client, braid, server);
    hosts_talk(&client, &braid, &server, |device, _| PacketPort::open(device).unwrap());
}

/// Two sockets of a device in one group.
fn group(space: &Space, steering: &Steering) -> [PacketPort; 2] {
    let open = |options: &PacketOptions| space.within(|| PacketPort::open_with("vb", options));
    let options = |group| PacketOptions {
        fanout: Some(Fanout { group, steering: steering.clone() }),
        ..PacketOptions::default()
    };
    let first = open(&options(None)).unwrap();
    assert!(first.group().is_some());
    let second = open(&options(first.group())).unwrap();
    [first, second]
}

/// The frames that each of two ports has received, until there are `count`.
fn received(pool: &mut Pool, ports: &mut [PacketPort; 2], count: usize) -> [Vec<Vec<u8>>; 2] {
    let (mut found, end) = ([Vec::new(), Vec::new()], Instant::now() + Duration::from_secs(10));
    while found.iter().map(Vec::len).sum::<usize>() < count && Instant::now() < end {
        for (port, found) in ports.iter_mut().zip(&mut found) {
            while receive(pool, port, found) > 0 {}
        }
    }
    found
}

#[test]
fn sockets_of_a_group_share_frames_by_a_program() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    // The number of a frame is the first word behind the link header: odd ones go to the second
    // socket.
    let mut ports = group(&there, &Steering::Program(by_word(0, 1).into()));
    let frames: Vec<_> =
        frames(4000, 600).into_iter().enumerate().filter(|(n, _)| n % 4 != 0).collect();
    let mut pool = pool();
    for (_, frame) in &frames {
        assert_eq!(send(&mut pool, &mut a, std::slice::from_ref(frame)), []);
    }
    let found = received(&mut pool, &mut ports, frames.len());
    for (socket, found) in found.into_iter().enumerate() {
        let expected = frames.iter().filter(|(number, _)| number % 2 == socket);
        assert!(found.iter().eq(expected.map(|(_, frame)| frame)), "socket {socket}");
    }
}

#[test]
fn hash_keeps_both_directions_of_a_flow_on_one_socket() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut ports = group(&there, &Steering::Hash);
    let mut pool = pool();
    for flow in 0..100_u8 {
        for back in [false, true] {
            assert_eq!(send(&mut pool, &mut a, &[datagram(flow, back)]), []);
        }
    }
    let found = received(&mut pool, &mut ports, 200);
    for (socket, found) in found.iter().enumerate() {
        let flows = |back| found.iter().filter(move |f| f[14] == 0x45 && (f[29] == 1) == back);
        let there: Vec<_> = flows(false).map(|frame| frame[35]).collect();
        let back: Vec<_> = flows(true).map(|frame| frame[37]).collect();
        assert_eq!(there, back);
        assert!(there.len() > 10, "socket {socket} has {} flows of 100", there.len());
    }
}

/// A datagram from 10.0.0.1 with the flow's port to 10.0.0.2, or back.
fn datagram(flow: u8, back: bool) -> Vec<u8> {
    let (from, to) = if back { ([2, 53], [1, flow]) } else { ([1, flow], [2, 53]) };
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, from[0], 10, 0, 0, to[0]]);
    frame.extend([0, from[1], 0, to[1], 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}
