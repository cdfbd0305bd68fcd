//! The fast path: packets take their flows' records.

use crate::batch::Flow;
use crate::bindings::Bindings;
use crate::cache::FlowCache;
use crate::counted::Counted;
use crate::findings::LEAST_IN_PART;
use crate::goal::Onward;
use crate::host::{Functions, Host, Programs};
use crate::mutants::RecordMutant;
use crate::slab::{NONE, Record};
use crate::template::Template;
use braid_ir::engine::Outputs;
use braid_ir::residual::Point;
use braid_ir::walk::Reached;
use braid_packet::rewrite::{NARROW, Outline, WIDE, narrowed, widened};
use braid_packet::tunnel::leave;
use braid_packet::{Layout, Packet};
use std::slice::{from_mut, from_ref};

/// The largest number of functions that a packet may have visited before it takes a record. A path
/// on which that many functions more would exceed the limit of visits has no record.
pub(crate) const MOST_BEFORE: u32 = 64;

impl FlowCache {
    /// Applies records to the packets of the batch from `from` on, in order, up to the first packet
    /// that has no record or cannot take it. Adds the destinations to `reached`. Returns the number
    /// of packets whose paths ended with their records. If the packet behind them took a record for
    /// a part of its path, also returns where that packet goes on.
    #[inline(never)]
    #[expect(
        clippy::indexing_slicing,
        reason = "each packet has a flow, a layout and a result, and `at` is at most their number"
    )]
    pub fn run_records<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        from: usize,
        (packets, layouts): (&mut [Packet], &[Layout]),
        reached: &mut Vec<Reached>,
    ) -> (usize, Option<Onward>) {
        if self.is_left_out {
            return (0, None);
        }
        let due = host.due();
        let Host { functions, out, .. } = host;
        let records = functions.state().dependents();
        let ended = records.counters().ended;
        let wake = if records.has_mutant(RecordMutant::DueIgnored) { u64::MAX } else { due };
        let goes_back = records.has_mutant(RecordMutant::TimeGoesBack);
        if self.batch.ended != ended {
            self.batch.find_again(functions.state(), from..from + packets.len(), |_| true);
            self.batch.ended = ended;
        }
        let flows = &self.batch.flows[from..][..packets.len()];
        if flows.first().is_none_or(|flow| flow.record == NONE) {
            return (0, None);
        }
        let templates = &self.templates.all[..];
        let first = reached.len();
        reached.resize(first + packets.len(), Reached::Ended);
        let reached_all = &mut reached[first..];
        let (mut at, mut now, mut onward) = (0, functions.now(), None);
        while at < packets.len() {
            let (records, _) = functions.parts().1.parts();
            let records = if goes_back { &mut [] } else { records.narrow() };
            let run = (&flows[at..], &mut packets[at..], &layouts[at..], &mut reached_all[at..]);
            let (taken, time) = hit_loop(records, templates, run, now, wake);
            (at, now) = (at + taken, time);
            let (Some(packet), Some(layout)) = (packets.get_mut(at), layouts.get(at)) else {
                break;
            };
            let time = if goes_back { packet.time_ns } else { packet.time_ns.max(now) };
            if flows[at].record == NONE || time >= wake {
                break;
            }
            let all = (templates, &self.bindings, self.counted.get_mut());
            out.at(first + at);
            let flow = (flows[at], &self.batch.inside[from + at]);
            let taken = take(all, &mut **functions, flow, (packet, layout), time, &mut **out);
            let Some((reached, goes_on)) = taken else { break };
            now = time;
            if goes_on.is_some() {
                onward = goes_on;
                break;
            }
            reached_all[at] = reached;
            at += 1;
            // The packet may have changed the recording of a native function.
            if functions.state().dependents().counters().ended != ended {
                break;
            }
        }
        functions.set_now(now);
        reached.truncate(first + at);
        self.hits += at as u64 + u64::from(onward.is_some());
        self.part_hits += u64::from(onward.is_some());
        (at, onward)
    }

    /// Applies a record for the rest of its path, or a further part of it, to the packet at `at` of
    /// the batch. If the path ends, adds its destination to `reached`. A function has done with the
    /// packet what no record contains, and now it goes on at a point. It may come out of a tunnel,
    /// whose headers hardly show its flow, so the cache looks for the record of the flow that it
    /// belongs to now. Makes the record if it is time for one. The packet has visited `hops`
    /// functions.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer programs than 2^32")]
    pub fn run_rest<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        (point, at, hops): (Point, usize, u32),
        (packet, layout): (&mut Packet, &Layout),
        reached: &mut Vec<Reached>,
    ) -> Rest {
        let state = host.functions.state();
        let mutants = state.dependents().mutants();
        if self.goes_whole(at) {
            return Rest::Lacks;
        }
        // One engine for several workers chooses a packet's worker where the packet enters.
        let steers = host.functions.chain().steers() && !mutants.has(RecordMutant::RestSteered);
        let program = host.programs.known(point, layout.presence());
        let is_light = |program| host.programs.weight(program) < LEAST_IN_PART;
        // At the ends of tunnels the packet is parsed again in any case.
        let pays = self.eager || !self.extractors.is_open || !program.is_some_and(is_light);
        if self.is_left_out || steers || hops > MOST_BEFORE || !pays {
            return Rest::Lacks;
        }
        if self.extractors.is_open {
            let one = (at, from_ref(&*packet), from_ref(layout));
            self.batch.find_open_flows(state, &mut self.extractors, point, one);
        } else {
            self.extractors.add(host.programs);
            let of = |program| Some((self.extractors.program(program)?, program as u32));
            match program.and_then(of) {
                Some(of) => self.batch.find_flow(state, of, at, (&*packet, layout)),
                None => self.batch.have_no_flow(at..at + 1),
            }
        }
        // These tell about the flows of packets where they enter.
        let (failures, counted, ended) =
            (self.guard_failures, self.batch.counted, self.batch.ended);
        (self.batch.counted, self.batch.ended) = (at, state.dependents().counters().ended);
        let taken = loop {
            if let Some(taken) = self.take_one(host, at, (&mut *packet, layout), reached.len()) {
                break Some(taken);
            }
            if self.slow_path(host, at, from_ref(&*packet), from_ref(layout)) > 0 {
                break None;
            }
            let state = host.functions.state();
            self.batch.find_again(state, at..at + 1, |_| true);
            self.batch.ended = state.dependents().counters().ended;
        };
        (self.guard_failures, self.batch.counted) = (failures, counted);
        if !mutants.has(RecordMutant::RestEndsMissed) {
            // If records have ended, the later packets of the batch need another lookup.
            self.batch.ended = ended;
        }
        let Some((end, onward)) = taken else { return Rest::Lacks };
        self.rest_hits += 1;
        self.part_hits += u64::from(onward.is_some());
        match onward {
            Some(onward) => Rest::Goes(Onward { hops: hops + onward.hops, ..onward }),
            None => {
                reached.push(end);
                Rest::Ended
            }
        }
    }

    /// Whether the packet at `at` of the batch will have a record for its whole path, from a tunnel
    /// on. It needs no other one then.
    #[expect(clippy::indexing_slicing, reason = "each packet of a batch has a flow")]
    fn goes_whole(&self, at: usize) -> bool {
        let flow = self.batch.flows[at];
        let extractor = self.extractors.get(flow.extractor()).filter(|_| flow.is_peeled());
        extractor.is_some_and(|extractor| extractor.losses == 0)
    }

    /// Applies its record to the packet at `at` of the batch, whose output has this number. Returns
    /// where the packet ends or goes on. `None` if it has no record that it can take.
    #[expect(clippy::indexing_slicing, reason = "each packet of a batch has a flow")]
    fn take_one<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        at: usize,
        (packet, layout): (&mut Packet, &Layout),
        output: usize,
    ) -> Option<(Reached, Option<Onward>)> {
        let (flow, time) = (self.batch.flows[at], packet.time_ns.max(host.functions.now()));
        if flow.record == NONE || time >= host.due() {
            return None;
        }
        let templates = &self.templates.all[..];
        let mut reached = Reached::Ended;
        let one = (from_ref(&flow), from_mut(packet), from_ref(layout), from_mut(&mut reached));
        let records = host.functions.parts().1.parts().0.narrow();
        let taken = match hit_loop(records, templates, one, time, u64::MAX) {
            (0, _) => {
                let all = (templates, &self.bindings, self.counted.get_mut());
                host.out.at(output);
                let flow = (flow, &self.batch.inside[at]);
                take(all, host.functions, flow, (packet, layout), time, host.out)?
            }
            _ => (reached, None),
        };
        host.functions.set_now(time);
        Some(taken)
    }
}

