//! An index from IPv4 addresses to address groups, which machine code searches without the host.

use std::fmt;

/// Values of entries from this one on point to further entries. Smaller values are numbers of
/// groups.
const NODE: u32 = 1 << 28;
/// The number of entries of the first table, which covers the upper 16 bits, and of each further
/// table, which covers the next 8 bits.
const TOP: usize = 1 << 16;
const BELOW: usize = 1 << 8;

/// A map from IPv4 addresses to numbers of address groups. It has tables for the first 16 bits, the
/// next 8, and the last 8. A lower table exists only where these bits change the group.
pub struct Index {
    entries: Vec<u32>,
    groups: u32,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("groups", &self.groups).finish_non_exhaustive()
    }
}

impl Index {
    /// Creates an index from runs. A run is the first address of an interval and the interval's
    /// group. The runs must start at address 0 and be in order. `None` if they are not, if a group
    /// is not below `groups`, or if the index would have more than `most` entries.
    #[must_use]
    pub fn new(runs: &[(u32, u32)], groups: u32, most: usize) -> Option<Self> {
        let is_ordered = runs.is_sorted_by(|a, b| a.0 < b.0);
        let starts = runs.first().is_some_and(|first| first.0 == 0);
        let is_known = groups < NODE && runs.iter().all(|run| run.1 < groups);
        if !is_ordered || !starts || !is_known {
            return None;
        }
        let mut index = Self { entries: vec![0; TOP], groups };
        let mut left = runs;
        for (entry, top) in (0..TOP).zip(0_u32..) {
            index.fill(entry, top << 16, 16, &mut left, most)?;
        }
        Some(index)
    }

    /// Sets the entry at position `entry`, which stands for the addresses that differ from `base`
    /// only in the last `rest` bits. Before the call, `base` is not before the first run of `left`.
    /// Afterwards, the first run of `left` contains the last of these addresses. `None` if the runs
    /// are invalid or the index becomes too large.
    #[expect(clippy::indexing_slicing, reason = "callers pass the position of an existing entry")]
    fn fill(
        &mut self,
        entry: usize,
        base: u32,
        rest: u32,
        left: &mut &[(u32, u32)],
        most: usize,
    ) -> Option<()> {
        while let [_, rest @ ..] = *left
            && rest.first().is_some_and(|next| next.0 <= base)
        {
            *left = rest;
        }
        let last = base | ((1 << rest) - 1);
        if left.get(1).is_none_or(|next| next.0 > last) {
            self.entries[entry] = left.first()?.1;
            return Some(());
        }
        // A single address has only one group, so no table is needed here.
        let child = rest.checked_sub(8)?;
        let start = self.entries.len();
        let number = u32::try_from(start).ok().filter(|start| *start < NODE)?;
        if start + BELOW > most {
            return None;
        }
        self.entries.resize(start + BELOW, 0);
        self.entries[entry] = NODE + number;
        for (at, place) in (start..start + BELOW).zip(0..) {
            self.fill(at, base + (place << child), child, left, most)?;
        }
        Some(())
    }

    /// The group of an address; it is below [`Self::groups`].
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "a node's number is the position of its first entry, and it has 256 entries"
    )]
    pub fn get(&self, address: u32) -> u32 {
        let mut entry = self.entries[(address >> 16) as usize];
        for rest in [8, 0] {
            if entry >= NODE {
                let place = address >> rest & 0xff;
                entry = self.entries[(entry - NODE + place) as usize];
            }
        }
        entry
    }

    /// The number of groups.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The memory of the entries in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.entries.len() * size_of::<u32>()
    }

    /// The address of the entries, for machine code. It is valid as long as the index lives.
    pub(crate) fn address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }
}

/// The values of entries from this one on point to further entries (for machine code).
pub(crate) const FIRST_NODE: u32 = NODE;

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(runs: &[(u32, u32)], address: u32) -> u32 {
        runs.iter().rev().find(|run| run.0 <= address).unwrap().1
    }

    #[test]
    fn group_is_that_of_the_run_that_contains_the_address() {
        let runs = [
            (0, 3),
            (5, 0),
            (0x0a00_0000, 1),
            (0x0a00_0001, 2),
            (0x0a00_0100, 1),
            (0x0a01_0000, 0),
            (0x0a01_ff00, 3),
            (0xffff_ffff, 2),
        ];
        let index = Index::new(&runs, 4, usize::MAX).unwrap();
        let near =
            runs.iter().flat_map(|run| [run.0.wrapping_sub(1), run.0, run.0 | 1, run.0 | 0xff]);
        for address in near.chain([0x0a00_ffff, 0x0a02_0000, 0x8000_0000]) {
            assert_eq!(index.get(address), naive(&runs, address), "{address:x}");
        }
        // The prefixes 0.0/16 and 255.255/16 have tables down to the last bit, 10.0/16 has one
        // table, and 10.1/16 has none for the last 8 bits.
        assert_eq!(index.memory(), 4 * (TOP + BELOW * (2 + 2 + 2 + 1)));
    }

    #[test]
    fn runs_that_make_no_sense_or_take_too_much_have_no_index() {
        let made = |runs: &[(u32, u32)], most| Index::new(runs, 2, most).is_some();
        assert!(made(&[(0, 0), (7, 1)], TOP + 2 * BELOW));
        assert!(!made(&[(0, 0), (7, 1)], TOP + 2 * BELOW - 1));
        assert!(!made(&[], usize::MAX));
        assert!(!made(&[(1, 0)], usize::MAX));
        assert!(!made(&[(0, 0), (7, 1), (7, 0)], usize::MAX));
        assert!(!made(&[(0, 2)], usize::MAX));
    }
}
