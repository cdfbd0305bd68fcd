//! All tables of a chain, without the dependents of their entries.
#![expect(
    clippy::indexing_slicing,
    reason = "callers use numbers that the store has given to tables, functions and states"
)]

use crate::cold::{Cold, Next};
use crate::deadlines::{Queue, Times};
use crate::earliest::Earliest;
use crate::ended::{Ended, EndedEntry};
use crate::handle::{Group, Handle, TableLocator, TableRef};
use crate::hash::HashKey;
use crate::index::Absent;
use crate::memory::{NONE, prefetch};
use crate::mutants::{MoveMutant, Mutants};
use crate::shape::{KeyShape, SlotShape};
use crate::site::Site;
use crate::table::{Fresh, Limits, Table, root_in};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::share;
use braid_ir::model::{Granularity, Model, Setting, StateDecl, StateId, Word};
use braid_ir::value::ParamValue;
use std::sync::Arc;

/// The tables of all functions and shards of a chain.
#[derive(Debug)]
pub struct Tables {
    pub(crate) functions: Vec<Function>,
    pub(crate) all: Vec<Table>,
    pub(crate) hash: HashKey,
    /// The first items in the queues of the tables with time-outs.
    earliest: Earliest,
    /// The time before which no entry is due (ns).
    next: u64,
    /// The id of the next entry.
    pub(crate) ids: u64,
    /// Scratch memory for the members of a group that ends: table, id, place.
    members: Vec<(usize, u64, u32)>,
    pub(crate) mutants: Mutants,
}

/// The tables of one function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) model: Arc<Model>,
    pub(crate) shards: u16,
    /// The number of its first table. The tables of a shard have consecutive numbers.
    pub(crate) first: usize,
}

/// A new entry.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Its packed key. The table must have no entry with this key.
    pub key: &'a [u64],
    /// Its packed slots.
    pub slots: &'a [u64],
    /// For tables whose entries live with others: the partner's entry that this run of the program
    /// found or assigned last.
    pub partner: Option<Handle>,
    /// The time (ns).
    pub now: u64,
    /// The shard for which the program runs.
    pub shard: u16,
    /// Whether a packet's program creates the entry, which renews the entry's group.
    pub renews: bool,
}

/// The number of entries from which a table loads early what it will change next. Several such
/// tables do not fit into the caches nearest to the processor.
pub(crate) const MANY: u64 = 1024;

/// Why a group of entries ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    Expired,
    Evicted,
    Deleted,
}

impl Tables {
    /// The tables of a chain before its first packet, with the entries of global state only.
    pub(crate) fn new(chain: &Chain, hash: HashKey) -> Self {
        let mut tables = Self::empty(hash);
        for (position, node) in (0..).zip(&chain.nodes) {
            tables.add_function(position, node, chain.workers);
        }
        let timed = tables.all.iter().enumerate().filter(|(_, table)| table.queue.is_some());
        tables.earliest =
            Earliest::new(timed.map(|(at, table)| (at, table.site.node, table.site.state)));
        for (number, at) in tables.earliest.tables().enumerate() {
            tables.all[at].timed = number;
        }
        tables.find_next();
        tables
    }

    /// No tables yet.
    pub(crate) fn empty(hash: HashKey) -> Self {
        Self {
            functions: Vec::new(),
            all: Vec::new(),
            hash,
            earliest: Earliest::default(),
            next: u64::MAX,
            ids: 0,
            members: Vec::new(),
            mutants: Mutants::default(),
        }
    }

    fn add_function(&mut self, position: u16, node: &Node, workers: u16) {
        let model = &node.model;
        let sharded = model.state.iter().any(|decl| decl.sharded);
        let shards = if sharded { workers.max(1) } else { 1 };
        let first = self.all.len();
        for shard in 0..shards {
            let row = self.all.len();
            for state in (0..).map(StateId).take(model.state.len()) {
                let decl = &model.state[state.index()];
                let site = Site {
                    node: position,
                    state,
                    shard,
                    row,
                    partner: decl.lives_with.map(|with| row + with.index()),
                    root: row + root(model, state).index(),
                    is_root: decl.lives_with.is_none(),
                    sharded: shards > 1,
                    runs: model.expire.iter().any(|(of, _)| *of == state),
                };
                let limits = limits(decl, &node.params, shards, shard);
                self.all.push(Table::new(decl, site, limits));
            }
        }
        self.functions.push(Function { model: model.clone(), shards, first });
        for (state, decl) in (0..).map(StateId).zip(&model.state) {
            if decl.granularity == Granularity::Global {
                self.create_global(position, state, decl, &node.params);
            }
        }
    }

