//! Hints of earlier runs are always checked.

use braid_ir::model::StateId;
use braid_state::{Created, Ended, Handle, HashKey, New, Store, TableRef, example_chain};

const MODEL: &str = r#"model nat {
    state map: u16 per [u32] idle 100 capacity 100 full refuse tick 1
    state next: u16 per [u32] idle 100 capacity 3 full evict_oldest tick 1
    state back: u16 per [u64, u8] capacity 100 full refuse tick 1 lives with map
    row "fault"
    packet { b0: consume at row0 }
}"#;

const MAP: StateId = StateId(0);
const NEXT: StateId = StateId(1);
const BACK: StateId = StateId(2);

struct Nat {
    store: Store,
    now: u64,
}

impl Nat {
    fn new() -> Self {
        let store = Store::with_hash(&example_chain(MODEL), HashKey::seeded(3));
        Self { store, now: 0 }
    }

    fn table(&self, state: StateId) -> TableRef {
        self.store.table(0, state, 0)
    }

    fn add(&mut self, state: StateId, key: &[u64], slot: u64, partner: Option<Handle>) -> Handle {
        let (now, slots) = (self.now, &[slot]);
        let new = New { key, slots, partner, now, shard: 0, renews: true };
        let table = self.table(state);
        match self.store.create(table, &new, &mut Ended::default()) {
            Created::Entry(entry) => entry,
            other => panic!("{other:?}"),
        }
    }

    /// Runs lookups of one key after the other, and returns the found entries.
    fn run(&mut self, keys: &[(StateId, &[u64])]) -> Vec<Option<(Handle, u64)>> {
        self.store.begin();
        let mut found = Vec::new();
        for (state, key) in keys {
            let table = self.table(*state);
            let one = self.store.find_hinted(table, key, self.now);
            found.push(one.map(|(entry, slots)| (entry, slots[0])));
        }
        found
    }

    fn expire(&mut self, now: u64) -> usize {
        self.now = now;
        let mut ended = Ended::default();
        std::iter::from_fn(|| self.store.expire(now, &mut ended)).count()
    }
}

#[test]
fn runs_find_the_same_again() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(NEXT, &[10], 20, None);
    let c = nat.add(BACK, &[7, 8], 30, Some(a));
    let keys: [(StateId, &[u64]); 3] = [(MAP, &[1]), (NEXT, &[10]), (BACK, &[7, 8])];
    for _ in 0..3 {
        assert_eq!(nat.run(&keys), [Some((a, 10)), Some((b, 20)), Some((c, 30))]);
    }
}

#[test]
fn entries_that_are_found_again_are_seen() {
    let mut nat = Nat::new();
    nat.add(MAP, &[1], 10, None);
    let b = nat.add(MAP, &[2], 20, None);
    nat.add(BACK, &[7, 8], 30, Some(b));
    // The last entry is found as a member of a group whose root is the second entry.
    let keys: [(StateId, &[u64]); 2] = [(MAP, &[1]), (BACK, &[7, 8])];
    for now in [10, 60, 110, 160] {
        assert_eq!(nat.expire(now), 0);
        assert!(nat.run(&keys).iter().all(Option::is_some));
    }
    assert_eq!(nat.expire(259), 0);
    assert_eq!(nat.expire(260), 2);
    assert_eq!(nat.run(&keys), [None, None]);
}

#[test]
fn entries_that_ended_are_not_found_again() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(NEXT, &[10], 20, None);
    let keys: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[10])];
    nat.run(&keys);
    nat.run(&keys);
    let next = nat.table(NEXT);
    nat.store.delete(next, b);
    assert_eq!(nat.run(&keys), [Some((a, 10)), None]);
    // Another entry is now in the same place.
    let c = nat.add(NEXT, &[11], 21, None);
    assert_eq!(nat.run(&keys), [Some((a, 10)), None]);
    let others: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[11])];
    assert_eq!(nat.run(&others), [Some((a, 10)), Some((c, 21))]);
    // The key is created again, in another place.
    let d = nat.add(NEXT, &[10], 22, None);
    assert_ne!(d, b);
    for _ in 0..2 {
        assert_eq!(nat.run(&keys), [Some((a, 10)), Some((d, 22))]);
    }
}

