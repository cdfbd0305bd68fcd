//! The deadlines of a table's entries.
//!
//! When a packet finds an entry, the entry's deadline moves, but nothing changes here. The queue
//! holds lower bounds: an entry that comes up too early is queued again with its current deadline.
//!
//! The queue keeps only entries in order that are due soon. The other entries are in slots of time,
//! each a list of places (Varghese, Lauck: Hashed and hierarchical timing wheels, SOSP '87). When a
//! slot's time begins, the deadlines of its entries are computed again, and most entries move to a
//! later slot.
#![expect(
    clippy::indexing_slicing,
    reason = "`behind` has an element for each queued place, and slots are counted modulo `SLOTS`"
)]

use crate::memory::lengthen;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queued deadline: the time (ns), the entry's id (which orders equal times), and the number of
/// the entry's place.
pub(crate) type Item = (u64, u64, u32);

/// The first item of a queue: a time before which no place is due, and the id of the entry that is
/// due at that time. The id is `None` if a slot must be opened first.
pub(crate) type First = (u64, Option<u64>);

/// Time-outs and tick (ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    pub(crate) idle: Option<u64>,
    pub(crate) hard: Option<u64>,
    /// The unit of deadlines (ns), at least 1. Deadlines are rounded up to multiples of it.
    pub(crate) tick: u64,
}

/// The number of slots. Together they cover more than twice the time until a new entry is due.
const SLOTS: usize = 2048;

/// Marks a place that is not queued.
const FREE: u32 = u32::MAX;
/// Marks a place in `soon` or `late`.
const SOON: u32 = u32::MAX - 1;
/// Marks the last place of a slot.
const LAST: u32 = u32::MAX - 2;

/// The queue of a table. It holds each place at most once. When an entry ends for another reason
/// than its deadline, its place stays queued. The next entry at the place uses this queued item. It
/// is younger, so it is not due earlier.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The places of the latest opened slot that are due by its end, the first one last.
    soon: Vec<Item>,
    /// The places that were queued after the latest slot was opened, and are due by its end.
    late: BinaryHeap<Reverse<Item>>,
    /// By place: the next place in its slot, or [`LAST`], [`SOON`], [`FREE`].
    behind: Vec<u32>,
    /// By the slot's number modulo [`SLOTS`]: the first place in the slot, or [`LAST`].
    slots: Vec<u32>,
    /// A bit for each slot that is not empty.
    full: [u64; SLOTS / 64],
    /// A slot covers 2^`shift` ns.
    shift: u32,
    /// The number of the latest opened slot. `slots` has the [`SLOTS`] slots after it. A place that
    /// is due later is queued in the last of them.
    opened: u64,
    /// The number of the first slot that is not empty.
    first: Option<u64>,
}

impl Queue {
    /// Creates the queue for entries with these time-outs.
    pub(crate) fn new(times: &Times) -> Self {
        let mut queue = Self::default();
        queue.clear(times);
        queue
    }

    /// The first item, or the first slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<First> {
        let slot = self.first.map(|slot| slot << self.shift);
        match (self.next(), slot) {
            (Some((due, id, _)), None) => Some((due, Some(id))),
            (Some((due, id, _)), Some(slot)) if due < slot => Some((due, Some(id))),
            // At equal times the slot comes first.
            (_, slot) => Some((slot?, None)),
        }
    }

    /// The item that is due first, if no slot has to be opened before.
    #[inline]
    fn next(&self) -> Option<Item> {
        match (self.soon.last(), self.late.peek()) {
            (Some(soon), Some(Reverse(late))) => Some(*soon.min(late)),
            (Some(soon), None) => Some(*soon),
            (None, late) => late.map(|late| late.0),
        }
    }

    /// Adds an item unless the place is queued.
    #[inline]
    pub(crate) fn push(&mut self, item: Item) {
        let (due, _, number) = item;
        let at = number as usize;
        lengthen(&mut self.behind, at + 1, FREE);
        if self.behind[at] != FREE {
            return;
        }
        match self.slot(due) {
            Some(slot) => self.put(slot, number),
            None => {
                self.behind[at] = SOON;
                self.late.push(Reverse(item));
            }
        }
    }

    /// The slot for a place that is due at this time. `None` if this slot has been opened.
    #[inline]
    fn slot(&mut self, due: u64) -> Option<u64> {
        let slot = due >> self.shift;
        if self.first.is_none() {
            // The next places may be due before this one, so the queue leaves room for them.
            self.opened = self.opened.max(slot.saturating_sub(SLOTS as u64 / 2 + 1));
        }
        (slot > self.opened).then_some(slot)
    }

    /// Adds a place to a slot that has not been opened.
    #[inline]
    fn put(&mut self, slot: u64, number: u32) {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, LAST);
        }
        let slot = slot.min(self.opened.saturating_add(SLOTS as u64));
        let index = index_of(slot);
        self.behind[number as usize] = std::mem::replace(&mut self.slots[index], number);
        self.full[index / 64] |= 1 << (index % 64);
        self.first = Some(self.first.map_or(slot, |first| first.min(slot)));
    }

    /// Removes the first item.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let item = match self.soon.last() {
            Some(_) if self.late.is_empty() => self.soon.pop(),
            Some(soon) if self.late.peek().is_none_or(|late| *soon < late.0) => self.soon.pop(),
            _ => self.late.pop().map(|late| late.0),
        }?;
        self.behind[item.2 as usize] = FREE;
        Some(item)
    }

    /// Whether the next item is due at this time, which is that of an item that was removed. No
    /// slot has to be opened before such an item.
    #[inline]
    pub(crate) fn has_more(&self, due: u64) -> bool {
        self.next().is_some_and(|item| item.0 == due)
    }

    /// Opens the first slot that is not empty. `item` gives the present item of each place in it,
    /// or `None` if the place has no entry that is ever due.
    pub(crate) fn open(&mut self, item: impl Fn(u32) -> Option<Item>) {
        let Some(slot) = self.first else { return };
        self.opened = slot;
        let index = index_of(slot);
        self.full[index / 64] &= !(1 << (index % 64));
        self.first = self.next_full();
        let mut number = std::mem::replace(&mut self.slots[index], LAST);
        while number != LAST {
            let at = number as usize;
            let next = std::mem::replace(&mut self.behind[at], FREE);
            if let Some(item) = item(number) {
                match self.slot(item.0) {
                    Some(slot) => self.put(slot, number),
                    None => {
                        self.behind[at] = SOON;
                        self.soon.push(item);
                    }
                }
            }
            number = next;
        }
        self.soon.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// The first slot after the last opened one that is not empty.
    fn next_full(&self) -> Option<u64> {
        let from = index_of(self.opened.wrapping_add(1));
        // The first word is visited again at the end, for the slots before `from`.
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
        (self.soon.len() + self.late.len()) * size_of::<Item>()
            + size_of_val(&*self.behind)
            + size_of_val(&*self.slots)
    }

    /// Removes all places, and sets new time-outs.
    pub(crate) fn clear(&mut self, times: &Times) {
        self.soon.clear();
        self.late.clear();
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
