//! A naive store: a list of entries that is searched from end to end.

use braid_ir::chain::Chain;
use braid_ir::engine::{StateEntry, TableCounters, share};
use braid_ir::model::{Granularity, Kind, Setting, StateDecl, StateId, WhenFull, Word};
use braid_ir::value::ParamValue;
use std::collections::BTreeMap;

/// A table: function, number, and the shard in which its entries are.
pub type Place = (u16, StateId, u16);

#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    pub place: Place,
    pub key: Vec<Word>,
    pub slots: Vec<Word>,
    pub created: u64,
    pub seen: u64,
    pub with: Option<u64>,
    pub shard: u16,
}

/// An ended entry: function, table, shard of creation, key, slots.
pub type Removed = (u16, StateId, u16, Vec<Word>, Vec<Word>);

pub struct Naive {
    chain: Chain,
    pub entries: BTreeMap<u64, Entry>,
    ids: u64,
    counters: BTreeMap<(u16, StateId), TableCounters>,
}

#[derive(Clone, Copy, PartialEq)]
enum Cause {
    Expired,
    Evicted,
    Deleted,
}

pub enum Created {
    Entry(u64),
    Refused,
    Evicted(Vec<Removed>),
}

impl Naive {
    pub fn new(chain: &Chain) -> Self {
        let counters = BTreeMap::new();
        let mut new = Self { chain: chain.clone(), entries: BTreeMap::new(), ids: 0, counters };
        for (node, function) in (0..).zip(&chain.nodes) {
            for (state, decl) in (0..).map(StateId).zip(&function.model.state) {
                new.counters.insert((node, state), TableCounters::default());
                if decl.granularity == Granularity::Global {
                    let default = decl.default.clone().unwrap();
                    let slots: Vec<Word> = default.iter().map(|s| new.setting(node, *s)).collect();
                    for shard in 0..if decl.sharded { new.shards(node) } else { 1 } {
                        let place = (node, state, shard);
                        let (key, slots) = (Vec::new(), slots.clone());
                        let (created, seen, with) = (0, 0, None);
                        let entry = Entry { place, key, slots, created, seen, with, shard };
                        new.entries.insert(new.ids, entry);
                        new.ids += 1;
                    }
                }
            }
        }
        new
    }

    pub fn shards(&self, node: u16) -> u16 {
        let state = &self.chain.nodes[usize::from(node)].model.state;
        if state.iter().any(|decl| decl.sharded) { self.chain.workers } else { 1 }
    }

    fn decl(&self, node: u16, state: StateId) -> &StateDecl {
        &self.chain.nodes[usize::from(node)].model.state[state.index()]
    }

    fn setting(&self, node: u16, setting: Setting) -> Word {
        match setting {
            Setting::Const(value) => value,
            Setting::Param(param) => {
                match self.chain.nodes[usize::from(node)].params[param.index()] {
                    ParamValue::Scalar(value) => value,
                    _ => unreachable!(),
                }
            }
        }
    }

    fn runs(&self, (node, state, _): Place) -> bool {
        let model = &self.chain.nodes[usize::from(node)].model;
        model.expire.iter().any(|(of, _)| *of == state)
    }

    pub fn place(&self, node: u16, state: StateId, shard: u16) -> Place {
        (node, state, if self.decl(node, state).sharded { shard } else { 0 })
    }

    pub fn find(&self, place: Place, key: &[Word]) -> Option<u64> {
        let mut all = self.entries.iter();
        all.find(|(_, entry)| entry.place == place && entry.key == key).map(|(id, _)| *id)
    }

    fn root(&self, mut id: u64) -> u64 {
        while let Some(with) = self.entries[&id].with {
            id = with;
        }
        id
    }

    pub fn see(&mut self, id: u64, now: u64) {
        let root = self.root(id);
        self.entries.get_mut(&root).unwrap().seen = now;
    }

    pub fn len(&self, place: Place) -> u64 {
        self.entries.values().filter(|entry| entry.place == place).count() as u64
    }

    fn capacity(&self, (node, state, shard): Place) -> u64 {
        let decl = self.decl(node, state);
        let total = self.setting(node, decl.capacity) as u64;
        if decl.sharded { share(total, self.shards(node), shard) } else { total }
    }

    fn refuse(&mut self, (node, state, _): Place) -> Created {
        self.counters.get_mut(&(node, state)).unwrap().refused += 1;
        Created::Refused
    }

