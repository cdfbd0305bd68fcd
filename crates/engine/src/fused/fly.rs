//! The fast path: what becomes of a packet when its flow has a record, and when not.

use super::aside::Goal;
use super::class::{Class, Classes};
use super::plan::{Plan, VARIANTS, kind, of_kind};
use super::probe::Probe;
use super::{Fused, NONE};
use crate::Compiled;
use crate::act::Functions;
use crate::program::Program;
use crate::walk::{Reached, Walk};
use braid_ir::chain::Chain;
use braid_ir::engine::{Outputs, worker};
use braid_ir::residual::Point;
use braid_jit::Count;
use braid_packet::blend::{NARROW, Outline, WIDE, Window, narrowed};
use braid_packet::{Layout, Packet};
use braid_state::{NewRecord, Record, RecordBug, Store};
use std::hint::black_box;
use std::ops::Range;

/// A packet's flow.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    /// Its key, unless that is a wide one.
    key: Window<NARROW>,
    pub(super) hash: u64,
    /// The program that it is for, or [`NONE`]: then it has no record, and the rest means nothing.
    pub(super) program: u32,
    pub(super) kind: u32,
    pub(super) is_wide: bool,
    /// The number of its record, or [`NONE`].
    pub(super) record: u32,
}

impl Flow {
    /// That of a packet that has no records.
    pub(super) const NO: Flow =
        Flow { key: [0; NARROW], hash: 0, program: NONE, kind: 0, is_wide: false, record: NONE };
}

impl Fused {
    /// Finds the records of packets of the part again, where their hashes are such.
    #[inline(never)]
    pub(super) fn find_again(
        &mut self,
        store: &Store,
        packets: Range<usize>,
        is_such: impl Fn(u64) -> bool,
    ) {
        for at in packets {
            if is_such(self.flows[at].hash) {
                self.flows[at].record = self.find(store, at);
            }
        }
    }

    /// The packet at `at` does not fit the record that was found for it: goes on to the next one of its flow, if
    /// there is one.
    fn vary(&mut self, store: &Store, at: usize) -> bool {
        while self.flows[at].kind % VARIANTS < VARIANTS - 1 {
            self.flows[at].kind += 1;
            self.flows[at].record = self.find(store, at);
            if self.flows[at].record != NONE {
                return true;
            }
        }
        false
    }

    /// Chooses what record to make for the packet at `at`, which fits none that there is; false if its flow has as
    /// many as it may have.
    fn has_variant(&mut self, store: &Store, at: usize) -> bool {
        let first = self.flows[at].kind / VARIANTS * VARIANTS;
        (first..first + VARIANTS).any(|kind| {
            self.flows[at].kind = kind;
            self.find(store, at) == NONE
        })
    }

    /// Reads what is known of flows without a record, so that it is near when they are met.
    #[inline(never)]
    fn touch_filter(&self, packets: usize) {
        let flows = self.flows[..packets].iter().filter(|flow| flow.record == NONE);
        black_box(flows.fold(0, |sum, flow| sum ^ self.filter.touch(flow.hash)));
    }

    /// Looks the record of the packet at `at` up.
    #[inline(never)]
    pub(super) fn find(&self, store: &Store, at: usize) -> u32 {
        let flow = &self.flows[at];
        let record = match (flow.program, flow.is_wide) {
            (NONE, _) => None,
            (_, true) => store.find_record(flow.hash, &self.wide[at], flow.kind),
            (_, false) => store.find_record(flow.hash, &flow.key, flow.kind),
        };
        record.unwrap_or(NONE)
    }
}

impl Plan {
    /// The flow of a packet whose key is not narrow, which goes to `wide`.
    #[inline(never)]
    fn wide_flow(
        &self,
        store: &Store,
        program: u32,
        (packet, layout): (&Packet, &Layout),
        wide: &mut Window<WIDE>,
    ) -> Flow {
        let Some((key, outline)) = self.wide_key(packet, layout) else { return Flow::NO };
        let (hash, kind) = (store.record_hash(&key), kind(program, Some(outline)));
        let record = store.find_record(hash, &key, kind).unwrap_or(NONE);
        *wide = key;
        Flow { hash, program, kind, is_wide: true, record, ..Flow::NO }
    }
}

