//! Entries that live together, and tables in which all hashes collide.

use braid_ir::model::StateId;
use braid_state::{Created, Ended, Handle, HashKey, New, Store, TableRef, example_chain};

fn store(text: &str) -> (Store, TableRef, TableRef) {
    let text = format!("model test {{ {text} row \"fault\" packet {{ b0: consume at row0 }} }}");
    let store = Store::new(&example_chain(&text));
    let (first, second) = (store.table(0, StateId(0), 0), store.table(0, StateId(1), 0));
    (store, first, second)
}

fn new(key: &[u64; 1], partner: Option<Handle>, now: u64) -> New<'_> {
    New { key, slots: &[1], partner, now, shard: 0, renews: true }
}

fn entry(created: Created) -> Handle {
    let Created::Entry(entry) = created else { panic!("{created:?}") };
    entry
}

#[test]
fn entry_is_refused_when_making_room_ends_its_partner() {
    let (mut store, root, leaf) = store(
        "state root: u8 per [u8] idle 100 capacity 9 tick 1
         state leaf: u8 per [u8] capacity 2 full evict_oldest tick 1 lives with root",
    );
    let mut ended = Ended::default();
    let oldest = entry(store.create(root, &new(&[1], None, 0), &mut ended));
    let younger = entry(store.create(root, &new(&[2], None, 0), &mut ended));
    entry(store.create(leaf, &new(&[1], Some(oldest), 0), &mut ended));
    entry(store.create(leaf, &new(&[2], Some(younger), 0), &mut ended));
    // The table is full. Its oldest entry ends with its whole group, to which the new entry would
    // belong.
    let created = store.create(leaf, &new(&[3], Some(oldest), 0), &mut ended);
    assert_eq!(created, Created::Refused);
    assert!(!store.exists(root, oldest) && store.exists(root, younger));
    assert_eq!((store.len(root), store.len(leaf)), (1, 1));
    let counters = store.counters(0);
    assert_eq!((counters[0].evicted, counters[1].evicted, counters[1].refused), (1, 1, 1));
    // If the partner has already ended, nothing is evicted.
    entry(store.create(leaf, &new(&[4], Some(younger), 0), &mut ended));
    assert_eq!(store.create(leaf, &new(&[5], Some(oldest), 0), &mut ended), Created::Refused);
    assert_eq!(store.len(leaf), 2);
}

#[test]
fn places_that_entries_take_in_turn_are_queued_once() {
    let (mut store, root, _) = store(
        "state root: u8 per [u16] idle 1000 capacity 2 full evict_oldest tick 1000
         state leaf: u8 per [u8] capacity 2 tick 1 lives with root",
    );
    let mut ended = Ended::default();
    let mut create = |key| {
        entry(store.create(root, &new(&[key], None, 1), &mut ended));
        store.bytes(root)
    };
    let few = (0..4).map(&mut create).last();
    assert_eq!((4..10_000).map(&mut create).last(), few, "evicted entries leave no memory behind");
}

#[test]
fn entry_behind_one_at_a_queued_place_expires() {
    let (mut store, root, _) = store(
        "state root: u8 per [u8] idle 1000 capacity 9 tick 1000
         state leaf: u8 per [u8] capacity 2 tick 1 lives with root",
    );
    let mut ended = Ended::default();
    let mut create = |key, now| entry(store.create(root, &new(&[key], None, now), &mut ended));
    // The second entry has the place of the first one, which is queued for 2000.
    let first = create(1, 1);
    store.delete(root, first);
    let mut create = |key, now| entry(store.create(root, &new(&[key], None, now), &mut ended));
    let (second, _) = (create(2, 1500), create(3, 1600));
    store.delete(root, second);
    assert_eq!(store.expire(2999, &mut ended), None);
    assert_eq!(store.expire(3000, &mut ended), Some(3000));
    assert_eq!(store.len(root), 0);
}

#[test]
fn finding_any_member_renews_the_group() {
    let (mut store, root, leaf) = store(
        "state root: u8 per [u8] idle 100 hard 250 capacity 9 tick 1
         state leaf: u8 per [u8] capacity 9 tick 1 lives with root",
    );
    let mut ended = Ended::default();
    let partner = entry(store.create(root, &new(&[1], None, 0), &mut ended));
    entry(store.create(leaf, &new(&[1], Some(partner), 60), &mut ended));
    assert_eq!(store.expire(159, &mut ended), None, "60, when it got a member, + 100");
    assert!(store.find_seen(leaf, &[1], 159).is_some());
    assert_eq!(store.expire(249, &mut ended), None, "hard comes first");
    assert!(store.find(leaf, &[1]).is_some(), "which does not renew");
    assert_eq!(store.report()[1].last_seen_ns, 159);
    assert_eq!(store.expire(u64::MAX, &mut ended), Some(250));
    assert_eq!((store.len(root), store.len(leaf)), (0, 0));
    assert_eq!(store.next_due(), 250);
    assert_eq!(store.expire(u64::MAX, &mut ended), None);
    assert_eq!(store.next_due(), u64::MAX);
}

