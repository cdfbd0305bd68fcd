//! Address groups, for machine code that looks up several route tables with one search.

use crate::instance::Instance;
use braid_classify::{ClassTrie, Lpm};
use braid_ir::model::ParamId;
use braid_jit::{AddressGroups, Index, Search};
use std::sync::Arc;

/// The limits for combined tables: their routes, the number of combinations, and the bytes for all
/// of them.
const ROUTES: usize = 1 << 20;
const COMBINATIONS: usize = 256;
const BYTES: usize = 256 << 20;
/// The most entries of an index. A larger index would not stay in caches.
const ENTRIES: usize = 1 << 21;

/// The address groups of all combinations of tables. They become invalid when a table changes.
#[derive(Default)]
pub(crate) struct Combinations {
    all: Vec<Combination>,
    bytes: usize,
}

/// Tables that are searched for the same address.
struct Combination {
    tables: Vec<(u16, ParamId)>,
    wide: bool,
    /// `None` if there are too many address groups.
    groups: Option<AddressGroups>,
    /// For searches by the host, which refer to the combination by its number.
    trie: Option<ClassTrie>,
}

impl Combinations {
    /// The address groups of a combination of tables.
    pub(crate) fn of(
        &mut self,
        instances: &[Instance],
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
        let routes = |(node, param): &(u16, ParamId)| {
            instances.get(usize::from(*node))?.routes.get(param.index())?.as_ref()
        };
        let members: Vec<&Lpm> = tables.iter().map(routes).collect::<Option<_>>()?;
        let (groups, trie) = self.make(&members, wide);
        self.all.push(Combination { tables: tables.to_vec(), wide, groups, trie });
        self.all.last()?.groups.clone()
    }

    #[expect(clippy::cast_possible_truncation, reason = "addresses of IPv4 have 32 bits")]
    fn make(&mut self, members: &[&Lpm], wide: bool) -> (Option<AddressGroups>, Option<ClassTrie>) {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let by_host = |count| AddressGroups { count, search: Search::Host(number) };
        let routes: usize = members.iter().map(|table| table.len()).sum();
        if routes > ROUTES || self.bytes > BYTES {
            // A single table has its own address groups.
            return match members {
                [table] => (Some(by_host(table.classes(wide))), None),
                _ => (None, None),
            };
        }
        let all = braid_classify::Classes::of(members, wide);
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

    /// The address group of an address, in a combination that is searched by number.
    #[inline]
    pub(crate) fn search(&self, instances: &[Instance], number: u32, addr: u128) -> Option<u32> {
        let one = self.all.get(number as usize)?;
        if let Some(trie) = &one.trie {
            return Some(trie.get(addr));
        }
        let (node, param) = *one.tables.first()?;
        let table = instances.get(usize::from(node))?.routes.get(param.index())?.as_ref()?;
        Some(table.class(addr, one.wide))
    }

    /// Forgets all address groups.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
