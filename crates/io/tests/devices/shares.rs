//! Several ports that share a device, as workers have them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_io::bpf::Register::{R0, R2, R3, R4, R5, R10};
use braid_io::bpf::{Assembler, Helper, Instruction, Operation, Size};
use braid_io::{Device, OpenError, PacketPort, Port, Share, State, Steer};
use braid_packet::Pool;

use crate::traffic::{datagram, pool, receive, send, until};
use crate::world::spaces;

/// Opens a device by several ports, whose packets the kernel chooses.
fn open(device: &Device, pools: &mut [Pool]) -> Result<Vec<Box<dyn Port>>, OpenError> {
    open_steered(device, pools, None)
}

/// The same, with a program that chooses ports.
fn open_steered(
    device: &Device,
    pools: &mut [Pool],
    program: Option<Vec<Instruction>>,
) -> Result<Vec<Box<dyn Port>>, OpenError> {
    let steer: Steer = Arc::new(|_| unreachable!("the kernel chooses the port"));
    let shares = Share::all(u32::try_from(pools.len()).unwrap(), &steer, program);
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

/// A program whose result is the last byte of the sender's MAC address.
fn by_sender() -> Vec<Instruction> {
    let mut code = Assembler::new();
    code.set(R2, 11);
    code.set(R3, R10);
    code.operate(Operation::Add, R3, -8);
    code.set(R4, 1);
    code.set(R5, 0);
    code.call(Helper::LoadBytesRelative);
    code.load(Size::Byte, R0, R10, -8);
    code.exit();
    code.finish().unwrap()
}

/// Sends frames whose sender is the number of a port, or that number plus the number of ports. Each
/// port gets its own frames.
fn expect_chosen(from: &mut dyn Port, ports: &mut [Box<dyn Port>], pools: &mut [Pool]) {
    let sent: Vec<_> =
        (0..60_u8).map(|at| [&[0; 11], &[at % 6][..], &[8, 0], &[at; 60]].concat()).collect();
    let mut found = vec![Vec::new(); ports.len()];
    assert_eq!(send(&mut pool(), from, &sent), []);
    let end = Instant::now() + Duration::from_secs(10);
    while found.iter().map(Vec::len).sum::<usize>() < sent.len() && Instant::now() < end {
        for ((port, pool), found) in ports.iter_mut().zip(pools.iter_mut()).zip(&mut found) {
            receive(pool, port.as_mut(), found);
        }
    }
    for (number, found) in found.iter().enumerate() {
        let own = sent.iter().filter(|frame| usize::from(frame[11]) % ports.len() == number);
        assert!(found.iter().eq(own), "port {number} of {}: {found:02x?}", ports.len());
    }
}

#[test]
fn program_chooses_among_packet_ports_also_after_the_device_was_down_or_is_made_again() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let mut from = here.within(|| PacketPort::open("va")).unwrap();
    let mut pools = [pool(), pool(), pool()];
    let device = Device::Packet("vb".into());
    // Ports open devices in the namespace of their thread.
    there.within(|| {
        let mut ports = open_steered(&device, &mut pools, Some(by_sender())).unwrap();
        assert!(ports.iter().all(|port| port.facts().unwrap() == "a BPF program steers"));
        expect_chosen(&mut from, &mut ports, &mut pools);
        there.ip("link set vb down");
        there.ip("link set vb up");
        for (port, pool) in ports.iter_mut().zip(&mut pools) {
            until(pool, port.as_mut(), State::Up);
        }
        expect_chosen(&mut from, &mut ports, &mut pools);
        there.ip("link del vb");
        for (port, pool) in ports.iter_mut().zip(&mut pools) {
            until(pool, port.as_mut(), State::Missing);
        }
        here.join("va", &there, "vb");
        let mut from = here.within(|| PacketPort::open("va")).unwrap();
        // The last port tries first, and waits for the others.
        let end = Instant::now() + Duration::from_secs(10);
        while ports.iter_mut().any(|port| port.state() != State::Up) && Instant::now() < end {
            for (port, pool) in ports.iter_mut().zip(&mut pools).rev() {
                receive(pool, port.as_mut(), &mut Vec::new());
            }
        }
        expect_chosen(&mut from, &mut ports, &mut pools);
    });
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
fn one_port_takes_a_tap_device_of_one_queue_or_of_several_and_no_other_device() {
    spaces!(here, there);
    let tap = |name: &str, ports: usize| {
        let mut pools: Vec<_> = (0..ports).map(|_| pool()).collect();
        there.within(|| match ports {
            1 => Device::Tap(name.into()).open(&mut pools[0], Share::default()).map(|_| ()),
            _ => open(&Device::Tap(name.into()), &mut pools).map(|_| ()),
        })
    };
    there.ip("tuntap add t1 mode tap");
    there.ip("tuntap add t2 mode tap multi_queue");
    there.ip("tuntap add tun mode tun");
    there.ip("link add veth type veth peer name peer");
    for name in ["t1", "t2"] {
        assert!(tap(name, 1).is_ok(), "{name}");
    }
    assert!(tap("t2", 2).is_ok());
    let refused = tap("t1", 2);
    assert!(matches!(refused, Err(OpenError::OneQueue)), "{refused:?}");
    for name in ["tun", "veth"] {
        for ports in [1, 2] {
            let refused = tap(name, ports);
            assert!(matches!(refused, Err(OpenError::NotTap)), "{name}: {refused:?}");
        }
    }
    drop(here);
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
