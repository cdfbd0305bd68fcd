//! One state table: entries by key, in the order of their creation.

use braid_ir::model::{StateId, Word};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A reference to an entry of an instance: its table and its number. Numbers are unique in a run
/// and rise with creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct EntryRef {
    pub(super) state: StateId,
    pub(super) id: u64,
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Shared with the table's index.
    pub(super) key: Arc<[Word]>,
    pub(super) slots: Vec<Word>,
    pub(super) created_ns: u64,
    /// Valid for the whole group. The entry that the others live with holds it.
    pub(super) last_seen_ns: u64,
    /// The entry that this one lives with.
    pub(super) lives_with: Option<EntryRef>,
    /// Entries that live with this one, in order of creation.
    pub(super) tied: Vec<EntryRef>,
    /// The shard in which it was created, even if one table serves all shards.
    pub(super) shard: usize,
}

/// A table. Its keys come from the wire, so it uses the standard library's keyed hash.
#[derive(Clone, Default, Debug)]
pub(super) struct Table {
    by_key: HashMap<Arc<[Word]>, u64>,
    entries: BTreeMap<u64, Entry>,
}

impl Table {
    pub(super) fn find(&self, key: &[Word]) -> Option<u64> {
        self.by_key.get(key).copied()
    }

    pub(super) fn get(&self, id: u64) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    pub(super) fn insert(&mut self, id: u64, entry: Entry) {
        self.by_key.insert(entry.key.clone(), id);
        self.entries.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.by_key.remove(&entry.key);
        Some(entry)
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The entry that was created first.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.entries.first_key_value().map(|(id, _)| *id)
    }

    /// Entries in order of creation.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }
}