    /// Creates the entry of global state.
    fn create_global(
        &mut self,
        node: u16,
        state: StateId,
        decl: &StateDecl,
        params: &[ParamValue],
    ) {
        let shards = if decl.sharded { self.functions[usize::from(node)].shards } else { 1 };
        let default = decl.default.iter().flatten();
        let values: Vec<Word> = default.map(|slot| setting(*slot, params)).collect();
        for shard in 0..shards {
            let at = self.locator(node, state).table(shard).index();
            let mut slots = vec![0; self.all[at].slots.words()];
            self.all[at].slots.pack(&values, &mut slots);
            let fresh = Fresh {
                key: &[],
                slots: &slots,
                absent: self.all[at].index.absent(self.hash.hash(&[])),
                now: 0,
                id: self.ids,
                shard,
                root: None,
                next: (NONE, 0),
            };
            self.ids += 1;
            let _ = self.all[at].insert(&fresh, &self.hash);
        }
    }

    /// The tables of a function's state for all workers.
    ///
    /// # Panics
    /// Panics when the chain has no such function or table.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "no memory holds 2^32 tables")]
    pub fn locator(&self, node: u16, state: StateId) -> TableLocator {
        let function = &self.functions[usize::from(node)];
        let states = &function.model.state;
        TableLocator {
            first: (function.first + state.index()) as u32,
            step: states.len() as u32,
            last: if states[state.index()].sharded { function.shards - 1 } else { 0 },
            is_partner: states.iter().any(|decl| decl.lives_with == Some(state)),
        }
    }

    /// The number of tables. [`TableRef::index`] is below it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The key of the hash by which entries are found.
    #[must_use]
    #[inline(always)]
    pub fn hash(&self) -> &HashKey {
        &self.hash
    }

    #[inline(always)]
    pub(crate) fn at(&self, table: TableRef) -> &Table {
        &self.all[table.index()]
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, table: TableRef) -> &mut Table {
        &mut self.all[table.index()]
    }

    /// The layout of a table's keys.
    #[must_use]
    pub fn key_shape(&self, table: TableRef) -> &KeyShape {
        &self.at(table).keys
    }

    /// The layout of a table's slots.
    #[must_use]
    pub fn slot_shape(&self, table: TableRef) -> &SlotShape {
        &self.at(table).slots
    }

    /// Whether an entry has not ended.
    #[must_use]
    #[inline]
    pub fn exists(&self, table: TableRef, entry: Handle) -> bool {
        self.at(table).has(entry.place(), entry.generation())
    }

    /// The packed slots of an entry; `None` when it has ended.
    #[must_use]
    #[inline]
    pub fn slots(&self, table: TableRef, entry: Handle) -> Option<&[u64]> {
        let at = self.at(table);
        at.has(entry.place(), entry.generation()).then(|| at.slots(entry.place()))
    }

    /// The value of a slot of the entry at a place.
    #[must_use]
    pub fn slot(&self, table: TableRef, place: u32, slot: usize) -> Word {
        let at = self.at(table);
        at.slots.get(at.slots(place), slot)
    }

    /// Assigns a slot of the entry at a place, without telling the entry's dependents.
    pub fn put_slot(&mut self, table: TableRef, place: u32, slot: usize, value: Word) {
        self.at_mut(table).put(place, slot, value);
    }

    /// The slots of the entry at a place, and their layout. Assignments to them are not reported to
    /// the entry's dependents.
    pub fn slots_of(&mut self, table: TableRef, place: u32) -> (&SlotShape, &mut [u64]) {
        self.at_mut(table).slots_of(place)
    }

