//! Native functions in flow records (SpeedyBox §IV, §V): what a function has recorded of a flow becomes a part of the
//! flow's record, as if the function had run. Header actions go into what is written; state functions and conditions of
//! guards run for each packet that takes the record. When what was recorded changes, the record ends.

use super::aside::Splice;
use super::class::{Leg, Native, Way};
use super::find::Flow;
use super::guard::Guard;
use super::legs::Start;
use super::plan::{LENGTH, OPEN, Plan, bits, kind};
use super::probe::Probe;
use super::{Fused, NONE};
use crate::Compiled;
use crate::instance::Instance;
use crate::report::Tally;
use crate::walk::{At, GONE, onward};
use braid_ir::chain::Chain;
use braid_ir::engine::{NodeCounters, Outputs};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, PortId};
use braid_ir::residual::{HeaderMask, Point};
use braid_native::bridge as native;
use braid_native::{HeaderAction, Payload, Recorded, StateFunction, Verdict};
use braid_packet::blend::{Blend, Outline, WIDE, Window};
use braid_packet::{Field, Header, Layout, MOST, Packet};
use braid_state::{RecordBug, Store, kept_elsewhere};
use std::collections::BTreeMap;

/// What is up with functions that cannot be asked, or run, for a packet.
const DUE: &str = "has something to do first";
const CUT: &str = "wants a payload that the capture cut";

/// A change of headers.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) blend: Blend,
    pub(super) bytes: Window<WIDE>,
    pub(super) sums: [u16; 2],
}

/// What a native function does for each packet of a flow.
#[derive(Debug)]
pub(super) struct Tied {
    node: u16,
    shard: u16,
    backward: bool,
    /// The flow, as the function knows it.
    flow: u64,
    functions: Box<[StateFunction]>,
    /// Whether it looks at conditions afterwards.
    has_guards: bool,
    reads_payload: bool,
    /// What happens to the packet's headers before, since the last one whose functions see them.
    before: Option<Box<Change>>,
}

/// What native functions do for each packet that takes a record.
#[derive(Debug)]
pub(super) struct Ties {
    /// Headers that its packets have, as far as programs look at them.
    pub(super) shape: HeaderMask,
    /// In the order of the packets' way.
    pub(super) all: Box<[Tied]>,
}

/// What packets that take records need of native functions.
pub(super) struct Natives<'a> {
    pub(super) instances: &'a mut [Instance],
    /// Of narrow and of wide records, by number of those.
    pub(super) ties: &'a [Vec<Ties>; 2],
    pub(super) out: &'a mut dyn Outputs,
}

impl Tied {
    fn function<'a>(
        &self,
        instances: &'a mut [Instance],
    ) -> Option<&'a mut braid_native::Instance> {
        let shards = &mut instances.get_mut(usize::from(self.node))?.shards;
        shards.get_mut(usize::from(self.shard))?.native.as_mut()
    }
}

impl Ties {
    /// What happens to headers before functions see them.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.all.iter().filter_map(|one| one.before.as_deref())
    }
}

impl<'a> Natives<'a> {
    /// What belongs to a record, if packets may meet native functions.
    pub(super) fn of(&self, record: u32) -> Option<&'a Ties> {
        let (all, at) = place(record);
        self.ties[all].get(at)
    }

    /// Whether a packet that comes now can take the record: it has the headers, and nothing is due before it.
    pub(super) fn are_ready(
        &mut self,
        Ties { shape, all }: &Ties,
        layout: &Layout,
        time: u64,
        store: &Store,
    ) -> bool {
        let ignores = store.has_bug(RecordBug::NativeDueIgnored);
        let is_ready = |one: &Tied| {
            let function = one.function(self.instances);
            function.is_some_and(|function| ignores || !function.is_due(time))
                && !(one.reads_payload && layout.payload_truncated())
        };
        shape.fits(layout.presence()) && all.iter().all(is_ready)
    }

    /// Does what they do for a packet that takes the record. Its headers are then as they were for the last one that
    /// saw them.
    pub(super) fn run(
        &mut self,
        ties: &Ties,
        packet: &mut Packet,
        (layout, outline): (&Layout, Outline),
        time: u64,
        store: &mut Store,
    ) {
        packet.time_ns = time;
        for one in &ties.all {
            let Some(function) = one.function(self.instances) else { continue };
            if one.functions.is_empty() && !one.has_guards {
                if !store.has_bug(RecordBug::NativeUnseen) {
                    function.sees(one.flow, time);
                }
                continue;
            }
            if let Some(Change { blend, bytes, sums }) = one.before.as_deref() {
                packet.blend_wide((layout, outline), blend, bytes, *sums);
            }
            (packet.backward, packet.held) = (one.backward, false);
            function.run_state(one.flow, &one.functions, packet, time);
            end_changed(store, (one.node, one.shard), function);
            if function.has_logs() {
                for log in function.take_logs() {
                    self.out.event(native::event(one.node, log));
                }
            }
        }
    }
}

