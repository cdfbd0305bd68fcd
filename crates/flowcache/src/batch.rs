//! The flows of packets that are about to enter a chain, and the records of these flows.
#![expect(
    clippy::indexing_slicing,
    reason = "a batch has a flow and a wide key for each of its packets"
)]

use crate::extractors::Extractors;
use crate::filter::Filter;
use crate::host::{Programs, State};
use crate::key::{IS_PEELED, IS_WIDE, KeyExtractor, OPEN, is_peeled, kind, of_kind};
use crate::slab::NONE;
use braid_ir::residual::{HeaderMask, Point};
use braid_packet::rewrite::{NARROW, WIDE, Window};
use braid_packet::tunnel::look_inside;
use braid_packet::{Layout, Packet};
use std::ops::Range;

/// The largest number of packets whose flows are found before the first of them runs.
pub const BATCH: usize = 32;

/// A packet's flow.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    /// The flow's key, if it is narrow.
    pub(crate) key: Window<NARROW>,
    pub(crate) hash: u64,
    /// The kind of the flow's record ([`kind`]). [`NONE`] if the packet has no flow; the other
    /// fields then mean nothing.
    pub(crate) kind: u32,
    /// The number of the flow's record, or [`NONE`].
    pub(crate) record: u32,
}

impl Flow {
    /// The flow of a packet that can have no record.
    const NO: Flow = Flow { key: [0; NARROW], hash: 0, kind: NONE, record: NONE };

    /// Whether the flow has a narrow key. False also for a packet without a flow.
    #[inline(always)]
    pub(crate) fn is_narrow(&self) -> bool {
        self.kind & IS_WIDE == 0
    }

    /// Whether it is the flow of a packet in a tunnel.
    #[inline(always)]
    pub(crate) fn is_peeled(&self) -> bool {
        self.kind != NONE && is_peeled(self.kind)
    }

    /// The number of the extractor that made the key.
    pub(crate) fn extractor(&self) -> u32 {
        of_kind(self.kind).0
    }
}

/// The flows of the packets of a batch.
pub(crate) struct Batch {
    pub(crate) flows: [Flow; BATCH],
    /// The wide keys, for packets that have one.
    pub(crate) wide: [Window<WIDE>; BATCH],
    /// For the flows of packets in tunnels: the layout of the packet inside, and by how many bytes
    /// it is shorter.
    pub(crate) inside: [(Layout, usize); BATCH],
    /// How many records had ended when these records were found.
    pub(crate) ended: u64,
    /// The number of attempts to make a record.
    pub(crate) tried: usize,
    /// The admission filter has counted the packets in front of this place.
    pub(crate) counted: usize,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            flows: [Flow::NO; BATCH],
            wide: [[0; WIDE]; BATCH],
            inside: std::array::from_fn(|_| (Layout::default(), 0)),
            ended: 0,
            tried: 0,
            counted: 0,
        }
    }

    /// Looks up the records again for the packets whose hashes satisfy `is_such`.
    #[inline(never)]
    pub(crate) fn find_again(
        &mut self,
        state: &State,
        packets: Range<usize>,
        is_such: impl Fn(u64) -> bool,
    ) {
        for at in packets {
            if is_such(self.flows[at].hash) {
                self.flows[at].record = self.find(state, at);
            }
        }
    }

    /// Looks up the record of the packet at `at`.
    #[inline(never)]
    pub(crate) fn find(&self, state: &State, at: usize) -> u32 {
        let (flow, records) = (&self.flows[at], state.dependents());
        let record = match flow.kind {
            NONE => None,
            kind if flow.is_narrow() => records.find(flow.hash, &flow.key, kind),
            kind => records.find(flow.hash, &self.wide[at], kind),
        };
        record.unwrap_or(NONE)
    }

    /// Records that packets have no flows.
    pub(crate) fn have_no_flow(&mut self, packets: Range<usize>) {
        self.flows[packets].fill(Flow::NO);
    }

    /// Finds the flows and the records of packets that are about to enter at a point, up to the
    /// first packet whose program is not known. Returns the number of packets before that one. The
    /// first packet is at the place `from` of the batch.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer programs than 2^32")]
    pub(crate) fn find_flows(
        &mut self,
        state: &State,
        programs: &impl Programs,
        extractors: &Extractors,
        entry: Point,
        (from, packets, layouts): (usize, &mut [Packet], &[Layout]),
    ) -> usize {
        let Some((mut shape, mut program)) = programs.last(entry) else {
            self.have_no_flow(from..from + packets.len());
            return 0;
        };
        let records = state.dependents();
        let Self { flows, wide, inside, .. } = self;
        let (flows, wide) = (&mut flows[from..][..packets.len()], &mut wide[from..]);
        let inside = &mut inside[from..];
        let mut at = 0;
        loop {
            let (extractor, number) = (extractors.program(program), program as u32);
            if let Some(extractor) = extractor {
                let run = (&mut flows[at..], &packets[at..], &layouts[at..]);
                at += narrow_flows(extractor, state, (number, shape), run);
            }
            let (Some(packet), Some(layout)) = (packets.get_mut(at), layouts.get(at)) else {
                break;
            };
            if shape.fits(layout.presence()) {
                let flow = |extractor: &KeyExtractor| {
                    let inside = (&mut wide[at], &mut inside[at]);
                    peeled_flow(extractor, state, number, (packet, layout), inside).unwrap_or_else(
                        || wide_flow(extractor, state, number, (packet, layout), &mut wide[at]),
                    )
                };
                flows[at] = extractor.map_or(Flow::NO, flow);
            } else if let Some(other) = programs.known(entry, layout.presence())
                && let Some(residual) = programs.residual(other)
            {
                (shape, program) = (residual.shape, other);
                continue;
            } else {
                flows[at..].fill(Flow::NO);
                break;
            }
            at += 1;
        }
        let flows = &mut flows[..at];
        if records.are_many() {
            records.fetch(flows.iter().map(|flow| flow.hash));
        }
        for flow in flows.iter_mut().filter(|flow| flow.is_narrow()) {
            let record = records.find(flow.hash, &flow.key, flow.kind);
            flow.record = record.unwrap_or(NONE);
        }
        at
    }

    /// As [`Self::find_flows`], in a chain with native functions.
    #[inline(never)]
    pub(crate) fn find_open_flows(
        &mut self,
        state: &State,
        extractors: &mut Extractors,
        entry: Point,
        (from, packets, layouts): (usize, &[Packet], &[Layout]),
    ) {
        for (at, (packet, layout)) in (from..).zip(packets.iter().zip(layouts)) {
            let number = extractors.entry(entry, layout);
            let found = number.and_then(|number| Some((number, extractors.get(number)?)));
            let Some((number, extractor)) = found else {
                self.flows[at] = Flow::NO;
                continue;
            };
            debug_assert!(number >= OPEN, "ways in come behind programs");
            self.find_flow(state, (extractor, number), at, (packet, layout));
        }
    }

    /// Finds the flow and the record of one packet, whose keys come from this extractor.
    #[inline]
    pub(crate) fn find_flow(
        &mut self,
        state: &State,
        (extractor, number): (&KeyExtractor, u32),
        at: usize,
        (packet, layout): (&Packet, &Layout),
    ) {
        self.flows[at] = match extractor.narrow_key(packet, layout) {
            Some(key) => {
                let (hash, kind) = (state.tables().hash().hash_words(&key), kind(number, None));
                let record = state.dependents().find(hash, &key, kind).unwrap_or(NONE);
                Flow { key, hash, kind, record }
            }
            None => wide_flow(extractor, state, number, (packet, layout), &mut self.wide[at]),
        };
    }

    /// Prefetches the filter's rows for flows without a record.
    #[inline(never)]
    pub(crate) fn prefetch(&self, filter: &Filter, packets: usize) {
        let flows = self.flows[..packets].iter().filter(|flow| flow.record == NONE);
        flows.for_each(|flow| filter.prefetch(flow.hash));
    }
}

