//! Absent keys: keys that a lookup did not find and on whose absence flow records depend. When a
//! program creates an entry with such a key, the records that depend on its absence end.
#![expect(
    clippy::indexing_slicing,
    reason = "the index holds positions in `keys`, and `ends` holds positions in `words`"
)]

use braid_state::{HashKey, Index, TableRef};

/// The largest number of absent keys. A flow that needs more gets no record.
const MOST: usize = 1 << 20;

/// Table numbers from this one on stand for state that functions keep outside the store. The number
/// minus this one is the function's number.
const ELSEWHERE: u32 = u32::MAX - (u16::MAX as u32);

/// A table and a key that stand for state outside the store, such as the recording of a native
/// function for a flow. `number` is the function's own number for this state in the shard. The key
/// counts as absent as long as the state does not change. The caller reports a change with
/// [`crate::Records::change_elsewhere`].
#[must_use]
pub fn kept_elsewhere(node: u16, shard: u16, number: u64) -> (TableRef, [u64; 2]) {
    (TableRef::from_bits(ELSEWHERE + u32::from(node)), [shard.into(), number])
}

/// Packed keys, each with its table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Keys {
    words: Vec<u64>,
    /// The table of each key, and where the key's words end.
    ends: Vec<(TableRef, usize)>,
}

impl Keys {
    /// Adds a key.
    pub fn push(&mut self, table: TableRef, key: &[u64]) {
        self.words.extend_from_slice(key);
        self.ends.push((table, self.words.len()));
    }

    /// Adds a key unless it is there. Returns `None` if it is.
    pub(crate) fn add(&mut self, table: TableRef, key: &[u64]) -> Option<()> {
        let is_new = self.iter().all(|known| known != (table, key));
        is_new.then(|| self.push(table, key))
    }

    /// The table of the last key.
    #[must_use]
    pub fn last(&self) -> Option<TableRef> {
        self.ends.last().map(|(table, _)| *table)
    }

    /// Removes all keys.
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

/// The absent keys on which records depend, by number.
#[derive(Debug)]
pub(crate) struct Absences {
    index: Index,
    /// The keys by number. A key keeps its number as long as records depend on it.
    keys: Vec<Key>,
    free: Vec<u32>,
}

/// A key for which a table must have no entry.
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
    // The table is part of the hash, because the same key may be absent from two tables.
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

    /// The number of a key; a new key gets one.
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer keys than 2^32")]
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

    /// The table and the words of the key with this number, if its table is in the store.
    pub(crate) fn key(&self, number: u32) -> Option<(TableRef, &[u64])> {
        let key = self.keys.get(number as usize).filter(|key| key.table.to_bits() < ELSEWHERE)?;
        Some((key.table, &key.words))
    }

    /// Frees the number of a key on which no record depends any more.
    pub(crate) fn forget(&mut self, number: u32, hash: &HashKey) {
        if let Some(key) = self.keys.get(number as usize) {
            self.index.remove(key.hash(hash), number);
            self.free.push(number);
        }
    }
}
