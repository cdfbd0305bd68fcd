//! Compares the store with a naive store, by random operations.

mod naive;

use braid_ir::chain::Chain;
use braid_ir::model::{StateId, Word};
use braid_state::{
    Created, Ended, EndedEntry, Handle, HashKey, KeyShape, New, SlotShape, Store, TableRef,
    example_chain,
};
use naive::{Naive, Removed};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Keys of no, one, two, five and more words; groups over several tables, one with a root that is
/// not the first table; time-outs, ticks and capacities that change.
const PLAIN: &str = r#"model plain {
    param cap: u32 = 4
    param idle: duration = 100
    param hard: duration = 350
    param tick: duration = 10
    state twigs: u8 per [u4] capacity cap full evict_oldest tick 1 lives with leaves
    state roots: { n: u8, w: u128 } per [u4] idle idle hard hard capacity cap full evict_oldest tick tick
    state leaves: u16 per [u64, u6] capacity 5 full refuse tick 1 lives with roots
    state flows: u64 per flow hard hard capacity cap full refuse tick tick
    state all: u32 global default (5)
    state wide: u100 per [u128, u128, u100] capacity 3 full evict_oldest tick 1
    row "fault"
    packet { b0: consume at row0 }
    expire roots { b0: return }
    expire twigs { b0: return }
    expire flows { b0: return }
}"#;

const SHARDED: &str = r#"model sharded {
    param cap: u32 = 6
    param idle: duration = 70
    state s: u8 per [u4] idle idle capacity cap full evict_oldest tick 1 sharded
    state t: u8 per [u4] capacity 30 full evict_oldest tick 1 lives with s sharded
    state one: u8 per [u4] idle idle capacity 3 full evict_oldest tick 7
    state each: u8 global default (2) sharded
    row "fault"
    packet { b0: consume at row0 }
    expire s { b0: return }
    expire t { b0: return }
    expire one { b0: return }
}"#;

/// The number of tables in each function.
const TABLES: [u32; 3] = [6, 4, 6];
/// The number of scalar parameters in each function.
const PARAMS: [usize; 3] = [4, 2, 4];

fn chain() -> Chain {
    let mut chain = example_chain(PLAIN);
    chain.nodes.extend(example_chain(SHARDED).nodes);
    chain.nodes.extend(example_chain(PLAIN).nodes);
    chain.workers = 3;
    chain
}

#[derive(Clone, Debug)]
struct Where {
    node: u16,
    state: StateId,
    shard: u16,
}

#[derive(Clone, Debug)]
enum Step {
    /// Looks up a key. The flag says whether a packet does it.
    Find(Where, u8, bool),
    /// Assigns all slots or one slot, or creates an entry. The flag says whether a packet does it.
    /// The last number determines the entry that expire programs delete while room is made.
    Set(Where, u8, u8, bool, u8),
    Delete(Where, u8),
    /// Advances the time.
    Wait(u64),
    Change(u16, usize, u8),
    /// Forgets the entries that were found last, as at the start of a program.
    Enter,
}

