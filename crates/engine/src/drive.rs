//! The engine's main loop. It parses packets and finds their flows. Each packet then takes the fast
//! path (its flow's record) or the slow path (its program).

use crate::compiled::Compiled;
use crate::control::prepare;
use crate::executor::Executor;
use crate::hot::{Halt, run_compiled};
use crate::moving;
use crate::report;
use crate::snapshot;
use crate::work::Walk;
use braid_flowcache::{BATCH, FlowCache, PacketPath, Reason, Rest, foresee};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{
    Compilation, Counters, Engine, Later, Outputs, Prepared, Room, StateEntry, Watcher,
};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_ir::walk::{At, Reached};
use braid_native::{Noted, Profile};
use braid_packet::{Burst, Layout, Packet};
use std::any::Any;

/// The number of flow records that settle at a time before the state is copied.
const AT_A_TIME: usize = 1024;

impl Compiled {
    /// Runs packets to their ends, one after the other, and adds the destination of each to
    /// `reached`. There are at most [`BATCH`] packets. Stops at a packet whose program is not known
    /// when the cache looks for its flow. The next call goes on there; by then the program may be
    /// known.
    #[expect(
        clippy::indexing_slicing,
        reason = "`at` and `slow` end before the packets do, and each packet has a layout"
    )]
    fn enter(
        &mut self,
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) {
        let Self { executor, cache, .. } = self;
        let worker = executor.functions.chain.only.unwrap_or(0);
        let records = cache.is_some();
        let walk = &mut Walk { hops: 0, worker, out, watcher: None, records, rests: false };
        make_wanted(executor, cache.as_deref_mut());
        let first = reached.len();
        let count = match cache {
            Some(cache) => cache.look_at(&mut executor.host(walk.out), packets, layouts),
            None => packets.len(),
        };
        let (packets, layouts) = (&mut packets[..count], &mut layouts[..count]);
        let chain = &executor.functions.chain;
        let workers = cache.as_ref().and_then(|_| workers_of(chain, packets, layouts));
        executor.chain_counters.packets_in += count as u64;
        let has_record = |at| cache.as_ref().is_some_and(|cache| cache.has_record(at));
        executor.prefetch((packets, layouts), has_record, walk.out);
        // The packets up to here enter at the same place, or were told to a function.
        let (mut same, mut told) = (0, executor.firsts.arrive(count));
        loop {
            let mut at = reached.len() - first;
            let mut cache = cache.as_deref_mut().filter(|_| executor.started);
            let mut part = None;
            if let Some(cache) = &mut cache {
                let rest = (&mut packets[at..], &layouts[at..]);
                let host = &mut executor.host(walk.out);
                let (taken, onward) = cache.run_records(host, at, rest, reached);
                (at, part) = (at + taken, onward);
            }
            let Some(packet) = packets.get(at) else { break };
            let Executor { firsts, functions, .. } = executor;
            firsts.announce(functions, (at, &mut told), (packets, layouts));
            let entry = executor.entry(packet.ingress);
            walk.rests = part.is_some();
            if same <= at {
                same = at + same_ingress(&packets[at..]);
            }
            let mut run = (&mut packets[at..], &mut layouts[at..]);
            let hot = cache.as_deref_mut().map(|cache| (cache, first));
            let mut halt = match part {
                Some(onward) => {
                    run = (&mut run.0[..1], &mut run.1[..1]);
                    run.0[0].parse_to(&mut run.1[0]);
                    walk.hops = onward.hops;
                    walk.worker = workers.map_or(worker, |workers| workers[at]);
                    run_compiled(executor, (onward.point, part), hot, run, reached, walk)
                }
                None => without_record(executor, hot, (entry, same - at), run, reached, walk),
            };
            if halt.as_ref().is_some_and(|halt| !matches!(halt, Halt::Entering)) {
                executor.begin_walk();
            }
            while let Some(stop) = halt.take() {
                let at = reached.len() - first;
                let at_hand = (&mut packets[at], &mut layouts[at]);
                let place = (entry, at);
                halt = step(executor, cache.as_deref_mut(), stop, place, at_hand, reached, walk);
            }
        }
        executor.firsts.settle(&mut executor.functions);
        executor.functions.prefetch.forget();
    }

    /// Processes a packet as [`Engine::packet`] does. Returns the path that it took, or `None` if
    /// the engine makes no flow records.
    pub fn packet_by_path(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
    ) -> Option<PacketPath> {
        let before = self.flows();
        let foreseen =
            before.and_then(|before| Some((before, self.foresee(ingress, &packet, out)?)));
        self.packet(ingress, packet, out);
        let (before, path) = foreseen?;
        Some(path.corrected(before, self.flows()?))
    }

    /// The path that a packet would take now.
    fn foresee(
        &mut self,
        ingress: u16,
        packet: &Packet,
        out: &mut dyn Outputs,
    ) -> Option<PacketPath> {
        let (mut packet, mut layout) = (packet.clone(), Layout::default());
        packet.parse_to(&mut layout);
        packet.ingress = ingress;
        let At::Point(point) = self.executor.entry(ingress) else {
            return Some(PacketPath::miss(Reason::NowhereToGo));
        };
        if !self.executor.started {
            return Some(PacketPath::miss(Reason::First));
        }
        let cache = self.cache.as_mut()?;
        Some(foresee(cache, self.executor.host(out), point, (&packet, &layout)))
    }
}

