//! Helpers for the tests of the reference engine: models from text, chains in a line, packets.
#![allow(dead_code, reason = "each test program uses a part")]

use braid_ir::chain::{Chain, Control, Interface, Malformed, Node, Sink, Source};
use braid_ir::engine::{Counters, Engine, Event, EventValue, Outputs, StateEntry};
use braid_ir::model::{LEFT, Model, ParamId, RIGHT};
use braid_ir::steering::Steering;
use braid_ir::text;
use braid_ir::value::ParamValue;
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use braid_reference::Reference;
use std::sync::Arc;

/// One second in nanoseconds.
pub const S: u64 = 1_000_000_000;
/// One millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// The interface on the left of a line.
pub const LAN: u16 = 0;
/// The interface on the right of a line.
pub const WAN: u16 = 1;

/// A model from declarations and the blocks of its packet program. Row 0 is `body`, row 1 is `1`,
/// row 2 is `fault`.
pub fn nf(declarations: &str, blocks: &str) -> Arc<Model> {
    nf_with(declarations, blocks, "")
}

/// As `nf`, with further programs.
pub fn nf_with(declarations: &str, blocks: &str, programs: &str) -> Arc<Model> {
    let text = format!(
        "model test {{ {declarations} row \"body\" row \"1\" row \"fault\" \
         packet {{ {blocks} }} {programs} }}"
    );
    let model = text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if let Err(errors) = braid_ir::verify::verify(&model) {
        panic!("{errors:?}");
    }
    Arc::new(model)
}

/// A function that passes all packets.
pub fn wire() -> Arc<Model> {
    nf("", "b0: output onward at row0")
}

/// Writes these fields of UDP packets over IPv4, then ends with `end`.
pub fn writes(fields: &[(&str, u128)], end: &str) -> Arc<Model> {
    let mut ops = String::new();
    for (number, (name, value)) in fields.iter().enumerate() {
        let width = Field::by_name(name).unwrap().info().width;
        let v = number + 2;
        ops.push_str(&format!("v{v}:u{width} = const {value}\n store {name}, v{v}\n"));
    }
    nf(
        "reason \"no\"",
        &format!(
            "b0: v0:bool = has udp
                 branch v0, b1, b3
             b1: v1:bool = has ip
                 branch v1, b2, b3
             b2: count row1
                 {ops} jump b3
             b3: {end}"
        ),
    )
}

/// Passes a packet on.
pub const ON: &str = "output onward at row0";

/// A chain of functions in a line between LAN and WAN, linked both ways.
pub fn line(nodes: Vec<(Arc<Model>, Vec<ParamValue>)>) -> Chain {
    let count = u16::try_from(nodes.len()).unwrap();
    let mut links = Vec::new();
    let right_end = |node: u16| {
        if node == count { Sink::Interface(WAN) } else { Sink::Port(node, LEFT) }
    };
    links.push((Source::Interface(LAN), right_end(0)));
    for node in 0..count {
        links.push((Source::Port(node, RIGHT), right_end(node + 1)));
        let left = if node == 0 { Sink::Interface(LAN) } else { Sink::Port(node - 1, RIGHT) };
        links.push((Source::Port(node, LEFT), left));
    }
    let last = if count == 0 { Sink::Interface(LAN) } else { Sink::Port(count - 1, RIGHT) };
    links.push((Source::Interface(WAN), last));
    let interface = |name: &str| Interface { name: name.to_owned(), ..Interface::default() };
    let named = |(place, (model, params))| Node { name: format!("f{place}"), model, params };
    Chain {
        name: "test".to_owned(),
        interfaces: vec![interface("lan"), interface("wan")],
        nodes: nodes.into_iter().enumerate().map(named).collect(),
        links,
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 1,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}

/// A chain of one function without parameters.
pub fn alone(model: Arc<Model>) -> Chain {
    line(vec![(model, Vec::new())])
}

/// An engine with its outputs.
pub struct Bench {
    pub engine: Reference,
    pub got: Got,
}

/// The outputs of an engine.
#[derive(Default)]
pub struct Got {
    pub packets: Vec<(u16, Packet)>,
    pub events: Vec<Event>,
}

impl Outputs for Got {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.packets.push((interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl Bench {
    pub fn new(chain: Chain) -> Self {
        let engine = Reference::new(chain).unwrap_or_else(|error| panic!("{error}"));
        Self { engine, got: Got::default() }
    }

    /// Sends a packet in at an interface.
    pub fn send(&mut self, ingress: u16, packet: Packet) -> &mut Self {
        self.engine.packet(ingress, packet, &mut self.got);
        assert!(self.counters().balanced(), "{:?}", self.counters());
        self
    }

    pub fn advance(&mut self, time_ns: u64) -> &mut Self {
        self.engine.advance(time_ns, &mut self.got);
        assert!(self.counters().balanced(), "{:?}", self.counters());
        self
    }

    pub fn control(
        &mut self,
        time_ns: u64,
        param: u32,
        change: braid_ir::chain::Change,
    ) -> Result<(), String> {
        let control = Control { time_ns, node: 0, param: ParamId(param), change, line: None };
        self.engine.control(&control, &mut self.got)
    }

    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    pub fn state(&self) -> Vec<StateEntry> {
        self.engine.state()
    }

    /// The interfaces by which packets left, in order. Removes these packets from the record.
    pub fn left_by(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.got.packets).into_iter().map(|(interface, _)| interface).collect()
    }

    /// The last packet that left.
    pub fn last(&self) -> &Packet {
        &self.got.packets.last().expect("a packet left").1
    }

    /// Events as (time, first field or 0), in order. Removes them from the record.
    pub fn events(&mut self) -> Vec<(u64, u128)> {
        let first = |event: &Event| match event.fields.first() {
            Some((_, EventValue::Scalar(_, value))) => *value,
            _ => 0,
        };
        let events = std::mem::take(&mut self.got.events);
        events.iter().map(|event| (event.time_ns, first(event))).collect()
    }

    /// Drops as (function, row, reason, count).
    pub fn drops(&self) -> Vec<(u16, u32, String, u64)> {
        let drops = self.counters().drops;
        drops.into_iter().map(|((node, row, reason), count)| (node, row, reason, count)).collect()
    }
}

/// A UDP packet over IPv4 and Ethernet: 14 + 20 + 8 bytes and 4 of payload.
pub fn udp(time_ns: u64, src: u32, sport: u16, dst: u32, dport: u16) -> Packet {
    let fields = [
        (Field::IpSrc, u128::from(src)),
        (Field::IpDst, u128::from(dst)),
        (Field::UdpSport, u128::from(sport)),
        (Field::UdpDport, u128::from(dport)),
    ];
    build_fresh(Link::Ethernet, time_ns, Shape::Udp4, &fields, b"data").unwrap()
}

/// A UDP packet with this source port. All else is the same for all these packets.
pub fn from_port(time_ns: u64, sport: u16) -> Packet {
    udp(time_ns, 0x0a00_0001, sport, 0xc000_0201, 53)
}

/// The value of a field of a packet.
pub fn field(packet: &Packet, field: Field) -> Option<u128> {
    packet.get(&packet.parse(), field)
}

/// The worker of a packet that is steered by connection.
pub fn worker(packet: &Packet, workers: u16) -> u16 {
    Steering::by_connection().worker(packet, &packet.parse(), LAN, workers)
}
