//! Entries that records take for granted not to be there: a lookup that finds nothing is a read, too. When such an
//! entry is made, the records end.

use crate::records::Records;
use crate::store::{Store, TableRef};
use crate::table::NONE;
use std::collections::HashMap;

/// Most keys. Flows that would need further ones get no records.
const MOST: usize = 1 << 18;

/// Keys that are known to be absent.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    numbers: HashMap<Key, u32>,
    /// By number, as long as records rest on it.
    keys: Vec<Option<Key>>,
    free: Vec<u32>,
}

/// A packed key in a table.
pub(crate) type Key = (TableRef, Box<[u64]>);

impl Absences {
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.numbers.len() + more <= MOST
    }

    /// The number of a key.
    fn number(&mut self, table: TableRef, key: &[u64]) -> u32 {
        let key = (table, Box::from(key));
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.keys.push(None);
            (self.keys.len() - 1) as u32
        });
        self.keys[number as usize] = Some(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// The key of a number.
    pub(crate) fn key(&self, number: u32) -> Option<&Key> {
        self.keys.get(number as usize)?.as_ref()
    }

    /// No record rests on a key any more.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(key) = self.keys[number as usize].take() {
            self.numbers.remove(&key);
            self.free.push(number);
        }
    }
}

impl Records {
    /// Lets a record rest on there being no entry.
    pub(crate) fn tie_absent(&mut self, record: u32, table: TableRef, key: &[u64]) {
        let number = self.absences.number(table, key);
        let root = (self.absent_table(), number);
        if !self.rests(record, root) {
            self.tie(record, root, NONE, None);
        }
    }
}

impl Store {
    /// An entry is about to be made: the records that take its absence for granted end.
    #[inline]
    pub(crate) fn appears(&mut self, table: usize, key: &[u64]) {
        if !self.records.absences.numbers.is_empty() {
            self.end_absent(table, key);
        }
    }

    #[inline(never)]
    fn end_absent(&mut self, table: usize, key: &[u64]) {
        let key = (TableRef(table as u32), Box::from(key));
        let Some(&number) = self.records.absences.numbers.get(&key) else { return };
        let root = (self.records.absent_table() as usize, number as usize);
        loop {
            let first = self.records.head(root).first;
            if first == NONE {
                return;
            }
            self.end_record(self.records.links[first as usize].record);
        }
    }
}