/// Whether a record is a wide one, and where it is among those of its kind.
fn place(record: u32) -> (usize, usize) {
    ((record >> 31) as usize, (record & u32::MAX >> 1) as usize)
}

/// Records end that rest on what a function's instance has recorded otherwise before.
#[inline]
pub(crate) fn end_changed(
    store: &mut Store,
    (node, shard): (u16, u16),
    function: &mut braid_native::Instance,
) {
    if function.has_changed() {
        for flow in function.take_changed() {
            store.changes_elsewhere(node, shard, flow);
        }
    }
}

impl Probe<'_> {
    /// Asks a native function what it has recorded of the packet's flow, and does that: what becomes of the packet.
    pub(super) fn ask(&mut self, point: Point) -> Result<Verdict, &'static str> {
        let Point { node, backward, .. } = point;
        if self.notes.way.natives().any(|one| one.node == node) {
            return Err("has the packet twice");
        }
        self.notes.lookups += 1;
        let instance = &self.functions.instances[usize::from(node)];
        let shard = instance.shard(self.worker);
        let (flow, record) = self.recorded(instance, shard)?;
        if !record.is_for_side(backward) {
            return Err("has recorded what it does with packets from the other side");
        }
        let payload = record.payload();
        if payload == Payload::Write {
            return Err("writes the payload");
        }
        if payload != Payload::Ignore && self.layout.payload_truncated() {
            return Err(CUT);
        }
        let before = if record.state.is_empty() { None } else { Some(self.change()) };
        let before = match before {
            Some(None) => return Err("sees checksums that the capture lacks"),
            Some(Some(change)) => (!change.blend.is_nothing()).then(|| Box::new(change)),
            None => None,
        };
        let verdict = self.apply(node, &record)?;
        let (table, key) = kept_elsewhere(node, shard, flow);
        self.notes.absent.push(table, &key);
        let writes = record.headers.iter().filter_map(|action| match action {
            HeaderAction::Modify(field, _) => Some(*field),
            _ => None,
        });
        self.notes.way.legs.push(Leg::Native(Native {
            node,
            backward,
            before: before.as_ref().map(|change| Box::new(change.blend)),
            state: record.state.iter().map(|function| function.payload).collect(),
            guards: record.guards.len(),
            writes: writes.collect(),
            drops: if let Verdict::Drop(reason) = verdict { Some(reason) } else { None },
            longer: self.notes.way.aside.longer(),
        }));
        self.notes.tied.push(Tied {
            node,
            shard,
            backward,
            flow,
            has_guards: !record.guards.is_empty(),
            functions: record.state.into(),
            reads_payload: payload != Payload::Ignore,
            before,
        });
        Ok(verdict)
    }

    /// What an instance has recorded of the packet's flow, with the flow.
    fn recorded(&self, instance: &Instance, shard: u16) -> Result<(u64, Recorded), &'static str> {
        let function = instance.shards[usize::from(shard)].native.as_ref();
        let function = function.ok_or("is not there")?;
        if function.is_checked() {
            return Err("is checked, and so runs on each packet");
        }
        if function.is_due(self.now) {
            return Err(DUE);
        }
        if self.packet.get(self.layout, Field::PktFragment) != Some(0) {
            return Err("gets a fragment");
        }
        let key = self.packet.flow_key(self.layout).ok_or("gets a packet of no flow")?;
        let recorded = function.recorded(&key);
        let (flow, record) = recorded.ok_or("has recorded nothing of the packet's flow")?;
        Ok((flow, record.clone()))
    }

    /// Does header actions.
    fn apply(&mut self, node: u16, record: &Recorded) -> Result<Verdict, &'static str> {
        const NEVER: &str = "has recorded what it does not declare";
        let native = self.functions.instances[usize::from(node)].model.native.as_ref();
        let may = native.ok_or("is not there")?.may();
        let all = HeaderMask { care: u128::MAX, present: self.layout.presence() };
        let mut verdict = Verdict::Forward;
        for action in &record.headers {
            match action {
                HeaderAction::Forward => {}
                HeaderAction::Drop(_) if !may.drops => return Err(NEVER),
                HeaderAction::Drop(_) if !self.notes.way.aside.splices.is_empty() => {
                    return Err("drops packets whose length it has changed");
                }
                HeaderAction::Drop(reason) => return Ok(Verdict::Drop(*reason)),
                HeaderAction::Output(_) if !may.redirects => return Err(NEVER),
                HeaderAction::Output(port) => verdict = Verdict::Port(*port),
                HeaderAction::Modify(field, _) if !may.may_write(*field) => return Err(NEVER),
                HeaderAction::Modify(..) if !self.notes.way.aside.splices.is_empty() => {
                    return Err("changes headers that it has moved");
                }
                HeaderAction::Modify(field, value) => {
                    let bits = bits(all, self.outline, *field);
                    let assigned = bits.and_then(|bits| self.assign_bits(*field, bits, *value));
                    assigned.ok_or("has recorded a change that hangs on more than the key")?;
                }
                HeaderAction::Encap { at, bytes } if may.adds => {
                    self.splice(Splice::In { at: *at, bytes: bytes.as_slice().into() })?;
                }
                HeaderAction::Decap { at, len } if may.removes => {
                    self.splice(Splice::Out { at: *at, len: *len })?;
                }
                HeaderAction::Encap { .. } | HeaderAction::Decap { .. } => return Err(NEVER),
            }
        }
        Ok(verdict)
    }

    /// Bytes are put in or taken out. All packets of the flow have those in front, and the same room.
    fn splice(&mut self, splice: Splice) -> Result<(), &'static str> {
        let splices = &self.notes.way.aside.splices;
        let sum = |put_in: usize, one: &Splice| put_in + one.change().2;
        let (at, less, more) = splice.change();
        let put_in = splices.iter().fold(more, sum);
        let there = self.outline.l4().saturating_add_signed(self.notes.way.aside.longer() as isize);
        if at.checked_add(less).is_none_or(|end| end > there) {
            return Err("puts in or takes out bytes behind the headers");
        }
        let most = MOST.saturating_sub(u32::try_from(put_in).unwrap_or(u32::MAX));
        self.notes.guards.add(Guard { number: LENGTH, least: 0, most });
        self.notes.way.aside.splices.push(splice);
        Ok(())
    }

    /// Where a packet is of which a native function has decided this.
    pub(super) fn decided(&mut self, point: Point, verdict: Verdict, graph: &Graph) -> At {
        self.hops += 1;
        let to = |dest| onward(graph.next(point.node, port(dest, point.backward)));
        match verdict {
            Verdict::Forward => to(Dest::Onward),
            Verdict::Port(number) => to(Dest::Port(PortId(number + 2))),
            Verdict::Back => to(Dest::Back),
            Verdict::Drop(_) | Verdict::Consume => GONE,
        }
    }
}

