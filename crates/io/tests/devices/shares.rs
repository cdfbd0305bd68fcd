//! Several ports that share a device, as workers have them.

use std::time::{Duration, Instant};

use braid_io::{Device, OpenError, PacketPort, Port, Share};
use braid_packet::Pool;

use crate::traffic::{datagram, pool, receive, send};
use crate::world::spaces;

/// Opens a device by several ports.
fn open(device: &Device, pools: &mut [Pool]) -> Result<Vec<Box<dyn Port>>, OpenError> {
    let shares = Share::all(u32::try_from(pools.len()).unwrap());
    pools.iter_mut().zip(shares).map(|(pool, share)| device.open(pool, share)).collect()
}

/// Sends 200 flows to two ports of a device. Each port gets some of them, all of the flow, and no
/// frame is lost or comes twice.
fn expect_shared(from: &mut dyn Port, ports: &mut [Box<dyn Port>], pools: &mut [Pool]) {
    let sent: Vec<_> = (0..600).map(|number| datagram((number % 200) as u8)).collect();
    let mut pool = pool();
    for burst in sent.chunks(64) {
        assert_eq!(send(&mut pool, from, burst), []);
    }
    let (mut found, end) = ([Vec::new(), Vec::new()], Instant::now() + Duration::from_secs(10));
    while found.iter().map(Vec::len).sum::<usize>() < sent.len() && Instant::now() < end {
        for ((port, pool), found) in ports.iter_mut().zip(pools.iter_mut()).zip(&mut found) {
            receive(pool, port.as_mut(), found);
        }
    }
    for found in &found {
        assert!(found.len() > 60, "{}", found.len());
        let mut counts = std::collections::BTreeMap::new();
        found.iter().for_each(|frame| *counts.entry(frame).or_insert(0) += 1);
        assert!(counts.values().all(|count| *count == 3), "{counts:?}");
    }
    assert_eq!(found.iter().map(Vec::len).sum::<usize>(), sent.len());
}

#[test]
fn packet_ports_share_the_flows_of_a_device() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut from = here.within(|| PacketPort::open("va")).unwrap();
    let mut pools = [pool(), pool()];
    let device = Device::Packet("vb".into());
    let mut ports = there.within(|| open(&device, &mut pools)).unwrap();
    expect_shared(&mut from, &mut ports, &mut pools);
}

#[test]
fn xdp_ports_share_the_queues_of_a_device() {
    spaces!(here, there);
    here.join_queues("va", &there, "vb", 2);
    let mut from = here.within(|| PacketPort::open("va")).unwrap();
    let mut pools = [pool(), pool()];
    let device = Device::Xdp("vb".into());
    let mut ports = there.within(|| open(&device, &mut pools)).unwrap();
    expect_shared(&mut from, &mut ports, &mut pools);
    drop(ports);
    let mut pools = [pool(), pool(), pool()];
    let refused = there.within(|| open(&device, &mut pools).map(|_| ()));
    assert!(matches!(refused, Err(OpenError::Queues { queues: 2, ports: 3 })), "{refused:?}");
}

#[test]
fn tap_ports_share_the_flows_of_a_device() {
    spaces!(here, there);
    let mut pools = [pool(), pool()];
    there.within(|| {
        let mut ports = open(&Device::Tap("t0".into()), &mut pools).unwrap();
        there.ip("link set t0 up");
        let mut from = PacketPort::open("t0").unwrap();
        expect_shared(&mut from, &mut ports, &mut pools);
    });
    drop(here);
}
