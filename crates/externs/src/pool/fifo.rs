//! Free members of a pool in the order `Fifo`: a queue of intervals with an index by value.

use super::interval::{Interval, common, minus, normalised};
use std::collections::{BTreeMap, BTreeSet};

/// Free members. The members of an interval are taken lowest first. When a member is taken from the
/// middle of an interval, both remaining parts keep the sequence number, and (number, lower end)
/// still orders them.
#[derive(Clone, Debug)]
pub(super) struct FreeQueue {
    /// The upper end by (sequence number, lower end), in the order of the queue.
    queue: BTreeMap<(u64, u128), u128>,
    /// The sequence number and the upper end by lower end, to find a value.
    index: BTreeMap<u128, (u64, u128)>,
    /// The next sequence number.
    next: u64,
}

impl FreeQueue {
    pub(super) fn new(members: &[Interval]) -> Self {
        let mut new = Self { queue: BTreeMap::new(), index: BTreeMap::new(), next: 0 };
        new.append(members, &BTreeSet::new());
        new
    }

    /// The queue of these intervals, in this order.
    pub(super) fn in_order(intervals: &[Interval]) -> Self {
        let mut new = Self { queue: BTreeMap::new(), index: BTreeMap::new(), next: 0 };
        for &(lo, hi) in intervals {
            new.put(new.next, lo, hi);
            new.next += 1;
        }
        new
    }

    /// The intervals in the order of the queue.
    pub(super) fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        self.queue.iter().map(|(&(_, lo), &hi)| (lo, hi))
    }

    pub(super) fn take(&mut self) -> Option<u128> {
        let (&(sequence, lo), &hi) = self.queue.first_key_value()?;
        self.cut(sequence, lo);
        if lo < hi {
            self.put(sequence, lo + 1, hi);
        }
        Some(lo)
    }

    /// Removes a free member.
    pub(super) fn remove(&mut self, value: u128) {
        let Some((&lo, &(sequence, hi))) = self.index.range(..=value).next_back() else { return };
        if value > hi {
            return;
        }
        self.cut(sequence, lo);
        if lo < value {
            self.put(sequence, lo, value - 1);
        }
        if value < hi {
            self.put(sequence, value + 1, hi);
        }
    }

    /// Adds a member that is not free, at the end.
    pub(super) fn push(&mut self, value: u128) {
        // Releases in ascending order stay one interval.
        if let Some((&(sequence, lo), &hi)) = self.queue.last_key_value()
            && hi.checked_add(1) == Some(value)
        {
            self.cut(sequence, lo);
            self.put(sequence, lo, value);
            return;
        }
        self.put(self.next, value, value);
        self.next += 1;
    }

    /// Adds members at the end, lowest first, without the taken ones.
    pub(super) fn append(&mut self, members: &[Interval], taken: &BTreeSet<u128>) {
        let taken: Vec<Interval> = taken.iter().map(|&value| (value, value)).collect();
        for (lo, hi) in minus(members, &normalised(&taken)) {
            self.put(self.next, lo, hi);
        }
        self.next += 1;
    }

    /// Removes all other members.
    pub(super) fn retain(&mut self, members: &[Interval]) {
        let queue = std::mem::take(&mut self.queue);
        self.index.clear();
        for ((sequence, lo), hi) in queue {
            for (lo, hi) in common(&[(lo, hi)], members) {
                self.put(sequence, lo, hi);
            }
        }
    }

    fn put(&mut self, sequence: u64, lo: u128, hi: u128) {
        self.queue.insert((sequence, lo), hi);
        self.index.insert(lo, (sequence, hi));
    }

    fn cut(&mut self, sequence: u64, lo: u128) {
        self.queue.remove(&(sequence, lo));
        self.index.remove(&lo);
    }
}
