//! Facts about devices.

use std::net::IpAddr;

use braid_io::{
    Ethernet, OpenError, PacketPort, Port, Share, State, TapPort, XdpPort, XdpSupport,
    device_facts, has_xdp,
};

use crate::traffic::pool;
use crate::world::spaces;

#[test]
fn facts_of_a_veth_device_are_known() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    there.ip("link set vb mtu 1400");
    there.ip("link set vb down");
    let facts = there.within(|| device_facts("vb")).unwrap();
    assert_eq!((facts.state, facts.mtu, facts.is_ethernet), (State::Down, 1400, true));
    assert_eq!(facts.driver.as_deref(), Some("veth"));
    assert!(facts.queues >= 1);
    assert_eq!(facts.joins_received, Some(false));
    assert!(facts.addresses.is_empty() && !facts.has_xdp_program);
    there.ip("addr add 10.0.0.7/24 dev vb");
    there.ip("addr add 10.0.0.9/24 dev lo");
    there.ip("link set vb up");
    let port = there.within(|| XdpPort::open("vb", &mut pool(), &Share::default())).unwrap();
    let busy = there.within(|| device_facts("vb")).unwrap();
    assert_eq!(busy.addresses, [IpAddr::from([10, 0, 0, 7])]);
    assert!(busy.has_xdp_program);
    drop(port);
    // Kernels before 6.3 do not tell.
    let support = XdpSupport { native: true, zero_copy: false };
    assert!(facts.xdp.is_none_or(|found| found == support), "{facts:?}");
    assert_eq!(has_xdp(), Some(true));
    let missing = there.within(|| device_facts("va"));
    assert!(matches!(missing, Err(OpenError::NoDevice)), "{missing:?}");
}

#[test]
fn ports_tell_the_mac_address_and_the_mtu_of_their_devices() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mac = [2, 0, 0, 0, 0, 0x10];
    here.ip("link set va address 02:00:00:00:00:10");
    here.ip("link set va mtu 1400");
    let found = here.within(|| {
        let xdp = XdpPort::open("va", &mut pool(), &Share::default()).unwrap().ethernet();
        (xdp, PacketPort::open("va").unwrap().ethernet())
    });
    let expected = Some(Ethernet { mac, mtu: 1400 });
    assert_eq!(found, (expected, expected));
    // The address of a TAP device is that of the machine's end. Braid's end has another one.
    let tap = here.within(|| TapPort::open("t0").unwrap());
    here.ip("link set t0 address 02:00:00:00:00:20");
    let told = here.within(|| tap.ethernet());
    assert_eq!(told, Some(Ethernet { mac: [2, 0, 0, 0, 0, 0x21], mtu: 1500 }));
}