fn place() -> impl Strategy<Value = Where> {
    // Most operations choose one function, so that its tables fill up.
    let node = prop_oneof![5 => Just(0_u16), 2 => Just(1), 1 => Just(2)];
    (node, 0..6_u32, 0..3_u16).prop_map(|(node, state, shard)| Where {
        node,
        state: StateId(state % TABLES[usize::from(node)]),
        shard: if node == 1 { shard } else { 0 },
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (place(), 0..8_u8, any::<bool>()).prop_map(|(at, key, seen)| Step::Find(at, key, seen)),
        8 => (place(), 0..8_u8, any::<u8>(), any::<bool>(), 0..40_u8)
            .prop_map(|(at, key, value, seen, then)| Step::Set(at, key, value, seen, then)),
        1 => (place(), 0..8_u8).prop_map(|(at, key)| Step::Delete(at, key)),
        4 => prop_oneof![0..30_u64, 0..400_u64, Just(1_u64 << 40)].prop_map(Step::Wait),
        1 => (0..3_u16, 0..4_usize, 0..9_u8).prop_map(|(node, param, value)| {
            Step::Change(node, param % PARAMS[usize::from(node)], value)
        }),
        2 => Just(Step::Enter),
    ]
}

/// Both stores, and the entries that the running program last found.
struct Both {
    store: Store,
    naive: Naive,
    now: u64,
    /// By function, shard and table.
    touched: BTreeMap<(u16, u16, usize), (Handle, u64)>,
}

fn key_of(at: &Where, key: u8) -> Vec<Word> {
    let key = Word::from(key);
    match (at.node, at.state.0) {
        (0 | 2, 2) => vec![key * 0x0123_4567_89ab_cdef, key],
        (0 | 2, 3) if key % 2 == 0 => vec![4, key, key << 20, 6, key + 1000, 53],
        (0 | 2, 3) => vec![6, Word::MAX - key, key << 100, 17, 65535, key],
        (0 | 2, 4) | (1, 3) => Vec::new(),
        (0 | 2, 5) => vec![Word::MAX, key << 64, key],
        _ => vec![key],
    }
}

fn slots_of(at: &Where, value: u8) -> Vec<Word> {
    let value = Word::from(value);
    match (at.node, at.state.0) {
        (0 | 2, 1) => vec![value, value << 120 | value << 60 | value],
        (0 | 2, 5) => vec![value << 92 | value],
        _ => vec![value],
    }
}

fn gone(store: &Store, ended: &Ended) -> Vec<Removed> {
    let entries = ended.entries().map(|entry| {
        let key = store.key_shape(entry.table).unpack(entry.key).collect();
        let slots = store.slot_shape(entry.table).unpack(entry.slots).collect();
        (entry.node, entry.state, entry.shard, key, slots)
    });
    entries.collect()
}

impl Both {
    fn new(hash: HashKey) -> Self {
        let chain = chain();
        let store = Store::with_hash(&chain, hash);
        Self { store, naive: Naive::new(&chain), now: 0, touched: BTreeMap::new() }
    }

    fn packed(&self, at: &Where, key: u8) -> Vec<u64> {
        let shape = self.store.key_shape(self.store.table(at.node, at.state, at.shard));
        let mut words = vec![0; shape.words()];
        shape.pack(&key_of(at, key), &mut words);
        words
    }

    /// Looks up a key after other lookups of the same run. The result must be the same.
    fn find_hinted(&mut self, at: &Where, key: u8) {
        let (table, words) = (self.store.table(at.node, at.state, at.shard), self.packed(at, key));
        let found = self.store.find_hinted(table, &words, self.now);
        let found = found.map(|(entry, slots)| (entry, slots.to_vec()));
        let expected = self.find(at, key, true);
        assert_eq!(found.as_ref().map(|found| found.0), expected.map(|both| both.0));
        let slots = found.map(|found| found.1);
        assert_eq!(slots, expected.map(|both| self.store.slots(table, both.0).unwrap().to_vec()));
    }

    fn find(&mut self, at: &Where, key: u8, seen: bool) -> Option<(Handle, u64)> {
        let (table, words) = (self.store.table(at.node, at.state, at.shard), self.packed(at, key));
        let found = match seen {
            true => self.store.find_seen(table, &words, self.now),
            false => self.store.find(table, &words),
        };
        let place = self.naive.place(at.node, at.state, at.shard);
        let expected = self.naive.find(place, &key_of(at, key));
        assert_eq!(found.is_some(), expected.is_some());
        let both = found.zip(expected)?;
        if seen {
            self.naive.see(both.1, self.now);
        }
        let slots = self.store.slots(table, both.0).unwrap();
        let slots: Vec<_> = self.store.slot_shape(table).unpack(slots).collect();
        assert_eq!(slots, self.naive.entries[&both.1].slots);
        assert_eq!(self.store.key(table, both.0).unwrap(), words);
        self.touched.insert((at.node, at.shard, at.state.index()), both);
        Some(both)
    }

    fn set(&mut self, at: &Where, key: u8, value: u8, seen: bool, then: u8) {
        let table = self.store.table(at.node, at.state, at.shard);
        let values = slots_of(at, value);
        if seen {
            // As machine code does, which mostly looks a key up before it creates the entry.
            if value < 128 {
                self.find_hinted(at, key);
            }
            let found = self.store.find_or_absent(table, &self.packed(at, key), self.now);
            assert_eq!(found.ok(), self.find(at, key, true).map(|both| both.0));
        }
        if let Some((entry, id)) = self.find(at, key, seen) {
            let old = &mut self.naive.entries.get_mut(&id).unwrap().slots;
            if value.is_multiple_of(2) {
                let slot = values.len() - 1;
                assert!(self.store.put(table, entry, slot, values[slot], self.now));
                old[slot] = values[slot];
            } else {
                let mut words = vec![0; self.store.slot_shape(table).words()];
                self.store.slot_shape(table).pack(&values, &mut words);
                assert!(self.store.assign(table, entry, &words, self.now));
                *old = values;
            }
            return;
        }
        self.create(at, key, &values, seen, then);
    }

    fn create(&mut self, at: &Where, key: u8, values: &[Word], seen: bool, then: u8) {
        let table = self.store.table(at.node, at.state, at.shard);
        let with = match (at.node, at.state.0) {
            (0 | 2, 0) => Some(2),
            (0 | 2, 2) => Some(1),
            (1, 1) => Some(0),
            _ => None,
        };
        let partner = with.and_then(|with| self.touched.get(&(at.node, at.shard, with)).copied());
        let mut slots = vec![0; self.store.slot_shape(table).words()];
        self.store.slot_shape(table).pack(values, &mut slots);
        let (words, mut ended) = (self.packed(at, key), Ended::default());
        let new = New {
            key: &words,
            slots: &slots,
            partner: partner.map(|(entry, _)| entry),
            now: self.now,
            shard: at.shard,
            renews: seen,
        };
        let place = self.naive.place(at.node, at.state, at.shard);
        let id = partner.map(|(_, id)| id);
        let step = |naive: &mut Naive, first| {
            naive.create(place, &key_of(at, key), values, id, self.now, at.shard, seen, first)
        };
        let mut created = match self.store.find_or_absent(table, &words, self.now) {
            Err(absent) if seen && self.store.has_room(table) => {
                self.store.create_in_room(table, &new, absent)
            }
            _ => self.store.create(table, &new, &mut ended),
        };
        let mut expected = step(&mut self.naive, true);
        loop {
            match (created, expected) {
                (Created::Entry(entry), naive::Created::Entry(id)) => {
                    let run = (at.node, at.shard, at.state.index());
                    self.touched.insert(run, (entry, id));
                    return;
                }
                (Created::Refused, naive::Created::Refused) => return,
                (Created::Evicted, naive::Created::Evicted(all)) if !all.is_empty() => {
                    assert_eq!(gone(&self.store, &ended), all);
                    // A program of the evicted entries deletes something.
                    let other = Where { state: StateId(u32::from(then) % 4), ..at.clone() };
                    delete(&mut self.store, &mut self.naive, &other, then / 4);
                    created = self.store.create_after_eviction(table, &new, &mut ended);
                    expected = step(&mut self.naive, false);
                }
                // If no program runs, the store continues by itself.
                (other, naive::Created::Evicted(all)) if all.is_empty() => {
                    created = other;
                    expected = step(&mut self.naive, false);
                }
                (created, _) => panic!("it was {created:?}"),
            }
        }
    }

    fn advance(&mut self, time: u64) {
        let mut ended = Ended::default();
        loop {
            let expected = self.naive.expire(time);
            if let Some((at, _)) = expected {
                assert!(self.store.next_due() <= at);
            }
            let at = self.store.expire(time, &mut ended);
            assert_eq!(at.map(|at| (at, gone(&self.store, &ended))), expected);
            if at.is_none() {
                break;
            }
        }
        self.now = time;
        assert!(self.store.next_due() > time);
    }

    /// As [`Both::advance`], where the programs of some entries run at once: those with an even
    /// first slot.
    fn advance_until_program(&mut self, time: u64) {
        let count = self.store.tables().count() as u32;
        let shapes = |at| {
            let table = TableRef::from_bits(at);
            (self.store.key_shape(table).clone(), self.store.slot_shape(table).clone())
        };
        let shapes: Vec<(KeyShape, SlotShape)> = (0..count).map(shapes).collect();
        let mut ended = Ended::default();
        loop {
            let mut all = Vec::new();
            let mut run = |entry: EndedEntry<'_>| {
                let (keys, slots) = &shapes[entry.table.index()];
                let slots: Vec<Word> = slots.unpack(entry.slots).collect();
                let runs = slots[0].is_multiple_of(2);
                if runs {
                    let key = keys.unpack(entry.key).collect();
                    all.push((entry.node, entry.state, entry.shard, key, slots));
                }
                runs
            };
            let at = self.store.expire_until_program(time, &mut ended, &mut run);
            all.extend(gone(&self.store, &ended));
            let (mut expected, mut last) = (Vec::new(), None);
            while let Some((due, removed)) = self.naive.expire(time) {
                let waits = removed.iter().any(|(.., slots)| !slots[0].is_multiple_of(2));
                expected.extend(removed);
                if waits {
                    last = Some(due);
                    break;
                }
            }
            assert_eq!((at, all), (last, expected));
            if at.is_none() {
                break;
            }
        }
        self.now = time;
        assert!(self.store.next_due() > time);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Find(at, key, true) => self.find_hinted(at, *key),
            Step::Find(at, key, false) => {
                self.find(at, *key, false);
            }
            Step::Set(at, key, value, seen, then) => self.set(at, *key, *value, *seen, *then),
            Step::Delete(at, key) => delete(&mut self.store, &mut self.naive, at, *key),
            Step::Wait(time) if time.is_multiple_of(2) => {
                self.advance(self.now.saturating_add(*time));
            }
            Step::Wait(time) => self.advance_until_program(self.now.saturating_add(*time)),
            Step::Change(node, param, value) => {
                // Small and very large times and capacities.
                let value = [0, 1, 2, 5, 30, 120, 500, 1 << 41, u64::MAX][usize::from(*value)];
                let value = if *param == 0 { value.min(u64::from(u32::MAX)) } else { value };
                let params = self.naive.change(*node, *param, value.into());
                self.store.change(*node, &params);
            }
            Step::Enter => {
                self.touched.clear();
                self.store.begin();
            }
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.store.report(), self.naive.report());
        for node in 0..3 {
            assert_eq!(self.store.counters(node), self.naive.counters(node));
        }
        assert!(self.naive.next().is_none_or(|(due, _)| self.store.next_due() <= due));
        for ((node, shard, state), (entry, id)) in &self.touched {
            let table = self.store.table(*node, StateId(*state as u32), *shard);
            let exists = self.naive.entries.contains_key(id);
            assert_eq!(self.store.exists(table, *entry), exists);
        }
    }
}

fn delete(store: &mut Store, naive: &mut Naive, at: &Where, key: u8) {
    if at.state.0 >= TABLES[usize::from(at.node)] {
        return;
    }
    let table = store.table(at.node, at.state, at.shard);
    let mut words = vec![0; store.key_shape(table).words()];
    store.key_shape(table).pack(&key_of(at, key), &mut words);
    if let Some(entry) = store.find(table, &words) {
        store.delete(table, entry);
        assert!(!store.exists(table, entry) && store.slots(table, entry).is_none());
    }
    let place = naive.place(at.node, at.state, at.shard);
    if let Some(id) = naive.find(place, &key_of(at, key)) {
        naive.delete(id);
    }
    assert_eq!(store.len(table), naive.len(place));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn store_does_what_a_naive_one_does(steps in vec(step(), 0..200)) {
        let mut both = Both::new(HashKey::seeded(1));
        steps.iter().for_each(|step| both.step(step));
    }

    #[test]
    fn store_does_not_depend_on_the_hash(steps in vec(step(), 0..200)) {
        let mut both = Both::new(HashKey::colliding());
        steps.iter().for_each(|step| both.step(step));
    }
}