/// What ways count that is in no program's counters.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// By function, direction, and the reason for which it drops them: packets and bytes that a native function got, and
    /// the bytes of those packets behind it.
    natives: BTreeMap<(u16, bool, Option<u32>), [u64; 3]>,
}

impl Counted {
    /// Packets took records of this way.
    pub(super) fn add(&mut self, way: &Way, packets: u64, bytes: u64) {
        for one in way.natives() {
            let key = (one.node, one.backward, one.drops);
            let behind = bytes.wrapping_add_signed(one.longer.wrapping_mul(packets.cast_signed()));
            let count = self.natives.entry(key).or_default();
            for (count, more) in count.iter_mut().zip([packets, bytes, behind]) {
                *count = count.wrapping_add(more);
            }
        }
    }

    /// Adds what was counted to the counters of functions and chain.
    pub(crate) fn add_to(&self, chain: &Chain, nodes: &mut [NodeCounters], tally: &mut Tally) {
        for ((node, backward, drops), [packets, bytes, behind]) in &self.natives {
            let NodeCounters { forward, backward: back, rows, .. } = &mut nodes[usize::from(*node)];
            let came = if *backward { back } else { forward };
            let body = rows.get_mut(native::BODY.index());
            for (traffic, bytes) in [(came, bytes)].into_iter().chain(body.map(|row| (row, behind)))
            {
                traffic.packets += packets;
                traffic.bytes = traffic.bytes.wrapping_add(*bytes);
            }
            let reasons = &chain.nodes[usize::from(*node)].model.reasons;
            if let Some(reason) = drops.and_then(|reason| reasons.get(reason as usize)) {
                tally.count_drop(*node, native::BODY, reason, *packets);
            }
        }
    }
}

/// A way into the chain, for packets of a shape.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) point: Point,
    pub(super) shape: HeaderMask,
    pub(super) plan: Plan,
}

/// Most of those. Packets of further shapes have no records.
const MOST_ENTRIES: usize = 512;

/// Headers that some packets of a flow have and some have not.
const PASSING: [Header; 4] = [Header::TcpMss, Header::TcpWscale, Header::TcpSackOk, Header::TcpTs];

impl Fused {
    /// Whether packets of a chain may meet native functions. Their flows are told apart by all that the packets of one
    /// have in common.
    pub(super) fn is_open(chain: &Chain) -> bool {
        chain.nodes.iter().any(|node| node.model.native.is_some())
    }