/// Makes the program that flow records want, if they want one.
fn make_wanted(executor: &mut Executor, cache: Option<&mut FlowCache>) {
    if let Some(cache) = cache
        && let Some(cut) = cache.take_wanted()
        && !executor.make_cut(cut)
    {
        cache.want_no_more();
    }
}

/// The workers of packets that enter, before a record changes a packet that then goes on. `None` if
/// all packets have the same worker.
fn workers_of(chain: &Chain, packets: &[Packet], layouts: &[Layout]) -> Option<[u16; BATCH]> {
    let mut workers = chain.steers().then_some([0; BATCH])?;
    let all = workers.iter_mut().zip(packets.iter().zip(layouts));
    all.for_each(|(worker, (packet, layout))| *worker = chain.worker(packet, layout));
    Some(workers)
}

/// Runs the programs of the first packets. The very first one has no record, or cannot take it. The
/// first `most` packets enter at one place. `cache` and the result are as in [`run_compiled`].
fn without_record(
    executor: &mut Executor,
    mut cache: Option<(&mut FlowCache, usize)>,
    (entry, most): (At, usize),
    (packets, layouts): (&mut [Packet], &mut [Layout]),
    reached: &mut Vec<Reached>,
    walk: &mut Walk<'_>,
) -> Option<Halt> {
    // The packets that must run their programs.
    let mut count = most;
    if let Some((cache, first)) = &mut cache {
        let (at, host) = (reached.len() - *first, &mut executor.host(walk.out));
        count = count.min(cache.slow_path(host, at, packets, layouts));
    }
    match (entry, packets.get_mut(..count), layouts.get_mut(..count)) {
        (At::Point(point), Some(packets), Some(layouts)) if executor.started => {
            run_compiled(executor, (point, None), cache, (packets, layouts), reached, walk)
        }
        _ => Some(Halt::Entering),
    }
}

/// Takes a packet on from where it stopped, by the general walk or by a record for the rest of its
/// path. `place` is the place where packets like it enter, and its place in the batch. Returns
/// where it stops next. `None` if it has ended; then its destination is in `reached`.
fn step(
    executor: &mut Executor,
    cache: Option<&mut FlowCache>,
    halt: Halt,
    (entry, at): (At, usize),
    (packet, layout): (&mut Packet, &mut Layout),
    reached: &mut Vec<Reached>,
    walk: &mut Walk<'_>,
) -> Option<Halt> {
    walk.out.at(reached.len());
    let point = match executor.go_on(halt, entry, packet, layout, walk) {
        Ok(end) => {
            reached.push(end);
            return None;
        }
        Err(point) => point,
    };
    let place = (point, at, walk.hops);
    let rest = cache.map_or(Rest::Lacks, |cache| {
        cache.run_rest(&mut executor.host(walk.out), place, (packet, layout), reached)
    });
    match rest {
        Rest::Lacks => Some(Halt::At(At::Point(point))),
        Rest::Ended => None,
        Rest::Goes(onward) => {
            (walk.hops, walk.rests) = (onward.hops, true);
            Some(Halt::behind(onward))
        }
    }
}

/// The number of packets at the front that enter by the same interface.
fn same_ingress(packets: &[Packet]) -> usize {
    let first = packets.first().map(|packet| packet.ingress);
    packets.iter().take_while(|packet| Some(packet.ingress) == first).count()
}

