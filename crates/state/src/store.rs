//! The state of a chain.

use crate::group::{Cause, Ended};
use crate::hash::HashKey;
use crate::joined::Joined;
use crate::records::Records;
use crate::shape::{KeyShape, SlotShape};
use crate::table::{Fresh, Limits, Site, Table, Times};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::share;
use braid_ir::model::{Granularity, Model, Setting, StateDecl, StateId, Word};
use braid_ir::value::ParamValue;
use std::sync::Arc;

/// Entries of a table that stays in the processor's caches without any help.
const LARGE: u64 = 4096;

/// The state of a chain: all tables of all functions and shards.
#[derive(Debug)]
pub struct Store {
    pub(crate) functions: Vec<Function>,
    pub(crate) tables: Vec<Table>,
    pub(crate) hash: HashKey,
    /// Tables with time-outs.
    pub(crate) timed: Vec<usize>,
    /// No entry is due before.
    pub(crate) next: u64,
    /// The next entry's number.
    ids: u64,
    /// Members of a group that ends: table in the function, number, place.
    pub(crate) members: Vec<(usize, u64, u32)>,
    pub(crate) joined: Joined,
    pub(crate) records: Records,
}

/// A function's part.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) model: Arc<Model>,
    pub(crate) shards: u16,
    /// Number of its first table. All tables of a shard are next to each other.
    pub(crate) first: usize,
}

/// Where a function's table is for each worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    first: u32,
    /// From one shard's to the next one's.
    step: u32,
    /// The last shard.
    last: u16,
    /// Whether entries of other tables live with this one's.
    is_partner: bool,
}

/// A table of a store, for a shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableRef(pub(crate) u32);

/// An entry of a table: where it is, and which of those that have been there. It stays valid until
/// the entry ends, and then is that of no entry (until 2^31 others have been there).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(u64);

/// A new entry.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// Its packed key. The table has no entry with it.
    pub key: &'a [u64],
    /// Its packed slots.
    pub slots: &'a [u64],
    /// In tables that live with another one: the entry of that one that this run of the program
    /// last found or assigned, if any.
    pub partner: Option<Handle>,
    /// The time (ns).
    pub now: u64,
    /// The shard for which the program runs.
    pub shard: u16,
    /// Whether a packet's program creates it, which renews the entries that it lives with.
    pub renews: bool,
}

/// What became of a new entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// It exists.
    Entry(Handle),
    /// It was refused (and that counted).
    Refused,
    /// Not yet: entries were evicted whose programs have to run first. Then go on with
    /// [`Store::create_after_eviction`].
    Evicted,
}

impl Home {
    /// The table for what runs for a worker.
    #[must_use]
    #[inline]
    pub fn table(self, worker: u16) -> TableRef {
        // Numbers of tables have 32 bits.
        TableRef(self.first.wrapping_add(u32::from(worker.min(self.last)).wrapping_mul(self.step)))
    }

    /// Whether entries of other tables live with this one's.
    #[must_use]
    #[inline]
    pub fn is_partner(self) -> bool {
        self.is_partner
    }
}