    /// The number of the entry for packets with these headers at a point.
    fn entry(&mut self, point: Point, layout: &Layout, many_workers: bool) -> Option<u32> {
        let presence = layout.presence();
        let is_it = |entry: &Entry| entry.point == point && entry.shape.fits(presence);
        let last = Some(self.last_entry).filter(|last| self.entries.get(*last).is_some_and(is_it));
        let known = last.or_else(|| self.entries.iter().position(is_it));
        if known.is_none() {
            if self.entries.len() == MOST_ENTRIES || Outline::of(layout).is_none() {
                return None;
            }
            let passing = PASSING.iter().fold(0, |bits, header| bits | 1 << *header as u32);
            let shape = HeaderMask { care: !passing, present: presence & !passing };
            let plan = Plan::open(shape, many_workers);
            self.entries.push(Entry { point, shape, plan });
        }
        self.last_entry = known.unwrap_or(self.entries.len() - 1);
        Some(OPEN + self.last_entry as u32)
    }

    /// Finds the flows of packets that are about to enter at a point, and their records, where they may meet native
    /// functions.
    #[inline(never)]
    pub(super) fn find_open_flows(
        &mut self,
        store: &Store,
        many_workers: bool,
        entry: Point,
        packets: (&[Packet], &[Layout]),
    ) {
        for (at, (packet, layout)) in packets.0.iter().zip(packets.1).enumerate() {
            let number = self.entry(entry, layout, many_workers);
            let Some(number) = number else {
                self.flows[at] = Flow::NO;
                continue;
            };
            let plan = &self.entries[(number - OPEN) as usize].plan;
            self.flows[at] = match plan.narrow_key(packet, layout) {
                Some(key) => {
                    let (hash, kind) = (store.record_hash(&key), kind(number, None));
                    let record = store.find_record(hash, &key, kind).unwrap_or(NONE);
                    Flow { key, hash, kind, record }
                }
                None => plan.wide_flow(store, number, (packet, layout), &mut self.wide[at]),
            };
        }
    }

    /// Where a run without effect begins for packets of a flow.
    pub(super) fn start(&self, flow: Flow) -> Option<Start> {
        match self.is_open {
            true => {
                let entry = self.entries.get(flow.program().wrapping_sub(OPEN) as usize)?;
                Some(Start::Point(entry.point))
            }
            false => Some(Start::Program(flow.program() as usize)),
        }
    }

    /// Keeps what native functions do for packets with this layout that take a record that was just made.
    pub(super) fn tie(&mut self, record: u32, layout: &Layout) {
        if record == NONE {
            return;
        }
        let care = self.notes.care;
        let shape = HeaderMask { care, present: layout.presence() & care };
        let ties = Ties { shape, all: self.notes.tied.drain(..).collect() };
        let none = || Ties { shape: HeaderMask { care: 0, present: 0 }, all: Box::default() };
        let (all, at) = place(record);
        if self.ties[all].len() <= at {
            self.ties[all].resize_with(at + 1, none);
        }
        self.ties[all][at] = ties;
    }
}

impl Compiled {
    /// The native function, if there is one, for which a packet cannot take a record now, and why.
    pub(super) fn unready(
        &self,
        record: u32,
        packet: &Packet,
        layout: &Layout,
    ) -> Option<(u16, &'static str)> {
        let time = packet.time_ns.max(self.functions.now);
        self.ties(record)?.all.iter().find_map(|one| {
            let shards = &self.functions.instances[usize::from(one.node)].shards;
            let function = shards[usize::from(one.shard)].native.as_ref()?;
            let is_cut = one.reads_payload && layout.payload_truncated();
            match (function.is_due(time), is_cut) {
                (true, _) => Some((one.node, DUE)),
                (_, true) => Some((one.node, CUT)),
                _ => None,
            }
        })
    }

    /// What native functions do for a record.
    pub(super) fn ties(&self, record: u32) -> Option<&Ties> {
        let fused = self.fused.as_ref().filter(|fused| fused.is_open)?;
        let (all, at) = place(record);
        fused.ties[all].get(at)
    }

    /// The point and the shape of packets for which a program, or an entry where packets may meet native functions, is.
    pub(super) fn entered(&self, program: u32) -> Option<(Point, HeaderMask, &Plan)> {
        let fused = self.fused.as_ref()?;
        if program >= OPEN {
            let Entry { point, shape, plan } = fused.entries.get((program - OPEN) as usize)?;
            return Some((*point, *shape, plan));
        }
        let residual = &self.programs.all.get(program as usize)?.residual;
        let plan = fused.plans.get(program as usize)?.as_ref()?;
        Some((residual.point, residual.shape, plan))
    }
}
