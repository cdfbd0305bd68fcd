//! Compiled engines: a chain run by residual programs over tables built for speed.
//!
//! [`Compiled`] is two engines in one: with [`Extent::Function`] each function has programs of its
//! own (`sequential`), with [`Extent::Chain`] programs reach as far as functions can be put together
//! (`synth`). What programs do not cover (timers, endings of entries, functions under `Priority`,
//! packets near the hop limit) runs by a plain executor of models over the same state.
#![forbid(unsafe_code)]

mod act;
mod ahead;
mod classes;
mod control;
mod due;
mod exec;
mod flow_cache;
mod foreign;
mod group;
mod hot;
mod instance;
mod native;
mod ops;
mod plain;
mod program;
mod programs;
mod report;
mod run;
mod state;
mod walk;

use act::{Emission, Functions};
use braid_flowcache::{BATCH, FlowCache};
pub use braid_flowcache::{
    Basis, Change, Dependency, FlowEnd, FlowField, FlowGuard, FlowNative, FlowPart, FlowRecord,
    FlowTable, FlowTag, FlowTemplate, Flows, Missing, PacketPath, Part, Payload, RecordCounters,
    Splice, Taken, Update,
};
#[cfg(feature = "planted-bugs")]
pub use braid_flowcache::{RECORD_MUTANTS, RecordMutant};
use braid_ir::chain::{Chain, Control, Node};
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry};
use braid_ir::graph::Graph;
use braid_ir::model::Setting;
use braid_ir::residual::Extent;
use braid_ir::value::ParamValue;
use braid_ir::verify::verify;
use braid_ir::walk::At;
pub use braid_ir::walk::Reached;
use braid_native::{Noted, Profile};
use braid_packet::{Layout, Packet};
use due::Waiting;
use hot::Halt;
pub use native::Jit;
use programs::Programs;
use report::Tally;
use walk::Walk;

/// How a compiled engine runs its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// When programs become machine code.
    pub jit: Jit,
    /// Most flow records; 0: none are made.
    pub records: usize,
    /// Whether records are made at a flow's second packet, and also where they do not pay, rather than at the fourth
    /// and where they do: for tests.
    pub eager: bool,
    /// By which hash entries and records are found.
    pub hash: Hashing,
}

/// The hash by which entries and records are found. Only how long that takes hangs on it, and which flows are
/// taken for others when it is asked whether they have been met before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hashing {
    /// One of the engine's own: nobody who sends packets can know which of them share a place.
    #[default]
    Drawn,
    /// The one with this seed: for runs that must repeat in all respects.
    Seeded(u64),
    /// One by which all hashes are equal: for tests.
    Colliding,
}

impl Options {
    /// With flow records, as many as there are likely flows.
    #[must_use]
    pub fn fused() -> Self {
        Self { records: 1 << 20, ..Self::default() }
    }
}

/// A chain that runs by residual programs.
pub struct Compiled {
    functions: Functions,
    graph: Graph,
    workers: u16,
    /// Whether a packet has entered yet.
    started: bool,
    /// No timer fires and no packet is released before this time.
    wake: u64,
    waiting: Waiting,
    /// The number of the next held packet.
    ids: u64,
    tally: Tally,
    programs: Programs,
    /// Memory for what is known of the packets of a part.
    layouts: Vec<Layout>,
    /// Where packets went that came one by one.
    reached: Vec<Reached>,
    /// What the running program has sent.
    emissions: Vec<Emission>,
    /// For flow records, if there are any.
    cache: Option<Box<FlowCache>>,
}

impl Compiled {
    /// An engine for a chain, before its first packet.
    ///
    /// # Errors
    /// When a model does not verify, a parameter's value is not of its type, a timer's period is
    /// 0, or links or priorities make no sense. (Chains from the language have none of these.)
    pub fn new(chain: Chain, extent: Extent, options: Options) -> Result<Self, String> {
        for node in &chain.nodes {
            check(node).map_err(|why| format!("{}: {why}", node.name))?;
        }
        let graph = Graph::new(&chain)?;
        let workers = chain.workers.max(1);
        let tally = Tally::new(&chain);
        let programs = Programs::new(&chain, &graph, extent, options.jit);
        let mut functions = Functions::new(chain, options.hash);
        functions.load(options.records > 0)?;
        let (records, tables) = functions.store.parts();
        records.allow(tables, options.records);
        let cache = (options.records > 0)
            .then(|| Box::new(FlowCache::new(&functions.chain, options.records, options.eager)));
        Ok(Self {
            functions,
            graph,
            workers,
            started: false,
            wake: u64::MAX,
            waiting: Waiting::default(),
            ids: 0,
            tally,
            programs,
            layouts: Vec::new(),
            reached: Vec::new(),
            emissions: Vec::new(),
            cache,
        })
    }

