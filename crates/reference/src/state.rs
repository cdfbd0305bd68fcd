//! State as programs use it: entries are found, created, tied to others, evicted and ended.

use super::run::Env;
use super::run::{Role, Run, in_background};
use super::table::{Entry, EntryRef};
use crate::trace::{StateAccess, StateWhat};
use braid_ir::engine::Fault;
use braid_ir::model::{Granularity, Key, StateId, WhenFull, Word};
use braid_packet::FlowKey;

/// The reason why a group of entries ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Expired,
    Evicted,
    Deleted,
}

/// Ends an entry and all entries that share its life. `root` is the entry that the others live
/// with. The `on expire` programs run after all entries are gone: the root's first, then by table
/// and creation. They do not run if the entries were deleted.
pub(super) fn end_group(env: &mut Env<'_>, root: EntryRef, cause: Cause) {
    let mut members = vec![root];
    let mut next = 0;
    while let Some(at) = members.get(next).copied() {
        if let Some(entry) = env.instance.table(at.state, env.shard).get(at.id) {
            members.extend(&entry.tied);
        }
        next += 1;
    }
    members[1..].sort_unstable();
    let mut ended = Vec::new();
    for at in members {
        let Some(entry) = env.instance.table_mut(at.state, env.shard).remove(at.id) else {
            continue;
        };
        env.expiries.cancel(at.id);
        let counters = env.instance.table_counters(at.state);
        match cause {
            Cause::Expired => counters.expired += 1,
            Cause::Evicted => counters.evicted += 1,
            Cause::Deleted => {}
        }
        ended.push((at.state, entry));
    }
    for (state, entry) in ended {
        let what = if cause == Cause::Deleted { StateWhat::Deleted } else { StateWhat::Ended };
        env.observer.state(env.node, &StateAccess { state, key: &entry.key, what });
        if cause != Cause::Deleted {
            run_expire(env, state, entry);
        }
    }
}

fn run_expire(env: &mut Env<'_>, state: StateId, entry: Entry) {
    let model = env.instance.model.clone();
    if let Some((_, program)) = model.expire.iter().find(|(of, _)| *of == state) {
        // The program runs in the shard where the entry was created, in whatever shard it ends. So
        // its pool members return to that shard.
        let worker = u16::try_from(entry.shard).unwrap_or(u16::MAX);
        let nested = Env { worker, shard: entry.shard, ..env.nested() };
        in_background(nested, Role::Expire(entry.slots, entry.key.to_vec()), program);
    }
}