/// What became of a packet that looked for a record for the rest of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// It has no record, and must run its program.
    Lacks,
    /// It has taken a record, and its path has ended.
    Ended,
    /// It has taken a record for a part of its path, and goes on.
    Goes(Onward),
}

/// The hit loop: packets take narrow records, from the time `now` on. The loop stops at the first
/// packet that has no narrow record, cannot take its record, or needs further tests or work.
/// Returns the number of packets before that one, and the time of the last of them.
#[inline(always)]
fn hit_loop(
    records: &mut [Record<NARROW, NARROW>],
    templates: &[Template],
    (flows, packets, layouts, reached): (&[Flow], &mut [Packet], &[Layout], &mut [Reached]),
    mut now: u64,
    wake: u64,
) -> (usize, u64) {
    let mut taken = 0;
    let packets = packets.iter_mut().zip(layouts).zip(flows);
    for (((packet, layout), flow), reached) in packets.zip(reached) {
        let (time, wire_len) = (packet.time_ns.max(now), packet.wire_len);
        // `NONE` and the numbers of wide records are larger than any position in this slice.
        let Some(record) = records.get_mut(flow.record as usize) else { break };
        let Some(template) = templates.get(record.hot.template as usize) else { break };
        let is_bare = !template.is_bare || packet.tags.is_empty();
        let fits = time < wake && record.hot.can_count(wire_len) && is_bare;
        if !fits || !template.simply_fits(packet.data(), wire_len) {
            break;
        }
        (now, packet.time_ns) = (time, time);
        record.hot.count(time, wire_len);
        layout.rewrite_narrow(packet.data_mut(), &template.narrow, &record.head, record.sums);
        *reached = template.reached;
        taken += 1;
    }
    (taken, now)
}

