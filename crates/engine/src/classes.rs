//! Address groups, for machine code that looks up several route tables with one search.

use crate::instance::Instance;
use braid_classify::{ClassTrie, Lpm};
use braid_ir::model::ParamId;
use braid_jit::{AddressGroups, Index, Search};
use std::sync::Arc;

/// The limits for combined tables: their routes, the number of combinations, and the bytes for all
/// of them.
const ROUTES: usize = 1 << 20;
const GROUPS: usize = 256;
const BYTES: usize = 256 << 20;
/// The most entries of an index. A larger index would not stay in caches.
const ENTRIES: usize = 1 << 21;

/// The address groups of all combinations of tables. They become invalid when a table changes.
#[derive(Default)]
pub(crate) struct Known {
    groups: Vec<Group>,
    bytes: usize,
}

/// Tables that are searched for the same address.
struct Group {
    tables: Vec<(u16, ParamId)>,
    wide: bool,
    /// `None` if there are too many address groups.
    classes: Option<AddressGroups>,
    /// For searches by the host, which refer to the combination by its number.
    trie: Option<ClassTrie>,
}

impl Known {
    /// The address groups of a combination of tables.
    pub(crate) fn of(
        &mut self,
        instances: &[Instance],
        tables: &[(u16, ParamId)],
        wide: bool,
    ) -> Option<AddressGroups> {
        let mut groups = self.groups.iter();
        if let Some(group) = groups.find(|group| group.tables == tables && group.wide == wide) {
            return group.classes.clone();
        }
        if self.groups.len() >= GROUPS {
            return None;
        }
        let routes = |(node, param): &(u16, ParamId)| {
            instances.get(usize::from(*node))?.routes.get(param.index())?.as_ref()
        };
        let members: Vec<&Lpm> = tables.iter().map(routes).collect::<Option<_>>()?;
        let (classes, trie) = self.make(&members, wide);
        self.groups.push(Group { tables: tables.to_vec(), wide, classes, trie });
        self.groups.last()?.classes.clone()
    }

    #[expect(clippy::cast_possible_truncation, reason = "addresses of IPv4 have 32 bits")]
    fn make(&mut self, members: &[&Lpm], wide: bool) -> (Option<AddressGroups>, Option<ClassTrie>) {
        let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
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
        let group = self.groups.get(number as usize)?;
        if let Some(trie) = &group.trie {
            return Some(trie.get(addr));
        }
        let (node, param) = *group.tables.first()?;
        let table = instances.get(usize::from(node))?.routes.get(param.index())?.as_ref()?;
        Some(table.class(addr, group.wide))
    }

    /// Forgets all address groups.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