impl Compiled {
    /// Finds the flows of packets that are about to enter at a point, and their records.
    #[inline(never)]
    pub(crate) fn find_flows(&mut self, entry: Point, packets: &[Packet], layouts: &[Layout]) {
        let Self { fused: Some(fused), programs, functions, workers, .. } = self else { return };
        let by_worker = *workers > 1 && !functions.store.has_bug(RecordBug::WorkerIgnored);
        fused.plan(&programs.all, by_worker);
        let Some((mut shape, mut program)) = programs.points.last(entry) else {
            fused.flows.fill(Flow::NO);
            return;
        };
        functions.store.sweep_records(functions.now);
        let store = &functions.store;
        let many = store.has_many_records();
        fused.ended = store.record_counters().ended;
        let Fused { flows, wide, plans, .. } = &mut **fused;
        let keys = flows.iter_mut().zip(wide);
        let (mut plan, mut first) = (&plans[program], kind(program as u32, None));
        for ((flow, wide), (packet, layout)) in keys.zip(packets.iter().zip(layouts)) {
            if !shape.fits(layout.presence()) {
                let Some(other) = programs.points.known(entry, layout.presence()) else {
                    *flow = Flow::NO;
                    continue;
                };
                (shape, program) = (programs.all[other].residual.shape, other);
                (plan, first) = (&plans[program], kind(program as u32, None));
            }
            let Some(plan) = plan else {
                *flow = Flow::NO;
                continue;
            };
            let program = program as u32;
            if let Some(key) = plan.narrow_key(packet, layout) {
                let (hash, kind) = (store.record_hash(&key), first);
                let record = if many { None } else { store.find_record(hash, &key, kind) };
                let record = record.unwrap_or(NONE);
                *flow = Flow { key, hash, program, kind, is_wide: false, record };
            } else {
                *flow = plan.wide_flow(store, program, (packet, layout), wide);
            }
        }
        if many {
            let hashes = fused.flows[..packets.len()].iter().map(|flow| flow.hash);
            store.fetch_records(hashes);
            for flow in fused.flows[..packets.len()].iter_mut().filter(|flow| !flow.is_wide) {
                let record = store.find_record(flow.hash, &flow.key, flow.kind);
                flow.record = if flow.program == NONE { NONE } else { record.unwrap_or(NONE) };
            }
        }
        if std::mem::take(&mut fused.missed) {
            fused.touch_filter(packets.len());
        }
    }

    /// Packets from the one at `from` on that enter take their records, in order, up to the first one that has
    /// none that fits; how many do.
    #[inline(never)]
    pub(crate) fn fly(
        &mut self,
        entry: Point,
        from: usize,
        (packets, layouts): (&mut [Packet], &[Layout]),
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) -> usize {
        let Self { fused: Some(fused), functions, wake, tally, .. } = self else { return 0 };
        let Functions { store, chain, now, .. } = functions;
        let ignores = store.has_bug(RecordBug::DueIgnored);
        let wake = if ignores { u64::MAX } else { (*wake).min(store.next_due()) };
        let ended = store.record_counters().ended;
        if fused.ended != ended {
            fused.find_again(store, from..from + packets.len(), |_| true);
            fused.ended = ended;
        }
        let goes_back = store.has_bug(RecordBug::TimeGoesBack);
        let classes = &fused.classes.all[..];
        let flows = &fused.flows[from..][..packets.len()];
        let first = reached.len();
        reached.resize(first + packets.len(), Reached::Gone);
        let reached_all = &mut reached[first..];
        let mut at = 0;
        while at < packets.len() {
            let records = if goes_back { &mut [] } else { store.narrow_records() };
            let run = (&flows[at..], &mut packets[at..], &layouts[at..], &mut reached_all[at..]);
            let (taken, time) = glide(records, classes, run, *now, wake);
            (at, *now) = (at + taken, time);
            let (Some(packet), Some(layout)) = (packets.get_mut(at), layouts.get(at)) else {
                break;
            };
            let time = if goes_back { packet.time_ns } else { packet.time_ns.max(*now) };
            if flows[at].record == NONE || time >= wake {
                break;
            }
            let class = take(store, chain, classes, flows[at], (packet, layout), time, out);
            let Some(class) = class else { break };
            *now = time;
            packet.time_ns = time;
            if let Some(more) = &class.more {
                more.finish(packet, tally, out);
            }
            reached_all[at] = class.reached;
            at += 1;
        }
        for packet in &mut packets[..at] {
            (packet.backward, packet.held) = (entry.backward, entry.held);
        }
        reached.truncate(first + at);
        fused.hits += at as u64;
        at
    }

