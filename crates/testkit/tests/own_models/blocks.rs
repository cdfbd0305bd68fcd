//! The carrier-grade NAT: a list of blocks and one of mappings say which port a flow gets, where an
//! answer goes, and which events there are.

use crate::{LEFT, RIGHT, Run, field, packets};
use braid_packet::Field;
use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use braid_testkit::record::Output;
use std::collections::VecDeque;

const TICK: u64 = 100_000_000;
const FIRST: u64 = 65_530;
const SIZE: u64 = 3;
/// Two blocks of each of two addresses.
const ADDRESSES: [u64; 2] = [1, 2];

struct Mapping {
    host: u64,
    proto: &'static str,
    inside: u64,
    block: u64,
    place: u64,
    seen: u64,
    born: u64,
}

struct Block {
    host: u64,
    number: u64,
    seen: u64,
    born: u64,
}

/// What the function should know. Times are in ticks.
struct Nat {
    idle: u64,
    keep: u64,
    most: usize,
    room: usize,
    free: VecDeque<u64>,
    blocks: Vec<Block>,
    mappings: Vec<Mapping>,
    born: u64,
    /// Numbers of blocks that were assigned (true) and released.
    events: Vec<(bool, u64)>,
}

impl Nat {
    fn new(rng: &mut Rng) -> Self {
        Self {
            idle: rng.range(5, 30),
            keep: rng.range(5, 60),
            most: rng.below(3) + 2,
            room: rng.below(5) + 4,
            free: (0..4).collect(),
            blocks: Vec::new(),
            mappings: Vec::new(),
            born: 0,
            events: Vec::new(),
        }
    }

    fn call(&self) -> String {
        format!(
            "cgnat(public: [203.0.113.1, 203.0.113.2], blocks: 0..3, first: {FIRST}, size: {SIZE}, \
             most: {}, shuffle: false, idle: {} ms, keep: {} ms, subscribers: 3, mappings: {})",
            self.most,
            self.idle * 100,
            self.keep * 100,
            self.room
        )
    }

    fn uses(&self, block: u64) -> usize {
        self.mappings.iter().filter(|mapping| mapping.block == block).count()
    }

    fn release(&mut self, block: u64) {
        self.free.push_back(block);
        self.events.push((false, block));
    }

    /// Ends what is due, in order: by time, mappings before blocks, then by age.
    fn expire(&mut self, now: u64) {
        loop {
            let mapping =
                |at: usize| (self.mappings[at].seen + self.idle, 0, self.mappings[at].born);
            let block = |at: usize| (self.blocks[at].seen + self.keep, 1, self.blocks[at].born);
            let mappings = (0..self.mappings.len()).map(|at| (mapping(at), at));
            let blocks = (0..self.blocks.len()).map(|at| (block(at), at));
            match mappings.chain(blocks).min() {
                Some(((due, 0, _), at)) if due <= now => {
                    let ended = self.mappings.remove(at);
                    let kept = self.blocks.iter().any(|block| block.number == ended.block);
                    if self.uses(ended.block) == 0 && !kept {
                        self.release(ended.block);
                    }
                }
                Some(((due, ..), at)) if due <= now => {
                    let ended = self.blocks.remove(at);
                    if self.uses(ended.number) == 0 {
                        self.release(ended.number);
                    }
                }
                _ => return,
            }
        }
    }

    fn see_block(&mut self, host: u64, now: u64) {
        for block in self.blocks.iter_mut().filter(|block| block.host == host) {
            block.seen = now;
        }
    }

    /// The block and the place of a packet from a host.
    fn out(&mut self, now: u64, host: u64, proto: &'static str, inside: u64) -> Option<(u64, u64)> {
        self.see_block(host, now);
        let known = |mapping: &&mut Mapping| {
            (mapping.host, mapping.proto, mapping.inside) == (host, proto, inside)
        };
        if let Some(mapping) = self.mappings.iter_mut().find(known) {
            mapping.seen = now;
            return Some((mapping.block, mapping.place));
        }
        let block = match self.blocks.iter().find(|block| block.host == host) {
            Some(block) => block.number,
            None => self.assign(host, now)?,
        };
        let taken = |place: &u64| {
            self.mappings.iter().any(|other| (other.block, other.place) == (block, *place))
        };
        let place = (0..SIZE).find(|place| !taken(place));
        if self.uses(block) >= self.most || self.mappings.len() == self.room {
            return None;
        }
        let place = place?;
        self.born += 1;
        let born = self.born;
        self.mappings.push(Mapping { host, proto, inside, block, place, seen: now, born });
        Some((block, place))
    }