#[test]
fn entry_created_anew_in_its_place_is_the_new_one() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(NEXT, &[10], 20, None);
    let keys: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[10])];
    nat.run(&keys);
    let next = nat.table(NEXT);
    nat.store.delete(next, b);
    let c = nat.add(NEXT, &[10], 21, None);
    assert_eq!(nat.run(&keys), [Some((a, 10)), Some((c, 21))]);
    assert!(!nat.store.exists(next, b) && nat.store.exists(next, c));
}

#[test]
fn expired_and_evicted_entries_are_not_found_again() {
    let mut nat = Nat::new();
    nat.add(MAP, &[1], 10, None);
    nat.add(NEXT, &[10], 20, None);
    let keys: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[10])];
    nat.run(&keys);
    // Three other entries take the room of the first.
    for key in 11..14 {
        nat.add(NEXT, &[key], 21, None);
    }
    assert!(matches!(nat.run(&keys)[..], [Some(_), None]));
    let last: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[13])];
    assert!(nat.run(&last).iter().all(Option::is_some));
    assert_eq!(nat.expire(1000), 4);
    assert_eq!(nat.run(&last), [None, None]);
}

#[test]
fn what_is_kept_for_one_table_is_nothing_to_another() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(MAP, &[2], 11, None);
    let c = nat.add(NEXT, &[1], 20, None);
    let d = nat.add(NEXT, &[2], 21, None);
    // The keys, numbers and order are the same in both.
    for _ in 0..2 {
        assert_eq!(nat.run(&[(MAP, &[1]), (NEXT, &[2])]), [Some((a, 10)), Some((d, 21))]);
        assert_eq!(nat.run(&[(MAP, &[1]), (MAP, &[2])]), [Some((a, 10)), Some((b, 11))]);
        assert_eq!(nat.run(&[(MAP, &[1]), (BACK, &[2, 0])]), [Some((a, 10)), None]);
        assert_eq!(nat.run(&[(NEXT, &[1]), (MAP, &[1])]), [Some((c, 20)), Some((a, 10))]);
    }
}

#[test]
fn lookups_that_fail_before_change_nothing() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(NEXT, &[10], 20, None);
    let keys: [(StateId, &[u64]); 4] = [(BACK, &[9, 9]), (MAP, &[1]), (MAP, &[5]), (NEXT, &[10])];
    for _ in 0..3 {
        assert_eq!(nat.run(&keys), [None, Some((a, 10)), None, Some((b, 20))]);
    }
}

#[test]
fn long_runs_find_all() {
    let mut nat = Nat::new();
    let all: Vec<u64> = (0..40).collect();
    let entries: Vec<_> = all.iter().map(|key| nat.add(MAP, &[*key], key + 1, None)).collect();
    let keys: Vec<[u64; 1]> = all.iter().map(|key| [*key]).collect();
    let keys: Vec<(StateId, &[u64])> = keys.iter().map(|key| (MAP, &key[..])).collect();
    for _ in 0..3 {
        let found = nat.run(&keys);
        let expected = entries.iter().zip(&all).map(|(entry, key)| Some((*entry, key + 1)));
        assert!(found.into_iter().eq(expected));
    }
}

#[test]
fn fetching_ahead_changes_nothing() {
    let mut nat = Nat::new();
    let a = nat.add(MAP, &[1], 10, None);
    let b = nat.add(NEXT, &[10], 20, None);
    let keys: [(StateId, &[u64]); 2] = [(MAP, &[1]), (NEXT, &[10])];
    let (map, next) = (nat.table(MAP), nat.table(NEXT));
    for _ in 0..2 {
        for key in [1, 2, 1] {
            nat.store.prefetch(map, &[key]);
        }
        nat.store.fetch();
        assert_eq!(nat.run(&keys), [Some((a, 10)), Some((b, 20))]);
    }
    nat.store.delete(next, b);
    nat.store.delete(map, a);
    nat.store.prefetch(map, &[1]);
    nat.store.fetch();
    assert_eq!(nat.run(&keys), [None, None]);
}
