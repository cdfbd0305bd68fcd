//! AF_XDP sockets.

use braid_io::{Interface, OpenError, XdpMode, XdpOptions, XdpPort};

use crate::traffic::{carry, frames, hosts_talk};
use crate::world::spaces;

#[test]
fn xdp_ports_carry_every_frame_both_ways() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut a = here.within(|| XdpPort::open("va")).unwrap();
    let mut b = there.within(|| XdpPort::open("vb")).unwrap();
    let facts = a.facts();
    assert!(facts.mode == XdpMode::Native && !facts.is_zero_copy, "{facts:?}");
    // More frames than the rings have entries.
    let frames = frames(6000, 1514);
    carry(&mut a, &mut b, &frames);
    carry(&mut b, &mut a, &frames);
}

#[test]
fn hosts_talk_over_xdp_ports() {
    spaces!(client, braid, server);
    hosts_talk(&client, &braid, &server, |device| XdpPort::open(device).unwrap());
}

#[test]
fn device_without_xdp_in_its_driver_is_used_in_generic_mode() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    there.ip("link add bridge type bridge");
    there.ip("link set vb master bridge");
    there.ip("link set bridge up");
    let mut a = here.within(|| XdpPort::open("va")).unwrap();
    let mut b = there.within(|| XdpPort::open("bridge")).unwrap();
    assert_eq!((b.facts().mode, b.facts().queues), (XdpMode::Generic, 1));
    let mut frames = frames(500, 1514);
    carry(&mut b, &mut a, &frames);
    // The kernel removes VLAN tags before its generic XDP, which cannot tell them.
    frames.retain(|frame| frame[12..14] != [0x81, 0]);
    carry(&mut a, &mut b, &frames);
}

#[test]
fn busy_polling_carries_frames() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let options = XdpOptions { busy_poll_us: Some(20) };
    let mut a = here.within(|| XdpPort::open_with("va", &options)).unwrap();
    let mut b = there.within(|| XdpPort::open_with("vb", &options)).unwrap();
    assert!(a.facts().polls_busily);
    carry(&mut a, &mut b, &frames(500, 1514));
}

#[test]
fn device_with_long_frames_is_refused() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    here.ip("link set va mtu 9000");
    let opened = here.within(|| XdpPort::open("va").map(|_| ()));
    assert!(matches!(opened, Err(OpenError::Mtu(9000))), "{opened:?}");
}

#[test]
fn second_program_on_a_device_is_refused_until_the_first_one_ends() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let first = here.within(|| XdpPort::open("va")).unwrap();
    let second = here.within(|| XdpPort::open("va").map(|_| ()));
    assert!(matches!(second, Err(OpenError::Busy)), "{second:?}");
    drop(first);
    here.within(|| XdpPort::open("va")).unwrap().overrun();
}
