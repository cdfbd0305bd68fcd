//! Tests of hosts without devices: frames in, time, frames out.

mod answers;
mod hostile;
mod mld;
mod neighbours;
mod too_long;
mod unreachable;

use super::messages::{self, Host, Mac};
use super::*;
use braid_ir::chain::{Interface, Malformed, OwnAddress};
use braid_packet::build::{Shape, build_fresh};
use braid_packet::{Field, Link as LinkType};
use std::net::IpAddr;
use std::sync::Arc;

const OWN: Mac = [2, 0, 0, 0, 0, 1];
const PEER: Mac = [2, 0, 0, 0, 0, 0x99];
const OTHER: Mac = [2, 0, 0, 0, 0, 0x77];
const SECOND: u64 = 1_000_000_000;
/// The time at which tests begin.
const BEGIN: u64 = 1_000 * SECOND;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn own(text: &str) -> OwnAddress {
    let (address, prefix_len) = text.split_once('/').unwrap();
    OwnAddress { address: ip(address), prefix_len: prefix_len.parse().unwrap() }
}

/// A chain with a function that owns an address, and these interfaces.
fn chain(interfaces: Vec<Interface>) -> Chain {
    let model =
        "model nat { param public: ip4 row \"body\" row \"fault\" packet { b0: consume at row0 } }";
    let model = Arc::new(braid_ir::text::parse(model).unwrap());
    let public = ParamValue::Scalar(0xcb00_7107);
    Chain {
        name: "test".into(),
        interfaces,
        nodes: vec![Node { name: "nat".into(), model, params: vec![public] }],
        links: Vec::new(),
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 0,
        workers: 1,
        steering: braid_ir::steering::Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}

fn wan() -> Interface {
    Interface {
        name: "wan".into(),
        addresses: vec![own("203.0.113.1/24"), own("2001:db8::1/64")],
        gateways: vec![ip("203.0.113.254"), ip("fe80::fe")],
        ..Interface::default()
    }
}

/// A host with one interface, a time, and the host's output.
struct World {
    hosts: Hosts,
    now_ns: u64,
}

impl World {
    /// An interface that has started, and has sent its first messages.
    fn new(interface: Interface) -> Self {
        let mut world = Self { hosts: Hosts::new(&chain(vec![interface])).unwrap(), now_ns: BEGIN };
        world.hosts.advance(BEGIN);
        world.hosts.device(0, Some(Ethernet { mac: OWN, mtu: 1500 }), true);
        world.pass(5 * SECOND);
        world
    }

    /// Advances the time. Returns the frames that the interface sent.
    fn pass(&mut self, ns: u64) -> Vec<Packet> {
        let end = self.now_ns + ns;
        while self.now_ns < end {
            self.now_ns = end.min(self.now_ns + TICK_NS);
            self.hosts.advance(self.now_ns);
        }
        self.said()
    }

    fn said(&mut self) -> Vec<Packet> {
        let own = self.hosts.out().own.drain(..);
        own.map(|(interface, frame)| {
            assert_eq!(interface, 0);
            Packet::in_frame(LinkType::Ethernet, 0, frame, 0)
        })
        .collect()
    }

    /// Gives the interface a frame. Returns whether it enters the chain.
    fn hear(&mut self, frame: Frame) -> bool {
        let mut frames = vec![frame];
        self.hosts.receive(0, &mut frames);
        !frames.is_empty()
    }

    /// The frames that the interface sends at once when it gets a frame for itself.
    fn answers(&mut self, frame: Frame) -> Vec<Packet> {
        assert!(!self.hear(frame), "the frame is for the interface");
        self.said()
    }

    fn leave(&mut self, mut packet: Packet) -> (Leaving, Packet) {
        (self.hosts.leave(0, &mut packet), packet)
    }

    /// Sends a UDP packet out of the chain. Returns its MAC addresses if it is sent at once.
    fn send(&mut self, to: &str) -> Result<(Mac, Mac), Leaving> {
        match self.leave(udp("198.51.100.1", to, 10)) {
            (Leaving::Sends, packet) => Ok(macs(&packet)),
            (leaving, _) => Err(leaving),
        }
    }

    fn waited(&mut self) -> Vec<Packet> {
        self.hosts.out().waited.drain(..).map(|(_, packet)| packet).collect()
    }

    fn lost(&mut self) -> Vec<&'static str> {
        self.hosts.out().lost.drain(..).map(|(_, why)| why).collect()
    }

    fn count(&self, name: &str) -> u64 {
        let status = self.hosts.status(0).unwrap();
        status.pointer(&format!("/{name}")).unwrap().as_u64().unwrap()
    }
}

fn macs(packet: &Packet) -> (Mac, Mac) {
    let bytes = packet.data().first_chunk::<12>().unwrap();
    (bytes[..6].try_into().unwrap(), bytes[6..].try_into().unwrap())
}

fn get(packet: &Packet, field: Field) -> u128 {
    packet.get(&packet.parse(), field).unwrap_or_else(|| panic!("no {field:?}: {packet:?}"))
}

fn word(address: &str) -> u128 {
    match ip(address) {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A UDP packet with this much payload.
fn udp(from: &str, to: &str, payload: usize) -> Packet {
    let (shape, src, dst) = match ip(to) {
        IpAddr::V4(_) => (Shape::Udp4, Field::IpSrc, Field::IpDst),
        IpAddr::V6(_) => (Shape::Udp6, Field::Ip6Src, Field::Ip6Dst),
    };
    let from =
        if ip(from).is_ipv6() == ip(to).is_ipv6() { word(from) } else { word("2001:db8:1::1") };
    let fields = [(src, from), (dst, word(to)), (Field::UdpSport, 7), (Field::UdpDport, 9)];
    let payload: Vec<u8> = (0..payload).map(|at| (at % 251) as u8).collect();
    build_fresh(LinkType::Ethernet, 0, shape, &fields, &payload).unwrap()
}

/// A neighbour's question.
fn asks(from: &str, wanted: &str) -> Frame {
    messages::question(PEER, Some(ip(from)), ip(wanted), None)
}

/// A neighbour's answer to the interface.
fn answer(address: &str, mac: Mac) -> Frame {
    let to = if ip(address).is_ipv6() { "2001:db8::1" } else { "203.0.113.1" };
    messages::statement(Host { mac, address: ip(address) }, Some((OWN, Some(ip(to)))))
}

/// A neighbour's announcement to all hosts.
fn tells(address: &str, mac: Mac) -> Frame {
    messages::statement(Host { mac, address: ip(address) }, None)
}
