//! The fast path: what becomes of a packet when its flow has a record, and when not.

use super::class::{Class, Classes};
use super::find::Flow;
use super::legs::World;
use super::natives::{Counted, Natives};
use super::plan::{OPEN, Plan, VARIANTS, of_kind};
use super::probe::{Notes, Probe};
use super::{Fused, NONE};
use crate::Compiled;
use crate::act::Functions;
use crate::program::Program;
use crate::programs::Programs;
use crate::walk::{Reached, Walk};
use braid_ir::chain::Chain;
use braid_ir::engine::{Outputs, worker};
use braid_ir::residual::Point;
use braid_jit::Count;
use braid_packet::blend::{NARROW, Outline, WIDE, narrowed};
use braid_packet::{Layout, Packet};
use braid_state::{NewRecord, Record, RecordBug, Refill, Store};
use std::cell::RefCell;
use std::ops::Range;

impl Fused {
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

    /// The plan by which a flow has its key.
    pub(super) fn plan_of(&mut self, flow: Flow) -> Option<&mut Plan> {
        let number = flow.program() as usize;
        match self.is_open {
            true => self.entries.get_mut(number - OPEN as usize).map(|entry| &mut entry.plan),
            false => self.plans.get_mut(number).and_then(Option::as_mut),
        }
    }

    /// Whether this attempt to make a record for a flow is left out.
    fn leaves_out(&mut self, flow: Flow) -> bool {
        let plan = self.plan_of(flow).filter(|plan| plan.is_left_out());
        plan.map(Plan::leave_out).is_some()
    }

    /// Whether a record for a flow that says what was found saves time, of which the plan learns.
    fn pays(&mut self, flow: Flow) -> bool {
        let pays = self.eager || self.notes.loss().is_none();
        if let Some(plan) = self.plan_of(flow) {
            plan.learn(pays);
        }
        pays
    }

    /// Whether records of the flow of a packet can say what was found. If not, further ones of its kind are wide.
    fn has_room(&mut self, flow: Flow, packet: &Packet, store: &mut Store) -> bool {
        if !flow.is_narrow() {
            return true;
        }
        let Some(link) = self.plan_of(flow).map(|plan| plan.link(packet)) else { return true };
        let Notes { way, bytes, .. } = &mut self.notes;
        (way.link, way.first) = (link, [bytes[0], bytes[1]]);
        let has_room = way.blend.is_narrow() && !self.classes.lacks_link(way);
        if let Some(plan) = self.plan_of(flow).filter(|_| !has_room) {
            plan.make_wide();
            store.end_narrow_records(|kind| of_kind(kind).0 == flow.program());
        }
        has_room
    }

    /// The first of these packets goes by its program: how many do, up to one that has a record, or may have one made.
    fn meet(&mut self, packets: Range<usize>) -> usize {
        let mut behind = self.flows[packets.clone()].iter().skip(1);
        let stops = behind.position(|flow| {
            let has_flow = flow.kind != NONE;
            has_flow && (flow.record != NONE || self.filter.meets(flow.hash, false))
        });
        stops.map_or(packets.len(), |stops| 1 + stops)
    }
}

impl Compiled {
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
        let Self { fused, functions, wake, tally, .. } = self;
        let Some(fused) = fused.as_mut().filter(|fused| !fused.is_left_out) else { return 0 };
        let Functions { store, chain, instances, now, .. } = functions;
        let ignores = store.has_bug(RecordBug::DueIgnored);
        let wake = if ignores { u64::MAX } else { (*wake).min(store.next_due()) };
        let ended = store.record_counters().ended;
        if fused.ended != ended {
            fused.find_again(store, from..from + packets.len(), |_| true);
            fused.ended = ended;
        }
        let flows = &fused.flows[from..][..packets.len()];
        if flows.first().is_none_or(|flow| flow.record == NONE) {
            return 0;
        }
        let goes_back = store.has_bug(RecordBug::TimeGoesBack);
        let classes = &fused.classes.all[..];
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
            let natives = Natives { instances, ties: &fused.ties, out };
            let class = take(store, chain, classes, flows[at], (packet, layout), time, natives);
            let Some(class) = class else { break };
            *now = time;
            packet.time_ns = time;
            if let Some(more) = &class.more {
                more.finish(packet, tally, out);
            }
            reached_all[at] = class.reached;
            at += 1;
            if store.record_counters().ended != ended {
                // What a native function has recorded has changed.
                break;
            }
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
    #[inline(never)]
    pub(crate) fn go_slowly(
        &mut self,
        from: usize,
        packets: &[Packet],
        layouts: &[Layout],
        walk: &mut Walk<'_>,
    ) -> usize {
        let looks = |fused: &&mut Box<Fused>| !fused.is_left_out && !packets.is_empty();
        let Some(fused) = self.fused.as_mut().filter(looks) else { return packets.len() };
        let Functions { store, now, .. } = &mut self.functions;
        if fused.ended != store.record_counters().ended {
            // They are found again.
            return 0;
        }
        let flow = fused.flows[from];
        fused.missed = true;
        if flow.kind != NONE {
            let record = flow.record;
            let due = self.wake.min(store.next_due());
            if record != NONE && packets[0].time_ns.max(*now) >= due {
                fused.misfits += 1;
                return 1;
            }
            // A record that could count no more can again, or another one may fit.
            let bytes = packets[0].wire_len;
            let is_full = record != NONE && !store.can_count(record, bytes);
            let refill = is_full.then(|| store.refill(record, bytes));
            if refill == Some(Refill::Filled) || record != NONE && fused.vary(store, from) {
                return 0;
            }
            if refill == Some(Refill::Kept) {
                // Another record would be as near to the same bounds.
                fused.misfits += 1;
                return 1;
            }
            let is_over = refill == Some(Refill::Ended);
            if is_over {
                fused.filter.expect(flow.hash);
            }
            let record = if is_over { NONE } else { record };
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
            if is_over {
                // What leaves bounds is often done once only.
                fused.filter.expect(flow.hash);
            }
            fused.misfits += u64::from(flow.record != NONE);
            if is_tried || flow.record != NONE {
                return 1;
            }
        }
        let Some(fused) = &mut self.fused else { return 1 };
        // Native functions get packets one by one.
        if fused.is_open { 1 } else { fused.meet(from..from + packets.len()) }
    }