    /// As [`Compiled::new`], with programs that have a bug.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(
        chain: Chain,
        extent: Extent,
        options: Options,
        bug: braid_compiler::synth::PlantedBug,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.programs.bug = Some(bug);
        Ok(engine)
    }

    /// As [`Compiled::new`], with flow records that have a mutant.
    ///
    /// # Errors
    /// As [`Compiled::new`].
    #[cfg(feature = "planted-bugs")]
    pub fn with_record_mutant(
        chain: Chain,
        extent: Extent,
        options: Options,
        mutant: RecordMutant,
    ) -> Result<Self, String> {
        let mut engine = Self::new(chain, extent, options)?;
        engine.functions.store.parts().0.plant(mutant);
        Ok(engine)
    }

    /// Processes packets that entered at one interface, in order, where they are: as if
    /// [`Engine::packet`] had each of them, but a packet that leaves stays in its place, and `reached`
    /// is told where it went. What else leaves (copies, built packets, held ones) goes to `out`.
    ///
    /// A packet that is [`Reached::Gone`] leaves whatever bytes it had last, or none.
    pub fn batch(
        &mut self,
        ingress: u16,
        packets: &mut [Packet],
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) {
        reached.clear();
        reached.reserve(packets.len());
        let mut layouts = std::mem::take(&mut self.layouts);
        layouts.resize(BATCH, Layout::default());
        for part in packets.chunks_mut(BATCH) {
            self.enter(ingress, part, &mut layouts[..part.len()], reached, out);
        }
        self.layouts = layouts;
    }

    /// Packets enter, one after the other, and are walked to their ends, of which `reached` is told.
    /// There are as many layouts, of which nothing is taken.
    fn enter(
        &mut self,
        ingress: u16,
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) {
        for (packet, layout) in packets.iter_mut().zip(&mut *layouts) {
            packet.parse_to(layout);
            packet.ingress = ingress;
        }
        let walk = &mut Walk { hops: 0, worker: 0, out };
        let entry = self.entry(ingress);
        self.tally.packets_in += packets.len() as u64;
        let first = reached.len();
        if let At::Point(point) = entry {
            self.look_at(point, packets, layouts, walk.out);
        }
        self.prefetch(entry, packets, layouts, walk.out);
        while let at = reached.len() - first
            && at < packets.len()
        {
            let halt = match entry {
                At::Point(point) if self.started => {
                    let some = (&mut packets[at..], &layouts[at..]);
                    let taken = self.run_records(point, at, some, reached, walk.out);
                    let at = at + taken;
                    let slow = self.slow_path(at, &packets[at..], &layouts[at..], walk);
                    let some = at..at + slow;
                    self.hurry(point, &mut packets[some.clone()], &mut layouts[some], reached, walk)
                }
                _ => Some(Halt::Entering),
            };
            let Some(halt) = halt else { continue };
            let at = reached.len() - first;
            reached.push(self.go_on(halt, entry, &mut packets[at], &mut layouts[at], walk));
        }
        self.functions.ahead.forget();
    }

    /// A packet goes on by the general walk.
    #[inline(never)]
    fn go_on(
        &mut self,
        halt: Halt,
        entry: At,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Reached {
        match halt {
            Halt::Entering => {
                self.advance_to(packet.time_ns, walk.out);
                self.start_timers();
                packet.time_ns = self.functions.now;
                self.walk_in(entry, packet, layout, walk)
            }
            Halt::At(at) => self.travel(at, packet, walk),
            Halt::Ended { number, ended } => {
                let at = self.ended(number, ended, 0, packet, walk);
                self.travel(at, packet, walk)
            }
        }
    }
}

impl Engine for Compiled {
    fn packet(&mut self, ingress: u16, mut packet: Packet, out: &mut dyn Outputs) {
        let mut reached = std::mem::take(&mut self.reached);
        reached.clear();
        let (packets, layouts) = (std::slice::from_mut(&mut packet), &mut [Layout::default()]);
        self.enter(ingress, packets, layouts, &mut reached, out);
        if let Some(Reached::Interface(interface)) = reached.first() {
            out.packet(*interface, packet);
        }
        self.reached = reached;
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.advance_to(time_ns, out);
        self.advance_natives(out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.advance_to(control.time_ns, out);
        self.change(control)
    }

    fn counters(&self) -> Counters {
        self.report_counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        let mut entries = self.functions.store.report();
        entries.extend(self.native_state());
        // Native functions have no tables: the order within each function stays.
        entries.sort_by_key(|entry| entry.node);
        entries
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        self.native_problems()
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        self.native_profiles()
    }
}

/// Whether a function can run: its model verifies and its values fit.
fn check(node: &Node) -> Result<(), String> {
    let model = &node.model;
    verify(model).map_err(|errors| {
        let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
        format!("its model does not verify: {}", all.join("; "))
    })?;
    if node.params.len() != model.params.len() {
        return Err(format!("{} values for {} parameters", node.params.len(), model.params.len()));
    }
    for (decl, value) in model.params.iter().zip(&node.params) {
        value.check(&decl.ty).map_err(|why| format!("{}: {why}", decl.name))?;
    }
    let period = |setting: Setting| match setting {
        Setting::Const(value) => value,
        Setting::Param(param) => match node.params[param.index()] {
            ParamValue::Scalar(value) => value,
            _ => 0,
        },
    };
    if model.timers.iter().any(|timer| period(timer.period) == 0) {
        return Err("a timer's period is 0".to_owned());
    }
    Ok(())
}