    /// One step of creating an entry: evicts one group, or decides.
    #[allow(clippy::too_many_arguments, reason = "what making an entry depends on")]
    pub fn create(
        &mut self,
        place: Place,
        key: &[Word],
        slots: &[Word],
        partner: Option<u64>,
        now: u64,
        shard: u16,
        renews: bool,
        first: bool,
    ) -> Created {
        let tied = self.decl(place.0, place.1).lives_with.is_some();
        let with = partner.filter(|id| tied && self.entries.contains_key(id));
        if first && tied && with.is_none() {
            return self.refuse(place);
        }
        let capacity = self.capacity(place);
        if self.len(place) >= capacity {
            let evicts = self.decl(place.0, place.1).when_full == WhenFull::EvictOldest;
            if !evicts || capacity == 0 {
                return self.refuse(place);
            }
            let mut all = self.entries.iter();
            let oldest = *all.find(|(_, entry)| entry.place == place).unwrap().0;
            return Created::Evicted(self.end(oldest, Cause::Evicted));
        }
        if tied && with.is_none() {
            return self.refuse(place);
        }
        let (key, slots) = (key.to_vec(), slots.to_vec());
        let entry = Entry { place, key, slots, created: now, seen: now, with, shard };
        let id = self.ids;
        self.ids += 1;
        self.entries.insert(id, entry);
        self.counters.get_mut(&(place.0, place.1)).unwrap().created += 1;
        if renews {
            self.see(id, now);
        }
        Created::Entry(id)
    }

    pub fn delete(&mut self, id: u64) {
        self.end(id, Cause::Deleted);
    }

    fn end(&mut self, id: u64, cause: Cause) -> Vec<Removed> {
        let root = self.root(id);
        let ids: Vec<u64> = self.entries.keys().copied().collect();
        let mut members: Vec<u64> = ids.into_iter().filter(|id| self.root(*id) == root).collect();
        members.sort_by_key(|id| (*id != root, self.entries[id].place.1, *id));
        let mut gone = Vec::new();
        for id in members {
            let Entry { place, key, slots, shard, .. } = self.entries.remove(&id).unwrap();
            let counters = self.counters.get_mut(&(place.0, place.1)).unwrap();
            match cause {
                Cause::Expired => counters.expired += 1,
                Cause::Evicted => counters.evicted += 1,
                Cause::Deleted => continue,
            }
            if self.runs(place) {
                gone.push((place.0, place.1, shard, key, slots));
            }
        }
        gone
    }

    fn deadline(&self, root: u64) -> Option<u64> {
        let entry = &self.entries[&root];
        let (node, state, _) = entry.place;
        let decl = self.decl(node, state);
        let value = |setting| self.setting(node, setting);
        let idle = decl.idle.map(|idle| Word::from(entry.seen) + value(idle));
        let hard = decl.hard.map(|hard| Word::from(entry.created) + value(hard));
        let tick = value(decl.tick).max(1);
        let exact = idle.into_iter().chain(hard).min()?;
        u64::try_from(exact.div_ceil(tick) * tick).ok()
    }

    /// When the next group is due, and its root.
    pub fn next(&self) -> Option<(u64, u64)> {
        let roots = self.entries.iter().filter(|(_, entry)| entry.with.is_none());
        let due = roots.filter_map(|(id, entry)| {
            Some((self.deadline(*id)?, entry.place.0, entry.place.1, *id))
        });
        due.min().map(|(due, .., id)| (due, id))
    }

    pub fn expire(&mut self, until: u64) -> Option<(u64, Vec<Removed>)> {
        let (due, root) = self.next().filter(|(due, _)| *due <= until)?;
        Some((due, self.end(root, Cause::Expired)))
    }

    pub fn change(&mut self, node: u16, param: usize, value: Word) -> Vec<ParamValue> {
        let params = &mut self.chain.nodes[usize::from(node)].params;
        params[param] = ParamValue::Scalar(value);
        params.clone()
    }

    pub fn counters(&self, node: u16) -> Vec<TableCounters> {
        let of_node = self.counters.iter().filter(|((of, _), _)| *of == node);
        of_node
            .map(|((_, state), counters)| {
                let entries = self.entries.values();
                let entries =
                    entries.filter(|entry| (entry.place.0, entry.place.1) == (node, *state));
                TableCounters { entries: entries.count() as u64, ..*counters }
            })
            .collect()
    }

    pub fn report(&self) -> Vec<StateEntry> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(id, entry)| (entry.place.0, entry.place.1, **id));
        let report = all.into_iter().map(|(id, entry)| {
            let (node, state, shard) = entry.place;
            let decl = self.decl(node, state);
            let root = self.root(*id);
            let slots = decl.slots.iter().zip(&entry.slots);
            StateEntry {
                node,
                table: decl.name.clone(),
                shard,
                key: kinds(decl, &entry.key).into_iter().zip(entry.key.iter().copied()).collect(),
                slots: slots.map(|((name, ty), v)| (name.clone(), ty.kind, *v)).collect(),
                created_ns: entry.created,
                last_seen_ns: self.entries[&root].seen,
                expires_ns: self.deadline(root),
            }
        });
        report.collect()
    }
}

fn kinds(decl: &StateDecl, key: &[Word]) -> Vec<Kind> {
    match &decl.granularity {
        Granularity::Flow | Granularity::Biflow => {
            let addr = if key[0] == 4 { Kind::Ip4 } else { Kind::Ip6 };
            vec![Kind::Uint, addr, addr, Kind::Uint, Kind::Port, Kind::Port]
        }
        Granularity::Key(types) => types.iter().map(|ty| ty.kind).collect(),
        _ => Vec::new(),
    }
}