    /// The group of the entry at a place.
    #[must_use]
    pub fn group(&self, table: TableRef, place: u32) -> Group {
        let at = self.at(table);
        let root = if at.site.is_root { place } else { root_in(at.head(place)) };
        (at.site.root, self.all[at.site.root].number(root))
    }

    /// The group of an entry. `None` if the entry has ended.
    #[must_use]
    #[inline]
    pub fn group_if_exists(&self, table: TableRef, entry: Handle) -> Option<Group> {
        let head = self.at(table).head_of(entry)?;
        Some(self.group_of(table.index(), head))
    }

    /// The number of the root table of a table.
    #[must_use]
    pub fn root(&self, table: TableRef) -> usize {
        self.at(table).site.root
    }

    /// The group of an entry with this first word.
    #[inline(always)]
    pub(crate) fn group_of(&self, at: usize, head: u64) -> Group {
        let root = self.all[at].site.root;
        (root, self.all[root].number(root_in(head)))
    }

    /// Sets the time at which a group was last seen, unless it was seen later. Does nothing if the
    /// store has no such table.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place has 32 bits, so its number has no more"
    )]
    pub fn renew(&mut self, (table, number): Group, seen: u64) {
        if let Some(table) = self.all.get_mut(table) {
            table.renew_number(number as u32, seen);
        }
    }

    /// Marks a table as lazy. From now on, dependents may count for the table's entries, and they
    /// are called whenever a program finds an entry with dependents.
    pub fn set_lazy(&mut self, table: TableRef) {
        self.at_mut(table).set_lazy();
    }

    /// The function of a table, the table's number in the function, and its shard.
    #[must_use]
    pub fn owner(&self, table: TableRef) -> (u16, StateId, u16) {
        let site = &self.at(table).site;
        (site.node, site.state, site.shard)
    }

    /// The name of a table.
    #[must_use]
    pub fn name(&self, table: TableRef) -> &str {
        let (node, state, _) = self.owner(table);
        &self.functions[usize::from(node)].model.state[state.index()].name
    }

    /// The entries of a function's table number `state` in all shards, in the order of their
    /// creation: table and place.
    pub(crate) fn ordered(&self, node: u16, state: usize) -> Vec<(usize, u32)> {
        let function = &self.functions[usize::from(node)];
        let row = function.model.state.len();
        let shards = (0..usize::from(function.shards)).map(|at| function.first + at * row + state);
        let mut entries: Vec<_> = shards
            .flat_map(|at| self.all[at].places().map(move |place| (at, place)))
            .map(|(at, place)| (self.all[at].cold(place).id, at, place))
            .collect();
        entries.sort_unstable();
        entries.into_iter().map(|(_, at, place)| (at, place)).collect()
    }

    pub(crate) fn next_due(&self) -> u64 {
        self.next
    }

    /// The root of the group to which a new entry will belong: the place of an existing entry, or
    /// `None` if the new entry is a root. Returns an error if the new entry needs a partner that
    /// does not exist.
    #[inline(always)]
    pub(crate) fn root_for(&self, table: TableRef, new: &New<'_>) -> Result<Option<u32>, ()> {
        let Some(with) = self.at(table).site.partner else { return Ok(None) };
        let partner = new.partner.ok_or(())?;
        let head = self.all[with].head_of(partner).ok_or(())?;
        Ok(Some(root_in(head)))
    }

    /// Adds an entry to the group of a root ([`Tables::root_for`]). `absent` is the result of a
    /// lookup of its key. The table must have room and no entry with the same key.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        table: TableRef,
        new: &New<'_>,
        absent: Absent,
        root: Option<u32>,
    ) -> Handle {
        let New { key, slots, now, shard, .. } = *new;
        let (at, id) = (table.index(), self.ids);
        self.ids = id.wrapping_add(1);
        let next = match root {
            None => (NONE, 0),
            Some(root) => self.join(at, root, new.renews.then_some(now)),
        };
        let table = &mut self.all[at];
        let fresh = Fresh { key, slots, absent, now, id, shard, root, next };
        let (place, head, number) = table.insert(&fresh, &self.hash);
        table.counters.created = table.counters.created.wrapping_add(1);
        if root.is_none()
            && !self.mutants.has(MoveMutant::DeadlinesForgotten)
            && let Some(due) = table.schedule_new(number, now)
        {
            self.appears(at, due);
        }
        Handle::of(head, place)
    }

    /// Notes that a new entry of a table is due at this time (ns).
    #[inline(never)]
    fn appears(&mut self, at: usize, due: u64) {
        self.next = self.next.min(due);
        // Every item of the queue is due at its first item's time or later.
        if due <= self.earliest.due(self.all[at].timed) {
            self.update_first(at);
        }
    }

    /// Puts the next entry of a table into the group of a root, which is seen at the time `seen`.
    /// Returns the member that comes after the entry.
    #[inline(always)]
    pub(crate) fn join(&mut self, at: usize, root: u32, seen: Option<u64>) -> Next {
        let table = &mut self.all[at];
        let member = (table.next_place(), table.site.number());
        let up = table.site.root;
        let up = &mut self.all[up];
        if let Some(seen) = seen {
            up.renew(root, seen);
        }
        up.follow(root, member)
    }

    /// Ends a group. `ended` receives the members whose programs must run: the root first, then the
    /// others in the order of table and creation. `run` may run such a program at once and return
    /// true, as long as no program before it waits.
    #[inline(always)]
    pub(crate) fn end_group(
        &mut self,
        (root, number): Group,
        cause: Cause,
        ended: &mut Ended,
        run: &mut impl FnMut(EndedEntry<'_>) -> bool,
    ) {
        let table = &self.all[root];
        let (row, mut at, mut entry) = (table.site.row, root, (table.place(number), number));
        loop {
            let (next, state) = self.end(at, entry, cause, ended, run);
            if next == NONE {
                return;
            }
            at = row.wrapping_add(state.into());
            let table = &self.all[at];
            entry = (next, table.number(next));
            // Most groups have one or two members.
            if table.cold[entry.1].next != NONE {
                return self.end_others((row, next, state), cause, ended, run);
            }
        }
    }

    /// Ends the other members of a group whose root has ended. `row` is the number of the first
    /// table of the function and shard. `place` and `state` name the first of these members: its
    /// place, and its table in the function.
    #[cold]
    fn end_others(
        &mut self,
        (row, mut place, mut state): (usize, u32, u16),
        cause: Cause,
        ended: &mut Ended,
        run: &mut impl FnMut(EndedEntry<'_>) -> bool,
    ) {
        let mut members = std::mem::take(&mut self.members);
        while place != NONE {
            let at = row + usize::from(state);
            let cold = self.all[at].cold(place);
            members.push((at, cold.id, place));
            (place, state) = (cold.next, cold.next_state);
        }
        members.sort_unstable();
        for (at, _, place) in members.drain(..) {
            self.end(at, (place, self.all[at].number(place)), cause, ended, run);
        }
        self.members = members;
    }

    /// Ends the entry at a place with this number. Returns the next member of its group.
    #[inline(always)]
    fn end(
        &mut self,
        at: usize,
        (place, number): (u32, usize),
        cause: Cause,
        ended: &mut Ended,
        run: &mut impl FnMut(EndedEntry<'_>) -> bool,
    ) -> Next {
        let table = &mut self.all[at];
        let Cold { next, next_state, creator, spot, .. } = table.cold[number];
        // The place keeps its words until another entry takes it.
        table.remove((place, number), spot, &self.hash);
        match cause {
            Cause::Expired => table.counters.expired = table.counters.expired.wrapping_add(1),
            Cause::Evicted => table.counters.evicted = table.counters.evicted.wrapping_add(1),
            Cause::Deleted => {}
        }
        let is_silent = cause == Cause::Expired && self.mutants.has(MoveMutant::ProgramsForgotten);
        if cause != Cause::Deleted && table.site.runs && !is_silent {
            let ending = &*table;
            let entry = || EndedEntry::of(at, ending, place, creator);
            if !ended.is_empty() || !run(entry()) {
                ended.push(&entry());
            }
        }
        (next, next_state)
    }

    /// Starts to load what the end of the groups will change that are due next in a table with this
    /// number. Many groups may end at a time, and each one takes two cache lines for each entry.
    #[inline(always)]
    pub(crate) fn prefetch_due(&self, at: usize) {
        let table = &self.all[at];
        let Some(queue) = &table.queue else { return };
        let second = |number: u32| {
            let Cold { next, next_state, .. } = table.cold[number as usize];
            let table = self.all.get(table.site.row.wrapping_add(next_state.into()))?;
            (next != NONE).then_some((table, next))
        };
        // Each step reads what the step before it has loaded some groups ago.
        if let Some(number) = queue.ahead(12) {
            table.prefetch_number(number);
            prefetch(table.cold.get(number as usize));
        }
        if let Some(number) = queue.ahead(8) {
            table.prefetch_end(number as usize);
            if let Some((table, place)) = second(number) {
                table.prefetch_whole(place);
            }
        }
        if let Some((table, place)) = queue.ahead(4).and_then(second) {
            table.prefetch_end(table.number(place));
        }
    }

    /// The table whose queue has the first entry that is due by `until`, and the time of this
    /// entry. `last_used` gives the time at which the dependents of a group were last used.
    #[inline]
    pub(crate) fn first_due(
        &mut self,
        until: u64,
        last_used: impl Fn(Group) -> Option<u64>,
    ) -> Option<(u64, usize)> {
        loop {
            let first = self.earliest.first();
            self.next = first.map_or(u64::MAX, |(due, ..)| due);
            let (due, at, opens) = first.filter(|(due, ..)| *due <= until)?;
            if !opens {
                return Some((due, at));
            }
            self.all[at].open_slot(|number| last_used((at, number as usize)));
            self.update_first(at);
        }
    }

    /// Reads the first item in the queue of a table with time-outs again.
    #[inline]
    pub(crate) fn update_first(&mut self, at: usize) {
        let table = &self.all[at];
        self.earliest.set(table.timed, table.queue.as_ref().and_then(Queue::first));
    }

    /// Takes over a function's new parameter values. New capacities and time-outs apply at once.
    pub(crate) fn change(&mut self, node: u16, params: &[ParamValue]) {
        let function = &self.functions[usize::from(node)];
        let count = usize::from(function.shards) * function.model.state.len();
        for table in &mut self.all[function.first..][..count] {
            let decl = &function.model.state[table.site.state.index()];
            let old = table.limits;
            table.limits = limits(decl, params, function.shards, table.site.shard);
            if table.limits.times != old.times {
                table.reschedule();
            }
        }
        self.find_next();
    }

    /// Computes again the time before which no entry is due.
    pub(crate) fn find_next(&mut self) {
        let timed: Vec<usize> = self.earliest.tables().collect();
        timed.into_iter().for_each(|at| self.update_first(at));
        self.next = self.earliest.first().map_or(u64::MAX, |(due, ..)| due);
    }
}

/// The table whose entries are the roots of a table's groups.
fn root(model: &Model, state: StateId) -> StateId {
    let mut at = state;
    while let Some(with) = model.state[at.index()].lives_with {
        at = with;
    }
    at
}

fn setting(setting: Setting, params: &[ParamValue]) -> Word {
    match setting {
        Setting::Const(value) => value,
        Setting::Param(param) => match params.get(param.index()) {
            Some(ParamValue::Scalar(value)) => *value,
            _ => 0,
        },
    }
}

/// The limits of a table in a shard. Settings of 2^64 and more become 2^64 - 1.
fn limits(decl: &StateDecl, params: &[ParamValue], shards: u16, shard: u16) -> Limits {
    let value = |of| u64::try_from(setting(of, params)).unwrap_or(u64::MAX);
    let total = value(decl.capacity);
    Limits {
        capacity: if decl.sharded { share(total, shards, shard) } else { total },
        times: Times {
            idle: decl.idle.map(value),
            hard: decl.hard.map(value),
            tick: value(decl.tick).max(1),
        },
    }
}
