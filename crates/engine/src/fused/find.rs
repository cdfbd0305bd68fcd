//! The flows of packets that are about to enter, and their records.

use super::plan::{IS_WIDE, Plan, kind, of_kind};
use super::sample::Sample;
use super::{Fused, NONE};
use crate::Compiled;
use braid_ir::residual::{HeaderMask, Point};
use braid_packet::blend::{NARROW, WIDE, Window};
use braid_packet::{Layout, Packet};
use braid_state::{RecordBug, Store};
use std::hint::black_box;
use std::ops::Range;

/// A packet's flow.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    /// Its key, unless that is a wide one.
    pub(super) key: Window<NARROW>,
    pub(super) hash: u64,
    /// For what its records are ([`kind`]), or [`NONE`]: then it has none, and the rest means nothing.
    pub(super) kind: u32,
    /// The number of its record, or [`NONE`].
    pub(super) record: u32,
}

impl Flow {
    /// That of a packet that has no records.
    pub(super) const NO: Flow = Flow { key: [0; NARROW], hash: 0, kind: NONE, record: NONE };

    /// Whether its key is not a wide one; there may be none at all.
    #[inline(always)]
    pub(super) fn is_narrow(&self) -> bool {
        self.kind & IS_WIDE == 0
    }

    /// The program that its records are for.
    pub(super) fn program(&self) -> u32 {
        of_kind(self.kind).0
    }
}

impl Fused {
    /// Whether so many next packets are looked at, and what comes of it.
    pub(super) fn sampled(&self, packets: usize) -> (bool, Sample) {
        let mut sample = self.sample;
        let again = self.hits + self.misfits + self.filter.again;
        (self.eager || sample.takes(packets, again), sample)
    }

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

    /// Looks the record of the packet at `at` up.
    #[inline(never)]
    pub(super) fn find(&self, store: &Store, at: usize) -> u32 {
        let flow = &self.flows[at];
        let record = match flow.kind {
            NONE => None,
            kind if flow.is_narrow() => store.find_record(flow.hash, &flow.key, kind),
            kind => store.find_record(flow.hash, &self.wide[at], kind),
        };
        record.unwrap_or(NONE)
    }

    /// Reads what is known of flows without a record, so that it is near when they are met.
    #[inline(never)]
    fn touch_filter(&self, packets: usize) {
        let flows = self.flows[..packets].iter().filter(|flow| flow.record == NONE);
        black_box(flows.fold(0, |sum, flow| sum ^ self.filter.touch(flow.hash)));
    }
}

impl Plan {
    /// The flows of packets up to the first one that is not of the program's shape, or has no narrow key: how many those
    /// are. Their records are still to be found.
    #[inline(always)]
    fn narrow_flows(
        &self,
        store: &Store,
        (program, shape): (u32, HeaderMask),
        (flows, packets, layouts): (&mut [Flow], &[Packet], &[Layout]),
    ) -> usize {
        let kind = kind(program, None);
        let mut found = 0;
        for (flow, (packet, layout)) in flows.iter_mut().zip(packets.iter().zip(layouts)) {
            let key = self.narrow_key(packet, layout);
            let Some(key) = key.filter(|_| shape.fits(layout.presence())) else { break };
            let hash = store.record_hash(&key);
            *flow = Flow { key, hash, kind, record: NONE };
            found += 1;
        }
        found
    }

    /// The flow of a packet whose key is not narrow, which goes to `wide`.
    #[inline(never)]
    pub(super) fn wide_flow(
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
        Flow { hash, kind, record, ..Flow::NO }
    }
}

impl Compiled {
    /// Packets are about to enter at a point: their flows and records are found, unless they are left out.
    pub(crate) fn look_at(&mut self, entry: Point, packets: &[Packet], layouts: &[Layout]) {
        let Some(fused) = &mut self.fused else { return };
        let (takes, sample) = fused.sampled(packets.len());
        (fused.sample, fused.is_left_out) = (sample, !takes);
        if takes {
            self.find_flows(entry, packets, layouts);
        }
    }

    /// Finds the flows of packets that are about to enter at a point, and their records.
    #[inline(never)]
    pub(crate) fn find_flows(&mut self, entry: Point, packets: &[Packet], layouts: &[Layout]) {
        let Self { fused: Some(fused), programs, functions, workers, .. } = self else { return };
        let by_worker = *workers > 1 && !functions.store.has_bug(RecordBug::WorkerIgnored);
        if fused.is_open {
            functions.store.sweep_records(functions.now);
            fused.ended = functions.store.record_counters().ended;
            return fused.find_open_flows(&functions.store, by_worker, entry, (packets, layouts));
        }
        fused.plan(&programs.all, by_worker);
        let Some((mut shape, mut program)) = programs.points.last(entry) else {
            fused.flows.fill(Flow::NO);
            return;
        };
        functions.store.sweep_records(functions.now);
        let store = &functions.store;
        fused.ended = store.record_counters().ended;
        let Fused { flows, wide, plans, .. } = &mut **fused;
        let flows = &mut flows[..packets.len()];
        let mut at = 0;
        loop {
            let (plan, number) = (plans[program].as_ref(), program as u32);
            if let Some(plan) = plan {
                let run = (&mut flows[at..], &packets[at..], &layouts[at..]);
                at += plan.narrow_flows(store, (number, shape), run);
            }
            let (Some(packet), Some(layout)) = (packets.get(at), layouts.get(at)) else { break };
            if shape.fits(layout.presence()) {
                let wide =
                    |plan: &Plan| plan.wide_flow(store, number, (packet, layout), &mut wide[at]);
                flows[at] = plan.map_or(Flow::NO, wide);
            } else if let Some(other) = programs.points.known(entry, layout.presence()) {
                (shape, program) = (programs.all[other].residual.shape, other);
                continue;
            } else {
                flows[at] = Flow::NO;
            }
            at += 1;
        }
        if store.has_many_records() {
            store.fetch_records(flows.iter().map(|flow| flow.hash));
        }
        for flow in flows.iter_mut().filter(|flow| flow.is_narrow()) {
            let record = store.find_record(flow.hash, &flow.key, flow.kind);
            flow.record = record.unwrap_or(NONE);
        }
        if std::mem::take(&mut fused.missed) {
            fused.touch_filter(packets.len());
        }
    }
}
