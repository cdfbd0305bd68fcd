//! The flow cache: the data with which the engine finds, makes and counts records.

use crate::basis::Changed;
use crate::batch::Batch;
use crate::bindings::{Bindings, place};
use crate::counted::Counted;
use crate::extractors::Extractors;
use crate::filter::Filter;
use crate::findings::Findings;
use crate::freeing::Freeing;
use crate::host::{Cut, Functions, Host, Programs};
use crate::mutants::RecordMutant;
use crate::payback::Payback;
use crate::records::RecordCounters;
use crate::sample::{Sample, Seen};
use crate::scripts::Scripts;
use crate::slab::NONE;
use crate::template::Templates;
use braid_ir::chain::Chain;
use braid_ir::walk::{At, onward};
use braid_packet::{Layout, Packet};
use std::cell::{Ref, RefCell};

/// The number of templates that are brought up to date with a change before each batch of packets.
const OUTDATED_AT_A_TIME: usize = 64;

/// The numbers of packets by path, and the numbers of flow records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flows {
    /// Packets that took their flow's record.
    pub hits: u64,
    /// Packets whose flow had a record that they could not take: the packet failed the guards, or
    /// due work had to run first.
    pub guard_failures: u64,
    /// Packets whose flow had no record.
    pub misses: u64,
    /// Records that packets took behind a function that did what no record contains: one for the
    /// rest of the path, or several for parts of it.
    pub rest_hits: u64,
    /// Records for a part of the path, among those of `hits` and `rest_hits`: the packet went on at
    /// a function behind it.
    pub part_hits: u64,
    /// Records that were made by scripts.
    pub scripted: u64,
    /// Records that replaced outdated records.
    pub renewed: u64,
    /// Records that were made, that have ended, and that were not made because there were too many.
    pub records: RecordCounters,
}

/// After this number of failed attempts in a row, records do not pay.
const MANY_FAILED: u32 = 256;

/// The flow cache of a chain. The records themselves are part of the state ([`crate::State`]).
pub struct FlowCache {
    pub(crate) templates: Templates,
    pub(crate) scripts: Scripts,
    freeing: Freeing,
    pub(crate) extractors: Extractors,
    pub(crate) filter: Filter,
    pub(crate) sample: Sample,
    pub(crate) payback: Payback,
    /// The number of lookups that the last new record replaces.
    pub(crate) lookups: u64,
    /// The number of attempts in a row that have led to no record.
    pub(crate) failed: u32,
    /// The number of packets that have entered the chain.
    pub(crate) entered: u64,
    /// Whether the sampling leaves out the packets of the current batch.
    pub(crate) is_left_out: bool,
    /// Whether flows get their records early, and on paths that look nothing up, too.
    pub(crate) eager: bool,
    /// The current batch of packets.
    pub(crate) batch: Batch,
    /// Whether the last batch had packets without a record.
    pub(crate) missed: bool,
    /// Memory that specialisations reuse.
    pub(crate) findings: Findings,
    /// The bindings of native functions to narrow and to wide records, by the records' numbers.
    pub(crate) bindings: [Vec<Bindings>; 2],
    /// Counts of paths that are in no program's counters.
    pub(crate) counted: RefCell<Counted>,
    /// As in [`Flows`].
    pub(crate) hits: u64,
    pub(crate) guard_failures: u64,
    pub(crate) rest_hits: u64,
    pub(crate) part_hits: u64,
    pub(crate) scripted: u64,
    pub(crate) renewed: u64,
}

impl FlowCache {
    /// Creates the flow cache of a chain, with at most `records` records. An eager cache makes a
    /// record at a flow's second packet instead of its fourth, even where a record saves no time.
    #[must_use]
    pub fn new(chain: &Chain, records: usize, eager: bool) -> Self {
        Self {
            templates: Templates::default(),
            scripts: Scripts::default(),
            freeing: Freeing::default(),
            extractors: Extractors::new(chain, eager),
            filter: Filter::new(if eager { 2 } else { 4 }, records),
            sample: Sample::new(),
            payback: Payback::default(),
            lookups: 0,
            failed: 0,
            entered: 0,
            is_left_out: false,
            eager,
            batch: Batch::new(),
            missed: false,
            findings: Findings::new(),
            bindings: [Vec::new(), Vec::new()],
            counted: RefCell::default(),
            hits: 0,
            guard_failures: 0,
            rest_hits: 0,
            part_hits: 0,
            scripted: 0,
            renewed: 0,
        }
    }

