//! Compares functions of the library with models of their own, packet by packet, and the engines
//! with the reference on the same traffic.

mod blocks;
mod handshakes;
mod leases;
mod requests;
mod transfers;

use braid_ir::chain::Chain;
use braid_ir::engine;
use braid_packet::{Field, Packet};
use braid_testkit::harness::{self, Engine, Form};
use braid_testkit::packet::parse;
use braid_testkit::record::{Detail, Output, Stimulus, record, step};

/// The side where hosts, subscribers and clients are, and the other one.
const LEFT: u16 = 0;
const RIGHT: u16 = 1;

/// A run of a chain of one function on the reference.
struct Run {
    chain: Chain,
    engine: Box<dyn engine::Engine>,
    stimuli: Vec<Stimulus>,
}

impl Run {
    fn new(function: &str) -> Self {
        let source = format!(
            "chain c {{ interface left; interface right; path left <-> {function} <-> right; }}"
        );
        let chain =
            harness::compile(&source, &Default::default(), Form::AsWritten).expect("a chain");
        Self { engine: harness::reference(&chain), chain, stimuli: Vec::new() }
    }

    /// What happens to a packet that enters at this side.
    fn packet(&mut self, side: u16, time: u64, text: &str) -> Vec<Output> {
        let spec = parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        self.stimuli.push(Stimulus::Packet(side, spec.at(time)));
        step(self.engine.as_mut(), self.stimuli.last().expect("the packet"))
    }

    /// Runs the same packets on the engines that the seed chooses.
    fn compare_engines(&self, seed: u64) {
        let expected = record(harness::reference(&self.chain).as_mut(), &self.stimuli, Detail::End);
        for engine in Engine::drawn(seed, seed.is_multiple_of(8)) {
            if let Err(why) = engine.check(&self.chain, &self.stimuli, &expected) {
                panic!("seed {seed}: {why}");
            }
        }
    }
}

/// The packets among the outputs, with the sides where they left.
fn packets(outputs: &[Output]) -> Vec<(u16, &Packet)> {
    let packet = |output| match output {
        &Output::Packet(side, ref packet) => Some((side, packet)),
        _ => None,
    };
    outputs.iter().filter_map(packet).collect()
}

/// A field of a packet that has it.
fn field(packet: &Packet, field: Field) -> u128 {
    packet.get(&packet.parse(), field).expect("a field")
}
