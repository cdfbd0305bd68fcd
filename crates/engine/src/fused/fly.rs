//! The fast path: what becomes of a packet when its flow has a record, and when not.

use super::NONE;
use super::plan::Plan;
use super::probe::Probe;
use crate::Compiled;
use crate::walk::{At, Reached, Walk};
use braid_ir::engine::worker;
use braid_ir::residual::Point;
use braid_jit::Count;
use braid_packet::blend::{WORDS, Window, words};
use braid_packet::{Layout, Packet};
use braid_state::{NewRecord, RecordBug};

/// A packet's flow.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) key: Window,
    pub(super) hash: u64,
    /// The program that it is for, or [`NONE`]: then it has no record, and the rest means nothing.
    pub(super) program: u32,
    /// Whether it is known to have a record now.
    pub(super) has_record: bool,
}

impl Flow {
    /// That of a packet that has no records.
    pub(super) const NO: Flow = Flow { key: [0; WORDS], hash: 0, program: NONE, has_record: false };
}

impl Compiled {
    /// Finds the flows of packets that are about to enter at a point, and fetches their records from memory if
    /// there are many.
    pub(crate) fn find_flows(&mut self, entry: Point, packets: &[Packet], layouts: &[Layout]) {
        let Self { fused: Some(fused), programs, functions, workers, .. } = self else { return };
        let by_worker = *workers > 1 && !functions.store.has_bug(RecordBug::WorkerIgnored);
        fused.plan(&programs.all, by_worker);
        let Some((mut shape, mut program)) = programs.points.last(entry) else {
            fused.flows.fill(Flow::NO);
            return;
        };
        let store = &functions.store;
        for ((flow, packet), layout) in fused.flows.iter_mut().zip(packets).zip(layouts) {
            if !shape.fits(layout.presence()) {
                let Some(other) = programs.points.known(entry, layout.presence()) else {
                    *flow = Flow::NO;
                    continue;
                };
                (shape, program) = (programs.all[other].residual.shape, other);
            }
            let plan = fused.plans.get(program).and_then(Option::as_ref);
            let (Some(plan), Some(head)) = (plan.filter(|_| Plan::takes(layout)), packet.window())
            else {
                *flow = Flow::NO;
                continue;
            };
            let (window, mask) = (words(head), &plan.mask);
            let key = std::array::from_fn(|at| window[at] & mask[at]);
            let (hash, program) = (store.record_hash(&key), program as u32);
            *flow = Flow { key, hash, program, has_record: false };
        }
        if store.has_many_records() {
            let flows = &mut fused.flows[..packets.len()];
            store.fetch_records(flows.iter().map(|flow| flow.hash));
            for flow in flows {
                flow.has_record = store.has_record(flow.hash, &flow.key, flow.program);
            }
        }
    }