impl TableRef {
    /// As a number, for machine code.
    #[must_use]
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// From [`TableRef::to_bits`].
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl Handle {
    /// As a number, for machine code.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// From [`Handle::to_bits`]. Any other number is the handle of no entry, or of some.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl Store {
    /// The state of a chain before its first packet: entries of global state, nothing else. The
    /// chain's models verify.
    #[must_use]
    pub fn new(chain: &Chain) -> Self {
        Self::with_hash(chain, HashKey::random())
    }

    /// The same, with this key of the hash. What a store does never depends on the key.
    #[must_use]
    pub fn with_hash(chain: &Chain, hash: HashKey) -> Self {
        let mut store = Self {
            functions: Vec::new(),
            tables: Vec::new(),
            hash,
            timed: Vec::new(),
            next: u64::MAX,
            ids: 0,
            members: Vec::new(),
            joined: Joined::new(0),
            records: Records::new(0),
        };
        for (position, node) in (0..).zip(&chain.nodes) {
            store.add_function(position, node, chain.workers);
        }
        store.joined = Joined::new(store.tables.len());
        store.records = Records::new(store.tables.len());
        let timed = store.tables.iter().enumerate();
        store.timed = timed.filter(|(_, table)| table.queue.is_some()).map(|(at, _)| at).collect();
        store
    }

    fn add_function(&mut self, position: u16, node: &Node, workers: u16) {
        let model = &node.model;
        let sharded = model.state.iter().any(|decl| decl.sharded);
        let shards = if sharded { workers.max(1) } else { 1 };
        let first = self.tables.len();
        for shard in 0..shards {
            let row = self.tables.len();
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
                    has_groups: model.state.iter().any(|decl| decl.lives_with.is_some()),
                    sharded: shards > 1,
                    runs: model.expire.iter().any(|(of, _)| *of == state),
                };
                let limits = limits(decl, &node.params, shards, shard);
                self.tables.push(Table::new(decl, site, limits));
            }
        }
        self.functions.push(Function { model: model.clone(), shards, first });
        for (state, decl) in (0..).map(StateId).zip(&model.state) {
            if decl.granularity == Granularity::Global {
                self.create_global(position, state, decl, &node.params);
            }
        }
    }

    /// Global state has its entry from the start.
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
            let at = self.table(node, state, shard).0 as usize;
            let mut slots = vec![0; self.tables[at].slots.words()];
            self.tables[at].slots.pack(&values, &mut slots);
            let fresh = Fresh {
                key: &[],
                slots: &slots,
                hash: self.hash.hash(&[]),
                now: 0,
                id: self.ids,
                shard,
                root: None,
            };
            self.ids += 1;
            self.tables[at].insert(&fresh, &self.hash);
        }
    }

    /// A function's table, for what runs in a shard: state that is not sharded is the same for all.
    ///
    /// # Panics
    /// When the chain has no such function, table or shard.
    #[must_use]
    pub fn table(&self, node: u16, state: StateId, shard: u16) -> TableRef {
        self.home(node, state).table(shard)
    }

    /// Where a function's table is for each worker.
    ///
    /// # Panics
    /// When the chain has no such function or table.
    #[must_use]
    pub fn home(&self, node: u16, state: StateId) -> Home {
        let function = &self.functions[usize::from(node)];
        let states = &function.model.state;
        Home {
            first: (function.first + state.index()) as u32,
            step: states.len() as u32,
            last: if states[state.index()].sharded { function.shards - 1 } else { 0 },
            is_partner: states.iter().any(|decl| decl.lives_with == Some(state)),
        }
    }

    /// Number of tables: [`TableRef::to_bits`] is below.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Whether a table is so large that fetching entries ahead of time pays.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.tables.iter().any(|table| table.len() >= LARGE)
    }

    pub(crate) fn at(&self, table: TableRef) -> &Table {
        &self.tables[table.0 as usize]
    }

    fn at_mut(&mut self, table: TableRef) -> &mut Table {
        &mut self.tables[table.0 as usize]
    }

    /// How a table's keys are packed.
    #[must_use]
    pub fn key_shape(&self, table: TableRef) -> &KeyShape {
        &self.at(table).keys
    }

    /// How a table's slots are packed.
    #[must_use]
    pub fn slot_shape(&self, table: TableRef) -> &SlotShape {
        &self.at(table).slots
    }

    /// The entry with this packed key. It does not count as seen: for timers' and expiry programs.
    #[must_use]
    #[inline]
    pub fn find(&mut self, table: TableRef, key: &[u64]) -> Option<Handle> {
        let (place, head) = self.at(table).find(self.hash.hash(key), key)?;
        self.found(table.0 as usize, head);
        Some(handle(head, place))
    }

    /// The entry with this packed key, which is thereby seen: for packets' programs.
    #[inline]
    pub fn find_seen(&mut self, table: TableRef, key: &[u64], now: u64) -> Option<Handle> {
        let hash = self.hash.hash(key);
        let at = table.0 as usize;
        let (place, head) = self.tables[at].find(hash, key)?;
        self.see(at, head, now);
        Some(handle(head, place))
    }

    /// An entry with this first word is found: its slots are what they are now.
    #[inline(always)]
    fn found(&mut self, at: usize, head: u64) {
        if self.tables[at].is_lazy && self.is_rested_on(at, head) {
            self.settle_found(at, head);
        }
    }

    /// The same, and its group is seen.
    #[inline(always)]
    pub(crate) fn see(&mut self, at: usize, head: u64, now: u64) {
        self.found(at, head);
        let root = self.tables[at].site.root;
        self.tables[root].renew(head as u32, now);
    }

    /// Whether the entry has not ended.
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

    /// The packed key of an entry; `None` when it has ended.
    #[must_use]
    pub fn key(&self, table: TableRef, entry: Handle) -> Option<&[u64]> {
        let at = self.at(table);
        at.has(entry.place(), entry.generation()).then(|| at.key(entry.place()))
    }

    /// Assigns all slots of an entry that was found, at this time; false when it has ended.
    #[inline]
    pub fn assign(&mut self, table: TableRef, entry: Handle, slots: &[u64], now: u64) -> bool {
        let exists = self.exists(table, entry);
        if exists {
            let at = table.0 as usize;
            if self.has_records() && self.is_rested_on(at, self.tables[at].head(entry.place())) {
                self.slots_change(table, entry, slots, now);
            }
            self.at_mut(table).slots_mut(entry.place()).copy_from_slice(slots);
        }
        exists
    }

    /// Assigns one slot of an entry that was found, at this time; false when it has ended.
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
            let at = table.0 as usize;
            if self.has_records() && self.is_rested_on(at, self.tables[at].head(entry.place())) {
                self.slot_changes(table, entry, slot, value, now);
            }
            self.at_mut(table).put(entry.place(), slot, value);
        }
        exists
    }

    /// Number of entries.
    #[must_use]
    #[inline]
    pub fn len(&self, table: TableRef) -> u64 {
        self.at(table).len()
    }

    /// Memory that a table uses for its entries, in bytes; that of ended ones included, which the
    /// next ones use.
    #[must_use]
    pub fn bytes(&self, table: TableRef) -> usize {
        self.at(table).bytes() + self.joined.bytes(table.0 as usize)
    }

    /// Creates an entry if there is room, or room can be made, and something to live with if its
    /// table asks for that. `ended` is for [`Created::Evicted`].
    pub fn create(&mut self, table: TableRef, new: &New<'_>, ended: &mut Ended) -> Created {
        if self.partner_is_gone(table, new) {
            return self.refuse(table);
        }
        self.create_after_eviction(table, new, ended)
    }

    /// Goes on with [`Store::create`] when the programs of evicted entries have run.
    pub fn create_after_eviction(
        &mut self,
        table: TableRef,
        new: &New<'_>,
        ended: &mut Ended,
    ) -> Created {
        ended.clear();
        while !self.at(table).has_room() {
            let at = self.at(table);
            let oldest = at.oldest().filter(|_| at.limits.capacity > 0);
            let Some(place) = oldest else { return self.refuse(table) };
            let (root, place) = (at.site.root, at.head(place) as u32);
            self.end_group(root, place, Cause::Evicted, ended);
            if !ended.is_empty() {
                return Created::Evicted;
            }
        }
        // Making room may have ended the very entry that the new one would live with.
        if self.partner_is_gone(table, new) {
            return self.refuse(table);
        }
        Created::Entry(self.insert(table.0 as usize, new))
    }

    fn partner_is_gone(&self, table: TableRef, new: &New<'_>) -> bool {
        let Some(with) = self.at(table).site.partner else { return false };
        !new.partner.is_some_and(|entry| self.exists(TableRef(with as u32), entry))
    }

    /// Counts a new entry as refused, as those of expiry programs are.
    pub fn refuse(&mut self, table: TableRef) -> Created {
        self.at_mut(table).counters.refused += 1;
        Created::Refused
    }

    fn insert(&mut self, at: usize, new: &New<'_>) -> Handle {
        self.appears(at, new.key);
        let site = self.tables[at].site;
        let partner = site.partner.zip(new.partner);
        let root = partner.map(|(with, entry)| self.tables[with].head(entry.place()) as u32);
        let fresh = Fresh {
            key: new.key,
            slots: new.slots,
            hash: self.hash.hash(new.key),
            now: new.now,
            id: self.ids,
            shard: new.shard,
            root,
        };
        self.ids += 1;
        let table = &mut self.tables[at];
        let place = table.insert(&fresh, &self.hash);
        table.counters.created += 1;
        match root {
            Some(root) => {
                let up = &mut self.tables[site.root];
                let rest = up.follow(root, (place, site.state.0));
                if new.renews {
                    up.renew(root, new.now);
                }
                self.tables[at].follow(place, rest);
            }
            None => {
                let due = self.tables[at].schedule(place);
                self.next = self.next.min(due.unwrap_or(u64::MAX));
            }
        }
        handle(self.tables[at].head(place), place)
    }

    /// Removes an entry and what shares its life, if it has not ended. No programs run.
    pub fn delete(&mut self, table: TableRef, entry: Handle) {
        if self.exists(table, entry) {
            let at = self.at(table);
            let (root, place) = (at.site.root, at.head(entry.place()) as u32);
            self.end_group(root, place, Cause::Deleted, &mut Ended::default());
        }
    }

    /// A function has new values of parameters: capacities and all deadlines follow at once.
    pub fn change(&mut self, node: u16, params: &[ParamValue]) {
        let function = &self.functions[usize::from(node)];
        let count = usize::from(function.shards) * function.model.state.len();
        for table in &mut self.tables[function.first..][..count] {
            let decl = &function.model.state[table.site.state.index()];
            let old = table.limits;
            table.limits = limits(decl, params, function.shards, table.site.shard);
            if table.limits.times != old.times {
                table.reschedule();
            }
        }
        self.next = self.earliest().map_or(u64::MAX, |(due, _)| due);
    }
}

/// The handle of an entry, from its first word.
#[inline]
pub(crate) fn handle(head: u64, place: u32) -> Handle {
    Handle(head >> 32 << 32 | u64::from(place))
}

/// The table whose entries are the roots of the groups that a table's entries belong to.
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

/// The limits of a table in a shard. What is above 2^64 counts as the largest.
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