#[test]
fn entry_that_is_due_at_the_last_time_ends() {
    let (mut store, root, _) = store(
        "state root: u8 per [u8] idle 100 capacity 9 tick 1
         state leaf: u8 per [u8] capacity 9 tick 1 lives with root",
    );
    let mut ended = Ended::default();
    entry(store.create(root, &new(&[1], None, u64::MAX - 100), &mut ended));
    assert_eq!(store.expire(u64::MAX, &mut ended), Some(u64::MAX));
    assert_eq!((store.len(root), store.next_due()), (0, u64::MAX));
}

#[test]
fn large_group_ends_as_one() {
    let (mut store, root, leaf) = store(
        "state root: u8 per [u32] idle 100 capacity 9 tick 1
         state leaf: u8 per [u32] capacity 99999 tick 1 lives with root",
    );
    let mut ended = Ended::default();
    let partner = entry(store.create(root, &new(&[1], None, 0), &mut ended));
    for key in 0..50_000 {
        entry(store.create(leaf, &new(&[key], Some(partner), 0), &mut ended));
    }
    store.delete(root, partner);
    assert_eq!((store.len(root), store.len(leaf)), (0, 0));
    assert!((0..50_000).all(|key| store.find(leaf, &[key]).is_none()));
}

#[test]
fn entries_of_equal_hash_are_told_apart_in_any_number() {
    let text = "model test { state s: u32 per [u32] capacity 9999 tick 1
        row \"fault\" packet { b0: consume at row0 } }";
    for hash in [HashKey::colliding(), HashKey::seeded(1)] {
        let mut store = Store::with_hash(&example_chain(text), hash);
        let (table, mut ended) = (store.table(0, StateId(0), 0), Ended::default());
        // Some entries are removed first, so that there are holes everywhere in a chain. The others
        // are removed later.
        for round in 0..3 {
            for key in (0..900).filter(|key| key % 3 == round) {
                let (key, slots) = ([key], [key + 7]);
                let new = New { slots: &slots, ..new(&key, None, 0) };
                entry(store.create(table, &new, &mut ended));
            }
            for key in (0..900).filter(|key| key % 3 <= round && key % 5 == round) {
                let entry = store.find(table, &[key]).unwrap();
                store.delete(table, entry);
            }
        }
        let there = |key: u64| (key % 3..3).all(|round| key % 5 != round);
        for key in 0..1000 {
            let slots = store.find(table, &[key]).and_then(|entry| store.slots(table, entry));
            let expected = (key < 900 && there(key)).then_some([key + 7]);
            assert_eq!(slots, expected.as_ref().map(|slots| &slots[..]), "{key}");
        }
    }
}

#[test]
fn handles_of_ended_entries_are_of_none() {
    let (mut store, table, _) = store(
        "state s: u8 per [u8] capacity 9 tick 1
         state t: u8 per [u8] capacity 9 tick 1",
    );
    let mut ended = Ended::default();
    let first = entry(store.create(table, &new(&[1], None, 0), &mut ended));
    store.delete(table, first);
    assert!(!store.exists(table, first));
    let second = entry(store.create(table, &new(&[1], None, 0), &mut ended));
    assert!(!store.exists(table, first) && store.exists(table, second));
    assert!(!store.assign(table, first, &[2], 0) && !store.put(table, first, 0, 2, 0));
    store.delete(table, first);
    assert_eq!(store.slots(table, second), Some(&[1][..]));
    for bits in [0, 1, u64::MAX, 1 << 32, second.to_bits() + 1, second.to_bits() ^ 1 << 63] {
        assert!(!store.exists(table, Handle::from_bits(bits)), "{bits:x}");
    }
}

#[test]
fn entries_take_the_memory_that_the_documentation_says() {
    let text = "model test {
        state map: port per [u8, ip4, port] idle 1000 capacity 99999 tick 1
        state back: { addr: ip4, port: port } per [u8, port] capacity 99999 tick 1 lives with map
        state flow: u64 per biflow idle 1000 capacity 99999 tick 1
        row \"fault\" packet { b0: consume at row0 } }";
    let mut store = Store::with_hash(&example_chain(text), HashKey::seeded(1));
    let [map, back, flow] = [0, 1, 2].map(|state| store.table(0, StateId(state), 0));
    let mut ended = Ended::default();
    for key in 0..50_000 {
        let partner = entry(store.create(map, &new(&[key], None, 0), &mut ended));
        let second = New { slots: &[1, 2], ..new(&[0], Some(partner), 0) };
        entry(store.create(back, &New { key: &[key], ..second }, &mut ended));
        let third = New { key: &[4, key, 0, 0, 0], ..new(&[0], None, 0) };
        entry(store.create(flow, &third, &mut ended));
    }
    let each = |bytes: usize| bytes as f64 / 50_000.0;
    let napt = each(store.bytes(map) + store.bytes(back));
    assert!((153.0..156.0).contains(&napt), "{napt}");
    assert!((110.0..114.0).contains(&each(store.bytes(flow))), "{}", each(store.bytes(flow)));
}
