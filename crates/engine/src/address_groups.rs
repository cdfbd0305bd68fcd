//! Address groups for machine code, which looks up one address in several route tables with one
//! search.

use crate::instance::Instance;
use braid_classify::{GroupTrie, Lpm};
use braid_ir::model::ParamId;
use braid_jit::{AddressGroups, Index, Search};
use std::sync::Arc;

/// The limits for combinations of route tables: the routes of a combination, the number of
/// combinations, and the bytes of all combinations.
const ROUTES: usize = 1 << 20;
const COMBINATIONS: usize = 256;
const BYTES: usize = 256 << 20;
/// The largest number of entries of an index. A larger index would not stay in the processor's
/// caches.
const ENTRIES: usize = 1 << 21;

/// The address groups of all combinations of route tables. They become invalid when a table
/// changes.
#[derive(Default)]
pub(crate) struct Combinations {
    all: Vec<Combination>,
    bytes: usize,
}

/// Route tables that machine code searches for the same address.
pub(crate) struct Combination {
    tables: Vec<(u16, ParamId)>,
    wide: bool,
    /// `None` if there are too many address groups.
    groups: Option<AddressGroups>,
    /// The search structure for searches by the host. Machine code names the combination by its
    /// number.
    trie: Option<GroupTrie>,
}

impl Combinations {
    /// The address groups of a combination of tables. `routes` gives the tables.
    pub(crate) fn of<'a>(
        &mut self,
        routes: impl Fn(&(u16, ParamId)) -> Option<&'a Lpm>,
        tables: &[(u16, ParamId)],
        wide: bool,
    ) -> Option<AddressGroups> {
        let mut all = self.all.iter();
        if let Some(known) = all.find(|one| one.tables == tables && one.wide == wide) {
            return known.groups.clone();
        }
        if self.all.len() >= COMBINATIONS {
            return None;
        }
        let members: Vec<&Lpm> = tables.iter().map(routes).collect::<Option<_>>()?;
        let (groups, trie) = self.make(&members, wide);
        self.all.push(Combination { tables: tables.to_vec(), wide, groups, trie });
        self.all.last()?.groups.clone()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the runs of IPv4 tables have addresses of 32 bits"
    )]
    fn make(&mut self, members: &[&Lpm], wide: bool) -> (Option<AddressGroups>, Option<GroupTrie>) {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let by_host = |count| AddressGroups { count, search: Search::Host(number) };
        let routes: usize = members.iter().map(|table| table.len()).sum();
        if routes > ROUTES || self.bytes > BYTES {
            // A single route table can find address groups by itself.
            return match members {
                [table] => (Some(by_host(table.groups(wide))), None),
                _ => (None, None),
            };
        }
        let all = braid_classify::Groups::of(members, wide);
        if !wide {
            let runs: Vec<_> = all.runs().iter().map(|run| (run.0 as u32, run.1)).collect();
            if let Some(index) = Index::new(&runs, all.count(), ENTRIES) {
                self.bytes += index.memory();
                let search = Search::Index(Arc::new(index));
                return (Some(AddressGroups { count: all.count(), search }), None);
            }
        }
        let trie = all.trie(wide);
        self.bytes += trie.memory();
        (Some(by_host(all.count())), Some(trie))
    }

    /// The address group of an address, in the combination with this number.
    #[inline]
    pub(crate) fn search(&self, instances: &[Instance], number: u32, addr: u128) -> Option<u32> {
        let one = self.all.get(number as usize)?;
        if let Some(trie) = &one.trie {
            return Some(trie.get(addr));
        }
        let (node, param) = *one.tables.first()?;
        let table = instances.get(usize::from(node))?.routes.get(param.index())?.as_ref()?;
        Some(table.group(addr, one.wide))
    }

    /// Moves the search structures of the combinations from this number on to the engine, with
    /// copies of their tables.
    pub(crate) fn hand_over(&mut self, from: usize) -> Vec<Combination> {
        let new = self.all.iter_mut().skip(from);
        new.map(|one| Combination {
            tables: one.tables.clone(),
            wide: one.wide,
            groups: one.groups.clone(),
            trie: one.trie.take(),
        })
        .collect()
    }

    /// Adds combinations that were handed over, in order.
    pub(crate) fn take_over(&mut self, new: Vec<Combination>) {
        self.all.extend(new);
    }

    /// The number of combinations.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets all address groups.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
