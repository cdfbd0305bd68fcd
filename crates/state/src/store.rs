//! The store of a chain's state.
#![expect(clippy::indexing_slicing, reason = "callers name tables of this store")]

use crate::dependents::Dependents;
use crate::ended::{Ended, EndedEntry};
use crate::handle::{Group, Handle, TableLocator, TableRef};
use crate::hash::HashKey;
use crate::hints::Hints;
use crate::index::Absent;
use crate::shape::{KeyShape, SlotShape};
use crate::table::root_in;
use crate::tables::{Cause, MANY, New, Tables};
use braid_ir::chain::Chain;
use braid_ir::model::{StateId, Word};
use braid_ir::value::ParamValue;

/// The number of entries from which the entries of a table no longer stay in the processor's
/// caches.
const LARGE: u64 = 4096;

/// The state of a chain: all tables of all functions and shards, and the dependents of their
/// entries.
#[derive(Debug)]
pub struct Store<D = ()> {
    tables: Tables,
    hints: Hints,
    /// The latest lookup of the run that found nothing.
    missed: Option<Missed>,
    dependents: D,
}

/// A lookup ([`Store::find_hinted`]) that found nothing, for programs that then create the entry.
#[derive(Debug)]
struct Missed {
    table: TableRef,
    key: [u64; 2],
    absent: Absent,
    /// The number of entries that had been created before.
    ids: u64,
}

impl Missed {
    /// A key of one or two words; others are not kept.
    #[inline(always)]
    fn short(key: &[u64]) -> Option<[u64; 2]> {
        match *key {
            [a] => Some([a, 0]),
            [a, b] => Some([a, b]),
            _ => None,
        }
    }
}

/// The result of [`Store::create`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The entry exists.
    Entry(Handle),
    /// The entry was refused. The refusal is counted.
    Refused,
    /// The entry does not exist yet, because it needs room. Entries were evicted, and their
    /// programs must run first. Then call [`Store::create_after_eviction`].
    Evicted,
}

impl Store {
    /// The state of a chain before its first packet: only the entries of global state exist. The
    /// chain's models must verify. Nothing depends on the entries.
    #[must_use]
    pub fn new(chain: &Chain) -> Self {
        Self::with_hash(chain, HashKey::random())
    }

    /// As [`Store::new`], with this hash key. The key affects only speed, never results.
    #[must_use]
    pub fn with_hash(chain: &Chain, hash: HashKey) -> Self {
        Self::with_dependents(chain, hash, |_| ())
    }
}

impl<D: Dependents> Store<D> {
    /// The state of a chain before its first packet, with the dependents of its entries.
    #[must_use]
    pub fn with_dependents(
        chain: &Chain,
        hash: HashKey,
        dependents: impl FnOnce(&Tables) -> D,
    ) -> Self {
        let tables = Tables::new(chain, hash);
        let (hints, dependents) = (Hints::new(tables.count()), dependents(&tables));
        Self { tables, hints, missed: None, dependents }
    }

    /// The tables without their dependents.
    #[must_use]
    #[inline(always)]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The dependents of the entries.
    #[must_use]
    #[inline(always)]
    pub fn dependents(&self) -> &D {
        &self.dependents
    }

    /// The dependents of the entries, and the tables.
    #[must_use]
    #[inline(always)]
    pub fn parts(&mut self) -> (&mut D, &mut Tables) {
        (&mut self.dependents, &mut self.tables)
    }

    /// A function's table in a shard. State that is not sharded is the same for all shards.
    ///
    /// # Panics
    /// Panics when the chain has no such function, table or shard.
    #[must_use]
    pub fn table(&self, node: u16, state: StateId, shard: u16) -> TableRef {
        self.locator(node, state).table(shard)
    }

    /// The tables of a function's state for all workers.
    ///
    /// # Panics
    /// Panics when the chain has no such function or table.
    #[must_use]
    pub fn locator(&self, node: u16, state: StateId) -> TableLocator {
        self.tables.locator(node, state)
    }

