//! State of an instance: entries found, created, tied together, evicted, ended.

use crate::act::{Act, Role};
use crate::instance::{setting, setting64};
use crate::plain;
use braid_ir::engine::{Fault, TableCounters, share};
use braid_ir::model::{Granularity, Model, Setting, StateId, WhenFull, Word};
use braid_ir::value::ParamValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Which entry: its table and its number, rising with creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EntryRef {
    pub(crate) state: StateId,
    pub(crate) id: u64,
}

/// An entry.
pub(crate) struct Entry {
    pub(crate) key: Arc<[Word]>,
    pub(crate) slots: Vec<Word>,
    pub(crate) created_ns: u64,
    /// Holds for the whole group; kept at the entry that the others live with.
    pub(crate) last_seen_ns: u64,
    lives_with: Option<EntryRef>,
    tied: Vec<EntryRef>,
    /// The shard in which it was created.
    shard: usize,
    /// When it is looked at.
    due: Option<u64>,
}

#[derive(Default)]
struct Table {
    by_key: HashMap<Arc<[Word]>, u64>,
    entries: BTreeMap<u64, Entry>,
}

/// Deadlines in order: time, table, entry, shard.
type Due = (u64, StateId, u64, usize);

/// All tables of an instance.
pub(crate) struct Tables {
    model: Arc<Model>,
    /// By shard, then by table.
    shards: Vec<Vec<Table>>,
    due: BTreeSet<Due>,
    ids: u64,
    /// The entry that the running program last found or assigned, by table.
    touched: Vec<Option<u64>>,
    pub(crate) counters: Vec<TableCounters>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Expired,
    Evicted,
    Deleted,
}

impl Tables {
    pub(crate) fn new(model: &Arc<Model>, params: &[ParamValue], shards: u16) -> Self {
        let tables = || model.state.iter().map(|_| Table::default()).collect();
        let mut all = Self {
            model: model.clone(),
            shards: (0..shards).map(|_| tables()).collect(),
            due: BTreeSet::new(),
            ids: 0,
            touched: vec![None; model.state.len()],
            counters: vec![TableCounters::default(); model.state.len()],
        };
        for (state, decl) in (0..).map(StateId).zip(&model.state) {
            if decl.granularity != Granularity::Global {
                continue;
            }
            let count = if decl.sharded { usize::from(shards) } else { 1 };
            for shard in 0..count {
                let slots = default(model, params, state).unwrap_or_default();
                let entry = Entry {
                    key: Arc::new([]),
                    slots,
                    created_ns: 0,
                    last_seen_ns: 0,
                    lives_with: None,
                    tied: Vec::new(),
                    shard,
                    due: None,
                };
                all.insert(EntryRef { state, id: all.ids }, shard, entry);
            }
        }
        all
    }

    fn insert(&mut self, at: EntryRef, shard: usize, entry: Entry) {
        self.ids = at.id + 1;
        let table = self.table_mut(at.state, shard);
        table.by_key.insert(entry.key.clone(), at.id);
        table.entries.insert(at.id, entry);
    }

    fn home(&self, state: StateId, shard: usize) -> usize {
        if self.model.state[state.index()].sharded { shard } else { 0 }
    }

    fn table(&self, state: StateId, shard: usize) -> &Table {
        &self.shards[self.home(state, shard)][state.index()]
    }

    fn table_mut(&mut self, state: StateId, shard: usize) -> &mut Table {
        let home = self.home(state, shard);
        &mut self.shards[home][state.index()]
    }

    fn entry(&self, at: EntryRef, shard: usize) -> Option<&Entry> {
        self.table(at.state, shard).entries.get(&at.id)
    }

    fn entry_mut(&mut self, at: EntryRef, shard: usize) -> Option<&mut Entry> {
        self.table_mut(at.state, shard).entries.get_mut(&at.id)
    }

    pub(crate) fn len(&self, state: StateId, shard: usize) -> u64 {
        self.table(state, shard).entries.len() as u64
    }

    /// Entries of a table in all shards.
    pub(crate) fn entries(&self, state: StateId) -> u64 {
        self.shards.iter().map(|tables| tables[state.index()].entries.len() as u64).sum()
    }

    fn root(&self, mut at: EntryRef, shard: usize) -> EntryRef {
        while let Some(up) = self.entry(at, shard).and_then(|entry| entry.lives_with) {
            at = up;
        }
        at
    }

    fn deadline(&self, params: &[ParamValue], root: EntryRef, shard: usize) -> Option<u64> {
        let decl = &self.model.state[root.state.index()];
        let entry = self.entry(root, shard)?;
        let after = |from: u64, after: Option<Setting>| {
            after.and_then(|after| from.checked_add(setting64(params, after)))
        };
        let idle = after(entry.last_seen_ns, decl.idle);
        let exact = idle.into_iter().chain(after(entry.created_ns, decl.hard)).min()?;
        let tick = setting64(params, decl.tick).max(1);
        exact.div_ceil(tick).checked_mul(tick)
    }