impl Engine for Compiled {
    #[expect(clippy::indexing_slicing, reason = "`at` and `end` are places of packets")]
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        self.executor.take_programs();
        let (packets, layouts, reached) = burst.parts();
        reached.clear();
        while let at = reached.len()
            && at < packets.len()
        {
            let end = packets.len().min(at + BATCH);
            self.enter(&mut packets[at..end], &mut layouts[at..end], reached, out);
        }
    }

    fn ahead(&mut self, burst: &mut Burst) -> bool {
        let (packets, layouts) = burst.parsed();
        let Executor { firsts, functions, .. } = &mut self.executor;
        firsts.run_ahead(functions, (packets, layouts))
    }

    fn explained(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
    ) -> Option<Box<dyn Any + Send>> {
        self.packet_by_path(ingress, packet, out).map(|path| Box::new(path) as Box<dyn Any + Send>)
    }

    fn watched(
        &mut self,
        ingress: u16,
        mut packet: Packet,
        out: &mut dyn Outputs,
        watcher: &mut dyn Watcher,
    ) {
        let executor = &mut self.executor;
        executor.take_programs();
        packet.ingress = ingress;
        executor.chain_counters.packets_in += 1;
        // What is due before the packet is not shown.
        executor.advance_to(packet.time_ns, out);
        let (entry, mut layout) = (executor.entry(ingress), packet.parse());
        let records = false;
        let mut walk =
            Walk { hops: 0, worker: 0, out, watcher: Some(watcher), records, rests: false };
        let halt = Halt::Entering;
        // Without records, packets never stop on their way.
        let end = executor.go_on(halt, entry, &mut packet, &mut layout, &mut walk);
        if let Ok(Reached::Interface(interface)) = end {
            out.packet(interface, packet);
        }
    }

    fn next_release(&self) -> Option<u64> {
        self.executor.waiting.first_key_value().map(|((at, ..), _)| *at)
    }

    fn flow_page(&self, from: usize, most: usize) -> Option<Box<dyn Any + Send>> {
        self.flow_records(from, most).map(|page| Box::new(page) as Box<dyn Any + Send>)
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.pass_time(time_ns, out);
        self.executor.advance_natives(out);
    }

    fn pass_time(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.executor.take_programs();
        self.executor.advance_to(time_ns, out);
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.executor.advance_to(time_ns, out);
        self.executor.start_timers();
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.control_prepared(&mut prepare(control.clone()), out)
    }

    fn preparer(&self) -> fn(Control) -> Prepared {
        prepare
    }

    fn control_prepared(
        &mut self,
        change: &mut Prepared,
        out: &mut dyn Outputs,
    ) -> Result<(), String> {
        self.executor.advance_to(change.control.time_ns, out);
        self.change(change)
    }

    fn counters(&self) -> Counters {
        report::counters(&self.executor, self.cache.as_deref())
    }

    fn state(&self) -> Vec<StateEntry> {
        let Executor { functions, .. } = &self.executor;
        report::state(functions.store.report(), functions.native_state())
    }

    fn export(&mut self) -> Snapshot {
        snapshot::copy(self, None)()
    }

    fn prepare_copy(&mut self) -> bool {
        self.executor.functions.store.parts().0.pause();
        moving::settle(self, AT_A_TIME)
    }

    fn resume(&mut self) {
        self.executor.functions.store.parts().0.resume();
    }

    fn room(&self, function: Option<u16>) -> Later<Room> {
        let room = self.executor.functions.store.tables().room(function);
        Box::new(|| Some(Box::new(room())))
    }

    fn exporter(&mut self, room: Room) -> Later<Snapshot> {
        Box::new(snapshot::copy(self, room))
    }

    fn reporter(&mut self, room: Room, function: Option<u16>) -> Later<Vec<StateEntry>> {
        let tables = moving::copy(self, room, function);
        let mut natives = self.executor.functions.native_state();
        natives.retain(|entry| function.is_none_or(|function| entry.node == function));
        Box::new(move || report::state(braid_state::report(&tables, &()), natives))
    }

    fn compilation(&self) -> Option<Compilation> {
        Some(self.executor.compilation())
    }

    fn movable(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn export_without(&mut self, staying: &[u16]) -> Snapshot {
        snapshot::outline(self, staying)
    }

    fn take_over(&mut self, old: &mut dyn Engine, functions: &[(u16, u16)]) {
        if let Some(old) = old.movable().and_then(|old| old.downcast_mut()) {
            moving::take_over(self, old, functions);
        }
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        snapshot::import(self, snapshot)
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        let functions = &self.executor.functions;
        let mut all = functions.native_problems();
        all.extend(functions.stacks.problems());
        all.sort_by_key(|(node, _)| *node);
        all
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        self.executor.functions.native_profiles()
    }
}