    /// Packets from the one at `from` on that enter take their records, in order, up to the first one that has
    /// none that fits; how many do.
    pub(crate) fn fly(
        &mut self,
        entry: Point,
        from: usize,
        packets: &mut [Packet],
        layouts: &[Layout],
        reached: &mut Vec<Reached>,
    ) -> usize {
        let Self { fused: Some(fused), functions, wake, .. } = self else { return 0 };
        let has_bug = |bug| functions.store.has_bug(bug);
        let ignores = has_bug(RecordBug::DueIgnored);
        let wake = if ignores { u64::MAX } else { (*wake).min(functions.store.next_due()) };
        let goes_back = has_bug(RecordBug::TimeGoesBack);
        let mut now = functions.now;
        let mut taken = 0;
        for ((flow, packet), layout) in fused.flows[from..].iter().zip(packets).zip(layouts) {
            let time = if goes_back { packet.time_ns } else { packet.time_ns.max(now) };
            if flow.program == NONE || time >= wake {
                break;
            }
            let Some(record) = functions.store.take_record(flow.hash, &flow.key, flow.program)
            else {
                break;
            };
            let (Some(class), Some(head)) =
                (fused.classes.all.get(record.class as usize), packet.window())
            else {
                break;
            };
            let bytes = packet.wire_len;
            if !class.guards.iter().all(|guard| guard.holds(head, bytes)) {
                break;
            }
            if !record.count(time, bytes) {
                break;
            }
            now = time;
            packet.time_ns = now;
            (packet.backward, packet.held) = (entry.backward, entry.held);
            packet.blend(layout, &class.blend, &record.head, record.sums);
            reached.push(class.reached);
            taken += 1;
        }
        functions.now = now;
        fused.hits += taken as u64;
        taken
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
        let store = &self.functions.store;
        let flow = fused.flows[from];
        if flow.program != NONE {
            if store.has_record(flow.hash, &flow.key, flow.program) {
                fused.misfits += 1;
                self.functions.store.settle_full(flow.hash, &flow.key, flow.program);
                return 1;
            }
            if fused.filter.meets(flow.hash) {
                return usize::from(!self.make_record(from, &packets[0], &layouts[0], walk));
            }
        }
        let mut count = 1;
        for flow in &fused.flows[from + 1..from + packets.len()] {
            if flow.program != NONE {
                let has = store.has_record(flow.hash, &flow.key, flow.program);
                if has || fused.filter.would_admit(flow.hash) {
                    break;
                }
                fused.filter.meets(flow.hash);
            }
            count += 1;
        }
        count
    }

    /// Makes a record for the packet at `at`, which is about to enter; whether there is one now.
    fn make_record(
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
        // What is due before the packet may change what the record would rest on.
        if !program.is_even(0) || !self.started || packet.time_ns.max(self.functions.now) >= due {
            return false;
        }
        let worker = worker(packet, self.workers);
        let number = (flow.program, &program.residual);
        let functions = &mut self.functions;
        let probe = Probe::new(number, functions, worker, walk.out, (packet, layout));
        let found = probe.and_then(|probe| probe.run(&mut self.programs.words).ok());
        let Some(found) = found else { return false };
        let Some(At::End(reached)) = program.ends[found.way.block as usize].next else {
            return false;
        };
        let mut way = found.way;
        if self.functions.store.has_bug(RecordBug::RulesForgotten) {
            way.rules.clear();
        }
        let Some(class) = fused.classes.number(way, reached) else { return false };
        self.functions.store.make_record(&NewRecord {
            key: flow.key,
            program: flow.program,
            class,
            head: found.bytes,
            sums: found.sums,
            rests_on: &found.rests_on,
            absent: &found.absent,
        })
    }

    /// What records have counted is added to what programs count.
    pub(crate) fn settle_records(&self) {
        let Some(fused) = &self.fused else { return };
        let counts = self.functions.store.record_counts();
        for ((class, way), count) in fused.classes.all.iter().zip(&fused.classes.ways).zip(counts) {
            let mut settled = class.settled.replace(Count { packets: count.0, bytes: count.1 });
            if self.functions.store.has_bug(RecordBug::CountsRepeated) {
                settled = Count::default();
            }
            let (packets, bytes) = (count.0 - settled.packets, count.1 - settled.bytes);
            let program = &self.programs.all[way.program as usize];
            for tally in &way.tallies {
                program.counts[tally.0 as usize].update(|count| Count {
                    packets: count.packets.wrapping_add(packets),
                    bytes: count.bytes.wrapping_add(bytes),
                });
            }
            let end = &program.ends[way.block as usize];
            end.reached.update(|times| times.wrapping_add(packets));
            for (node, param, rule) in &way.rules {
                self.functions.instances[usize::from(*node)].count_rules(*param, *rule, packets);
            }
        }
    }

    /// Ends all records: what they take for granted is about to change.
    pub(crate) fn end_records(&mut self) {
        self.settle_records();
        let Some(fused) = &mut self.fused else { return };
        self.functions.store.end_records();
        fused.classes.clear();
        fused.plans.clear();
    }
}
