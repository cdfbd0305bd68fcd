//! Engines with one chosen mistake. They prove that comparisons find each kind of difference.

use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Packet};

/// The mistake of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// One bit of a packet's last byte is wrong.
    Bit,
    /// A packet is lost.
    Swallow,
    /// A packet leaves twice.
    Twice,
    /// A packet leaves by another interface.
    Interface,
    /// A packet's time is off by a nanosecond.
    Time,
    /// An event's last field is off by one.
    EventField,
    /// An event is lost.
    EventLost,
    /// A drop is counted at another row.
    Row,
    /// A loss has another reason.
    Reason,
    /// The first function's forward bytes are off by one.
    Bytes,
    /// The last state entry was seen a nanosecond later.
    LastSeen,
    /// The last state entry is missing.
    Forgotten,
    /// The engine panics.
    Panic,
}

/// All mistakes.
pub const ALL: &[Wrong] = &[
    Wrong::Bit,
    Wrong::Swallow,
    Wrong::Twice,
    Wrong::Interface,
    Wrong::Time,
    Wrong::EventField,
    Wrong::EventLost,
    Wrong::Row,
    Wrong::Reason,
    Wrong::Bytes,
    Wrong::LastSeen,
    Wrong::Forgotten,
    Wrong::Panic,
];

/// An engine that behaves like another engine, except for one mistake: at the third packet that
/// leaves, at an event, or whenever counters or state are read.
pub struct Sabotaged {
    inner: Box<dyn Engine>,
    wrong: Wrong,
    packets: u32,
    events: u32,
}

impl Sabotaged {
    /// Adds a mistake to an engine.
    #[must_use]
    pub fn new(inner: Box<dyn Engine>, wrong: Wrong) -> Self {
        Self { inner, wrong, packets: 0, events: 0 }
    }
}

/// Changes outputs before they reach `out`.
struct Changing<'a> {
    out: &'a mut dyn Outputs,
    wrong: Wrong,
    packets: &'a mut u32,
    events: &'a mut u32,
}

impl Outputs for Changing<'_> {
    fn at(&mut self, place: usize) {
        self.out.at(place);
    }

    fn packet(&mut self, interface: u16, mut packet: Packet) {
        *self.packets += 1;
        if *self.packets != 3 {
            return self.out.packet(interface, packet);
        }
        match self.wrong {
            Wrong::Bit => {
                if let Some(last) = packet.data_mut().last_mut() {
                    *last ^= 1;
                }
            }
            Wrong::Swallow => return,
            Wrong::Twice => self.out.packet(interface, packet.clone()),
            Wrong::Interface => return self.out.packet(interface ^ 1, packet),
            Wrong::Time => packet.time_ns += 1,
            Wrong::Panic => panic!("a wrong engine"),
            _ => {}
        }
        self.out.packet(interface, packet);
    }

    fn event(&mut self, mut event: Event) {
        use braid_ir::engine::EventValue;
        *self.events += 1;
        if *self.events == 2 {
            match (self.wrong, event.fields.last_mut()) {
                (Wrong::EventLost, _) => return,
                (Wrong::EventField, Some((_, EventValue::Scalar(_, value)))) => *value ^= 1,
                _ => {}
            }
        }
        self.out.event(event);
    }
}

impl Engine for Sabotaged {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        let Self { inner, wrong, packets, events } = self;
        let mut out = Changing { out, wrong: *wrong, packets, events };
        burst.take_each(|at, packet| {
            out.at(at);
            inner.packet(packet.ingress, packet, &mut out);
        });
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        let Self { inner, wrong, packets, events } = self;
        inner.advance(time_ns, &mut Changing { out, wrong: *wrong, packets, events });
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        let Self { inner, wrong, packets, events } = self;
        inner.begin(time_ns, &mut Changing { out, wrong: *wrong, packets, events });
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        let Self { inner, wrong, packets, events } = self;
        inner.control(control, &mut Changing { out, wrong: *wrong, packets, events })
    }

    fn counters(&self) -> Counters {
        let mut counters = self.inner.counters();
        match self.wrong {
            Wrong::Row => {
                if let Some(((node, row, reason), count)) = counters.drops.pop_first() {
                    counters.drops.insert((node, row + 1, reason), count);
                }
            }
            Wrong::Reason => {
                if let Some((reason, count)) = counters.lost.pop_first() {
                    counters.lost.insert(format!("{reason}!"), count);
                }
            }
            Wrong::Bytes => {
                if let Some(node) = counters.nodes.first_mut() {
                    node.forward.bytes += 1;
                }
            }
            _ => {}
        }
        counters
    }

    fn state(&self) -> Vec<StateEntry> {
        let mut state = self.inner.state();
        match (self.wrong, state.last_mut()) {
            (Wrong::LastSeen, Some(last)) => last.last_seen_ns += 1,
            (Wrong::Forgotten, Some(_)) => drop(state.pop()),
            _ => {}
        }
        state
    }

    fn export(&mut self) -> Snapshot {
        self.inner.export()
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        self.inner.import(snapshot)
    }
}
