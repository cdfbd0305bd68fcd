//! Clients that watch packets: captures at interfaces and functions ([`Tap`]) and traces
//! ([`Trace`]). While a client watches an interface, its packets run one by one. While a client
//! watches a function, all packets run one by one, and function by function.

use crate::ctl::{Feed, Sighting};
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, Later, Outputs, Room, Watcher};
use braid_ir::snapshot::Snapshot;
use braid_packet::{Burst, Packet};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

/// The number of packets a second that do not leave and whose end is looked up. This lookup takes
/// time.
const ENDS_PER_SECOND: u32 = 1_000;

/// A condition on packets: a chain that passes or drops them.
pub struct Filter(Box<dyn Engine>);

impl Filter {
    /// The condition that a packet leaves this engine's chain when it enters at interface 0.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>) -> Self {
        Self(engine)
    }

    fn holds(&mut self, packet: &Packet) -> bool {
        let (mut burst, mut left) = (Burst::of(0, packet.clone()), Left(false));
        self.0.burst(&mut burst, &mut left);
        left.0 || burst.leaving().next().is_some()
    }
}

/// Whether a packet has left.
struct Left(bool);

impl Outputs for Left {
    fn packet(&mut self, _: u16, _: Packet) {
        self.0 = true;
    }

    fn event(&mut self, _: Event) {}
}

/// The most copies of a packet between functions, for all clients. A packet may visit many
/// functions, and have many copies there.
const MOST_COPIES: usize = 64;

/// A place where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// An interface, by number.
    Interface(u16),
    /// A function, by number.
    Function(u16),
}

impl Place {
    /// The interface or the function with this name.
    pub(crate) fn named(name: &str, chain: &Chain) -> Option<Self> {
        let interface = (0..).zip(&chain.interfaces).find(|(_, one)| one.name == name);
        let function = || (0..).zip(&chain.nodes).find(|(_, node)| node.name == name);
        match interface {
            Some((number, _)) => Some(Place::Interface(number)),
            None => function().map(|(number, _)| Place::Function(number)),
        }
    }
}

/// A client that gets copies of the packets at a place.
pub(crate) struct Tap {
    pub(crate) place: Place,
    /// The name of the interface or the function.
    pub(crate) name: Arc<str>,
    /// Copies of the packets that enter there.
    pub(crate) enters: bool,
    /// Copies of the packets that leave there.
    pub(crate) leaves: bool,
    pub(crate) filter: Option<Filter>,
    pub(crate) feed: Feed,
}

/// Traces one packet.
pub(crate) struct Trace {
    /// A packet is wanted. All workers share this.
    pub(crate) is_armed: Arc<AtomicBool>,
    pub(crate) filter: Option<Filter>,
    /// The most state entries that a chain may have, because copying them takes time.
    pub(crate) most_entries: u64,
    /// Memory for the copy.
    pub(crate) room: Room,
    pub(crate) found: SyncSender<Result<Traced, String>>,
}

/// A packet that was traced, with everything that its path depends on.
pub struct Traced {
    /// The chain that it entered.
    pub chain: Arc<Chain>,
    /// The worker of the packet, if the chain has several.
    pub worker: Option<u16>,
    /// Makes the snapshot of the worker's state before the packet, from a copy.
    pub before: Later<Snapshot>,
    /// The packet as it entered.
    pub packet: Packet,
    /// The path of the packet through the engine
    /// ([`Engine::explained`]).
    pub path: Option<Box<dyn Any + Send>>,
    /// The packets that left because of it, each with its interface and its bytes.
    pub left: Vec<(u16, Vec<u8>)>,
    /// How long other packets waited while the state was copied (µs).
    pub pause_us: u64,
}

/// All clients that watch packets.
#[derive(Default)]
pub(super) struct Watch {
    taps: Vec<Tap>,
    pub(super) trace: Option<Trace>,
    /// The second in which ends are counted, and their number.
    ends: (u64, u32),
}

impl Watch {
    /// Adds a client. Forgets clients that have gone.
    pub(super) fn tap(&mut self, tap: Tap) {
        self.taps.retain(|tap| !tap.feed.is_over());
        self.taps.push(tap);
    }

