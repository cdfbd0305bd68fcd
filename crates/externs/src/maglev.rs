//! The table of Maglev's consistent hashing (Eisenbud et al., Maglev, NSDI'16, §3.4).
//!
//! Each backend that is up has a preference list of all table positions: a permutation made from
//! two hashes of its name. Backends take turns. Each claims the next free position of its list,
//! until all positions are taken. Shares differ by at most one position, and few positions change
//! their backend when a backend comes or goes.

use crate::backends::Backends;
use crate::mix::{Fnv, fmix64};

/// Table size for up to [`SMALL_BACKENDS`] backends: the paper's small size (§5.3). It is a prime,
/// so that every skip visits every position.
const SMALL: u32 = 65_537;
/// Table size for more backends: the paper's large size, also a prime.
const LARGE: u32 = 655_373;
/// With at most this many backends, each has 100 positions in the small table, which keeps shares
/// within 1 %.
const SMALL_BACKENDS: usize = SMALL as usize / 100;

/// A table and the backends that it was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Name and health of each backend when the table was made.
    made_from: Vec<(u128, bool)>,
    /// The backend of each position; empty when no backend is up.
    entries: Vec<u32>,
}

impl Table {
    /// The table for these backends.
    #[must_use]
    pub fn new(backends: &dyn Backends) -> Self {
        let made_from: Vec<_> =
            (0..backends.count()).map(|i| (backends.name(i), backends.is_up(i))).collect();
        // The size depends on all backends, so that a failure never changes it.
        let size = if made_from.len() <= SMALL_BACKENDS { SMALL } else { LARGE };
        let entries = populate(&made_from, size);
        Self { made_from, entries }
    }

    /// Whether the table was made from these backends.
    #[must_use]
    pub fn is_current(&self, backends: &dyn Backends) -> bool {
        self.made_from.len() == backends.count()
            && self
                .made_from
                .iter()
                .enumerate()
                .all(|(i, &entry)| entry == (backends.name(i), backends.is_up(i)))
    }

    /// The backend for a hash; `None` when no backend is up.
    #[must_use]
    pub fn lookup(&self, hash: u128) -> Option<u32> {
        let position = hash.checked_rem(self.entries.len() as u128)?;
        self.entries.get(usize::try_from(position).ok()?).copied()
    }
}

/// A backend's progress through its preference list.
struct Walk {
    index: u32,
    next: u32,
    skip: u32,
}

impl Walk {
    fn new(index: u32, name: u128, size: u32) -> Self {
        let modulo = |salt, n: u32| salted(salt, name).checked_rem(u64::from(n)).unwrap_or(0);
        // Both are below `size`, a u32.
        let next = u32::try_from(modulo(0, size)).unwrap_or(0);
        let skip = u32::try_from(modulo(1, size - 1)).unwrap_or(0) + 1;
        Self { index, next, skip }
    }

    /// The next position in the backend's order of preference.
    fn step(&mut self, size: u32) -> usize {
        let position = self.next;
        self.next = (self.next + self.skip) % size;
        position as usize
    }
}

/// One of the two hashes of a name.
fn salted(salt: u8, name: u128) -> u64 {
    let mut state = Fnv::new();
    state.write(&[salt]);
    state.write(&name.to_be_bytes());
    fmix64(state.0)
}

