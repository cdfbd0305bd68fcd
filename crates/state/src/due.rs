//! When the entries of a table are due.
//!
//! Finding an entry moves its deadline, but nothing here: an item's time is a lower bound. One that
//! comes up too early is put back with the deadline of then.

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