    /// The packet at `from` has no record that fits: how many packets from it on go by their programs. None, if
    /// it has a record now.
    pub(crate) fn go_slowly(
        &mut self,
        from: usize,
        packets: &[Packet],
        layouts: &[Layout],
        walk: &mut Walk<'_>,
    ) -> usize {
        let Some(fused) = self.fused.as_mut().filter(|_| !packets.is_empty()) else {
            return packets.len();
        };
        let Functions { store, now, .. } = &mut self.functions;
        let flow = fused.flows[from];
        fused.missed = true;
        if flow.program != NONE {
            let record = flow.record;
            let due = self.wake.min(store.next_due());
            if record != NONE && packets[0].time_ns.max(*now) >= due {
                fused.misfits += 1;
                return 1;
            }
            // A record that was full can count again, or another one may fit.
            if record != NONE && (store.settle_full(record) || fused.vary(store, from)) {
                return 0;
            }
            if record != NONE && store.has_outdated_records() && fused.turn_to_outdated(store, from)
            {
                let some = from..from + packets.len();
                return usize::from(!self.renew_record(some, &packets[0], &layouts[0], walk));
            }
            let met = if record == NONE { flow.hash } else { !flow.hash };
            let is_tried = fused.filter.meets(met, true) && fused.has_variant(store, from);
            let is_made = is_tried && self.make_record(from, &packets[0], &layouts[0], walk);
            let Self { fused: Some(fused), functions, .. } = self else { return 0 };
            if is_made {
                fused.filter.forget(met);
                let is_such = |hash| hash == flow.hash;
                fused.find_again(&functions.store, from..from + packets.len(), is_such);
                return 0;
            }
            fused.misfits += u64::from(record != NONE);
            if is_tried || record != NONE {
                return 1;
            }
        }
        let Some(fused) = &mut self.fused else { return 1 };
        let mut count = 1;
        for at in from + 1..from + packets.len() {
            let flow = &fused.flows[at];
            let has_flow = flow.program != NONE;
            if has_flow && (flow.record != NONE || fused.filter.meets(flow.hash, false)) {
                break;
            }
            count += 1;
        }
        count
    }

    /// Makes a record for the packet at `at`, which is about to enter; whether there is one now.
    pub(super) fn make_record(
        &mut self,
        at: usize,
        packet: &Packet,
        layout: &Layout,
        walk: &mut Walk<'_>,
    ) -> bool {
        let Some(fused) = &mut self.fused else { return false };
        let flow = fused.flows[at];
        let program = &self.programs.all[flow.program as usize];
        let due = self.wake.min(self.functions.store.next_due());
        let now = packet.time_ns.max(self.functions.now);
        // What is due before the packet may change what the record would rest on.
        if !program.is_even(0) || !self.started || now >= due {
            return false;
        }
        let (worker, number) = (worker(packet, self.workers), flow.program as usize);
        let functions = &mut self.functions;
        let (at_hand, notes) = ((packet, layout), &mut fused.notes);
        let residual = (flow.program, &program.residual);
        let probe = Probe::new(residual, functions, worker, walk.out, at_hand, notes);
        let done = probe.and_then(|mut probe| probe.run(&mut self.programs.words).ok());
        let found = &mut fused.notes;
        if done.is_none() || found.lookups == 0 && !fused.eager {
            return false;
        }
        let Some(goal) = Goal::of(program, &found.way, &self.graph) else { return false };
        if let (false, Some(Some(plan))) = (flow.is_wide, fused.plans.get_mut(number)) {
            let way = &mut found.way;
            (way.link, way.first) = (plan.link(packet), [found.bytes[0], found.bytes[1]]);
            if !way.blend.is_narrow() || fused.classes.lacks_link(way) {
                plan.make_wide();
                let is_it = |kind| of_kind(kind).0 == flow.program;
                self.functions.store.end_narrow_records(is_it);
                return false;
            }
        }
        if functions.store.has_bug(RecordBug::RulesForgotten) {
            found.way.rules.clear();
        }
        let class = fused.classes.known(&mut found.way).or_else(|| {
            if !fused.classes.takes(&found.way) {
                return None;
            }
            let instead = functions.store.renew_class();
            if let Some((class, counts)) = instead
                && !functions.store.has_bug(RecordBug::OutdatedCountsLost)
            {
                settle(&fused.classes, class, counts, &self.programs.all, functions);
            }
            fused.classes.add(found.way.clone(), goal, instead.map(|(class, _)| class))
        });
        let Some(class) = class else { return false };
        let wide = NewRecord {
            key: fused.wide[at],
            hash: flow.hash,
            kind: flow.kind,
            class,
            head: found.bytes,
            sums: found.sums,
            now,
            rests_on: &found.rests_on,
            absent: &found.absent,
        };
        let store = &mut self.functions.store;
        match flow.is_wide {
            true => store.make_record(&wide),
            false => store.make_record(&wide.with(flow.key, narrowed(&found.bytes))),
        }
    }

