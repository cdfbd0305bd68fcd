//! Flow records: the result of a chain for a flow's packets. A record is found by the flow's key.
//! It lasts as long as the state that it depends on stays the same (SpeedyBox's global table, §V-A,
//! over the state of all functions).
//!
//! A record depends on the existence of entries, on the values of some of their slots, and on the
//! absence of other entries ([`crate::absences`]). When such an entry ends or appears, or such a
//! slot is assigned another value, the record ends. In return, packets that take a record neither
//! renew entries nor count in them. The store asks the records of an expiring entry when they were
//! last taken. The counts in an entry follow from the counts of its records ([`crate::entry_use`]).

use crate::absences::kept_elsewhere;
use crate::counts::Counts;
use crate::entry_links::{EntryLinks, LIST, Link};
use crate::entry_use::{EntryUse, apply};
use crate::mutants::{Mutants, RecordMutant};
use crate::new_record::NewRecord;
use crate::slab::{Holds, Hot, IS_WIDE, NARROW, NONE, Record, Slabs};
use crate::template_counts::TemplateCounts;
use crate::uses::{Takes, UseList};
use braid_state::{Group, Handle, HashKey, SlotShape, TableRef, Tables};

/// A table with fewer records than this stays in the processor's caches without help.
const MANY: usize = 4096;

/// The time since a record was last taken after which it may make room for another one (ns).
const STALE_NS: u64 = 1_000_000_000;

/// The number of records that each step of the search for outdated records looks at.
const AT_A_TIME: usize = 2;

/// The time since an outdated record was last taken after which the search ends it (ns).
const SILENT_NS: u64 = 10_000_000_000;

/// The numbers of records that were made, were not made, or have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCounters {
    /// Records that were made.
    pub made: u64,
    /// Records that have ended, for any reason.
    pub ended: u64,
    /// The ended records that made room for another record, because they were outdated or had not
    /// been taken for a second.
    pub replaced: u64,
    /// Records that were not made because there were too many, or because they depend on the
    /// absence of too many entries.
    pub refused: u64,
    /// Records that were not made because they conflict with existing records: one would read a
    /// slot that the other changes, or too many records change the same group of entries.
    pub contended: u64,
}

/// The records of a chain, by number. Wide records have the bit `IS_WIDE` in their numbers.
#[derive(Debug)]
pub struct Records {
    slabs: Slabs,
    entries: EntryLinks,
    templates: TemplateCounts,
    counts: Counts,
    len: usize,
    most: usize,
    counters: RecordCounters,
    /// While no packet takes a record: the position of the next record that settles.
    pub(crate) paused: Option<usize>,
    mutants: Mutants,
}

impl Records {
    /// An empty set of records for these tables. No record is made before [`Records::allow`].
    #[must_use]
    pub fn new(tables: &Tables) -> Self {
        Self {
            slabs: Slabs::new(),
            entries: EntryLinks::new(tables.count()),
            templates: TemplateCounts::default(),
            counts: Counts::default(),
            len: 0,
            most: 0,
            counters: RecordCounters::default(),
            paused: None,
            mutants: Mutants::default(),
        }
    }

    /// Ends all records and sets the largest number of records. 0 allows none.
    pub fn allow(&mut self, tables: &mut Tables, most: usize) {
        self.end_all(tables);
        self.most = most.min(LIST as usize - 1);
    }

