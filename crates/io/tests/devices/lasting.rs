//! Devices that fail and come back.

use braid_io::{Device, PacketPort, Port, Share, State, Unsent};
use braid_packet::Pool;

use crate::traffic::{carry, frames, pool, send, until};
use crate::world::spaces;

/// Sends two frames, and expects that neither is sent. A burst may be refused from its end.
fn are_refused(pool: &mut Pool, port: &mut dyn Port, frames: &[Vec<u8>]) -> bool {
    let mut lost = send(pool, port, &frames[..2]);
    lost.sort();
    lost == [(0, Unsent::Refused), (1, Unsent::Refused)]
}

#[test]
fn packet_port_survives_a_link_that_goes_down_and_a_device_that_is_made_again() {
    survives(&Device::Packet("va".into()));
}

#[test]
fn xdp_port_survives_a_link_that_goes_down_and_a_device_that_is_made_again() {
    survives(&Device::Xdp("va".into()));
}

fn survives(device: &Device) {
    spaces!(here, there);
    let mut pool = pool();
    let frames = frames(200, 1514);
    // The interface opens devices in the namespace of its thread.
    there.join("vb", &here, "va");
    here.within(|| {
        let mut a = device.open(&mut pool, Share::default()).unwrap();
        let mut b = there.within(|| PacketPort::open("vb")).unwrap();
        carry(&mut pool, &mut *a, &mut b, &frames);
        // The kernel may report a new carrier late.
        until(&mut pool, &mut *a, State::Up);

        here.ip("link set va down");
        assert!(are_refused(&mut pool, &mut *a, &frames));
        until(&mut pool, &mut *a, State::Down);
        here.ip("link set va up");
        until(&mut pool, &mut *a, State::Up);
        carry(&mut pool, &mut *a, &mut b, &frames);
        carry(&mut pool, &mut b, &mut *a, &frames);
        assert_eq!(a.notes(), ["the link went down 1 time"]);

        here.ip("link del va");
        assert!(are_refused(&mut pool, &mut *a, &frames));
        until(&mut pool, &mut *a, State::Missing);
        assert!(are_refused(&mut pool, &mut *a, &frames));
        there.join("vb", &here, "va");
        until(&mut pool, &mut *a, State::Up);
        let mut b = there.within(|| PacketPort::open("vb")).unwrap();
        carry(&mut pool, &mut *a, &mut b, &frames);
        carry(&mut pool, &mut b, &mut *a, &frames);
        let notes = a.notes();
        for note in ["the device was removed 1 time", "the device was opened again 1 time"] {
            assert!(notes.iter().any(|found| found == note), "{notes:?}");
        }
    });
}

#[test]
fn tap_that_is_removed_is_made_again() {
    spaces!(here, there);
    let mut pool = pool();
    let frames = frames(200, 1514);
    there.within(|| {
        let mut tap = Device::Tap("t0".into()).open(&mut pool, Share::default()).unwrap();
        there.ip("link del t0");
        until(&mut pool, &mut *tap, State::Up);
        let notes = tap.notes();
        assert!(notes.contains(&"the device was opened again 1 time".to_owned()), "{notes:?}");
        there.ip("link set t0 up");
        let mut other = PacketPort::open("t0").unwrap();
        carry(&mut pool, &mut *tap, &mut other, &frames);
        carry(&mut pool, &mut other, &mut *tap, &frames);
    });
    drop(here);
}
