//! Records the reactions of an engine to stimuli, step by step.

use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_packet::{BURST, Burst, Packet};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use braid_casefile::{Output, Stimulus, step};

/// Everything that is visible of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Outputs of each stimulus, in order.
    pub outputs: Vec<Vec<Output>>,
    /// The counters after each stimulus, or only at the end.
    pub counters: Vec<Counters>,
    /// State at the end.
    pub state: Vec<StateEntry>,
    /// The panic message, if the engine panicked at the stimulus behind the last outputs.
    pub panic: Option<String>,
}

/// How detailed a trace is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Counters at the end.
    End,
    /// Counters after each stimulus.
    Steps,
}

/// Applies all stimuli to an engine, and records everything visible.
pub fn record(engine: &mut dyn Engine, stimuli: &[Stimulus], detail: Detail) -> Trace {
    let mut trace = Trace::default();
    for stimulus in stimuli {
        // The engine is not used again after a panic.
        match catch_unwind(AssertUnwindSafe(|| step(engine, stimulus))) {
            Ok(outputs) => trace.outputs.push(outputs),
            Err(payload) => {
                trace.panic = Some(panic_message(payload.as_ref()));
                return trace;
            }
        }
        if detail == Detail::Steps {
            trace.counters.push(engine.counters());
        }
    }
    if detail == Detail::End {
        trace.counters.push(engine.counters());
    }
    trace.state = engine.state();
    trace
}

/// Applies all stimuli to an engine like [`record`] with [`Detail::End`], but packets in sequence
/// form bursts of at most `most`.
pub fn record_bursts(engine: &mut dyn Engine, stimuli: &[Stimulus], most: usize) -> Trace {
    let mut trace = Trace::default();
    let together =
        |a: &Stimulus, b: &Stimulus| matches!((a, b), (Stimulus::Packet(..), Stimulus::Packet(..)));
    for part in stimuli.chunk_by(together).flat_map(|part| part.chunks(most.clamp(1, BURST))) {
        match catch_unwind(AssertUnwindSafe(|| burst(engine, part))) {
            Ok(outputs) => trace.outputs.extend(outputs),
            Err(payload) => {
                trace.panic = Some(panic_message(payload.as_ref()));
                return trace;
            }
        }
    }
    trace.counters.push(engine.counters());
    trace.state = engine.state();
    trace
}

/// Applies a burst of packets, or another stimulus, to an engine. Returns the outputs of each
/// stimulus.
fn burst(engine: &mut dyn Engine, part: &[Stimulus]) -> Vec<Vec<Output>> {
    let [Stimulus::Packet(..), ..] = part else {
        return part.iter().map(|stimulus| step(engine, stimulus)).collect();
    };
    let mut burst = Burst::new();
    for stimulus in part {
        if let Stimulus::Packet(ingress, packet) = stimulus {
            let mut packet = packet.clone();
            packet.ingress = *ingress;
            burst.push(packet);
        }
    }
    let mut places = Places { place: 0, all: vec![Vec::new(); part.len()] };
    engine.burst(&mut burst, &mut places);
    assert_eq!(burst.reached.len(), part.len(), "each packet ends");
    for (at, interface, packet) in burst.leaving() {
        places.all[at].push(Output::Packet(interface, packet.clone()));
    }
    places.all
}

/// Collects the outputs of each packet of a burst, in order.
struct Places {
    place: usize,
    all: Vec<Vec<Output>>,
}

impl Outputs for Places {
    fn at(&mut self, place: usize) {
        assert!(self.place <= place, "places come in order");
        self.place = place;
    }

    fn packet(&mut self, interface: u16, packet: Packet) {
        self.all[self.place].push(Output::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.all[self.place].push(Output::Event(event));
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}
