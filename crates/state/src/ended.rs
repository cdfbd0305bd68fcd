//! Entries that have ended, for their `expire` programs.

use crate::handle::TableRef;
use crate::table::Table;
use braid_ir::model::StateId;
use std::ops::Range;

/// Entries that ended together and whose `expire` programs must run, in this order. An engine keeps
/// one value for each depth of nested `expire` programs. A value allocates no memory once it is
/// large enough.
#[derive(Debug, Default)]
pub struct Ended {
    entries: Vec<Member>,
    words: Vec<u64>,
}

#[derive(Debug)]
struct Member {
    table: TableRef,
    node: u16,
    state: StateId,
    shard: u16,
    key: Range<usize>,
    slots: Range<usize>,
}

/// An entry that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedEntry<'a> {
    /// Its table.
    pub table: TableRef,
    /// The function.
    pub node: u16,
    /// The table, by number in the function.
    pub state: StateId,
    /// The shard in which the entry was created, and in which its program runs.
    pub shard: u16,
    /// Its packed key.
    pub key: &'a [u64],
    /// Its packed slots.
    pub slots: &'a [u64],
}

impl<'a> EndedEntry<'a> {
    /// The entry at a place of a table, which a shard created.
    #[inline(always)]
    pub(crate) fn of(at: usize, table: &'a Table, place: u32, shard: u16) -> Self {
        let (key, slots) = table.contents(place);
        let (table, site) = (TableRef::at(at), &table.site);
        Self { table, node: site.node, state: site.state, shard, key, slots }
    }
}

impl Ended {
    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in the order in which their programs run.
    #[expect(clippy::indexing_slicing, reason = "`push` has put the words there")]
    pub fn entries(&self) -> impl Iterator<Item = EndedEntry<'_>> {
        self.entries.iter().map(|entry| EndedEntry {
            table: entry.table,
            node: entry.node,
            state: entry.state,
            shard: entry.shard,
            key: &self.words[entry.key.clone()],
            slots: &self.words[entry.slots.clone()],
        })
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.words.clear();
    }

    /// Adds an entry whose words are still at its place.
    #[inline(never)]
    pub(crate) fn push(&mut self, entry: &EndedEntry<'_>) {
        let EndedEntry { table, node, state, shard, .. } = *entry;
        let (key, slots) = (self.copy(entry.key), self.copy(entry.slots));
        self.entries.push(Member { table, node, state, shard, key, slots });
    }

    fn copy(&mut self, words: &[u64]) -> Range<usize> {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        start..self.words.len()
    }
}
