//! When the entries of a table are due.
//!
//! Finding an entry moves its deadline, but nothing here: an item's time is a lower bound. One that
//! comes up too early is put back with the deadline of then.

use crate::group::{Cause, Ended};
use crate::store::Store;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When an entry may be due: a bound, the entry's id for the order at equal times, the
/// number of its place.
pub(crate) type Item = (u64, u64, u32);

/// At most one item for each place in the table. It stays when its entry ends by other causes, and
/// then serves the next entry there: that one, being younger, is not due earlier.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<Item>>,
    /// Whether a place has an item.
    queued: Vec<bool>,
}

impl Queue {
    /// The first item.
    pub(crate) fn first(&self) -> Option<Item> {
        self.heap.peek().map(|item| item.0)
    }

    /// Adds an item unless the place has one.
    pub(crate) fn push(&mut self, item: Item) {
        let number = item.2 as usize;
        if self.queued.len() <= number {
            self.queued.resize(number + 1, false);
        }
        if !self.queued[number] {
            self.queued[number] = true;
            self.heap.push(Reverse(item));
        }
    }

    /// Removes the first item.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let Reverse(item) = self.heap.pop()?;
        self.queued[item.2 as usize] = false;
        Some(item)
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.heap.len() * size_of::<Reverse<Item>>() + size_of_val(&*self.queued)
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.queued.fill(false);
    }
}

impl Store {
    /// A time before which no entry is due (ns); the largest when none ever is.
    #[must_use]
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.next
    }

    /// Ends the group of entries that is due first, if that is by `until`: gives the time at which
    /// it was due, and in `ended` the entries whose programs have to run. At equal times groups end
    /// in the order of their roots' function, table and creation.
    pub fn expire(&mut self, until: u64, ended: &mut Ended) -> Option<u64> {
        ended.clear();
        loop {
            let first = self.earliest();
            self.next = first.map_or(u64::MAX, |(due, _)| due);
            let (due, at) = first.filter(|(due, _)| *due <= until)?;
            if let Some((_, _, number)) = self.tables[at].queue.as_ref().and_then(Queue::first) {
                self.renew_by_records(at, number);
            }
            if let Some(place) = self.tables[at].next_expired() {
                self.end_group(at, place, Cause::Expired, ended);
                return Some(due);
            }
        }
    }

    /// The first item of all queues: its time and table.
    pub(crate) fn earliest(&self) -> Option<(u64, usize)> {
        let firsts = self.timed.iter().filter_map(|&at| {
            let table = &self.tables[at];
            let (due, id, _) = table.queue.as_ref()?.first()?;
            Some((due, table.site.node, table.site.state, id, at))
        });
        firsts.min().map(|(due, .., at)| (due, at))
    }
}
