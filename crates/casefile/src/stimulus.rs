//! Stimuli of an engine and its outputs.

use braid_ir::chain::Control;
use braid_ir::engine::{Engine, Event, Outputs};
use braid_packet::Packet;

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