/// What records need besides themselves: their templates, the bindings of native functions to them,
/// and the counts that belong to no program.
type Shared<'a> = (&'a [Template], &'a [Vec<Bindings>; 2], &'a mut Counted);

/// Applies the flow's record to a packet. Returns where the packet ends or goes on. `None` if the
/// packet cannot take the record.
#[inline(never)]
#[expect(clippy::indexing_slicing, reason = "`place` gives one of two lists")]
fn take(
    (templates, bindings, counted): Shared<'_>,
    functions: &mut impl Functions,
    (flow, inside): (Flow, &(Layout, usize)),
    (packet, mut layout): (&mut Packet, &Layout),
    time: u64,
    out: &mut dyn Outputs,
) -> Option<(Reached, Option<Onward>)> {
    let (all, place) = crate::bindings::place(flow.record);
    let bindings = bindings[all].get(place);
    let records = functions.state().dependents();
    let is_lost = records.has_mutant(RecordMutant::OnwardLost);
    let template = templates.get(records.template(flow.record) as usize)?;
    let (mut data, mut wire_len) = (packet.data(), packet.wire_len);
    if let Some(front) = &template.front {
        if !front.fits(packet, &inside.0) {
            return None;
        }
        (data, wire_len) = (data.get(inside.1..)?, wire_len - u32::try_from(inside.1).ok()?);
    }
    if !template.fits_bytes(packet, data, wire_len) || !records.can_count(flow.record, wire_len) {
        return None;
    }
    if bindings.is_some_and(|bindings| !bindings.are_ready(functions, layout, time)) {
        return None;
    }
    if let Some(more) = &template.more
        && more.asks
        && !more.run(functions, flow.record, (&*packet, layout), time, out)
    {
        return None;
    }
    let mut is_short = false;
    if let Some(front) = &template.front {
        leave(packet, front.inner, inside.1);
        (layout, is_short) = (&inside.0, front.is_narrow);
    }
    let (records, _) = functions.parts().1.parts();
    let new = if !flow.is_narrow() && is_short {
        let record = records.get::<WIDE, WIDE>(flow.record)?;
        record.hot.count(time, packet.wire_len);
        let written = template.narrow.written(&narrowed(&record.head));
        layout.rewrite_narrow(packet.data_mut(), &template.narrow, &written, record.sums);
        record.head
    } else if !flow.is_narrow() {
        let outline = Outline::of(layout)?;
        let record = records.get::<WIDE, WIDE>(flow.record)?;
        record.hot.count(time, packet.wire_len);
        let (head, sums) = (record.head, record.sums);
        if let Some(bindings) = bindings {
            bindings.run(functions, packet, (layout, outline), time, out);
        }
        layout.rewrite_wide((packet.data_mut(), outline), &template.rewrite, &head, sums);
        head
    } else {
        let record = records.get::<NARROW, NARROW>(flow.record)?;
        record.hot.count(time, packet.wire_len);
        let (head, sums) = (record.head, record.sums);
        if let Some(bindings) = bindings {
            bindings.run(functions, packet, (layout, Outline::PLAIN), time, out);
        }
        let written = template.narrow.written(&head);
        layout.rewrite_narrow(packet.data_mut(), &template.narrow, &written, sums);
        widened(&head)
    };
    packet.time_ns = time;
    let more = template.more.as_deref();
    let onward = more.and_then(|more| more.finish((packet, layout), &new, counted, out));
    Some((template.reached, onward.filter(|_| !is_lost)))
}
