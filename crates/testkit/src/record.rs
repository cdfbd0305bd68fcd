//! What an engine does with stimuli, written down step by step.

use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_packet::Packet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something that is done to an engine.
#[derive(Clone, Debug)]
pub enum Stimulus {
    /// A packet enters at an interface.
    Packet(u16, Packet),
    /// What is due by this time runs (ns).
    Advance(u64),
    /// A change of configuration.
    Control(Control),
}

/// Something that an engine gives out.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// A packet left by an interface.
    Packet(u16, Packet),
    /// A function published an event.
    Event(Event),
    /// A change could not be applied.
    Refused(String),
}

/// Everything that can be seen of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// Outputs of each stimulus, in order.
    pub outputs: Vec<Vec<Output>>,
    /// Counters after each stimulus, if asked for, else at the end only.
    pub counters: Vec<Counters>,
    /// State at the end.
    pub state: Vec<StateEntry>,
    /// The engine panicked at the stimulus behind the last outputs, with this message.
    pub panic: Option<String>,
}

/// How much a trace holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Counters at the end.
    End,
    /// Counters after each stimulus.
    Steps,
}

/// Takes outputs in order.
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

/// Does one thing to an engine.
pub fn step(engine: &mut dyn Engine, stimulus: &Stimulus) -> Vec<Output> {
    let mut outputs = Collector::default();
    match stimulus {
        Stimulus::Packet(ingress, packet) => engine.packet(*ingress, packet.clone(), &mut outputs),
        Stimulus::Advance(time_ns) => engine.advance(*time_ns, &mut outputs),
        Stimulus::Control(control) => {
            if let Err(reason) = engine.control(control, &mut outputs) {
                outputs.0.push(Output::Refused(reason));
            }
        }
    }
    outputs.0
}

/// Does everything to an engine, and writes down what can be seen.
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

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}
