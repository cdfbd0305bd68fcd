//! Address groups: addresses that several route tables treat alike.
//!
//! The tables share the search for an address. Their intervals are combined and numbered: intervals
//! for which every table has the same hops get the same number. One search finds the number of an
//! address, its *address group*, and the group determines the hop in each table.

use crate::Lpm;
use crate::trie::{Key, Run, Trie};
use std::collections::HashMap;

/// The address groups of some route tables. All addresses of a group have the same hop in each
/// table.
#[derive(Clone, Debug)]
pub struct Groups {
    runs: Vec<Run>,
    count: u32,
}

/// [`Groups`] in a form that is fast to look up.
#[derive(Clone, Debug)]
pub enum GroupTrie {
    /// Address groups of IPv4 addresses.
    V4(Trie<u32>),
    /// Address groups of IPv6 addresses.
    V6(Trie<u128>),
}

impl Groups {
    /// The address groups of IPv4 addresses, or of IPv6 addresses if `wide`.
    #[must_use]
    pub fn of(tables: &[&Lpm], wide: bool) -> Self {
        let column = |table: &&Lpm| -> Vec<Run> {
            let ranges = if wide { table.ranges6() } else { table.ranges4() };
            let mut places = HashMap::new();
            let numbered = ranges.into_iter().map(|(start, hop)| {
                let next = number(places.len());
                (start, *places.entry(hop).or_insert(next))
            });
            numbered.collect()
        };
        let columns: Vec<Vec<Run>> = tables.iter().map(column).collect();
        let (runs, count) = distinct(&columns);
        Self { runs, count }
    }

    /// The number of groups. They are numbered from 0.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first address of each interval and its group, in order from address 0.
    #[must_use]
    pub fn runs(&self) -> &[(u128, u32)] {
        &self.runs
    }

    /// The groups as a trie.
    #[must_use]
    pub fn trie(&self, wide: bool) -> GroupTrie {
        if wide {
            GroupTrie::V6(Trie::new(&self.runs))
        } else {
            GroupTrie::V4(Trie::new(&self.runs))
        }
    }
}

impl GroupTrie {
    /// The group of an address.
    #[must_use]
    #[inline]
    pub fn get(&self, addr: u128) -> u32 {
        match self {
            Self::V4(trie) => trie.get(u32::cut(addr)),
            Self::V6(trie) => trie.get(addr),
        }
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::V4(trie) => trie.memory(),
            Self::V6(trie) => trie.memory(),
        }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The intervals of addresses with their groups, and the number of groups. Each distinct row of
/// values is a group. A column has the values of one table, by the start of their intervals.
fn distinct(columns: &[Vec<Run>]) -> (Vec<Run>, u32) {
    let mut starts: Vec<u128> = columns.iter().flatten().map(|run| run.0).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut left: Vec<&[Run]> = columns.iter().map(Vec::as_slice).collect();
    let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut runs: Vec<Run> = Vec::new();
    for start in starts {
        for left in &mut left {
            while let [_, rest @ ..] = *left
                && rest.first().is_some_and(|next| next.0 <= start)
            {
                *left = rest;
            }
        }
        let row: Vec<u32> = left.iter().map(|left| left.first().map_or(0, |run| run.1)).collect();
        let next = number(known.len());
        let group = *known.entry(row).or_insert(next);
        if runs.last().is_none_or(|last| last.1 != group) {
            runs.push((start, group));
        }
    }
    (runs, number(known.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> [Lpm; 3] {
        let mut all = [Lpm::default(), Lpm::default(), Lpm::default()];
        for n in 0..400_u32 {
            let (addr, len) = (n.wrapping_mul(0x9e37_79b1), (n % 33) as u8);
            all[(n % 2) as usize].insert4(addr, len, n % 5);
            let wide = u128::from(addr) << 96 | u128::from(n);
            all[(n % 2) as usize].insert6(wide, (n % 129) as u8, n % 5);
        }
        all
    }

    #[test]
    fn addresses_of_a_group_have_the_same_hops_and_others_have_not() {
        let tables = tables();
        let members: Vec<&Lpm> = tables.iter().collect();
        for wide in [false, true] {
            let groups = Groups::of(&members, wide);
            let trie = groups.trie(wide);
            let mut known: HashMap<u32, Vec<Option<u32>>> = HashMap::new();
            for (start, group) in groups.runs() {
                for addr in [*start, start.saturating_sub(1)] {
                    let hop = |table: &Lpm| {
                        if wide { table.lookup6(addr) } else { table.lookup4(u32::cut(addr)) }
                    };
                    let hops: Vec<Option<u32>> = tables.iter().map(hop).collect();
                    let found = trie.get(addr);
                    assert!(found < groups.count() && (addr != *start || found == *group));
                    assert_eq!(
                        *known.entry(found).or_insert_with(|| hops.clone()),
                        hops,
                        "{addr:x}"
                    );
                    for (table, hop) in tables.iter().zip(&hops) {
                        let own = table.group(addr, wide);
                        assert!(own < table.groups(wide) && (own == 0) == hop.is_none());
                    }
                }
            }
            let mut distinct: Vec<_> = known.values().collect();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), groups.count() as usize);
        }
    }

    #[test]
    fn tables_without_routes_have_one_group() {
        let empty = Lpm::default();
        let groups = Groups::of(&[&empty, &empty], false);
        assert_eq!((groups.count(), groups.runs()), (1, &[(0, 0)][..]));
        assert_eq!((empty.groups(true), empty.group(7, true)), (1, 0));
    }
}