    /// Whether any table is so large that a prefetch of entries saves time.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.tables.all.iter().any(|table| table.len() >= LARGE)
    }

    /// The layout of a table's keys.
    #[must_use]
    #[inline]
    pub fn key_shape(&self, table: TableRef) -> &KeyShape {
        self.tables.key_shape(table)
    }

    /// The layout of a table's slots.
    #[must_use]
    #[inline]
    pub fn slot_shape(&self, table: TableRef) -> &SlotShape {
        self.tables.slot_shape(table)
    }

    /// The entry with this packed key. For programs of timers and expiries: does not renew the
    /// entry.
    #[must_use]
    #[inline]
    pub fn find(&mut self, table: TableRef, key: &[u64]) -> Option<Handle> {
        let (place, head) = self.tables.at(table).find(self.tables.hash().hash(key), key)?;
        self.found(table.index(), head);
        Some(Handle::of(head, place))
    }

    /// The entry with this packed key. For packets' programs: renews the entry's group.
    #[inline]
    pub fn find_seen(&mut self, table: TableRef, key: &[u64], now: u64) -> Option<Handle> {
        let hash = self.tables.hash().hash(key);
        let (place, head) = self.tables.at(table).find(hash, key)?;
        self.see(table.index(), head, now);
        Some(Handle::of(head, place))
    }

    /// Starts a packet's run, for [`Store::find_hinted`].
    #[inline]
    pub fn begin(&mut self) {
        self.hints.begin();
        self.missed = None;
    }

    /// As [`Store::find_seen`], for runs that look up several entries. Also returns the entry's
    /// packed slots. The first entry that a run finds remembers the places of the others. Inlined,
    /// so that the compiler knows the key's size.
    #[inline(always)]
    pub fn find_hinted(
        &mut self,
        table: TableRef,
        key: &[u64],
        now: u64,
    ) -> Option<(Handle, &[u64])> {
        match self.search(table, key, now) {
            Ok(entry) => Some((entry, self.tables.at(table).slots(entry.place()))),
            Err(absent) => {
                if let Some(key) = Missed::short(key) {
                    self.missed = Some(Missed { table, key, absent, ids: self.tables.ids });
                }
                None
            }
        }
    }

    /// As [`Store::find_or_absent`], for runs that will probably create the entry: tells only
    /// whether the table has no entry with this packed key, as far as this is seen at once.
    #[inline(always)]
    pub fn absent(&self, table: TableRef, key: &[u64]) -> Option<Absent> {
        self.missed_before(table, key)
            .or_else(|| self.tables.at(table).index.lacks(self.tables.hash().hash(key)))
    }

    /// The result of the run's latest lookup that found nothing, if it was the same lookup and no
    /// entry was created since.
    #[inline(always)]
    fn missed_before(&self, table: TableRef, key: &[u64]) -> Option<Absent> {
        let last = self.missed.as_ref()?;
        let is_it = (last.table, last.ids) == (table, self.tables.ids)
            && Missed::short(key) == Some(last.key);
        is_it.then_some(last.absent)
    }

    /// As [`Store::find_hinted`], without the slots. Returns an error if there is no such entry;
    /// pass it to [`Store::create_in_room`]. A lookup of a short key that repeats the run's latest
    /// one needs no search if that one has found nothing and no entry was created since.
    #[inline(always)]
    pub fn find_or_absent(
        &mut self,
        table: TableRef,
        key: &[u64],
        now: u64,
    ) -> Result<Handle, Absent> {
        match self.missed_before(table, key) {
            Some(absent) => Err(absent),
            None => self.search(table, key, now),
        }
    }

    /// Finds an entry by the hint or by the index.
    #[inline(always)]
    fn search(&mut self, table: TableRef, key: &[u64], now: u64) -> Result<Handle, Absent> {
        let at = table.index();
        if let Some(number) = self.hints.next()
            && let Some((place, head)) = self.tables.all[at].find_at(number, key)
        {
            self.hints.confirm();
            self.see(at, head, now);
            return Ok(Handle::of(head, place));
        }
        let table = &self.tables.all[at];
        let hash = self.tables.hash().hash(key);
        let (place, head) = table.find_or_absent(hash, key)?;
        self.hints.learn(at, table, place);
        self.see(at, head, now);
        Ok(Handle::of(head, place))
    }

    /// As [`Store::find_hinted`], for the fast case: the entry is small, it is the root of its
    /// group, and it is where the hint says. Returns `None`, without any effect, in all other
    /// cases. Further words may follow the slots in the result. Inlined and without panics, so that
    /// it needs few instructions.
    #[inline(always)]
    pub fn find_at_hint(
        &mut self,
        table: TableRef,
        key: &[u64],
        now: u64,
    ) -> Option<(Handle, &[u64])> {
        let number = self.hints.next()?;
        let table = self.tables.all.get_mut(table.index())?;
        let (head, slots) = table.see_at(number, key, now)?;
        self.hints.confirm();
        // A root is in its own group, so its first word is its handle.
        Some((Handle::from_bits(head), slots))
    }

    /// Announces that this run will soon look up this packed key. Probably no entry has it.
    #[inline]
    pub fn announce(&self, table: TableRef, key: &[u64]) {
        let at = self.tables.at(table);
        if at.len() >= MANY {
            at.prefetch_lookup(self.tables.hash().hash(key));
        }
    }

    /// Announces a run that will first look up this packed key, and starts to prefetch for it.
    /// [`Store::fetch`] completes the prefetch of all runs announced since its last call.
    #[inline]
    pub fn prefetch(&mut self, table: TableRef, key: &[u64]) {
        let hash = self.tables.hash().hash(key);
        self.hints.prefetch(table.index(), self.tables.at(table), hash);
    }

    /// Prefetches the entries that the announced runs ([`Store::prefetch`]) will probably find.
    pub fn fetch(&mut self) {
        self.hints.fetch(&self.tables.all);
    }

    /// Calls the dependents of a found entry with this first word, so that they bring its slots up
    /// to date.
    #[inline(always)]
    fn found(&mut self, at: usize, head: u64) {
        if self.tables.all[at].is_lazy {
            let group = self.tables.group_of(at, head);
            if self.dependents.depend_on(group) {
                self.dependents.entry_found(&mut self.tables, group);
            }
        }
    }

    /// As [`Store::found`], and also renews the group.
    #[inline(always)]
    fn see(&mut self, at: usize, head: u64, now: u64) {
        self.found(at, head);
        let root = self.tables.all[at].site.root;
        self.tables.all[root].renew(root_in(head), now);
    }

    /// Whether the entry has not ended.
    #[must_use]
    #[inline]
    pub fn exists(&self, table: TableRef, entry: Handle) -> bool {
        self.tables.exists(table, entry)
    }

    /// The packed slots of an entry; `None` when it has ended.
    #[must_use]
    #[inline]
    pub fn slots(&self, table: TableRef, entry: Handle) -> Option<&[u64]> {
        self.tables.slots(table, entry)
    }

    /// The packed key of an entry; `None` when it has ended.
    #[must_use]
    pub fn key(&self, table: TableRef, entry: Handle) -> Option<&[u64]> {
        self.exists(table, entry).then(|| self.tables.at(table).key(entry.place()))
    }

    /// Whether anything depends on the group of an existing entry.
    #[inline(always)]
    fn has_dependents(&self, table: TableRef, entry: Handle) -> bool {
        self.dependents.exist() && {
            let head = self.tables.at(table).head(entry.place());
            self.dependents.depend_on(self.tables.group_of(table.index(), head))
        }
    }

    /// Assigns all slots of a found entry at a time. Returns false if the entry has ended.
    #[inline]
    pub fn assign(&mut self, table: TableRef, entry: Handle, slots: &[u64], now: u64) -> bool {
        let exists = self.exists(table, entry);
        if exists {
            if self.has_dependents(table, entry) {
                self.slots_will_change(table, entry, slots, now);
            }
            self.tables.at_mut(table).slots_mut(entry.place()).copy_from_slice(slots);
        }
        exists
    }

    /// Informs the dependents that all slots of an entry are about to be assigned.
    #[inline(never)]
    fn slots_will_change(&mut self, table: TableRef, entry: Handle, words: &[u64], now: u64) {
        for slot in 0..self.slot_shape(table).slots() {
            let value = self.slot_shape(table).get(words, slot);
            let (dependents, tables) = self.parts();
            dependents.slot_will_change(tables, (table, entry), slot, value, now);
        }
    }

    /// Assigns one slot of a found entry at a time. Returns false if the entry has ended.
    #[inline]
    pub fn put(
        &mut self,
        table: TableRef,
        entry: Handle,
        slot: usize,
        value: Word,
        now: u64,
    ) -> bool {
        let exists = self.exists(table, entry);
        if exists {
            if self.has_dependents(table, entry) {
                let (dependents, tables) = self.parts();
                dependents.slot_will_change(tables, (table, entry), slot, value, now);
            }
            self.tables.at_mut(table).put(entry.place(), slot, value);
        }
        exists
    }

    /// The number of entries.
    #[must_use]
    #[inline]
    pub fn len(&self, table: TableRef) -> u64 {
        self.tables.at(table).len()
    }

    /// The memory that a table uses for its entries, in bytes. It includes the places of ended
    /// entries, which new entries will use.
    #[must_use]
    pub fn bytes(&self, table: TableRef) -> usize {
        self.tables.at(table).bytes() + self.hints.bytes(table.index())
    }

    /// Creates an entry if the table has room or can make room. If the table's entries live with
    /// others, the partner must exist. `ended` receives the evicted entries if the result is
    /// [`Created::Evicted`].
    pub fn create(&mut self, table: TableRef, new: &New<'_>, ended: &mut Ended) -> Created {
        if self.tables.root_for(table, new).is_err() {
            return self.refuse(table);
        }
        self.create_after_eviction(table, new, ended)
    }

    /// Whether a table has room for a new entry without ending others.
    #[must_use]
    #[inline]
    pub fn has_room(&self, table: TableRef) -> bool {
        self.tables.at(table).has_room()
    }

    /// The table OTHER, if this table is declared `lives with OTHER`: its entries end together with
    /// entries of OTHER.
    #[must_use]
    #[inline]
    pub fn partner(&self, table: TableRef) -> Option<TableRef> {
        self.tables.at(table).site.partner.map(TableRef::at)
    }

    /// Continues [`Store::create`] after the programs of evicted entries have run.
    pub fn create_after_eviction(
        &mut self,
        table: TableRef,
        new: &New<'_>,
        ended: &mut Ended,
    ) -> Created {
        ended.clear();
        while !self.tables.at(table).has_room() {
            let at = self.tables.at(table);
            let oldest = at.oldest().filter(|_| at.limits.capacity > 0);
            let Some(place) = oldest else { return self.refuse(table) };
            let group = self.tables.group_of(table.index(), at.head(place));
            self.end_group(group, Cause::Evicted, ended, &mut |_| false);
            if !ended.is_empty() {
                return Created::Evicted;
            }
        }
        let hash = self.tables.hash().hash(new.key);
        let absent = self.tables.at(table).index.absent(hash);
        self.create_in_room(table, new, absent)
    }

    /// As [`Store::create`], for a table that has room. `absent` is the result of
    /// [`Store::find_or_absent`], and no entry was created since.
    #[inline(always)]
    pub fn create_in_room(&mut self, table: TableRef, new: &New<'_>, absent: Absent) -> Created {
        // The partner may have been evicted.
        let Ok(root) = self.tables.root_for(table, new) else { return self.refuse(table) };
        self.dependents.entry_will_appear(&mut self.tables, table, new.key);
        Created::Entry(self.tables.insert(table, new, absent, root))
    }

    /// Counts a refused entry. New entries of `expire` programs are always refused.
    #[inline(never)]
    pub fn refuse(&mut self, table: TableRef) -> Created {
        self.tables.at_mut(table).counters.refused += 1;
        Created::Refused
    }

    /// Removes an entry and all entries of its group, if it has not ended. No programs run.
    pub fn delete(&mut self, table: TableRef, entry: Handle) {
        if self.exists(table, entry) {
            let head = self.tables.at(table).head(entry.place());
            let group = self.tables.group_of(table.index(), head);
            let ended = &mut Ended::default();
            self.end_group(group, Cause::Deleted, ended, &mut |_| false);
        }
    }

    /// As [`Tables::end_group`].
    #[inline(always)]
    fn end_group(
        &mut self,
        group: Group,
        cause: Cause,
        ended: &mut Ended,
        run: &mut impl FnMut(EndedEntry<'_>) -> bool,
    ) {
        self.dependents.group_will_end(&mut self.tables, group);
        self.tables.end_group(group, cause, ended, run);
    }

    /// A time before which no entry is due (ns). `u64::MAX` if no entry will ever be due.
    #[must_use]
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.tables.next_due()
    }

    /// Ends the group that is due first, if it is due by `until` (ns). Returns the time at which it
    /// was due (ns). `ended` receives the entries whose programs must run. Groups with equal times
    /// end in the order of their roots' function, table and creation.
    pub fn expire(&mut self, until: u64, ended: &mut Ended) -> Option<u64> {
        ended.clear();
        loop {
            let (due, at) = self.first_due(until)?;
            let expired = self.take_due(at, due);
            self.tables.update_first(at);
            if let Some(Some(number)) = expired {
                self.end_group((at, number), Cause::Expired, ended, &mut |_| false);
                return Some(due);
            }
        }
    }

    /// As [`Tables::first_due`].
    #[inline]
    fn first_due(&mut self, until: u64) -> Option<(u64, usize)> {
        let Self { tables, dependents, .. } = self;
        tables.first_due(until, |group| dependents.last_used(group))
    }

    /// As [`Table::take_due`](crate::table::Table::take_due), for a table with this number.
    #[inline(always)]
    #[expect(clippy::option_option, reason = "as in `Table::take_due`")]
    fn take_due(&mut self, at: usize, due: u64) -> Option<Option<usize>> {
        let Self { tables, dependents, .. } = self;
        tables.all[at].take_due(due, |number| dependents.last_used((at, number as usize)))
    }

    /// As [`Store::expire`], for a caller that can run the programs of some entries at once. Ends
    /// groups up to the first one that has another program. `run` gets the entry, and
    /// returns whether it has run the program. The program must not depend on state, because other
    /// entries of the group are still in their tables.
    #[inline]
    pub fn expire_until_program(
        &mut self,
        until: u64,
        ended: &mut Ended,
        run: &mut impl FnMut(EndedEntry<'_>) -> bool,
    ) -> Option<u64> {
        ended.clear();
        loop {
            let (due, at) = self.first_due(until)?;
            let has_many = self.tables.all[at].len() >= MANY;
            while let Some(expired) = self.take_due(at, due) {
                if has_many {
                    self.tables.prefetch_due(at);
                }
                if let Some(number) = expired {
                    self.end_group((at, number), Cause::Expired, ended, run);
                }
                // The entries of several shards take turns.
                if !ended.is_empty() || self.tables.all[at].site.sharded {
                    break;
                }
            }
            self.tables.update_first(at);
            if !ended.is_empty() {
                return Some(due);
            }
        }
    }

    /// Takes over a function's new parameter values. New capacities and time-outs apply at once.
    pub fn change(&mut self, node: u16, params: &[ParamValue]) {
        self.tables.change(node, params);
    }
}
