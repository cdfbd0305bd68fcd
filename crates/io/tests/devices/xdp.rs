//! AF_XDP sockets.

use std::time::{Duration, Instant};

use braid_io::{Device, OpenError, PacketPort, Port, Share, State, Unsent, XdpMode, XdpPort};
use braid_packet::Pool;
use braid_packet::frame::FRAME;

use crate::traffic::{carry, datagram, flood, frames, hosts_talk, pool, receive, send, until};
use crate::world::spaces;

#[test]
fn xdp_ports_carry_every_frame_both_ways() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    let mut b = there.within(|| XdpPort::open("vb", &mut pool, &Share::default())).unwrap();
    let facts = a.xdp_facts();
    assert!(facts.mode == XdpMode::Native && !facts.is_zero_copy, "{facts:?}");
    // More frames than the rings have entries.
    let frames = frames(6000, 1514);
    carry(&mut pool, &mut a, &mut b, &frames);
    carry(&mut pool, &mut b, &mut a, &frames);
}

#[test]
fn frames_beyond_a_full_ring_are_counted() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    let mut b = there.within(|| XdpPort::open("vb", &mut pool, &Share::default())).unwrap();
    flood(&mut pool, &mut a, &mut b);
}

#[test]
fn frames_that_a_device_without_carrier_drops_are_counted_and_do_not_come_later() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    for round in 1..4 {
        there.ip("link set vb down");
        until(&mut pool, &mut a, State::Down);
        // More than the kernel sends by one call.
        for burst in frames(200, 500).chunks(50 + round) {
            let lost = send(&mut pool, &mut a, burst);
            assert!(lost.iter().all(|(_, why)| *why == Unsent::Refused), "{lost:?}");
            assert_eq!(lost.len(), burst.len());
        }
        there.ip("link set vb up");
        until(&mut pool, &mut a, State::Up);
        let mut b = there.within(|| PacketPort::open("vb")).unwrap();
        carry(&mut pool, &mut a, &mut b, &frames(300, 1514));
    }
}

#[test]
fn hosts_talk_over_xdp_ports() {
    spaces!(client, braid, server);
    hosts_talk(&client, &braid, &server, pool(), |device, pool| {
        XdpPort::open(device, pool, &Share::default()).unwrap()
    });
}

#[test]
fn device_without_xdp_in_its_driver_is_used_in_generic_mode() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    there.ip("link add bridge type bridge mcast_snooping 0");
    there.ip("link set vb master bridge");
    there.ip("link set bridge up");
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    let mut b = there.within(|| XdpPort::open("bridge", &mut pool, &Share::default())).unwrap();
    assert_eq!((b.xdp_facts().mode, b.xdp_facts().queues), (XdpMode::Generic, 1));
    let mut frames = frames(500, 1514);
    carry(&mut pool, &mut b, &mut a, &frames);
    // The kernel removes VLAN tags before its generic XDP, which cannot tell them.
    frames.retain(|frame| frame[12..14] != [0x81, 0]);
    carry(&mut pool, &mut a, &mut b, &frames);
}

#[test]
fn device_with_long_frames_is_refused() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    here.ip("link set va mtu 9000");
    let opened = here.within(|| XdpPort::open("va", &mut pool, &Share::default()).map(|_| ()));
    assert!(matches!(opened, Err(OpenError::Mtu(9000))), "{opened:?}");
}

#[test]
fn second_program_on_a_device_is_refused_until_the_first_one_ends() {
    spaces!(here, there);
    let mut pool = pool();
    here.join("va", &there, "vb");
    let first = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    let second = here.within(|| XdpPort::open("va", &mut pool, &Share::default()).map(|_| ()));
    assert!(matches!(second, Err(OpenError::Busy)), "{second:?}");
    drop(first);
    // As users open it, which waits until the kernel has given the device free.
    let device = Device::Xdp("va".to_owned());
    for _ in 0..10 {
        drop(here.within(|| device.open(&mut pool, Share::default())).unwrap());
    }
}

#[test]
fn frames_go_from_port_to_port_without_a_copy() {
    spaces!(here, middle, there);
    middle.join("va", &here, "ea");
    middle.join("vb", &there, "eb");
    let mut pool = pool();
    let mut from = here.within(|| XdpPort::open("ea", &mut pool, &Share::default())).unwrap();
    let [mut a, mut b] = ["va", "vb"]
        .map(|name| middle.within(|| XdpPort::open(name, &mut pool, &Share::default())).unwrap());
    let mut to = there.within(|| XdpPort::open("eb", &mut pool, &Share::default())).unwrap();
    let sent = frames(64, 1514);
    assert_eq!(send(&mut pool, &mut from, &sent), []);
    let (mut frames, mut found) = (Vec::new(), Vec::new());
    while frames.len() < sent.len() {
        a.receive(&mut pool, &mut frames, &mut |why| panic!("{why:?}")).unwrap();
    }
    assert!(frames.iter().all(|frame| pool.index(frame).is_some()));
    b.send(&mut pool, &mut frames, &mut |_, why| panic!("{why:?}"));
    while found.len() < sent.len() {
        receive(&mut pool, &mut to, &mut found);
    }
    assert_eq!(found, sent);
}

#[test]
fn all_frames_are_in_the_pool_again_when_a_port_ends() {
    spaces!(here, there);
    let mut pool = Pool::new(8192, FRAME).unwrap();
    here.join("va", &there, "vb");
    let mut a = here.within(|| XdpPort::open("va", &mut pool, &Share::default())).unwrap();
    assert_eq!(send(&mut pool, &mut a, &frames(64, 1514)), []);
    drop(a);
    let all: Vec<_> = (0..8192).map(|_| pool.take().unwrap()).collect();
    assert!(pool.take().is_none());
    drop(all);
}

#[test]
fn port_reads_all_queues_of_a_device() {
    spaces!(here, there);
    here.join_queues("va", &there, "vb", 2);
    let mut pool = pool();
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut b = there.within(|| XdpPort::open("vb", &mut pool, &Share::default())).unwrap();
    assert_eq!(b.xdp_facts().queues, 2);
    // Each queue gets some of many flows.
    let sent: Vec<_> = (0..200).map(datagram).collect();
    for burst in sent.chunks(64) {
        assert_eq!(send(&mut pool, &mut a, burst), []);
    }
    let mut found = Vec::new();
    let end = Instant::now() + Duration::from_secs(10);
    while found.len() < sent.len() && Instant::now() < end {
        receive(&mut pool, &mut b, &mut found);
    }
    found.sort();
    assert!(found == sent);
}