    /// The numbers of packets and records so far. `packets` is the number of packets that have
    /// entered the chain.
    #[must_use]
    pub fn flows(&self, packets: u64, functions: &impl Functions) -> Flows {
        let Self { hits, guard_failures, rest_hits, part_hits, scripted, renewed, .. } = *self;
        let records = functions.state().dependents().counters();
        let misses = packets - hits - guard_failures;
        Flows { hits, guard_failures, misses, rest_hits, part_hits, scripted, renewed, records }
    }

    /// Whether a record was found for the packet at `at` in the current batch.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a batch has a flow for each of its packets")]
    pub fn has_record(&self, at: usize) -> bool {
        !self.is_left_out && self.batch.flows[at].record != NONE
    }

    /// The program that records need for a part of a path, if they have met such a path since the
    /// last call. The engine should make it soon, for later packets.
    pub fn take_wanted(&mut self) -> Option<Cut> {
        self.findings.wanted.take()
    }

    /// There is no room for further programs, as long as the present ones exist.
    pub fn want_no_more(&mut self) {
        self.findings.may_want = false;
    }

    /// The counts of records that do not belong to a program's counters.
    pub fn counted(&self) -> Ref<'_, Counted> {
        self.counted.borrow()
    }

    /// Resets the counts of records that do not belong to a program's counters.
    pub fn forget_counted(&mut self) {
        self.counted.take();
    }

    /// Finds the flows and the records of packets that are about to enter, unless the sampling
    /// leaves these packets out. Returns the number of packets to process before the next call:
    /// those in front of the first packet whose program is not known, or that packet alone.
    pub fn look_at<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        packets: &mut [Packet],
        layouts: &[Layout],
    ) -> usize {
        self.clear_up(host.functions);
        let (takes, sample) = self.sampled(packets.len(), host.functions);
        (self.sample, self.is_left_out) = (sample, !takes);
        let count =
            if takes { self.find_flows(host, packets, layouts).max(1) } else { packets.len() };
        self.entered += count as u64;
        count
    }

    /// Whether the cache looks at the next `packets` packets, and the state of the sampling
    /// afterwards.
    pub(crate) fn sampled(&self, packets: usize, functions: &impl Functions) -> (bool, Sample) {
        let mut sample = self.sample;
        if self.is_paused(functions) {
            return (false, sample);
        }
        let hits = self.hits + self.rest_hits;
        let again = hits + self.guard_failures + self.filter.again;
        let pays_little = self.filter.admits_late() || self.failed >= MANY_FAILED;
        let lookups = pays_little.then_some(self.lookups);
        let seen = Seen { hits, again, lookups };
        (self.eager || sample.takes(packets, seen), sample)
    }

    /// Whether no packet takes a record for now: the state is about to be copied, or templates do
    /// not reflect a change yet.
    pub(crate) fn is_paused(&self, functions: &impl Functions) -> bool {
        self.templates.is_pending() || functions.state().dependents().is_paused()
    }

    /// Finds the flows and the records of packets that are about to enter, up to the first packet
    /// whose program is not known. Returns the number of packets before that one.
    #[inline(never)]
    pub(crate) fn find_flows<P: Programs, F: Functions>(
        &mut self,
        host: &mut Host<'_, P, F>,
        packets: &mut [Packet],
        layouts: &[Layout],
    ) -> usize {
        let now = host.functions.now();
        let (_, state) = host.functions.parts();
        let (records, tables) = state.parts();
        records.sweep(tables, now);
        if records.has_mutant(RecordMutant::WorkerIgnored) {
            self.extractors.steered = None;
        }
        (self.batch.counted, self.batch.tried) = (0, 0);
        self.batch.ended = state.dependents().counters().ended;
        let Self { batch, extractors, .. } = self;
        if !extractors.is_open {
            extractors.add(host.programs);
        }
        let mut from = 0;
        for run in packets.chunk_by_mut(|one, next| one.ingress == next.ingress) {
            let range = from..from + run.len();
            from = range.end;
            let entry = run.first().map(|packet| onward(host.graph.entry(packet.ingress)));
            let (Some(At::Point(entry)), Some(layouts)) = (entry, layouts.get(range.clone()))
            else {
                batch.have_no_flow(range);
                continue;
            };
            if extractors.is_open {
                let all = (range.start, &*run, layouts);
                batch.find_open_flows(state, extractors, entry, all);
                continue;
            }
            let all = (range.start, &mut *run, layouts);
            let found = batch.find_flows(state, host.programs, extractors, entry, all);
            if found < range.len() {
                from = range.start + found;
                break;
            }
        }
        if !extractors.is_open && std::mem::take(&mut self.missed) {
            self.batch.prefetch(&self.filter, from);
        }
        from
    }

    /// The bindings of native functions to a record.
    #[expect(clippy::indexing_slicing, reason = "`place` gives one of two lists")]
    pub(crate) fn bindings(&self, record: u32) -> Option<&Bindings> {
        let (all, at) = place(record);
        self.bindings[all].get(at)
    }

    /// Marks the records as outdated that depend on the changed part of a parameter. If there are
    /// many templates, this takes until several batches later. No packet takes a record meanwhile,
    /// so that no packet waits for the marks.
    pub fn outdate(&mut self, changed: Changed, functions: &mut impl Functions) {
        if !functions.state().dependents().has_mutant(RecordMutant::ControlIgnored) {
            self.templates.outdate(changed);
            if !functions.state().dependents().has_mutant(RecordMutant::StaleScript) {
                self.scripts.clear();
            }
            self.outdate_some(functions);
        }
    }

    /// Does some of the work that a change has left.
    #[inline]
    fn clear_up(&mut self, functions: &mut impl Functions) {
        if self.templates.is_pending() || self.scripts.has_old() {
            self.outdate_some(functions);
            self.scripts.free_some();
            self.freeing.sort();
        }
    }

    /// Brings some templates up to date with a change.
    fn outdate_some(&mut self, functions: &mut impl Functions) {
        if self.templates.is_pending() {
            self.templates.outdate_some(OUTDATED_AT_A_TIME, functions.parts().1);
        }
    }

    /// Brings all templates up to date with all changes.
    pub(crate) fn finish_outdating(&mut self, functions: &mut impl Functions) {
        while self.templates.is_pending() {
            self.templates.outdate_some(usize::MAX, functions.parts().1);
        }
    }

    /// Adds the counts of records to the counters of programs and rules.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer templates than 2^32")]
    pub fn settle(&self, programs: &impl Programs, functions: &impl Functions) {
        let counts = functions.state().dependents().counted_by_template();
        for (template, counts) in (0..self.templates.all.len() as u32).zip(counts) {
            self.settle_template(template, counts, programs, functions);
        }
    }

    /// Adds the counts of one template's records, which have counted this many packets and bytes
    /// since the template was made, to the counters of programs and rules.
    pub(crate) fn settle_template(
        &self,
        number: u32,
        (packets, bytes): (u64, u64),
        programs: &impl Programs,
        functions: &impl Functions,
    ) {
        let Some((template, path)) = self.templates.get(number) else { return };
        let mut settled = template.settled.replace((packets, bytes));
        if functions.state().dependents().has_mutant(RecordMutant::CountsRepeated) {
            settled = (0, 0);
        }
        let (packets, bytes) = (packets - settled.0, bytes - settled.1);
        for (through, counter_lists) in path.programs() {
            let (program, block) = (through.program as usize, through.block as usize);
            programs.count_packets(program, block, counter_lists, (packets, bytes));
        }
        self.counted.borrow_mut().add(path, packets, bytes);
        for (node, param, rule) in self.templates.rules(number) {
            functions.count_rule(node, param, rule, packets);
        }
    }

    /// Ends all records, because something on which they depend is about to change. The filter
    /// admits each of their flows again at the flow's next packet.
    pub fn end_all(&mut self, programs: &impl Programs, functions: &mut impl Functions) {
        self.settle(programs, functions);
        let (_, state) = functions.parts();
        let (records, tables) = state.parts();
        records.hashes(tables.hash()).for_each(|hash| self.filter.expect(hash));
        records.end_all(tables);
        self.templates.clear();
        self.scripts.clear();
        self.extractors.clear();
        self.findings.may_want = true;
    }
}
