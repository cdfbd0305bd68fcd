//! Records the reactions of an engine to stimuli, step by step.

use braid_engine::{Compiled, Reached};
use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_packet::Packet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A stimulus of an engine.
#[derive(Clone, Debug)]
pub enum Stimulus {
    /// A packet enters at an interface.
    Packet(u16, Packet),
    /// Everything that is due by this time (ns) runs.
    Advance(u64),
    /// A change of configuration.
    Control(Control),
}

/// An output of an engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// A packet left by an interface.
    Packet(u16, Packet),
    /// A function published an event.
    Event(Event),
    /// A change was refused.
    Refused(String),
}

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

/// Collects outputs in order.
#[derive(Default)]
struct Collector(Vec<Output>);

impl Outputs for Collector {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push(Output::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.0.push(Output::Event(event));
    }
}

/// Applies one stimulus to an engine.
pub fn step(engine: &mut dyn Engine, stimulus: &Stimulus) -> Vec<Output> {
    let mut outputs = Collector::default();
    match stimulus {
        Stimulus::Packet(ingress, packet) => engine.packet(*ingress, packet.clone(), &mut outputs),
        Stimulus::Advance(time_ns) => {
            engine.advance(*time_ns, &mut outputs);
            // Reading counters and state must not change anything.
            drop((engine.counters(), engine.state()));
        }
        Stimulus::Control(control) => {
            if let Err(reason) = engine.control(control, &mut outputs) {
                outputs.0.push(Output::Refused(reason));
            }
        }
    }
    outputs.0
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

/// A run in batches.
#[derive(Clone, Debug, Default)]
pub struct Batched {
    /// Everything visible of the run. A packet that stayed in its place is an output of its own
    /// stimulus. All other outputs of a batch come before these, at the batch's first stimulus.
    pub trace: Trace,
    /// For each stimulus: the first stimulus of its batch, and whether a packet left in its place.
    places: Vec<(usize, bool)>,
}

impl Batched {
    /// Rearranges the trace of a run packet by packet into the order of this run. A packet that
    /// leaves in its place is the last output of its stimulus.
    #[must_use]
    pub fn shows(&self, single: &Trace) -> Trace {
        let mut shown: Vec<Vec<Output>> = vec![Vec::new(); single.outputs.len()];
        let mut last = Vec::new();
        for (step, outputs) in single.outputs.iter().enumerate() {
            let (first, left) = self.places.get(step).copied().unwrap_or((step, false));
            let (beside, own) = outputs.split_at(outputs.len().saturating_sub(usize::from(left)));
            shown[first].extend_from_slice(beside);
            last.push(own);
        }
        for (shown, own) in shown.iter_mut().zip(last) {
            shown.extend_from_slice(own);
        }
        Trace { outputs: shown, ..single.clone() }
    }
}

/// Applies all stimuli to an engine like [`record`], but packets in sequence at the same interface
/// form batches of at most `most`.
pub fn record_batches(engine: &mut Compiled, stimuli: &[Stimulus], most: usize) -> Batched {
    let mut run = Batched::default();
    let together = |a: &Stimulus, b: &Stimulus| match (a, b) {
        (Stimulus::Packet(a, _), Stimulus::Packet(b, _)) => a == b,
        _ => false,
    };
    for part in stimuli.chunk_by(together).flat_map(|part| part.chunks(most.max(1))) {
        match catch_unwind(AssertUnwindSafe(|| batch(engine, part))) {
            Ok(parts) => {
                let first = run.places.len();
                for (outputs, left) in parts {
                    run.places.push((first, left));
                    run.trace.outputs.push(outputs);
                }
            }
            Err(payload) => {
                run.trace.panic = Some(panic_message(payload.as_ref()));
                return run;
            }
        }
    }
    run.trace.counters.push(engine.counters());
    run.trace.state = engine.state();
    run
}

/// Applies a batch of packets, or another stimulus, to an engine. Returns the outputs of each
/// stimulus, and whether a packet left in its place.
fn batch(engine: &mut Compiled, part: &[Stimulus]) -> Vec<(Vec<Output>, bool)> {
    let [Stimulus::Packet(ingress, _), ..] = part else {
        return part.iter().map(|stimulus| (step(engine, stimulus), false)).collect();
    };
    let own = |stimulus: &Stimulus| match stimulus {
        Stimulus::Packet(_, packet) => Some(packet.clone()),
        _ => None,
    };
    let mut packets: Vec<Packet> = part.iter().filter_map(own).collect();
    let (mut beside, mut reached) = (Collector::default(), Vec::new());
    engine.batch(*ingress, &mut packets, &mut reached, &mut beside);
    assert_eq!(packets.len(), reached.len(), "a place for each packet");
    let mut beside = Some(beside.0);
    let parts = packets.into_iter().zip(reached).map(|(packet, reached)| {
        let mut outputs = beside.take().unwrap_or_default();
        match reached {
            Reached::Interface(interface) => {
                outputs.push(Output::Packet(interface, packet));
                (outputs, true)
            }
            Reached::Ended => (outputs, false),
        }
    });
    parts.collect()
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::Link;

    fn packet(byte: u8) -> Output {
        Output::Packet(0, Packet::new(Link::RawIp, 0, vec![byte]))
    }

    #[test]
    fn batch_shows_what_left_beside_it_first() {
        // The first packet has a copy. The second packet does not leave, but a copy of it does.
        // Then another batch follows.
        let single = Trace {
            outputs: vec![
                vec![packet(10), packet(1)],
                vec![packet(20)],
                vec![packet(3)],
                vec![packet(40), packet(4)],
            ],
            ..Trace::default()
        };
        let places = vec![(0, true), (0, false), (0, true), (3, true)];
        let run = Batched { places, ..Batched::default() };
        let shown = [
            vec![packet(10), packet(20), packet(1)],
            vec![],
            vec![packet(3)],
            vec![packet(40), packet(4)],
        ];
        assert_eq!(run.shows(&single).outputs, shown);
    }
}
