//! Entries that records take for granted not to be there: a lookup that finds nothing is a read, too. When such an
//! entry is made, the records end.

use braid_state::{HashKey, Index, TableRef};

/// The limit of absent keys. Flows that need more get no records.
const MOST: usize = 1 << 20;

/// From this number on, numbers of tables stand for functions that keep state elsewhere.
const ELSEWHERE: u32 = u32::MAX - (u16::MAX as u32);

/// What the absence of stands for something staying as it is that is kept elsewhere than in the store: by a function, in
/// a shard, under a number. [`crate::Records::change_elsewhere`] says when it does not.
#[must_use]
pub fn kept_elsewhere(node: u16, shard: u16, number: u64) -> (TableRef, [u64; 2]) {
    (TableRef::from_bits(ELSEWHERE + u32::from(node)), [shard.into(), number])
}

/// Packed keys in tables.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    words: Vec<u64>,
    /// The table of each, and where it ends.
    ends: Vec<(TableRef, usize)>,
}

impl Keys {
    /// Adds one.
    pub fn push(&mut self, table: TableRef, key: &[u64]) {
        self.words.extend_from_slice(key);
        self.ends.push((table, self.words.len()));
    }

    /// The table of the last one.
    #[must_use]
    pub fn last(&self) -> Option<TableRef> {
        self.ends.last().map(|(table, _)| *table)
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.words.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TableRef, &[u64])> {
        let mut from = 0;
        self.ends.iter().map(move |(table, end)| {
            let key = &self.words[from..*end];
            from = *end;
            (*table, key)
        })
    }
}

/// Keys that are known to be absent.
#[derive(Debug)]
pub(crate) struct Absences {
    index: Index,
    /// By number, for as long as records depend on the key.
    keys: Vec<Key>,
    free: Vec<u32>,
}

/// A key of which there must be no entry in a table.
#[derive(Debug)]
struct Key {
    table: TableRef,
    words: Vec<u64>,
}

impl Key {
    fn hash(&self, hash: &HashKey) -> u64 {
        hash_of(hash, self.table, &self.words)
    }
}

fn hash_of(hash: &HashKey, table: TableRef, key: &[u64]) -> u64 {
    // Two tables may have the same key absent.
    hash.hash(key).rotate_left(table.to_bits() % 64)
}

impl Absences {
    pub(crate) fn new() -> Self {
        Self { index: Index::new(), keys: Vec::new(), free: Vec::new() }
    }

    fn len(&self) -> usize {
        self.keys.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a key, if records depend on its absence.
    pub(crate) fn known(&self, table: TableRef, key: &[u64], hash_key: &HashKey) -> Option<u32> {
        self.find(hash_of(hash_key, table, key), table, key)
    }

    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.len() + more <= MOST
    }

    fn find(&self, hash: u64, table: TableRef, key: &[u64]) -> Option<u32> {
        self.index.find(hash, |number| {
            let known = &self.keys[number as usize];
            (known.table == table && known.words == key).then_some(number)
        })
    }

    /// The number of a key.
    pub(crate) fn number(&mut self, table: TableRef, key: &[u64], hash_key: &HashKey) -> u32 {
        let hash = hash_of(hash_key, table, key);
        if let Some(number) = self.find(hash, table, key) {
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.keys.push(Key { table, words: Vec::new() });
            (self.keys.len() - 1) as u32
        });
        let new = &mut self.keys[number as usize];
        new.table = table;
        key.clone_into(&mut new.words);
        let keys = &self.keys;
        self.index.insert(hash, number, |number| keys[number as usize].hash(hash_key));
        number
    }

    /// The key with a number, if its table is in the store.
    pub(crate) fn key(&self, number: u32) -> Option<(TableRef, &[u64])> {
        let key = self.keys.get(number as usize).filter(|key| key.table.to_bits() < ELSEWHERE)?;
        Some((key.table, &key.words))
    }

    /// No record depends on a key any more.
    pub(crate) fn forget(&mut self, number: u32, hash: &HashKey) {
        if let Some(key) = self.keys.get(number as usize) {
            self.index.remove(key.hash(hash), number);
            self.free.push(number);
        }
    }
}