    /// Whether nobody watches anything.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.taps.is_empty() && self.trace.is_none()
    }

    /// Whether somebody watches the packets that enter at an interface. Forgets clients that have
    /// gone.
    pub(super) fn enters(&mut self, interface: u16) -> bool {
        self.taps.retain(|tap| !tap.feed.is_over());
        let is_there = |tap: &Tap| match tap.place {
            Place::Interface(number) => tap.enters && number == interface,
            Place::Function(_) => true,
        };
        self.is_tracing() || self.taps.iter().any(is_there)
    }

    /// Whether somebody watches packets between functions.
    pub(super) fn is_between(&self) -> bool {
        self.taps.iter().any(|tap| matches!(tap.place, Place::Function(_)))
    }

    /// Decides whether to trace a packet that enters. If so, returns the most state entries that
    /// the chain may have, and memory for their copy.
    pub(super) fn take_trace(&mut self, packet: &Packet) -> Option<(u64, Room)> {
        let trace = self.trace.as_mut()?;
        let is_wanted = trace.is_armed.load(Ordering::Relaxed) && wants(&mut trace.filter, packet);
        let is_taken = is_wanted && trace.is_armed.swap(false, Ordering::Relaxed);
        is_taken.then(|| (trace.most_entries, trace.room.take()))
    }

    fn is_tracing(&self) -> bool {
        self.trace.as_ref().is_some_and(|trace| trace.is_armed.load(Ordering::Relaxed))
    }

    /// Whether somebody watches packets that leave.
    pub(super) fn leaves(&self) -> bool {
        let is_there = |tap: &Tap| tap.leaves && matches!(tap.place, Place::Interface(_));
        self.taps.iter().any(is_there)
    }

    /// Shows a packet that was sent at an interface, or was not sent for a reason.
    pub(super) fn left(&mut self, interface: u16, packet: &Packet, unsent: Option<&str>) {
        for tap in &mut self.taps {
            let is_there = tap.leaves && tap.place == Place::Interface(interface);
            if is_there && wants(&mut tap.filter, packet) {
                let mut sighting = Sighting::new(Arc::clone(&tap.name), packet);
                let name = &tap.name;
                sighting.what = match unsent {
                    None => format!("sent by {name}"),
                    Some(why) => format!("not sent by {name}: {why}"),
                };
                tap.feed.packet(sighting);
            }
        }
    }

    /// The clients whose captures get a packet that enters, by number, each with its copy.
    pub(super) fn sightings(&mut self, packet: &Packet) -> Vec<(usize, Sighting)> {
        let taps = self.taps.iter_mut().enumerate();
        let wanting = taps.filter_map(|(at, tap)| {
            let is_there = tap.enters && tap.place == Place::Interface(packet.ingress);
            let wants = is_there && wants(&mut tap.filter, packet);
            wants.then(|| (at, Sighting::new(Arc::clone(&tap.name), packet)))
        });
        wanting.collect()
    }

    /// Whether the end of one more packet may be looked up in this second.
    pub(super) fn may_look(&mut self, now_ns: u64) -> bool {
        let second = now_ns / 1_000_000_000;
        if self.ends.0 != second {
            self.ends = (second, 0);
        }
        self.ends.1 += 1;
        self.ends.1 <= ENDS_PER_SECOND
    }

    /// Switches to the places of the same names in another chain.
    pub(super) fn renumber(&mut self, chain: &Chain) {
        self.taps.retain_mut(|tap| match Place::named(&tap.name, chain) {
            Some(place) => {
                tap.place = place;
                true
            }
            None => false,
        });
    }
}

/// Collects what clients see of a packet between functions.
pub(super) struct Between<'w> {
    watch: &'w mut Watch,
    /// By client: copies of the packet. Their text says what happened at the function.
    pub(super) sightings: Vec<(usize, Sighting)>,
    /// The function that a packet entered last.
    pub(super) last: Option<u16>,
}

impl<'w> Between<'w> {
    /// Before the packet.
    pub(super) fn new(watch: &'w mut Watch) -> Self {
        Self { watch, sightings: Vec::new(), last: None }
    }

    fn see(&mut self, node: u16, packet: &Packet, is_there: fn(&Tap) -> bool, what: &str) {
        for (at, tap) in self.watch.taps.iter_mut().enumerate() {
            if tap.place != Place::Function(node) || !is_there(tap) {
                continue;
            }
            if wants(&mut tap.filter, packet) {
                if self.sightings.len() == MOST_COPIES {
                    tap.feed.lose();
                    continue;
                }
                let mut sighting = Sighting::new(Arc::clone(&tap.name), packet);
                sighting.what = what.replace('_', &tap.name);
                self.sightings.push((at, sighting));
            }
        }
    }
}

impl Watcher for Between<'_> {
    fn enters(&mut self, node: u16, packet: &Packet) {
        self.last = Some(node);
        let what = if packet.backward { "entered _ on the right" } else { "entered _ on the left" };
        self.see(node, packet, |tap| tap.enters, what);
    }

    fn leaves(&mut self, node: u16, packet: &Packet) {
        self.see(node, packet, |tap| tap.leaves, "left _");
    }
}

fn wants(filter: &mut Option<Filter>, packet: &Packet) -> bool {
    filter.as_mut().is_none_or(|filter| filter.holds(packet))
}

impl Watch {
    /// Gives copies of a packet to their clients, with the packet's fate.
    pub(super) fn show(&mut self, sightings: Vec<(usize, Sighting)>, what: &str) {
        for (at, mut sighting) in sightings {
            if let Some(tap) = self.taps.get(at) {
                sighting.what = match tap.place {
                    Place::Interface(_) => format!("entered at {}, {what}", tap.name),
                    Place::Function(_) => format!("{}, {what}", sighting.what),
                };
                tap.feed.packet(sighting);
            }
        }
    }

    /// Hands a packet that was traced to the control thread.
    pub(super) fn found(&mut self, found: Result<Traced, String>) {
        if let Some(trace) = &self.trace {
            // The client may have gone.
            let _ = trace.found.try_send(found);
        }
    }
}