    fn assign(&mut self, host: u64, now: u64) -> Option<u64> {
        let number = self.free.pop_front()?;
        if self.blocks.len() == 3 {
            self.free.push_back(number);
            return None;
        }
        self.born += 1;
        self.blocks.push(Block { host, number, seen: now, born: self.born });
        self.events.push((true, number));
        Some(number)
    }

    /// The host and port that a packet to a port of a block reaches.
    fn back(&mut self, now: u64, proto: &str, block: u64, place: u64) -> Option<(u64, u64)> {
        let known = |mapping: &&mut Mapping| {
            (mapping.proto, mapping.block, mapping.place) == (proto, block, place)
        };
        let mapping = self.mappings.iter_mut().find(known)?;
        mapping.seen = now;
        let (host, inside) = (mapping.host, mapping.inside);
        self.see_block(host, now);
        Some((host, inside))
    }
}

/// The public address and port of a place in a block.
fn public(block: u64, place: u64) -> (u64, u64) {
    (ADDRESSES[usize::from(block >= 2)], FIRST + block % 2 * SIZE + place)
}

/// The events among the outputs, as the model writes them.
fn events(outputs: &[Output]) -> Vec<(bool, u64)> {
    let event = |output: &Output| {
        let Output::Event(event) = output else { return None };
        let (_, value) = event.fields.last().expect("a number");
        let braid_ir::engine::EventValue::Scalar(_, number) = value else { panic!("{event:?}") };
        Some((event.name == "BLOCK_ASSIGNED", u64::try_from(*number).expect("a number")))
    };
    outputs.iter().filter_map(event).collect()
}

#[test]
fn blocks_hold_the_ports_of_their_subscribers() {
    let (mut out, mut back, mut blocks) = (0, 0, 0);
    for seed in budget::seeds(40) {
        let mut rng = Rng::new(seed);
        let mut nat = Nat::new(&mut rng);
        let mut run = Run::new(&nat.call());
        let mut now = 10;
        for nth in 0..250 {
            now += if rng.one_in(3) { rng.range(0, 12) } else { 0 };
            nat.expire(now);
            let proto = *rng.pick(&["udp", "tcp"]);
            let (address, expected, outputs) = if rng.one_in(2) {
                let (host, inside) = (rng.range(1, 5), rng.range(1, 4));
                let text = format!("{proto} 10.0.0.{host}:{inside} > 192.0.2.1:80");
                let expected = nat.out(now, host, proto, inside);
                let outputs = run.packet(LEFT, now * TICK, &text);
                out += u32::from(expected.is_some());
                (0xcb00_7100, expected.map(|(block, place)| public(block, place)), outputs)
            } else {
                let (block, place) = (rng.range(0, 3), rng.range(0, 2));
                let (address, port) = public(block, place);
                let text = format!("{proto} 192.0.2.1:80 > 203.0.113.{address}:{port}");
                let expected = nat.back(now, proto, block, place);
                let outputs = run.packet(RIGHT, now * TICK, &text);
                back += u32::from(expected.is_some());
                (0x0a00_0000, expected, outputs)
            };
            let ends = |packet| match address {
                0x0a00_0000 => (field(packet, Field::IpDst), field(packet, Field::L4Dport)),
                _ => (field(packet, Field::IpSrc), field(packet, Field::L4Sport)),
            };
            let found = packets(&outputs).first().map(|&(_, packet)| ends(packet));
            let expected = expected.map(|(host, port)| (address + u128::from(host), port.into()));
            assert_eq!(found, expected, "seed {seed}, packet {nth}, {}", nat.call());
            let expected = std::mem::take(&mut nat.events);
            blocks += expected.len();
            assert_eq!(events(&outputs), expected, "seed {seed}, packet {nth}, {}", nat.call());
        }
        run.compare_engines(seed);
    }
    assert!(out > 500 && back > 100 && blocks > 500, "{out}, {back}, {blocks}");
}