/// Finds the flows of the packets up to the first one with another header shape than the program's
/// or without a narrow key. Returns the number of packets before that one. The caller looks up
/// their records.
#[inline(always)]
fn narrow_flows(
    extractor: &KeyExtractor,
    state: &State,
    (program, shape): (u32, HeaderMask),
    (flows, packets, layouts): (&mut [Flow], &[Packet], &[Layout]),
) -> usize {
    let (kind, hash_key) = (kind(program, None), state.tables().hash());
    let mut found = 0;
    for (flow, (packet, layout)) in flows.iter_mut().zip(packets.iter().zip(layouts)) {
        let key = extractor.narrow_key(packet, layout);
        let Some(key) = key.filter(|_| shape.fits(layout.presence())) else { break };
        let hash = hash_key.hash_words(&key);
        *flow = Flow { key, hash, kind, record: NONE };
        found += 1;
    }
    found
}

/// Finds the flow of a packet whose key is not narrow. Stores the key in `wide`.
#[inline(never)]
fn wide_flow(
    extractor: &KeyExtractor,
    state: &State,
    program: u32,
    (packet, layout): (&Packet, &Layout),
    wide: &mut Window<WIDE>,
) -> Flow {
    let Some((key, outline)) = extractor.wide_key(packet, layout) else { return Flow::NO };
    let (hash, kind) = (state.tables().hash().hash_words(&key), kind(program, Some(outline)));
    let record = state.dependents().find(hash, &key, kind).unwrap_or(NONE);
    *wide = key;
    Flow { hash, kind, record, ..Flow::NO }
}

/// Finds the flow of a packet in a tunnel, if the flows of the extractor are those of the packets
/// inside, and the packet has one. Stores its key and what is known of the packet inside.
#[inline(always)]
fn peeled_flow(
    extractor: &KeyExtractor,
    state: &State,
    program: u32,
    (packet, layout): (&mut Packet, &Layout),
    (wide, inside): (&mut Window<WIDE>, &mut (Layout, usize)),
) -> Option<Flow> {
    let peel = extractor.peel?;
    let outer = (peel.inner, peel.last);
    let less = look_inside(packet, layout, outer, peel.offset, &mut inside.0)?;
    inside.1 = less;
    let (key, outline) = extractor.peeled_key((packet, layout), (&inside.0, less))?;
    let hash = state.tables().hash().hash_words(&key);
    let kind = kind(program, Some(outline)) | IS_PEELED;
    let record = state.dependents().find(hash, &key, kind).unwrap_or(NONE);
    *wide = key;
    Some(Flow { hash, kind, record, ..Flow::NO })
}
