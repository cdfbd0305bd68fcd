//! Packet sockets with rings.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use braid_io::{PacketPort, Unsent};

use crate::traffic::{carry, flood, frames, hosts_talk, pool, segments, send};
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

/// How many frames a device has sent.
fn sent(space: &Space, device: &str) -> u64 {
    let words = ["-s", "-json", "link", "show", device];
    let done = space.within(|| Command::new("ip").args(words).output().unwrap());
    let text = String::from_utf8(done.stdout).unwrap();
    let (_, side) = text.split_once("\"tx\":").unwrap();
    let (_, number) = side.split_once("\"packets\":").unwrap();
    number.split(',').next().unwrap().trim().parse().unwrap()
}

#[test]
fn segments_leave_together_and_arrive_as_they_were() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| PacketPort::open("va")).unwrap();
    let mut b = there.within(|| PacketPort::open("vb")).unwrap();
    let mut pool = pool();
    // 64 segments are more than IP's field for the length can tell.
    let before = sent(&here, "va");
    carry(&mut pool, &mut a, &mut b, &segments(64));
    assert_eq!(sent(&here, "va") - before, 2);
    // The kernel separates them where the device does not take them together.
    here.ip("link set va gso_max_size 4000");
    carry(&mut pool, &mut a, &mut b, &segments(32));
    assert_eq!(sent(&here, "va") - before, 2 + 32);
    // Each is longer than the device permits now.
    here.ip("link set va mtu 1400");
    // The port asks for the MTU a hundred times a second.
    sleep(Duration::from_millis(20));
    let lost = send(&mut pool, &mut a, &segments(3)[..2]);
    assert_eq!(lost, [(0, Unsent::TooLong), (1, Unsent::TooLong)]);
}

#[test]
fn hosts_talk_over_packet_ports() {
    spaces!(client, braid, server);
    hosts_talk(&client, &braid, &server, pool(), |device, _| PacketPort::open(device).unwrap());
}
