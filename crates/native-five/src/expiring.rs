//! Entries that end after an idle time, rounded up to a multiple of a tick.

use std::collections::{BTreeMap, BTreeSet};

/// Deadlines are rounded up to multiples of this (ns).
const TICK_NS: u64 = 100_000_000;

/// Entries by number.
pub struct Expiring<T> {
    idle_ns: u64,
    entries: BTreeMap<u64, (T, u64)>,
    /// Time and number for each entry: when to check next whether it has ended.
    deadlines: BTreeSet<(u64, u64)>,
    next: u64,
}

impl<T> Expiring<T> {
    /// A table without entries.
    pub fn new(idle_ns: u64) -> Self {
        Self { idle_ns, entries: BTreeMap::new(), deadlines: BTreeSet::new(), next: 0 }
    }

    fn deadline(&self, seen: u64) -> u64 {
        seen.saturating_add(self.idle_ns).div_ceil(TICK_NS).saturating_mul(TICK_NS)
    }

    /// Adds an entry and returns its number.
    pub fn insert(&mut self, entry: T, now: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.entries.insert(number, (entry, now));
        self.deadlines.insert((self.deadline(now), number));
        number
    }

    /// The entry with this number, which a packet uses now.
    pub fn find(&mut self, number: u64, now: u64) -> Option<&mut T> {
        let (entry, seen) = self.entries.get_mut(&number)?;
        *seen = now;
        Some(entry)
    }

    /// The entry with this number. This does not count as a use.
    pub fn peek(&mut self, number: u64) -> Option<&mut T> {
        self.entries.get_mut(&number).map(|(entry, _)| entry)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The next entry that has ended until now.
    pub fn ended(&mut self, now: u64) -> Option<T> {
        while let Some((deadline, number)) = self.deadlines.first().copied().filter(|d| d.0 <= now)
        {
            self.deadlines.pop_first();
            let Some((_, seen)) = self.entries.get(&number) else { continue };
            let later = self.deadline(*seen);
            if later <= deadline {
                return self.entries.remove(&number).map(|(entry, _)| entry);
            }
            self.deadlines.insert((later, number));
        }
        None
    }

    /// The earliest time at which an entry may end.
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The number of the next entry.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds an entry of an earlier table, with its number and the time of its last use.
    pub fn put_back(&mut self, number: u64, entry: T, seen: u64) {
        self.entries.insert(number, (entry, seen));
        self.deadlines.insert((self.deadline(seen), number));
    }

    /// Sets the number of the next entry.
    pub fn go_on(&mut self, next: u64) {
        self.next = next;
    }

    /// All entries in the order of their creation, with their numbers and the times of their last
    /// uses.
    pub fn all(&self) -> impl Iterator<Item = (u64, &T, u64)> {
        self.entries.iter().map(|(number, (entry, seen))| (*number, entry, *seen))
    }

    /// All entries in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|(entry, _)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::{Expiring, TICK_NS};

    #[test]
    fn entry_ends_when_nobody_found_it_for_so_long() {
        let mut entries = Expiring::new(TICK_NS);
        let (a, _b) = (entries.insert("a", 0), entries.insert("b", 0));
        assert_eq!(entries.find(a, TICK_NS), Some(&mut "a"));
        assert_eq!(entries.ended(TICK_NS), Some("b"));
        assert_eq!(entries.ended(TICK_NS), None);
        assert_eq!((entries.len(), entries.next_deadline()), (1, Some(2 * TICK_NS)));
        assert_eq!(entries.ended(2 * TICK_NS), Some("a"));
        assert_eq!(entries.find(a, 0), None);
    }
}
