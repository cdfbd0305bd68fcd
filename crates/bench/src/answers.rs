//! Packets with which servers answer the packets that left a chain. A chain may translate addresses
//! and ports, so `reference` tells what the servers see.

use std::collections::HashMap;
use std::hash::Hash;

use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, Outputs};
use braid_packet::{Field, Header, Packet, checksum};
use braid_reference::Reference;

use crate::frames::Headers;

/// What left the chain of each flow, as the headers of an answer.
pub struct Answers<Flow> {
    reference: Reference,
    known: HashMap<Flow, Headers>,
}

impl<Flow: Hash + Eq> Answers<Flow> {
    /// Nothing has left the chain yet.
    ///
    /// # Errors
    /// Returns an error when `reference` refuses the chain.
    pub fn new(chain: &Chain) -> Result<Self, String> {
        Ok(Self { reference: Reference::new(chain.clone())?, known: HashMap::new() })
    }

    /// The headers of an answer to a flow. `None` if nothing of the flow has left the chain.
    pub fn to(&self, flow: &Flow) -> Option<&Headers> {
        self.known.get(flow)
    }

    /// Records a packet of a flow that enters the chain. If a client sent it, its output can be
    /// answered.
    pub fn pass(&mut self, flow: Flow, back: bool, packet: Packet) {
        let ingress = packet.ingress;
        let mut left = Left { ingress, packet: None };
        self.reference.packet(ingress, packet, &mut left);
        if !back && let Some(answer) = left.packet.as_ref().and_then(answer) {
            self.known.insert(flow, answer);
        }
    }

    /// A flow has ended.
    pub fn end(&mut self, flow: &Flow) {
        self.known.remove(flow);
    }
}

/// The headers of an answer to a packet.
fn answer(packet: &Packet) -> Option<Headers> {
    let layout = packet.parse();
    let field = |field| packet.get(&layout, field);
    let port = |port| field(port).and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
    Some(Headers {
        src: u32::try_from(field(Field::IpDst)?).ok()?,
        dst: u32::try_from(field(Field::IpSrc)?).ok()?,
        proto: u8::try_from(field(Field::IpProto)?).ok()?,
        sport: port(Field::L4Dport),
        dport: port(Field::L4Sport),
        flags: 0,
        numbers: (1, 1),
        icmp: (0, 0),
    })
}

/// Gives a captured packet the addresses and ports of an answer. It stays unchanged if its
/// checksums are wrong.
pub fn readdress(packet: &mut Packet, answer: &Headers) {
    let layout = packet.parse();
    if !layout.has(Header::Ip4) || !checksum::verify(packet, &layout).all_right() {
        return;
    }
    for (field, value) in [
        (Field::IpSrc, u128::from(answer.src)),
        (Field::IpDst, u128::from(answer.dst)),
        (Field::L4Sport, u128::from(answer.sport)),
        (Field::L4Dport, u128::from(answer.dport)),
    ] {
        packet.set(&layout, field, value);
    }
    checksum::fill(packet);
}

/// The packet that leaves by another interface than the one where a packet has entered.
struct Left {
    ingress: u16,
    packet: Option<Packet>,
}

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        if interface != self.ingress {
            self.packet = Some(packet);
        }
    }

    fn event(&mut self, _: Event) {}
}