    /// What records have counted is added to what programs count.
    pub(crate) fn settle_records(&self) {
        let Some(fused) = &self.fused else { return };
        let counts = self.functions.store.record_counts();
        let classes = 0..fused.classes.all.len() as u32;
        for (class, counts) in classes.zip(counts) {
            settle(&fused.classes, class, counts, &self.programs.all, &self.functions);
        }
    }

    /// Ends all records: what they take for granted is about to change. Their flows are not forgotten.
    pub(crate) fn end_records(&mut self) {
        self.settle_records();
        let Some(fused) = &mut self.fused else { return };
        let Functions { store, .. } = &mut self.functions;
        store.record_hashes().for_each(|hash| fused.filter.expect(hash));
        store.end_records();
        fused.classes.clear();
        fused.plans.clear();
    }
}

/// What the records of a class have counted is added to what its program and its rules count.
fn settle(
    classes: &Classes,
    class: u32,
    (packets, bytes): (u64, u64),
    programs: &[Program],
    functions: &Functions,
) {
    let (class, way) = (&classes.all[class as usize], &classes.ways[class as usize]);
    let mut settled = class.settled.replace(Count { packets, bytes });
    if functions.store.has_bug(RecordBug::CountsRepeated) {
        settled = Count::default();
    }
    let (packets, bytes) = (packets - settled.packets, bytes - settled.bytes);
    let program = &programs[way.program as usize];
    for (tally, longer) in &way.tallies {
        let more = i64::from(*longer).wrapping_mul(packets.cast_signed());
        program.counts[tally.0 as usize].update(|count| Count {
            packets: count.packets.wrapping_add(packets),
            bytes: count.bytes.wrapping_add(bytes).wrapping_add_signed(more),
        });
    }
    let end = &program.ends[way.block as usize];
    end.reached.update(|times| times.wrapping_add(packets));
    for (node, param, rule) in &way.rules {
        functions.instances[usize::from(*node)].count_rules(*param, *rule, packets);
    }
}

/// Packets take narrow records of classes for which there is nothing more to be asked and done, from `now` on, up to
/// the first one that does not: how many do, and when the last one did.
#[inline(always)]
fn glide(
    records: &mut [Record<NARROW, NARROW>],
    classes: &[Class],
    (flows, packets, layouts, reached): (&[Flow], &mut [Packet], &[Layout], &mut [Reached]),
    mut now: u64,
    wake: u64,
) -> (usize, u64) {
    let mut taken = 0;
    let packets = packets.iter_mut().zip(layouts).zip(flows);
    for (((packet, layout), flow), reached) in packets.zip(reached) {
        let time = packet.time_ns.max(now);
        // Neither wide ones nor no record are among them.
        let Some(record) = records.get_mut(flow.record as usize) else { break };
        let Some(class) = classes.get(record.body.class as usize) else { break };
        if time >= wake || !record.body.can_count(packet.wire_len) || !class.simply_fits(packet) {
            break;
        }
        (now, packet.time_ns) = (time, time);
        record.body.count(time, packet.wire_len);
        packet.blend_narrow(layout, &class.narrow, &record.head, record.sums);
        *reached = class.reached;
        taken += 1;
    }
    (taken, now)
}

/// A packet takes its flow's record, unless it does not fit it: the record's class.
#[inline(never)]
fn take<'a>(
    store: &mut Store,
    chain: &Chain,
    classes: &'a [Class],
    flow: Flow,
    (packet, layout): (&mut Packet, &Layout),
    time: u64,
    out: &mut dyn Outputs,
) -> Option<&'a Class> {
    let class = classes.get(store.record_class(flow.record) as usize)?;
    if !class.fits(packet) || !store.can_count(flow.record, packet.wire_len) {
        return None;
    }
    if let Some(more) = &class.more
        && !more.run((store, chain), flow.record, (packet, layout), time, out)
    {
        return None;
    }
    if flow.is_wide {
        let outline = Outline::of(layout)?;
        let record = store.record::<WIDE, WIDE>(flow.record)?;
        record.body.count(time, packet.wire_len);
        packet.blend_wide((layout, outline), &class.blend, &record.head, record.sums);
    } else {
        let record = store.record::<NARROW, NARROW>(flow.record)?;
        record.body.count(time, packet.wire_len);
        packet.blend_narrow(layout, &class.narrow, &record.head, record.sums);
    }
    Some(class)
}
