//! The slow path: a packet has no record that it can take. It gets a record, or it runs its
//! program.
#![expect(
    clippy::indexing_slicing,
    reason = "a batch has a flow for each of its packets, and callers pass at least one packet"
)]

use crate::batch::Flow;
use crate::bindings::{Bindings, place};
use crate::cache::FlowCache;
use crate::extractors::Start;
use crate::findings::Findings;
use crate::fuel::Refill;
use crate::goal::{Goal, PathEnd};
use crate::host::{Functions, Host, Programs};
use crate::key::{KeyExtractor, of_kind};
use crate::mutants::RecordMutant;
use crate::new_record::NewRecord;
use crate::payback::{Advice, Clock};
use crate::peel::{Arrived, InsidePacket};
use crate::scripts::{Found, Known, Tree};
use crate::slab::NONE;
use crate::specialiser::{Specialiser, Tunnels};
use braid_ir::residual::HeaderMask;
use braid_packet::rewrite::narrowed;
use braid_packet::tunnel::leave;
use braid_packet::{Layout, Packet};
use std::ops::Range;

/// The most attempts to make a record in a batch while records are outdated, or while a program is
/// about to be made that records need. Many flows may need records then, and more attempts would
/// delay the packets behind. A flow that is left out gets its attempt later.
const TRIES: usize = 4;

