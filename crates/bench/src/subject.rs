//! A common interface for engines and floors.

use std::hint::black_box;

use braid_engine::{Compiled, Flows, Jit, Options};
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_ir::residual::Extent;
use braid_packet::{Burst, Packet};
use braid_reference::Reference;

use crate::feed::Feed;
use crate::floor;
use crate::seen::Seen;

/// An engine or a floor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Parse, touch, forward.
    FloorTouch,
    /// As `FloorTouch`, with one flow lookup and one header rewrite.
    FloorFlow,
    /// The engine that defines what a chain does. It is slow, so it gets few packets.
    Reference,
    /// Each function compiled separately.
    Sequential,
    /// The chain compiled as one program.
    Synth,
    /// As `Synth`, with flow records.
    Fused,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] = [
        Kind::FloorTouch,
        Kind::FloorFlow,
        Kind::Reference,
        Kind::Sequential,
        Kind::Synth,
        Kind::Fused,
    ];

    /// The name in reports and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::FloorTouch => "floor_touch",
            Kind::FloorFlow => "floor_flow",
            Kind::Reference => "reference",
            Kind::Sequential => "sequential",
            Kind::Synth => "synth",
            Kind::Fused => "fused",
        }
    }

    /// Whether this is an engine. Engines run the chain.
    #[must_use]
    pub fn is_engine(self) -> bool {
        !matches!(self, Kind::FloorTouch | Kind::FloorFlow)
    }

    /// Whether this is an engine that runs compiled programs.
    #[must_use]
    pub fn is_compiled(self) -> bool {
        self.is_engine() && self != Kind::Reference
    }

    /// Makes the engine or floor for a chain and this number of flows.
    ///
    /// # Errors
    /// Returns an error when the engine refuses the chain.
    pub fn make(self, chain: &Chain, flows: u64) -> Result<Box<dyn Subject>, String> {
        self.with(chain, flows, Jit::default())
    }

    /// As [`Kind::make`], but programs become machine code at their first packet.
    ///
    /// # Errors
    /// Returns an error when the engine refuses the chain.
    pub fn make_hot(self, chain: &Chain, flows: u64) -> Result<Box<dyn Subject>, String> {
        self.with(chain, flows, Jit::After(0))
    }

    fn with(self, chain: &Chain, flows: u64, jit: Jit) -> Result<Box<dyn Subject>, String> {
        let compiled = |extent, options: Options| {
            Compiled::new(chain.clone(), extent, Options { jit, ..options }).map(boxed)
        };
        match self {
            Kind::FloorTouch => Ok(Box::new(floor::Touch::default())),
            Kind::FloorFlow => Ok(Box::new(floor::Flow::new(flows))),
            Kind::Reference => Ok(Box::new(Reference::new(chain.clone())?)),
            Kind::Sequential => compiled(Extent::Function, Options::default()),
            Kind::Synth => compiled(Extent::Chain, Options::default()),
            Kind::Fused => compiled(Extent::Chain, Options::fused()),
        }
    }
}

fn boxed(engine: Compiled) -> Box<dyn Subject> {
    Box::new(engine)
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Kind::ALL.map(Kind::name).join(", ");
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("expected one of {}", names()))
    }
}

/// An engine or floor that processes bursts of packets from interface 0.
pub trait Subject {
    /// Processes packets. Their contents have no meaning afterwards.
    fn burst(&mut self, burst: &mut Burst);

    /// Processes the packets of a feed, which is empty afterwards.
    #[inline]
    fn run(&mut self, feed: &mut Feed) {
        self.burst(black_box(feed.burst()));
        feed.clear();
    }

    /// As [`Subject::burst`], and records the output in `seen`. Floors have none.
    fn observed(&mut self, burst: &mut Burst, seen: &mut Seen) {
        let _ = seen;
        self.burst(burst);
    }

    /// The counters, if this is an engine.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// The counts of the flow cache. `None` if there are no flow records.
    fn flows(&self) -> Option<Flows> {
        None
    }

    /// The state entries. Empty for floors.
    fn state(&self) -> Vec<StateEntry> {
        Vec::new()
    }
}

/// The source: does only the work that all others do, too, which is copying frames into packets.
/// Its time is subtracted from theirs.
pub struct Source;

impl Subject for Source {
    fn burst(&mut self, burst: &mut Burst) {
        black_box(burst);
    }
}

impl Subject for floor::Touch {
    fn burst(&mut self, burst: &mut Burst) {
        self.batch(burst.packets_mut());
        black_box(&self.reached);
        black_box(burst);
    }
}

impl Subject for floor::Flow {
    fn burst(&mut self, burst: &mut Burst) {
        self.batch(burst.packets_mut());
        black_box(&self.reached);
        black_box(burst);
    }
}

impl Subject for Reference {
    fn burst(&mut self, burst: &mut Burst) {
        Engine::burst(self, burst, &mut Nowhere);
    }

    fn observed(&mut self, burst: &mut Burst, seen: &mut Seen) {
        observe(self, burst, seen);
    }

    fn counters(&self) -> Option<Counters> {
        Some(Engine::counters(self))
    }

    fn state(&self) -> Vec<StateEntry> {
        Engine::state(self)
    }
}

impl Subject for Compiled {
    fn burst(&mut self, burst: &mut Burst) {
        Engine::burst(self, burst, &mut Nowhere);
        black_box(burst);
    }

    fn observed(&mut self, burst: &mut Burst, seen: &mut Seen) {
        observe(self, burst, seen);
    }

    fn counters(&self) -> Option<Counters> {
        Some(Engine::counters(self))
    }

    fn flows(&self) -> Option<Flows> {
        Compiled::flows(self)
    }

    fn state(&self) -> Vec<StateEntry> {
        Engine::state(self)
    }
}

/// Runs an engine on a burst and records its output.
fn observe(engine: &mut impl Engine, burst: &mut Burst, seen: &mut Seen) {
    engine.burst(burst, seen);
    for (_, interface, packet) in burst.leaving() {
        seen.leaves(interface, packet);
    }
}

/// Discards the packets of a measured engine.
pub(crate) struct Nowhere;

impl Outputs for Nowhere {
    fn packet(&mut self, interface: u16, packet: Packet) {
        black_box((interface, packet));
    }

    fn event(&mut self, event: Event) {
        black_box(event);
    }
}
