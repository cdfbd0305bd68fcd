//! Several engines, each one worker of a chain, as one engine. The workers share nothing. A
//! steering gives each packet its worker, and the workers together hold the same state as one
//! engine with a shard for each worker.

use crate::share::{Divided, Share, What};
use crate::steer::{Steerer, workers};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry};
use braid_ir::native::{Noted, Problems, Profile};
use braid_ir::snapshot::{ImportError, Snapshot, part, unite};
use braid_packet::{Burst, Packet};
use std::collections::BTreeMap;

/// The engines of a chain's workers.
pub struct Sharded {
    pub(crate) steerer: Steerer,
    /// By worker.
    pub(crate) engines: Vec<Box<dyn Engine>>,
    shares: Vec<Share>,
    divided: Divided,
}

impl Sharded {
    /// The engines of a divided chain's workers. `make` makes each of them for its chain.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn new<E>(
        chain: &Chain,
        make: impl FnMut(Chain) -> Result<Box<dyn Engine>, E>,
    ) -> Result<Self, E> {
        Ok(Self::of(workers(chain).map(make).collect::<Result<_, E>>()?, chain))
    }

    /// These engines of a divided chain's workers.
    pub(crate) fn of(engines: Vec<Box<dyn Engine>>, chain: &Chain) -> Self {
        let shares = engines.iter().map(|_| Share::default()).collect();
        let steerer = Steerer::new(chain.clone());
        Self { steerer, engines, shares, divided: Divided::default() }
    }

    fn chain(&self) -> &Chain {
        &self.steerer.chain
    }

    /// Calls `work` for every engine. The outputs come in the order of their times.
    fn each<T>(
        &mut self,
        out: &mut dyn Outputs,
        work: impl Fn(&mut dyn Engine, &mut dyn Outputs) -> T,
    ) -> Vec<T> {
        let mut left = Left(Vec::new());
        let done = self.engines.iter_mut().map(|engine| work(engine.as_mut(), &mut left)).collect();
        left.0.sort_by_key(What::time_ns);
        left.0.into_iter().for_each(|what| what.give(out));
        done
    }
}

/// The state entries of a chain, from those of its workers' engines.
pub(crate) fn united_state(
    parts: impl Iterator<Item = Vec<StateEntry>>,
    chain: &Chain,
) -> Vec<StateEntry> {
    let mut all = Vec::new();
    for (worker, entries) in (0..).zip(parts) {
        all.extend(entries.into_iter().filter(|entry| entry.shard == worker));
    }
    let table = |entry: &StateEntry| {
        let node = chain.nodes.get(usize::from(entry.node))?;
        node.model.state.iter().position(|decl| decl.name == entry.table)
    };
    all.sort_by_cached_key(|entry| (entry.node, table(entry), entry.created_ns, entry.shard));
    all
}

/// The packets and events that left.
struct Left(Vec<What>);

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push(What::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.0.push(What::Event(event));
    }
}

impl Engine for Sharded {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        let Self { steerer, engines, shares, divided } = self;
        divided.reset();
        let (packets, layouts, _) = burst.parts();
        let each = packets.iter_mut().zip(layouts);
        let steered = each.map(|(packet, layout)| {
            let worker = steerer.steer(packet, layout);
            (worker, steerer.cuts(packet.time_ns))
        });
        let steered: Vec<(u16, bool)> = steered.collect();
        let mut packets = burst.drain().collect::<Vec<_>>().into_iter().zip(steered).peekable();
        let mut from = 0;
        while packets.peek().is_some() {
            shares.iter_mut().for_each(Share::reset);
            let mut count = 0;
            while let Some((packet, (worker, _))) =
                packets.next_if(|(_, (_, is_cut))| count == 0 || !is_cut)
            {
                divided.push(shares, worker, packet);
                count += 1;
            }
            divided.finish(shares, from, steerer.begins());
            for (share, engine) in shares.iter_mut().zip(&mut *engines) {
                share.run(engine.as_mut());
            }
            divided.unite(shares, burst, out);
            from += count;
        }
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.steerer.advance(time_ns);
        self.each(out, |engine, out| engine.advance(time_ns, out));
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.steerer.advance(time_ns);
        self.steerer.begins();
        self.each(out, |engine, out| engine.begin(time_ns, out));
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.steerer.advance(control.time_ns);
        // All engines have the same configuration, so all refuse a change, or none does.
        self.each(out, |engine, out| engine.control(control, out))
            .into_iter()
            .collect::<Result<(), _>>()?;
        self.steerer.change(control);
        Ok(())
    }

    fn counters(&self) -> Counters {
        let parts = self.engines.iter().map(|engine| engine.counters()).collect();
        Counters::united(parts, self.chain())
    }

    fn state(&self) -> Vec<StateEntry> {
        united_state(self.engines.iter().map(|engine| engine.state()), self.chain())
    }

    fn export(&mut self) -> Snapshot {
        let parts = self.engines.iter_mut().map(|engine| engine.export()).collect();
        unite(parts, self.chain())
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        for (worker, engine) in (0..).zip(&mut self.engines) {
            engine.import(part(&snapshot, worker, &self.steerer.chain))?;
        }
        self.steerer.resume(snapshot)
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        let mut all: BTreeMap<u16, Problems> = BTreeMap::new();
        for (node, noted) in self.engines.iter().flat_map(|engine| engine.problems()) {
            all.entry(node).or_default().append([noted]);
        }
        let listed = |(node, problems): (u16, Problems)| {
            problems.all().to_vec().into_iter().map(move |noted| (node, noted))
        };
        all.into_iter().flat_map(listed).collect()
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        let mut all: Vec<_> = self.engines.iter().flat_map(|engine| engine.observed()).collect();
        all.sort_by_key(|(node, _)| *node);
        all
    }
}