    fn schedule(&mut self, params: &[ParamValue], root: EntryRef, shard: usize) {
        self.unschedule(root, shard);
        let deadline = self.deadline(params, root, shard);
        if let (Some(at), Some(entry)) = (deadline, self.entry_mut(root, shard)) {
            entry.due = Some(at);
            self.due.insert((at, root.state, root.id, shard));
        }
    }

    fn unschedule(&mut self, root: EntryRef, shard: usize) {
        let Some(entry) = self.entry_mut(root, shard) else { return };
        if let (Some(at), shard) = (entry.due.take(), entry.shard) {
            self.due.remove(&(at, root.state, root.id, shard));
        }
    }

    /// When the next entry is looked at, and which one.
    pub(crate) fn next_due(&self) -> Option<(u64, EntryRef, usize)> {
        self.due.first().map(|&(at, state, id, shard)| (at, EntryRef { state, id }, shard))
    }

    /// Settings may have changed: deadlines follow.
    pub(crate) fn reschedule(&mut self, params: &[ParamValue]) {
        self.due.clear();
        let all = self.shards.iter().flat_map(|tables| (0..).map(StateId).zip(tables));
        let roots = all.flat_map(|(state, table)| {
            let roots = table.entries.iter().filter(|(_, entry)| entry.lives_with.is_none());
            roots.map(move |(id, entry)| (EntryRef { state, id: *id }, entry.shard))
        });
        for (root, shard) in roots.collect::<Vec<_>>() {
            self.schedule(params, root, shard);
        }
    }

    /// Entries of a table in order of creation: number, shard, entry, last seen, deadline.
    pub(crate) fn list(
        &self,
        params: &[ParamValue],
        state: StateId,
    ) -> Vec<(u64, usize, &Entry, u64, Option<u64>)> {
        let mut all = Vec::new();
        for (shard, tables) in self.shards.iter().enumerate() {
            for (id, entry) in &tables[state.index()].entries {
                let root = self.root(EntryRef { state, id: *id }, shard);
                let seen = self.entry(root, shard).map_or(0, |root| root.last_seen_ns);
                all.push((*id, shard, entry, seen, self.deadline(params, root, shard)));
            }
        }
        all.sort_unstable_by_key(|one| one.0);
        all
    }

    /// A program starts.
    pub(crate) fn forget_touched(&mut self) {
        self.touched.fill(None);
    }
}

/// What a table holds where it has no entry.
fn default(model: &Model, params: &[ParamValue], state: StateId) -> Option<Vec<Word>> {
    let slots = model.state[state.index()].default.as_ref()?;
    Some(slots.iter().map(|slot| setting(params, *slot)).collect())
}