    /// Makes a record for the packet at `at`, which is about to enter; whether there is one now.
    pub(super) fn make_record(
        &mut self,
        at: usize,
        packet: &Packet,
        layout: &Layout,
        walk: &mut Walk<'_>,
    ) -> bool {
        let due = self.wake.min(self.functions.store.next_due());
        let now = packet.time_ns.max(self.functions.now);
        // What is due before the packet may change what the record would rest on.
        if !self.started || now >= due {
            return false;
        }
        let worker = worker(packet, self.workers);
        let Self { fused: Some(fused), programs, functions, graph, .. } = self else {
            return false;
        };
        let flow = fused.flows[at];
        let Some(start) = fused.start(flow) else { return false };
        if fused.leaves_out(flow) {
            return false;
        }
        let Programs { all, points, words, .. } = programs;
        let (world, at_hand) = (World { programs: all, points, graph }, (packet, layout));
        let (entry, notes) = (flow.program(), &mut fused.notes);
        let probe = Probe::new(entry, functions, worker, walk.out, at_hand, notes);
        let goal = probe.and_then(|mut probe| probe.run(start, &world, words).ok());
        let Some(goal) = goal else { return false };
        if !fused.pays(flow) || !fused.has_room(flow, packet, &mut functions.store) {
            return false;
        }
        let found = &mut fused.notes;
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
                settle((&fused.classes, &fused.counted), class, counts, all, functions);
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
        let store = &mut functions.store;
        let is_made = match flow.is_narrow() {
            false => store.make_record(&wide),
            true => store.make_record(&wide.with(flow.key, narrowed(&found.bytes))),
        };
        if is_made && fused.is_open {
            fused.tie(fused.find(store, at), layout);
        }
        is_made
    }

    /// What records have counted is added to what programs count.
    pub(crate) fn settle_records(&self) {
        let Some(fused) = &self.fused else { return };
        let counts = self.functions.store.record_counts();
        let classes = 0..fused.classes.all.len() as u32;
        for (class, counts) in classes.zip(counts) {
            let known = (&fused.classes, &fused.counted);
            settle(known, class, counts, &self.programs.all, &self.functions);
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

/// What the records of a class have counted is added to what its programs, its native functions and its rules count.
fn settle(
    (classes, counted): (&Classes, &RefCell<Counted>),
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
    for (through, tallies) in way.programs() {
        let program = &programs[through.program as usize];
        for (tally, longer) in tallies {
            let more = i64::from(*longer).wrapping_mul(packets.cast_signed());
            program.counts[tally.0 as usize].update(|count| Count {
                packets: count.packets.wrapping_add(packets),
                bytes: count.bytes.wrapping_add(bytes).wrapping_add_signed(more),
            });
        }
        let end = &program.ends[through.block as usize];
        end.reached.update(|times| times.wrapping_add(packets));
    }
    counted.borrow_mut().add(way, packets, bytes);
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
        let (time, wire_len) = (packet.time_ns.max(now), packet.wire_len);
        // Neither wide ones nor no record are among them.
        let Some(record) = records.get_mut(flow.record as usize) else { break };
        let Some(class) = classes.get(record.body.class as usize) else { break };
        let fits = time < wake && record.body.can_count(wire_len);
        if !fits || !class.simply_fits(packet.data(), wire_len) {
            break;
        }
        (now, packet.time_ns) = (time, time);
        record.body.count(time, wire_len);
        layout.blend_narrow(packet.data_mut(), &class.narrow, &record.head, record.sums);
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
    mut natives: Natives<'_>,
) -> Option<&'a Class> {
    let class = classes.get(store.record_class(flow.record) as usize)?;
    if !class.fits(packet) || !store.can_count(flow.record, packet.wire_len) {
        return None;
    }
    let ties = natives.of(flow.record);
    if ties.is_some_and(|ties| !natives.are_ready(ties, layout, time, store)) {
        return None;
    }
    if let Some(more) = &class.more
        && more.asks
        && !more.run((store, chain), flow.record, (packet, layout), time, natives.out)
    {
        return None;
    }
    if !flow.is_narrow() {
        let outline = Outline::of(layout)?;
        let record = store.record::<WIDE, WIDE>(flow.record)?;
        record.body.count(time, packet.wire_len);
        let (head, sums) = (record.head, record.sums);
        if let Some(ties) = ties {
            natives.run(ties, packet, (layout, outline), time, store);
        }
        packet.blend_wide((layout, outline), &class.blend, &head, sums);
    } else {
        let record = store.record::<NARROW, NARROW>(flow.record)?;
        record.body.count(time, packet.wire_len);
        let (head, sums) = (record.head, record.sums);
        if let Some(ties) = ties {
            natives.run(ties, packet, (layout, Outline::PLAIN), time, store);
        }
        layout.blend_narrow(packet.data_mut(), &class.narrow, &head, sums);
    }
    Some(class)
}