impl Run<'_> {
    /// The words of a key.
    pub(super) fn key(&self, state: StateId, key: &Key) -> Result<Vec<Word>, Fault> {
        if let Key::Explicit(values) = key {
            return Ok(values.iter().map(|value| self.value(*value)).collect());
        }
        let model = self.env.instance.model.clone();
        let granularity = &model.state[state.index()].granularity;
        match granularity {
            Granularity::Global | Granularity::Key(_) => Ok(Vec::new()),
            Granularity::Fields(fields) => {
                let values = fields.iter().map(|field| self.entry_field(*field));
                values.collect::<Option<_>>().ok_or(Fault::Truncated)
            }
            Granularity::Flow => Ok(self.flow(key)?.words().to_vec()),
            Granularity::Biflow => Ok(self.flow(key)?.bidirectional().words().to_vec()),
        }
    }

    /// The flow that an implicit key denotes.
    fn flow(&self, key: &Key) -> Result<FlowKey, Fault> {
        let state = match &self.role {
            Role::Packet(state) => state,
            Role::Stream(subject) => return Ok(subject.flow),
            Role::Timer | Role::Expire(..) | Role::Handler(_) => return Err(Fault::NoEntry),
        };
        let quoted = matches!(key, Key::Quoted | Key::Reversed(true));
        let flow = match quoted {
            true => state.entry.quoted_flow_key(&state.entry_layout),
            false => state.entry.flow_key(&state.entry_layout),
        };
        let flow = flow.ok_or(Fault::Truncated)?;
        Ok(if matches!(key, Key::Reversed(_)) { flow.reversed() } else { flow })
    }

    /// Finds the entry with this key. In the run for a packet or an event, this renews the entry's
    /// group.
    pub(super) fn find(&mut self, state: StateId, key: &[Word]) -> Option<u64> {
        let id = self.env.instance.table(state, self.env.shard).find(key)?;
        self.touch(EntryRef { state, id });
        Some(id)
    }

    fn touch(&mut self, at: EntryRef) {
        self.touched[at.state.index()] = Some(at.id);
        if matches!(self.role, Role::Packet(_) | Role::Stream(_) | Role::Handler(_)) {
            let (now, shard) = (self.env.now, self.env.shard);
            let root = self.env.instance.root(at, shard);
            if let Some(entry) = self.env.instance.table_mut(root.state, shard).get_mut(root.id) {
                entry.last_seen_ns = now;
            }
        }
    }

    pub(super) fn state_exists(&mut self, state: StateId, key: &Key) -> Result<bool, Fault> {
        let key = self.key(state, key)?;
        let found = self.find(state, &key).is_some();
        self.tell(state, &key, StateWhat::Exists(found));
        Ok(found)
    }

    pub(super) fn state_get(&mut self, state: StateId, key: &Key) -> Result<Vec<Word>, Fault> {
        let key = self.key(state, key)?;
        let found = self.find(state, &key);
        let slots = match found.and_then(|id| self.slots(state, id)) {
            Some(slots) => slots,
            None => self.env.instance.default(state).ok_or(Fault::NoEntry)?,
        };
        self.tell(state, &key, StateWhat::Get(&slots, found.is_some()));
        Ok(slots)
    }

    fn slots(&self, state: StateId, id: u64) -> Option<Vec<Word>> {
        self.env.instance.table(state, self.env.shard).get(id).map(|entry| entry.slots.clone())
    }

    /// Assigns all slots. False: the assignment was refused.
    pub(super) fn state_set(
        &mut self,
        state: StateId,
        key: &Key,
        slots: Vec<Word>,
    ) -> Result<bool, Fault> {
        let key = self.key(state, key)?;
        Ok(self.assign(state, key, slots))
    }

    /// Assigns one slot. False: the assignment was refused.
    pub(super) fn state_put(
        &mut self,
        state: StateId,
        key: &Key,
        slot: u32,
        value: Word,
    ) -> Result<bool, Fault> {
        let key = self.key(state, key)?;
        let id = self.env.instance.table(state, self.env.shard).find(&key);
        let old = id.and_then(|id| self.slots(state, id));
        let mut slots = match old {
            Some(slots) => slots,
            None => self.env.instance.default(state).ok_or(Fault::NoEntry)?,
        };
        slots[slot as usize] = value;
        Ok(self.assign(state, key, slots))
    }

    fn assign(&mut self, state: StateId, key: Vec<Word>, slots: Vec<Word>) -> bool {
        let Some(id) = self.find(state, &key) else { return self.create(state, key, slots) };
        let shard = self.env.shard;
        self.tell(state, &key, StateWhat::Assigned(&slots));
        if let Some(entry) = self.env.instance.table_mut(state, shard).get_mut(id) {
            entry.slots = slots;
        }
        true
    }

    /// Creates an entry if there is room, possibly after an eviction, and an entry to live with.
    /// False: refused.
    fn create(&mut self, state: StateId, key: Vec<Word>, slots: Vec<Word>) -> bool {
        let lives_with = self.env.instance.model.state[state.index()].lives_with;
        let room = !matches!(self.role, Role::Expire(..))
            && lives_with.is_none_or(|with| self.last_touched(with).is_some())
            && self.make_room(state);
        // An eviction may have ended the entry that the new one would live with.
        let partner = lives_with.and_then(|with| self.last_touched(with));
        if !room || (lives_with.is_some() && partner.is_none()) {
            self.env.instance.table_counters(state).refused += 1;
            self.tell(state, &key, StateWhat::Refused);
            return false;
        }
        self.tell(state, &key, StateWhat::Created(&slots));
        self.insert(state, key, slots, partner);
        true
    }

    /// The entry of a table that this run last found or assigned, if it still exists.
    fn last_touched(&self, state: StateId) -> Option<EntryRef> {
        let id = self.touched[state.index()]?;
        self.env.instance.table(state, self.env.shard).get(id)?;
        Some(EntryRef { state, id })
    }

    /// Whether there is room for one more entry, after evictions if the table allows them.
    fn make_room(&mut self, state: StateId) -> bool {
        let shard = self.env.shard;
        let capacity = self.env.instance.capacity(state, shard);
        let when_full = self.env.instance.model.state[state.index()].when_full;
        loop {
            let table = self.env.instance.table(state, shard);
            if table.len() < capacity {
                return true;
            }
            let (true, WhenFull::EvictOldest, Some(id)) = (capacity > 0, when_full, table.oldest())
            else {
                return false;
            };
            let root = self.env.instance.root(EntryRef { state, id }, shard);
            end_group(&mut self.env, root, Cause::Evicted);
        }
    }

    fn insert(
        &mut self,
        state: StateId,
        key: Vec<Word>,
        slots: Vec<Word>,
        partner: Option<EntryRef>,
    ) {
        let (now, shard, id) = (self.env.now, self.env.shard, *self.env.ids);
        *self.env.ids += 1;
        let entry = Entry {
            key: key.into(),
            slots,
            created_ns: now,
            last_seen_ns: now,
            lives_with: partner,
            tied: Vec::new(),
            shard,
        };
        let at = EntryRef { state, id };
        self.env.instance.table_mut(state, shard).insert(id, entry);
        self.env.instance.table_counters(state).created += 1;
        match partner {
            Some(with) => {
                let table = self.env.instance.table_mut(with.state, shard);
                if let Some(partner) = table.get_mut(with.id) {
                    partner.tied.push(at);
                }
            }
            None => self.env.expiries.schedule(self.env.instance, self.env.node, shard, at),
        }
        self.touch(at);
    }

    pub(super) fn state_delete(&mut self, state: StateId, key: &Key) -> Result<(), Fault> {
        let key = self.key(state, key)?;
        let shard = self.env.shard;
        if let Some(id) = self.env.instance.table(state, shard).find(&key) {
            let root = self.env.instance.root(EntryRef { state, id }, shard);
            end_group(&mut self.env, root, Cause::Deleted);
        }
        Ok(())
    }

    fn tell(&mut self, state: StateId, key: &[Word], what: StateWhat<'_>) {
        self.env.observer.state(self.env.node, &StateAccess { state, key, what });
    }
}