    /// Whether this mutant is active.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    pub fn has_mutant(&self, mutant: RecordMutant) -> bool {
        self.mutants.has(mutant)
    }

    /// The active mutant, if any.
    pub(crate) fn mutants(&self) -> Mutants {
        self.mutants
    }

    /// Activates a mutant.
    #[cfg(feature = "mutants")]
    pub fn use_mutant(&mut self, mutant: RecordMutant) {
        self.mutants.use_mutant(mutant);
    }

    /// The numbers of records that were made, were not made, or have ended.
    #[must_use]
    #[inline]
    pub fn counters(&self) -> RecordCounters {
        self.counters
    }

    /// Whether there are no records.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of the record with this key and kind, if there is one.
    #[must_use]
    #[inline(always)]
    pub(crate) fn find<const K: usize, const W: usize>(
        &self,
        hash: u64,
        key: &[u64; K],
        kind: u32,
    ) -> Option<u32>
    where
        Slabs: Holds<K, W>,
    {
        let place = self.slabs.slab().find(hash, key, kind, self.mutants);
        place.map(|place| place | Slabs::MARK)
    }

    /// The record with this number, which must be one of this size.
    #[must_use]
    #[inline(always)]
    pub(crate) fn get<const K: usize, const W: usize>(
        &mut self,
        number: u32,
    ) -> Option<&mut Record<K, W>>
    where
        Slabs: Holds<K, W>,
    {
        self.slabs.slab_mut().all.get_mut((number & !IS_WIDE) as usize)
    }

    /// All narrow records by number, including ended ones.
    #[inline]
    pub(crate) fn narrow(&mut self) -> &mut [Record<{ NARROW.0 }, { NARROW.1 }>] {
        &mut self.slabs.narrow.all
    }

    pub(crate) fn slabs(&self) -> &Slabs {
        &self.slabs
    }

    pub(crate) fn hot(&self, number: u32) -> &Hot {
        self.slabs.hot(number)
    }

    /// Whether a record can count a packet of `bytes` bytes.
    #[must_use]
    pub fn can_count(&self, number: u32, bytes: u32) -> bool {
        self.slabs.hot(number).can_count(bytes)
    }

    /// The template of a record.
    #[must_use]
    pub fn template(&self, number: u32) -> u32 {
        self.slabs.hot(number).template
    }

    /// Whether there are enough records for a prefetch to save time.
    #[must_use]
    pub fn are_many(&self) -> bool {
        self.len >= MANY
    }

    /// Prefetches the records that these hashes probably lead to.
    pub fn fetch(&self, hashes: impl Iterator<Item = u64> + Clone) {
        let narrow = &self.slabs.narrow;
        hashes.clone().for_each(|hash| narrow.prefetch(hash));
        hashes.for_each(|hash| narrow.prefetch_record(hash));
    }

    /// When a record was last taken (ns; 0 if never), and the packets that it has counted and not
    /// handed over. `None` if it has ended.
    pub(crate) fn taken(&self, number: u32) -> Option<(u64, u32)> {
        let Hot { template, seen, packets, .. } = *self.slabs.hot(number);
        (template != Hot::ENDED).then_some((seen, packets))
    }

    /// Makes a record for a flow that has none. Returns its number, or `None` if there is no room
    /// and no record can be replaced, if an entry of the record has ended, or if it conflicts with
    /// other records.
    pub(crate) fn make<const K: usize, const W: usize>(
        &mut self,
        tables: &mut Tables,
        new: &NewRecord<'_, K, W>,
    ) -> Option<u32>
    where
        Slabs: Holds<K, W>,
    {
        let has_room = self.entries.absences.has_room(new.absent.len());
        if !has_room || !self.make_room::<K, W>(tables, new.now) {
            self.counters.refused += 1;
            return None;
        }
        let uses = self.entries.uses.list(new.uses)?.clone();
        let is_shared = self.entries.meet(tables, new.entries, &uses)?;
        let ignores = self.has_mutant(RecordMutant::ContentionIgnored);
        if is_shared && !ignores && !self.are_compatible(tables, &uses) {
            self.make_way(tables, new.entries, &uses);
            if !self.are_compatible(tables, &uses) {
                self.counters.contended += 1;
                return None;
            }
        }
        let NewRecord { key, hash, kind, template, head, sums, .. } = *new;
        let hot = Hot { seen: 0, kind, template, packets: 0, bytes: 0 };
        let record = Record { key, hot, head, sums, link: NONE };
        let number = self.slabs.slab_mut().add(record, hash, self.most, tables.hash());
        let number = number | Slabs::MARK;
        self.counts.start(number);
        if uses.is_bounded {
            self.fill(number, 0);
        }
        self.templates.join(template);
        self.len += 1;
        self.counters.made += 1;
        let forgets = self.has_mutant(RecordMutant::AbsenceForgotten);
        let absent = if forgets { None } else { Some(new.absent) };
        let links = (new.entries, (new.uses, &*uses), absent);
        self.entries.add(&mut self.slabs, tables, number, links);
        Some(number)
    }

    /// The number of a list of uses, one for each entry that a record depends on. `absent` is the
    /// number of entries that must be absent. The number stays valid as long as there are records.
    pub(crate) fn uses(
        &mut self,
        tables: &mut Tables,
        depends_on: &[(Handle, EntryUse)],
        absent: usize,
    ) -> u32 {
        let forgets = self.has_mutant(RecordMutant::AbsenceForgotten);
        self.entries.uses.number_of(tables, depends_on, if forgets { 0 } else { absent })
    }

    /// Whether a record with these uses of the entries that it has met is compatible with the
    /// existing records.
    fn are_compatible(&self, tables: &Tables, uses: &UseList) -> bool {
        let mut all = self.entries.met().iter().zip(&*uses.all);
        all.all(|(group, one)| {
            let takes = self.takes(*group, tables);
            let may_mix =
                !one.takes.mixes_kinds(takes) || self.has_mutant(RecordMutant::KindsMixed);
            may_mix && self.entries.fits(*group, one.takes, takes)
        })
    }

    /// Ends records with bounds in favour of a record that computes values for each packet, because
    /// an entry can have more records of that kind. As long as such a record exists, no record gets
    /// bounds.
    fn make_way(&mut self, tables: &mut Tables, entries: &[Handle], uses: &UseList) {
        for (entry, one) in entries.iter().zip(&*uses.all).filter(|(_, one)| one.takes.computes()) {
            let group = tables.group(one.table, entry.place());
            self.end_dependent(tables, group, |_, other| !other.bounds.is_empty());
        }
    }

    /// Makes sure that there is room for one more record. At the limit, this ends a record that is
    /// outdated or has not been taken for a second. Returns false if there is no such record.
    fn make_room<const K: usize, const W: usize>(&mut self, tables: &mut Tables, now: u64) -> bool
    where
        Slabs: Holds<K, W>,
    {
        if self.len < self.most {
            return true;
        }
        let templates = &self.templates;
        match self.slabs.slab_mut().stale(|template| templates.is_outdated(template)) {
            Some((place, is_outdated, seen))
                if is_outdated || now.saturating_sub(seen) > STALE_NS =>
            {
                self.end(tables, place | Slabs::MARK);
                self.counters.replaced += 1;
                true
            }
            _ => false,
        }
    }

    /// The hashes of the keys of all records.
    pub fn hashes<'a>(&'a self, hash: &'a HashKey) -> impl Iterator<Item = u64> + 'a {
        self.slabs.narrow.hashes(hash).chain(self.slabs.wide.hashes(hash))
    }

    /// Ends all records.
    pub fn end_all(&mut self, tables: &mut Tables) {
        for position in 0..self.slabs.len() {
            self.end(tables, self.slabs.number(position));
        }
        self.templates = TemplateCounts::default();
        self.entries.uses.clear();
    }

    /// Ends the narrow records whose kind satisfies `is_it`.
    #[expect(clippy::indexing_slicing, reason = "a record that ends keeps its place in the slab")]
    #[expect(clippy::cast_possible_truncation, reason = "places have 32 bits")]
    pub fn end_narrow(&mut self, tables: &mut Tables, is_it: impl Fn(u32) -> bool) {
        for place in 0..self.slabs.narrow.all.len() {
            if is_it(self.slabs.narrow.all[place].hot.kind) {
                self.end(tables, place as u32);
            }
        }
    }

    /// Ends a record, unless it has ended. Its entries then count as seen when the record was last
    /// taken.
    pub fn end(&mut self, tables: &mut Tables, number: u32) {
        self.settle(tables, number);
        let hot = self.slabs.hot_mut(number);
        if hot.template == Hot::ENDED {
            return;
        }
        let template = std::mem::replace(&mut hot.template, Hot::ENDED);
        let seen = hot.seen;
        self.counts.end(number);
        self.templates.leave(template);
        self.len -= 1;
        self.counters.ended += 1;
        let keeps = !self.has_mutant(RecordMutant::LivenessLostAtEnd);
        let Self { slabs, entries, mutants, .. } = self;
        entries.untie(slabs, number, tables, *mutants, |tables, group| {
            if keeps {
                tables.renew(group, seen);
            }
        });
        slabs.remove(number, tables.hash());
    }

    /// Ends the records of a group that have a link to it for which `ends` holds.
    #[inline(never)]
    pub(crate) fn end_dependent(
        &mut self,
        tables: &mut Tables,
        group: Group,
        ends: impl Fn(Link, &EntryUse) -> bool,
    ) {
        // Backward, because the last record of the list takes the place of a record that ends.
        for at in (0..self.on(group).len()).rev() {
            let Some(record) = self.on(group).get(at).copied() else { continue };
            let is_it = |link: Link| self.use_of(link).is_some_and(|one| ends(link, one));
            if self.links(record).any(is_it) {
                self.end(tables, record);
            }
        }
    }

    /// Ends the records that depend on the absence of an entry with this key.
    #[inline(never)]
    pub(crate) fn end_absent(&mut self, tables: &mut Tables, table: TableRef, key: &[u64]) {
        let Some(number) = self.entries.absences.known(table, key, tables.hash()) else { return };
        let group = (self.entries.absent_table(), number as usize);
        for at in (0..self.on(group).len()).rev() {
            if let Some(record) = self.on(group).get(at).copied() {
                self.end(tables, record);
            }
        }
    }

    /// Ends the records that depend on state that a function keeps outside the store
    /// (`absences::kept_elsewhere`), because that state has changed.
    pub fn change_elsewhere(
        &mut self,
        tables: &mut Tables,
        (node, shard): (u16, u16),
        number: u64,
    ) {
        if self.has_absences() && !self.has_mutant(RecordMutant::StaleElsewhere) {
            let (table, key) = kept_elsewhere(node, shard, number);
            self.end_absent(tables, table, &key);
        }
    }

    /// Whether any record depends on the absence of an entry.
    pub(crate) fn has_absences(&self) -> bool {
        !self.entries.absences.is_empty()
    }

    /// The table and the key of an absent entry, by the place in a link to it. `None` if the key
    /// stands for state outside the store.
    pub(crate) fn absent(&self, place: u32) -> Option<(TableRef, &[u64])> {
        self.entries.absences.key(place)
    }

    /// The records on a group.
    pub(crate) fn on(&self, group: Group) -> &[u32] {
        self.entries.on(group)
    }

    /// Whether there are any records on a group.
    #[inline(always)]
    pub(crate) fn has_links(&self, group: Group) -> bool {
        self.entries.has_links(group)
    }

    /// The uses that records have of a group.
    pub(crate) fn takes(&self, group: Group, tables: &Tables) -> Takes {
        self.entries.takes(&self.slabs, group, tables)
    }

    /// When a record that depends on a group was last taken.
    #[inline(never)]
    pub(crate) fn seen(&self, group: Group) -> Option<u64> {
        self.entries.seen(&self.slabs, group)
    }

    /// The links of a record, entries first.
    pub(crate) fn links(&self, record: u32) -> impl DoubleEndedIterator<Item = Link> + '_ {
        self.entries.links(&self.slabs, record)
    }

    /// The use of an entry that a link stands for; `None` if the entry must be absent.
    pub(crate) fn use_of(&self, link: Link) -> Option<&EntryUse> {
        self.entries.use_of(link)
    }

    /// A record's hot part with only the counts that it has not handed over yet.
    pub(crate) fn counted(&self, number: u32) -> Hot {
        self.counts.counted(&self.slabs, number)
    }

    /// Gives fuel for `bytes` bytes to a record that has bounds and has counted nothing.
    pub(crate) fn fill(&mut self, number: u32, bytes: u32) {
        self.counts.fill(&mut self.slabs, number, bytes);
    }

    /// Takes the rest of a record's fuel away, because it may be too much now.
    pub(crate) fn drain(&mut self, number: u32) {
        self.counts.drain(&mut self.slabs, number);
    }

    /// From now on, keeps the total packets and bytes of each record, for a listing.
    pub fn keep_totals(&mut self) {
        self.counts.keep_totals();
    }

    /// The packets and bytes that a record has handed over.
    pub(crate) fn total(&self, number: u32) -> (u64, u64) {
        self.counts.total(number)
    }

    /// Moves the counts of a record to its template's counts and to the slots of its entries.
    pub(crate) fn settle(&mut self, tables: &mut Tables, number: u32) {
        let loses = self.has_mutant(RecordMutant::CountsLost);
        let record = self.counted(number);
        if record.packets == 0 {
            return;
        }
        if !loses {
            self.templates.count(record.template, record.packets, record.bytes);
        }
        self.counts.give(number, record.packets, record.bytes);
        if self.entries.updates(&self.slabs, number) {
            for link in self.links(number) {
                if let Some(one) = self.use_of(link).filter(|one| !one.updates.is_empty()) {
                    let (shape, words) = tables.slots_of(one.table, link.place);
                    apply(one, &record, shape, words);
                }
            }
        }
        self.counts.count_anew(&mut self.slabs, number);
    }

    /// Adds the counts of the records on a group to a copy of an entry's slots.
    pub(crate) fn settle_words(
        &self,
        (table, place): (TableRef, u32),
        group: Group,
        shape: &SlotShape,
        words: &mut [u64],
    ) {
        for number in self.on(group) {
            let record = &self.counted(*number);
            let links = self.links(*number).filter(|link| link.place == place);
            let uses = links.filter_map(|link| self.use_of(link));
            for one in uses.filter(|one| one.table == table && record.packets > 0) {
                apply(one, record, shape, words);
            }
        }
    }

    /// The table and place of an entry that a record depends on. `number` counts from the last
    /// entry, which has 0.
    pub(crate) fn entry(&self, record: u32, number: usize) -> Option<(TableRef, u32)> {
        let link = self.links(record).rev().filter(|link| link.how != NONE).nth(number)?;
        Some((self.use_of(link)?.table, link.place))
    }

    /// Marks a template as outdated: a parameter that its records depend on has changed.
    pub fn outdate_template(&mut self, template: u32) {
        self.templates.outdate(template);
    }

    /// Takes the number of an outdated template without records, so that another template can use
    /// it. Returns the number, and the packets and bytes that the template's records have counted.
    pub fn renew_template(&mut self) -> Option<(u32, (u64, u64))> {
        self.templates.renew()
    }

    /// Whether there are outdated records.
    #[must_use]
    pub fn has_outdated(&self) -> bool {
        self.templates.has_outdated()
    }

    /// Whether the records of a template are outdated.
    #[must_use]
    pub fn is_template_outdated(&self, template: u32) -> bool {
        self.templates.is_outdated(template)
    }

    /// Ends outdated records that have not been taken for a while. Each call looks at the next few
    /// records, so that repeated calls look at all of them. The call is free if there are no
    /// outdated records.
    #[inline]
    pub fn sweep(&mut self, tables: &mut Tables, now: u64) {
        if self.has_outdated() {
            self.sweep_some(tables, now);
        }
    }

    #[inline(never)]
    fn sweep_some(&mut self, tables: &mut Tables, now: u64) {
        let all = self.slabs.len();
        for _ in 0..AT_A_TIME {
            let number = self.slabs.number(self.templates.next(all));
            let Hot { seen, template, .. } = *self.slabs.hot(number);
            if self.is_template_outdated(template) && now.saturating_sub(seen) > SILENT_NS {
                self.end(tables, number);
            }
        }
    }

    /// The packets and bytes that records of each template have counted since the template got its
    /// number.
    #[must_use]
    pub fn counted_by_template(&self) -> Vec<(u64, u64)> {
        let mut counts = self.templates.counts();
        let all = self.slabs.numbers().take(if self.is_settled() { 0 } else { usize::MAX });
        let taken = all.filter(|one| self.slabs.hot(*one).packets > 0);
        for Hot { template, packets, bytes, .. } in taken.map(|one| self.counted(one)) {
            // The counts of a template exist from its first record on.
            let Some(count) = counts.get_mut(template as usize) else { continue };
            count.0 += u64::from(packets);
            count.1 += u64::from(bytes);
        }
        counts
    }
}