impl FlowCache {
    /// Handles the packet at `from`, which has no record that it can take. Returns the number of
    /// packets, from this one on, that must run their programs. 0 means that the caller must try
    /// the packet's record again.
    #[inline(never)]
    pub fn slow_path<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        from: usize,
        packets: &[Packet],
        layouts: &[Layout],
    ) -> usize {
        if self.is_left_out {
            return packets.len();
        }
        let state = host.functions.state();
        if self.batch.ended != state.dependents().counters().ended {
            // Records have ended since the lookups. The fast path repeats the lookups.
            return 0;
        }
        self.missed = true;
        if self.batch.flows[from].kind != NONE
            && let Some(count) = self.try_record(host, from, packets, layouts)
        {
            return count;
        }
        // In a chain with native functions, each packet is handled on its own.
        if self.extractors.is_open { 1 } else { self.meet(from..from + packets.len()) }
    }

    /// Refills the record of the packet at `from`, which has a flow, or makes a record in place of
    /// it. Returns the number of packets that must run their programs.
    /// `None` if the caller should ask the filter.
    fn try_record<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        from: usize,
        packets: &[Packet],
        layouts: &[Layout],
    ) -> Option<usize> {
        let (due, now) = (host.due(), host.functions.now());
        let (_, state) = host.functions.parts();
        let flow = self.batch.flows[from];
        let had_record = flow.record != NONE;
        if had_record && packets[0].time_ns.max(now) >= due {
            self.guard_failures += 1;
            return Some(1);
        }
        let bytes = packets[0].wire_len;
        let (records, tables) = state.parts();
        let is_full = had_record && !records.can_count(flow.record, bytes);
        let refill = is_full.then(|| records.refill(tables, flow.record, bytes));
        match refill {
            Some(Refill::Filled) => return Some(0),
            Some(Refill::Kept) => {
                self.guard_failures += 1;
                return Some(1);
            }
            Some(Refill::Ended) | None => {}
        }
        let is_outdated = had_record
            && refill.is_none()
            && records.is_template_outdated(records.template(flow.record));
        if is_outdated {
            records.end(tables, flow.record);
            // Accounts for this end: only packets of the flow need another lookup.
            self.batch.ended += 1;
        }
        let is_over = is_outdated || refill.is_some();
        if is_over {
            self.filter.expect(flow.hash);
            self.batch.flows[from].record = NONE;
        }
        let has_record = had_record && !is_over;
        // Packets that fail the guards of their record count as another flow. The filter never
        // forgets this flow, so a flow with mixed packets changes its record at most about once in
        // 128 failures in the long run.
        let met = if has_record { !flow.hash } else { flow.hash };
        let is_counted = !had_record && from < self.batch.counted;
        let may_try = self.batch.tried < TRIES || !self.is_limited(records.has_outdated());
        let is_tried = may_try && !is_counted && self.filter.meets(met, true);
        self.batch.tried += usize::from(is_tried);
        let is_made = is_tried && self.attempt(host, from, &packets[0], &layouts[0]);
        if is_tried || is_over {
            let (all, state) = (from..from + packets.len(), host.functions.state());
            self.batch.find_again(state, all, |hash| hash == flow.hash);
        }
        if is_made {
            self.renewed += u64::from(is_outdated);
            if !has_record {
                self.filter.forget(met);
            }
            return Some(0);
        }
        if is_over || is_tried && self.findings.wanted.is_some() {
            // Often only this packet takes the path beyond the bounds, or the program that the
            // record needs will soon be there. So the flow's next packet gets another attempt.
            self.filter.expect(met);
        }
        self.guard_failures += u64::from(had_record);
        (is_tried || had_record).then_some(1)
    }

    /// Whether there are few attempts to make a record now.
    fn is_limited(&self, has_outdated: bool) -> bool {
        !self.eager && (has_outdated || self.findings.wanted.is_some())
    }

    /// The first of these packets must run its program. Returns the number of packets that must do
    /// so: it counts the following packets up to one that has a record or may get one. The filter
    /// counts each packet once.
    fn meet(&mut self, packets: Range<usize>) -> usize {
        let Self { batch, filter, .. } = self;
        for at in packets.start + 1..packets.end {
            let flow = &batch.flows[at];
            let is_new = flow.kind != NONE && at >= batch.counted;
            let has_record = flow.kind != NONE && flow.record != NONE;
            if has_record || is_new && filter.meets(flow.hash, false) {
                return at - packets.start;
            }
            batch.counted = batch.counted.max(at + 1);
        }
        packets.len()
    }

    /// Makes a record as [`Self::make_record`] does, and counts attempts that fail in a row.
    fn attempt<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        at: usize,
        packet: &Packet,
        layout: &Layout,
    ) -> bool {
        let is_made = self.make_record(host, at, packet, layout);
        self.failed = if is_made { 0 } else { self.failed.saturating_add(1) };
        is_made
    }

    /// Makes a record for the packet at `at`, which is about to enter, in place of the flow's
    /// record if it has one. Returns whether it was made.
    fn make_record<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        at: usize,
        packet: &Packet,
        layout: &Layout,
    ) -> bool {
        let now = packet.time_ns.max(host.functions.now());
        // Anything that is due before the packet may change the state on which the record would
        // depend.
        if now >= host.due() {
            return false;
        }
        let flow = self.batch.flows[at];
        let Some(start) = self.extractors.start(flow.extractor()) else { return false };
        if self.leaves_out(flow) {
            return false;
        }
        let worker = host.functions.chain().worker(packet, layout);
        let inside = self.inside(flow, at, packet);
        let inside = inside.as_ref().map(InsidePacket::lent);
        let at_hand = Arrived { packet, layout, inside };
        let tree = Tree::of(flow.kind, worker, at_hand);
        let (tree, known) = self.by_script(host, tree, at_hand);
        if cfg!(debug_assertions) && known.is_some() && self.findings.mutants.is_none() {
            self.check_script(host, start, tree, at_hand, known);
        }
        let is_scripted = known.is_some();
        let known = known.or_else(|| self.specialise(host, start, tree, at_hand));
        let pays = known.is_some_and(|known| self.eager || known.pays);
        self.learn(flow, pays);
        let Some(Known { template, uses, lookups, .. }) = known.filter(|_| pays) else {
            return false;
        };
        self.lookups = lookups.into();
        let found = &self.findings;
        let wide = NewRecord {
            key: self.batch.wide[at],
            hash: flow.hash,
            kind: flow.kind,
            template,
            head: found.bytes,
            sums: found.sums,
            now,
            entries: &found.handles,
            uses,
            absent: &found.absent,
        };
        let (records, tables) = host.functions.parts().1.parts();
        if flow.record != NONE {
            records.end(tables, flow.record);
            self.batch.ended += 1;
        }
        let made = match flow.is_narrow() {
            false => records.make(tables, &wide),
            true => records.make(tables, &wide.with(flow.key, narrowed(&found.bytes))),
        };
        let Some(made) = made else { return false };
        self.scripted += u64::from(is_scripted);
        if self.extractors.is_open {
            self.bind(self.batch.find(host.functions.state(), at), layout);
        }
        self.learn_from(made, host.functions);
        true
    }

    /// The packet that leaves a tunnel, if this is the flow of such a packet.
    pub(crate) fn inside(&self, flow: Flow, at: usize, packet: &Packet) -> Option<InsidePacket> {
        let extractor = self.extractors.get(flow.extractor()).filter(|_| flow.is_peeled())?;
        let (covered, peel) = (extractor.inside_mask(of_kind(flow.kind).1)?, extractor.peel?);
        let (layout, less) = &self.batch.inside[at];
        let mut packet = packet.clone();
        leave(&mut packet, peel.inner, *less);
        Some(InsidePacket { peel, less: *less, packet, layout: *layout, covered })
    }

    /// Finds the parts of the packet's record by a script of a tree, or of the tree for a part of
    /// the path. Returns the last tree, and the parts if a script knows the packet's path.
    fn by_script<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        tree: Tree,
        at_hand: Arrived<'_>,
    ) -> (Tree, Option<Known>) {
        let Self { scripts, templates, findings, .. } = self;
        let Host { functions, out, .. } = host;
        let found = scripts.run(tree, (&mut **functions, &mut **out), at_hand, templates, findings);
        let Some(Found::UpTo(node)) = found else { return (tree, found.and_then(Found::known)) };
        let part = tree.part(node);
        let found = scripts.run(part, (&mut **functions, &mut **out), at_hand, templates, findings);
        (part, found.and_then(Found::known))
    }

    /// Asserts that the specialiser finds the same as a script. The packet at hand may divide by 0
    /// where the path does not: then the specialiser finds nothing, and the packet cannot take the
    /// record of the script.
    fn check_script<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        start: Start,
        tree: Tree,
        at_hand: Arrived<'_>,
        known: Option<Known>,
    ) {
        let Findings { bytes, sums, handles, absent, .. } = &self.findings;
        let by_script = (*bytes, *sums, handles.clone(), absent.clone(), known);
        let template = known.and_then(|known| self.templates.all.get(known.template as usize));
        let more = template.and_then(|template| template.more.as_deref());
        let may_fault = more.is_some_and(|more| more.dynamic.divides());
        let known = self.specialise(host, start, tree, at_hand);
        if may_fault && known.is_none() {
            return;
        }
        let Findings { bytes, sums, handles, absent, .. } = &self.findings;
        let by_specialiser = (*bytes, *sums, handles.clone(), absent.clone(), known);
        assert_eq!(by_script, by_specialiser, "a script and the specialiser differ");
    }

    /// Finds the parts of the packet's record by the specialiser, and writes a script. If scripts
    /// for a part of the path are wanted, the record is for that part. `None` if the packet can
    /// have no record.
    fn specialise<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        start: Start,
        mut tree: Tree,
        at_hand: Arrived<'_>,
    ) -> Option<Known> {
        let (entry, _, is_narrow) = of_kind(tree.kind);
        let Self { findings, scripts, extractors, .. } = self;
        (findings.recording.is_wanted, findings.prefix) = (scripts.is_wanted(), None);
        let mut one = Specialiser::new(
            (entry, extractors.get(entry)),
            &mut *host.functions,
            tree.worker,
            &mut *host.out,
            at_hand,
            findings,
        )?;
        let world = (host.programs, host.graph);
        let goal = match (tree.up_to, start) {
            (Some(node), Start::Program(number)) => {
                let end = PathEnd { node, program: u32::try_from(number).ok() };
                one.run_up_to(end, start, world, host.words)
            }
            _ => one.run(start, world, host.words),
        };
        let tunnels = one.tunnels;
        self.learn_of_tunnels(tunnels, entry, host.programs);
        let goal = goal.ok()?;
        let pays = self.findings.loss().is_none();
        if !(self.eager || pays)
            || is_narrow && !self.has_room(entry, at_hand.packet, host.functions)
        {
            return None;
        }
        let records = host.functions.state().dependents();
        if records.has_mutant(RecordMutant::RulesForgotten) {
            self.findings.path.rules.clear();
        }
        let template = self.template(host, goal)?;
        let (records, tables) = host.functions.parts().1.parts();
        let Findings { depends_on, handles, absent, recording, lookups, prefix, .. } =
            &mut self.findings;
        handles.clear();
        handles.extend(depends_on.iter().map(|(handle, _)| *handle));
        let uses = records.uses(tables, depends_on, absent.len());
        let known = Known { template, uses, pays, lookups: *lookups };
        if let Some(prefix) = prefix.take() {
            self.scripts.add_met(tree, &prefix);
            tree = tree.part(prefix.met.node);
        }
        match recording.finish() {
            true => self.scripts.add(tree, recording, known, depends_on),
            false => self.scripts.fail(),
        }
        Some(known)
    }

    /// Takes note of what a specialisation for packets of an extractor has found out about tunnels.
    fn learn_of_tunnels(&mut self, found: Tunnels, entry: u32, programs: &impl Programs) {
        let Self { batch, scripts, extractors, .. } = self;
        match (found, extractors.get_mut(entry)) {
            (Tunnels::Ends(peel), Some(extractor)) => {
                extractor.look_inside(peel);
                scripts.clear();
                // The other packets of the batch have keys of the old kind.
                batch.have_no_flow(0..batch.flows.len());
            }
            (Tunnels::Closed, Some(extractor)) if !extractor.ends_at_tunnels => {
                extractor.ends_at_tunnels = true;
                scripts.clear();
            }
            (Tunnels::Unkeyed, _) => {
                extractors.make_whole(entry, programs);
                scripts.clear();
                // The other packets of the batch have keys of the old kind.
                batch.have_no_flow(0..batch.flows.len());
            }
            _ => {}
        }
    }

    /// Takes a record that was made as a sample, and admits flows later or earlier from now on if
    /// the samples tell so.
    fn learn_from(&mut self, made: u32, functions: &impl Functions) {
        if self.eager {
            return;
        }
        let records = functions.state().dependents();
        let now = Clock { ns: functions.now(), packets: self.entered };
        self.payback.made(made, now);
        match self.payback.judge(now, self.lookups, |record| records.taken(record)) {
            Some(Advice::Later) => self.filter.admit_later(),
            Some(Advice::Earlier) => self.filter.admit_earlier(),
            None => {}
        }
    }

    /// The template of the path that the run has found: an existing one, or a new one with this
    /// goal.
    fn template<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        goal: Goal,
    ) -> Option<u32> {
        if let Some(known) = self.templates.known(&mut self.findings.path) {
            return Some(known);
        }
        if !self.templates.takes(&self.findings.path) {
            return None;
        }
        let (records, _) = host.functions.parts().1.parts();
        let keeps = !records.has_mutant(RecordMutant::OutdatedCountsLost);
        let instead = records.renew_template();
        if let Some((template, counts)) = instead.filter(|_| keeps) {
            self.settle_template(template, counts, host.programs, host.functions);
        }
        let path = self.findings.path.clone();
        self.templates.add(path, goal, instead.map(|(template, _)| template))
    }

    /// Whether to leave out this attempt to make a record for a flow.
    fn leaves_out(&mut self, flow: Flow) -> bool {
        let extractor = self.extractors.get_mut(flow.extractor());
        let extractor = extractor.filter(|extractor| extractor.is_left_out());
        extractor.map(KeyExtractor::leave_out).is_some()
    }

    /// Tells the flow's extractor whether a packet like this one can have a record that saves time.
    /// An eager cache tries every flow.
    fn learn(&mut self, flow: Flow, pays: bool) {
        let extractor = self.extractors.get_mut(flow.extractor());
        if let Some(extractor) = extractor.filter(|_| !self.eager) {
            extractor.learn(pays);
        }
    }

    /// Whether a narrow record can hold the findings. If not, the extractor makes only wide keys
    /// from now on.
    fn has_room(&mut self, entry: u32, packet: &Packet, functions: &mut impl Functions) -> bool {
        let Some(extractor) = self.extractors.get_mut(entry) else { return true };
        let (path, bytes) = (&mut self.findings.path, &self.findings.bytes);
        (path.link, path.first) = (extractor.link(packet), [bytes[0], bytes[1]]);
        let has_room = path.is_narrow(&path.link) && !self.templates.lacks_link(path);
        if !has_room {
            extractor.make_wide();
            let (records, tables) = functions.parts().1.parts();
            records.end_narrow(tables, |kind| of_kind(kind).0 == entry);
        }
        has_room
    }

    /// Stores the bindings of native functions to a record that was just made. `layout` is the
    /// layout of its packets.
    fn bind(&mut self, record: u32, layout: &Layout) {
        if record == NONE {
            return;
        }
        let care = self.findings.care;
        let shape = HeaderMask { care, present: layout.presence() & care };
        let bindings = Bindings { shape, all: self.findings.bindings.drain(..).collect() };
        let none = || Bindings { shape: HeaderMask { care: 0, present: 0 }, all: Box::default() };
        let (all, at) = place(record);
        if self.bindings[all].len() <= at {
            self.bindings[all].resize_with(at + 1, none);
        }
        self.bindings[all][at] = bindings;
    }
}