impl Act<'_> {
    fn tables(&mut self) -> &mut Tables {
        &mut self.instance.tables
    }

    /// The entry with this key, which is then found.
    fn find(&mut self, state: StateId, key: &[Word]) -> Option<u64> {
        let id = *self.instance.tables.table(state, self.shard).by_key.get(key)?;
        self.touch(EntryRef { state, id });
        Some(id)
    }

    fn touch(&mut self, at: EntryRef) {
        let (now, shard, role) = (self.now, self.shard, self.role);
        let tables = self.tables();
        tables.touched[at.state.index()] = Some(at.id);
        if role == Role::Packet {
            let root = tables.root(at, shard);
            if let Some(entry) = tables.entry_mut(root, shard) {
                entry.last_seen_ns = now;
            }
        }
    }

    pub(crate) fn exists(&mut self, state: StateId, key: &[Word]) -> bool {
        self.find(state, key).is_some()
    }

    pub(crate) fn get(&mut self, state: StateId, key: &[Word]) -> Result<Vec<Word>, Fault> {
        match self.find(state, key) {
            Some(id) => {
                let entry = self.instance.tables.entry(EntryRef { state, id }, self.shard);
                Ok(entry.map(|entry| entry.slots.clone()).unwrap_or_default())
            }
            None => default(self.model, self.params, state).ok_or(Fault::NoEntry),
        }
    }

    pub(crate) fn put(
        &mut self,
        state: StateId,
        key: &[Word],
        slot: u32,
        value: Word,
    ) -> Result<bool, Fault> {
        let id = self.instance.tables.table(state, self.shard).by_key.get(key).copied();
        let entry =
            id.and_then(|id| self.instance.tables.entry(EntryRef { state, id }, self.shard));
        let mut slots = match entry {
            Some(entry) => entry.slots.clone(),
            None => default(self.model, self.params, state).ok_or(Fault::NoEntry)?,
        };
        slots[slot as usize] = value;
        Ok(self.assign(state, key, &slots))
    }

    /// Assigns all slots; false when refused.
    pub(crate) fn assign(&mut self, state: StateId, key: &[Word], slots: &[Word]) -> bool {
        match self.find(state, key) {
            Some(id) => {
                let shard = self.shard;
                if let Some(entry) = self.tables().entry_mut(EntryRef { state, id }, shard) {
                    entry.slots = slots.to_vec();
                }
                true
            }
            None => self.create(state, key, slots),
        }
    }

    fn create(&mut self, state: StateId, key: &[Word], slots: &[Word]) -> bool {
        let with = self.model.state[state.index()].lives_with;
        let room = self.role != Role::Expire
            && with.is_none_or(|with| self.last_touched(with).is_some())
            && self.make_room(state);
        // Making room may have ended the very entry that the new one would live with.
        let partner = with.and_then(|with| self.last_touched(with));
        if !room || with.is_some() != partner.is_some() {
            self.tables().counters[state.index()].refused += 1;
            return false;
        }
        let (now, shard) = (self.now, self.shard);
        let params = self.params;
        let tables = self.tables();
        let at = EntryRef { state, id: tables.ids };
        let entry = Entry {
            key: key.into(),
            slots: slots.to_vec(),
            created_ns: now,
            last_seen_ns: now,
            lives_with: partner,
            tied: Vec::new(),
            shard,
            due: None,
        };
        tables.insert(at, shard, entry);
        tables.counters[state.index()].created += 1;
        match partner {
            Some(with) => {
                if let Some(partner) = tables.entry_mut(with, shard) {
                    partner.tied.push(at);
                }
            }
            None => tables.schedule(params, at, shard),
        }
        self.touch(at);
        true
    }

    fn last_touched(&self, state: StateId) -> Option<EntryRef> {
        let at = EntryRef { state, id: self.instance.tables.touched[state.index()]? };
        self.instance.tables.entry(at, self.shard).map(|_| at)
    }

    fn make_room(&mut self, state: StateId) -> bool {
        let decl = &self.model.state[state.index()];
        let total = setting64(self.params, decl.capacity);
        let capacity = if decl.sharded {
            let shard = u16::try_from(self.shard).unwrap_or(u16::MAX);
            share(total, self.instance.shard_count(), shard)
        } else {
            total
        };
        loop {
            let table = self.instance.tables.table(state, self.shard);
            if (table.entries.len() as u64) < capacity {
                return true;
            }
            if capacity == 0 || decl.when_full != WhenFull::EvictOldest {
                return false;
            }
            let Some((&id, _)) = table.entries.first_key_value() else { return false };
            self.end_group(EntryRef { state, id }, Cause::Evicted);
        }
    }

    pub(crate) fn delete(&mut self, state: StateId, key: &[Word]) {
        let id = self.instance.tables.table(state, self.shard).by_key.get(key).copied();
        if let Some(id) = id {
            self.end_group(EntryRef { state, id }, Cause::Deleted);
        }
    }

    /// An entry is looked at: it ends if nothing has found it since.
    pub(crate) fn expire(&mut self, at: u64, root: EntryRef) {
        let (params, shard) = (self.params, self.shard);
        let tables = self.tables();
        match tables.deadline(params, root, shard) {
            Some(deadline) if deadline <= at => self.end_group(root, Cause::Expired),
            _ => tables.schedule(params, root, shard),
        }
    }

    fn end_group(&mut self, one: EntryRef, cause: Cause) {
        let shard = self.shard;
        let tables = self.tables();
        let mut members = vec![tables.root(one, shard)];
        let mut next = 0;
        while let Some(at) = members.get(next) {
            let tied = tables.entry(*at, shard).map(|entry| entry.tied.clone());
            members.extend(tied.unwrap_or_default());
            next += 1;
        }
        members[1..].sort_unstable();
        let mut ended = Vec::new();
        for at in members {
            tables.unschedule(at, shard);
            let table = tables.table_mut(at.state, shard);
            let Some(entry) = table.entries.remove(&at.id) else { continue };
            table.by_key.remove(&entry.key);
            let counters = &mut tables.counters[at.state.index()];
            match cause {
                Cause::Expired => counters.expired += 1,
                Cause::Evicted => counters.evicted += 1,
                Cause::Deleted => continue,
            }
            ended.push((at.state, entry));
        }
        for (state, entry) in ended {
            let model = self.model;
            if let Some((_, program)) = model.expire.iter().find(|(of, _)| *of == state) {
                let touched = std::mem::take(&mut self.tables().touched);
                self.tables().touched = vec![None; touched.len()];
                plain::on_ending(self, entry.shard, program, &entry.slots, &entry.key);
                self.tables().touched = touched;
            }
        }
    }
}
