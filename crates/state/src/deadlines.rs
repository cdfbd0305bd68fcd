//! The deadlines of a table's entries.
//!
//! Finding an entry moves its deadline but changes nothing here, because the queue holds lower
//! bounds. An entry that comes up too early is queued again with its current deadline.
//!
//! Only entries that are due soon are kept in order. The other entries are in slots of time, each a
//! list of places (Varghese, Lauck: Hashed and hierarchical timing wheels, SOSP '87). When a slot's
//! time begins, the deadlines of its entries are computed again, and most of the entries move to a
//! later slot.
#![expect(
    clippy::indexing_slicing,
    reason = "`behind` has an element for each queued place, and slots are counted modulo `SLOTS`"
)]

use crate::memory::lengthen;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queued deadline: the time, the entry's id for the order at equal times, and the number of its
/// place.
pub(crate) type Item = (u64, u64, u32);

/// Time-outs and tick (ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    pub(crate) idle: Option<u64>,
    pub(crate) hard: Option<u64>,
    /// At least 1.
    pub(crate) tick: u64,
}

/// The number of slots. Twice the longest time until a new entry is due fits into them.
const SLOTS: usize = 2048;

/// The place is not queued.
const FREE: u32 = u32::MAX;
/// The place is due soon.
const SOON: u32 = u32::MAX - 1;
/// The place is the last one in its slot.
const LAST: u32 = u32::MAX - 2;

/// A queue contains each place of the table at most once. A place stays queued when its entry ends
/// for another reason. It then serves the next entry at this place, which is younger and so is not
/// due earlier.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The places that are due by the end of the slot that was opened last.
    soon: BinaryHeap<Reverse<Item>>,
    /// By place: the next place in its slot, or [`LAST`], [`SOON`], [`FREE`].
    behind: Vec<u32>,
    /// The first place in each slot or [`LAST`], by the slot's number modulo [`SLOTS`].
    slots: Vec<u32>,
    /// A bit for each slot that is not empty.
    full: [u64; SLOTS / 64],
    /// The number of low bits in which the times of one slot may differ.
    shift: u32,
    /// The number of the slot that was opened last. Queued places are in the [`SLOTS`] slots after
    /// it.
    opened: u64,
    /// The first slot that is not empty.
    first: Option<u64>,
}

impl Queue {
    /// Creates the queue for entries with these time-outs.
    pub(crate) fn new(times: &Times) -> Self {
        let mut queue = Self::default();
        queue.clear(times);
        queue
    }

    /// A time before which no place is due, and the id of the entry that is due then. The id is
    /// `None` if a slot must be opened first.
    pub(crate) fn first(&self) -> Option<(u64, Option<u64>)> {
        let soon = self.soon.peek().map(|item| (item.0.0, Some(item.0.1)));
        // At equal times the slot comes first.
        let slot = self.first.map(|slot| (slot << self.shift, None));
        slot.into_iter().chain(soon).min()
    }

    /// Whether a slot has to be opened before anything else.
    pub(crate) fn opens_first(&self) -> bool {
        self.first().is_some_and(|(_, id)| id.is_none())
    }

    /// The place that is due first.
    pub(crate) fn first_number(&self) -> Option<u32> {
        self.soon.peek().map(|item| item.0.2)
    }

    /// Adds an item unless the place is queued.
    pub(crate) fn push(&mut self, item: Item) {
        let (due, _, number) = item;
        let at = number as usize;
        lengthen(&mut self.behind, at + 1, FREE);
        if self.behind[at] != FREE {
            return;
        }
        let slot = due >> self.shift;
        if self.first.is_none() {
            // The next places may be due before this one.
            self.opened = self.opened.max(slot.saturating_sub(SLOTS as u64 / 2 + 1));
        }
        if slot <= self.opened {
            self.behind[at] = SOON;
            self.soon.push(Reverse(item));
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, LAST);
        }
        let slot = slot.min(self.opened.saturating_add(SLOTS as u64));
        let index = index_of(slot);
        self.behind[at] = std::mem::replace(&mut self.slots[index], number);
        self.full[index / 64] |= 1 << (index % 64);
        self.first = Some(self.first.map_or(slot, |first| first.min(slot)));
    }

    /// Removes the first item.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let Reverse(item) = self.soon.pop()?;
        self.behind[item.2 as usize] = FREE;
        Some(item)
    }

    /// Opens the first slot that is not empty, and returns the first place in it.
    pub(crate) fn open(&mut self) -> Option<u32> {
        self.opened = self.first?;
        let index = index_of(self.opened);
        self.full[index / 64] &= !(1 << (index % 64));
        self.first = self.next_full();
        Some(std::mem::replace(&mut self.slots[index], LAST))
    }

    /// Takes a place out of an opened slot, and returns the next place.
    pub(crate) fn take(&mut self, number: u32) -> Option<u32> {
        let next = std::mem::replace(&mut self.behind[number as usize], FREE);
        (next != LAST).then_some(next)
    }

    /// The first slot after the last opened one that is not empty.
    fn next_full(&self) -> Option<u64> {
        let from = index_of(self.opened.wrapping_add(1));
        // The word with the first slot comes once more at the end, for the slots before the first
        // one.
        let found = (0..=self.full.len()).find_map(|step| {
            let word = (from / 64 + step) % self.full.len();
            let ahead = if step == 0 { u64::MAX << (from % 64) } else { u64::MAX };
            let bits = self.full[word] & ahead;
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })?;
        let distance = (found + SLOTS - from) % SLOTS;
        Some(self.opened + 1 + distance as u64)
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.soon.len() * size_of::<Reverse<Item>>()
            + size_of_val(&*self.behind)
            + size_of_val(&*self.slots)
    }

    /// Removes all places, and sets new time-outs.
    pub(crate) fn clear(&mut self, times: &Times) {
        self.soon.clear();
        self.behind.fill(FREE);
        self.slots.fill(LAST);
        self.full.fill(0);
        (self.opened, self.first) = (0, None);
        let longest = times.idle.into_iter().chain(times.hard).min().unwrap_or(0);
        self.shift = 64 - (longest / (SLOTS as u64 / 2)).leading_zeros();
    }
}

/// The index of a slot in the array.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below `SLOTS`")]
fn index_of(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}