/// The paper's pseudocode 1. Backends take turns in the order of their names, so that the order of
/// the list has no effect on the table.
#[expect(
    clippy::indexing_slicing,
    reason = "turns are numbers of walks, and steps are below `size`"
)]
fn populate(backends: &[(u128, bool)], size: u32) -> Vec<u32> {
    let mut up: Vec<(u128, u32)> =
        (0..).zip(backends).filter(|(_, b)| b.1).map(|(index, b)| (b.0, index)).collect();
    if up.is_empty() {
        return Vec::new();
    }
    up.sort_unstable();
    let mut walks: Vec<Walk> =
        up.iter().map(|&(name, index)| Walk::new(index, name, size)).collect();
    let mut entries: Vec<Option<u32>> = vec![None; size as usize];
    let mut free = entries.len();
    for turn in (0..walks.len()).cycle() {
        if free == 0 {
            break;
        }
        let walk = &mut walks[turn];
        // The loop ends: a walk visits all positions, and one of them is free.
        loop {
            let slot = &mut entries[walk.step(size)];
            if slot.is_none() {
                *slot = Some(walk.index);
                break;
            }
        }
        free -= 1;
    }
    entries.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{LARGE, SMALL, SMALL_BACKENDS, Table};
    use std::collections::BTreeMap;

    type List = Vec<(u128, bool)>;

    /// `count` backends with the names 10.0.0.1 and up.
    fn backends(count: u128) -> List {
        (1..=count).map(|i| (0x0a00_0000 + i, true)).collect()
    }

    /// Name of the backend at each position.
    fn names(list: &List) -> Vec<u128> {
        let table = Table::new(list);
        table.entries.iter().map(|&index| list[index as usize].0).collect()
    }

    fn shares(names: &[u128]) -> BTreeMap<u128, usize> {
        let mut shares = BTreeMap::new();
        for &name in names {
            *shares.entry(name).or_insert(0) += 1;
        }
        shares
    }

    /// The share of positions that two tables give to different backends, without the positions of
    /// `gone`.
    fn moved_percent(before: &[u128], after: &[u128], gone: u128) -> f64 {
        let kept = before.iter().filter(|&&name| name != gone).count();
        let moved = before.iter().zip(after).filter(|(b, a)| **b != gone && b != a).count();
        100.0 * moved as f64 / kept as f64
    }

    #[test]
    fn sizes_are_primes() {
        for size in [SMALL, LARGE] {
            assert!((2..size).take_while(|d| d * d <= size).all(|d| size % d != 0), "{size}");
        }
    }

    #[test]
    fn shares_differ_by_at_most_one_position() {
        // Backends take turns, so the bound holds for any hashes of the names (§3.4).
        for count in [1, 2, 7, 100, 655] {
            let shares = shares(&names(&backends(count)));
            let (least, most) = (shares.values().min(), shares.values().max());
            assert_eq!(shares.len() as u128, count);
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{count}");
        }
    }

    #[test]
    fn removal_moves_few_other_entries() {
        for count in [5, 10, 50, 100] {
            let all = backends(count);
            let mut rest = all.clone();
            let (gone, _) = rest.remove(usize::try_from(count / 2).expect("small"));
            let percent = moved_percent(&names(&all), &names(&rest), gone);
            assert!(percent < 2.0, "{count}: {percent:.2} %");
        }
    }

    #[test]
    fn failure_equals_removal_and_recovery_restores() {
        let all = backends(10);
        let (mut down, mut removed) = (all.clone(), all.clone());
        down[3].1 = false;
        removed.remove(3);
        assert_eq!(names(&down), names(&removed));
        down[3].1 = true;
        assert_eq!(Table::new(&down), Table::new(&all));
    }

    #[test]
    fn list_order_does_not_matter() {
        let all = backends(10);
        let reversed: List = all.iter().rev().copied().collect();
        assert_eq!(names(&all), names(&reversed));
    }

    #[test]
    fn many_backends_get_the_large_table() {
        let at = |count| Table::new(&backends(count)).entries.len();
        assert_eq!(at(SMALL_BACKENDS as u128), SMALL as usize);
        assert_eq!(at(SMALL_BACKENDS as u128 + 1), LARGE as usize);
    }

    #[test]
    fn equal_names_still_fill_the_table() {
        let equals = vec![(7, true), (7, true), (8, true)];
        let table = Table::new(&equals);
        assert_eq!(table.entries.len(), SMALL as usize);
        let second = table.entries.iter().filter(|&&index| index == 1).count();
        assert!((21_845..=21_846).contains(&second), "{second}");
    }
}
