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
    reason = "each queued place has cold data, and there is a bit for each slot"
)]

use crate::cold::Cold;
use crate::memory::prefetch;
use crate::slots::{Places, SLOTS, Slots};
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

impl Times {
    /// The time (ns) at which a group expires that was created at `created` and last seen at
    /// `seen`. `None` if it never expires.
    #[inline(always)]
    pub(crate) fn deadline(&self, created: u64, seen: u64) -> Option<u64> {
        self.rounded(self.over_at(created, seen)?)
    }

    /// As [`Times::deadline`], before it is rounded up.
    #[inline(always)]
    pub(crate) fn over_at(&self, created: u64, seen: u64) -> Option<u64> {
        let idle = self.idle.and_then(|idle| seen.checked_add(idle));
        let hard = self.hard.and_then(|hard| created.checked_add(hard));
        match (idle, hard) {
            (Some(idle), Some(hard)) => Some(idle.min(hard)),
            (idle, hard) => idle.or(hard),
        }
    }

    /// The end of the tick that has this time (ns). `None` if it is after the end of time.
    fn rounded(&self, time: u64) -> Option<u64> {
        time.div_ceil(self.tick).checked_mul(self.tick)
    }

    /// Whether [`Times::deadline`] is at most `due`, which is a multiple of the tick. So this needs
    /// no rounding.
    #[inline(always)]
    pub(crate) fn is_over(&self, created: u64, seen: u64, due: u64) -> bool {
        let is_over = |time: u64, after| time.checked_add(after).is_some_and(|at| at <= due);
        self.idle.is_some_and(|idle| is_over(seen, idle))
            || self.hard.is_some_and(|hard| is_over(created, hard))
    }
}

/// Stands for no slot.
const NEVER: u64 = u64::MAX;

/// A tick: the times (ns) that are rounded up to the same deadline. It spares a division for each
/// time in it.
#[derive(Clone, Copy, Debug)]
struct Tick {
    /// The first time.
    from: u64,
    /// The number of times.
    len: u64,
}

impl Tick {
    /// No times.
    const NONE: Tick = Tick { from: 0, len: 0 };

    /// The tick that ends with this deadline.
    fn until(due: u64, times: &Times) -> Self {
        let from = due.saturating_sub(times.tick.wrapping_sub(1));
        Self { from, len: due.wrapping_sub(from).wrapping_add(1) }
    }

    #[inline(always)]
    fn has(self, time: u64) -> bool {
        time.wrapping_sub(self.from) < self.len
    }

    /// The deadline for a time (ns). `None` if it is after the end of time. Moves to the tick of
    /// the time.
    #[inline(always)]
    fn due(&mut self, time: u64, times: &Times) -> Option<u64> {
        if !self.has(time) {
            *self = Self::until(times.rounded(time)?, times);
        }
        Some(self.from.wrapping_add(self.len).wrapping_sub(1))
    }
}

/// The queue of a table. It holds each place at most once. When an entry ends for another reason
/// than its deadline, its place stays queued. The next entry at the place uses this queued item. It
/// is younger, so it is not due earlier.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The places of the latest opened slot that are due by its end, the first one last.
    soon: Vec<Item>,
    /// The places that were queued after the latest slot was opened, and are due by its end.
    late: BinaryHeap<Reverse<Item>>,
    /// By the slot's number modulo [`SLOTS`]. Together, the slots cover more than twice the time
    /// until a new entry is due.
    slots: Slots,
    /// A bit for each slot that is not empty.
    full: [u64; SLOTS / 64],
    /// A slot covers 2^`shift` ns.
    shift: u32,
    /// The number of the latest opened slot. `slots` has the [`SLOTS`] slots after it. A place that
    /// is due later is queued in the last of them.
    opened: u64,
    /// The number of the first slot that is not empty, or [`NEVER`].
    first: u64,
    /// The time until a new entry is over (ns).
    lasts: u64,
    /// The tick at whose end the latest new entry is due. It has no times if the entry's slot has
    /// been opened.
    latest: Tick,
    /// The index of that slot.
    latest_slot: usize,
}

impl Queue {
    /// Creates the queue for entries with these time-outs.
    pub(crate) fn new(times: &Times) -> Self {
        let mut queue = Self {
            soon: Vec::new(),
            late: BinaryHeap::new(),
            slots: Slots::new(),
            full: [0; SLOTS / 64],
            shift: 0,
            opened: 0,
            first: NEVER,
            lasts: 0,
            latest: Tick::NONE,
            latest_slot: 0,
        };
        queue.clear(times, &mut []);
        queue
    }

    /// The first item, or the first slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<First> {
        let slot = (self.first != NEVER).then(|| self.first << self.shift);
        match (self.next(), slot) {
            (Some((due, id, _)), None) => Some((due, Some(id))),
            (Some((due, id, _)), Some(slot)) if due < slot => Some((due, Some(id))),
            // At equal times the slot comes first.
            (_, slot) => Some((slot?, None)),
        }
    }

    /// The item that is due first, if no slot has to be opened before.
    #[inline(always)]
    fn next(&self) -> Option<Item> {
        match (self.soon.last(), self.late.peek()) {
            (Some(soon), Some(Reverse(late))) => Some(*soon.min(late)),
            (Some(soon), None) => Some(*soon),
            (None, late) => late.map(|late| late.0),
        }
    }

    /// The number of the place that comes after this many others of the latest opened slot.
    #[inline(always)]
    pub(crate) fn ahead(&self, count: usize) -> Option<u32> {
        let (.., number) = self.soon.get(self.soon.len().wrapping_sub(count).wrapping_sub(1))?;
        Some(*number)
    }

    /// Adds an item unless the place is queued.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: Item, cold: &mut Cold) {
        let (due, _, number) = item;
        if std::mem::replace(&mut cold.is_queued, true) {
            return;
        }
        match self.slot(due) {
            Some(slot) => self.put(slot, number),
            None => self.push_late(item),
        }
    }

    /// Adds the place of an entry that begins at `now`, if its deadline is that of the latest new
    /// entry. Otherwise returns false, without any effect. The place is not queued.
    #[inline(always)]
    pub(crate) fn push_like_latest(&mut self, number: u32, now: u64) -> bool {
        let is_it = now.checked_add(self.lasts).is_some_and(|time| self.latest.has(time));
        if is_it {
            self.slots.add(self.latest_slot, number);
        }
        is_it
    }

    /// Adds the item of an entry that begins, unless the place is queued. Its deadline becomes that
    /// of the latest new entry.
    pub(crate) fn push_new(&mut self, item: Item, times: &Times, cold: &mut Cold) {
        self.push(item, cold);
        self.latest = Tick::NONE;
        // A place that was queued before is not in this slot, and the slot may be empty.
        if self.first != NEVER
            && let Some(slot) = self.slot(item.0)
        {
            let index = index_of(self.last_before(slot));
            if self.full[index / 64] >> (index % 64) & 1 == 1 {
                (self.latest, self.latest_slot) = (Tick::until(item.0, times), index);
            }
        }
    }

    /// Adds an item that is due by the end of the latest opened slot.
    #[cold]
    fn push_late(&mut self, item: Item) {
        self.late.push(Reverse(item));
    }

    /// The slot for a place that is due at this time. `None` if this slot has been opened.
    #[inline(always)]
    fn slot(&mut self, due: u64) -> Option<u64> {
        let slot = due.wrapping_shr(self.shift);
        if self.first == NEVER {
            // The next places may be due before this one, so the queue leaves room for them.
            self.opened = self.opened.max(slot.saturating_sub(SLOTS as u64 / 2 + 1));
        }
        (slot > self.opened).then_some(slot)
    }

    /// A slot that has not been opened, or the last slot that there is if it comes first.
    #[inline(always)]
    fn last_before(&self, slot: u64) -> u64 {
        slot.min(self.opened.saturating_add(SLOTS as u64))
    }

    /// Adds a place to a slot that has not been opened.
    #[inline(always)]
    fn put(&mut self, slot: u64, number: u32) {
        let slot = self.last_before(slot);
        let index = index_of(slot);
        self.full[index / 64] |= 1 << (index % 64);
        self.first = self.first.min(slot);
        self.slots.add(index, number);
    }

    /// Removes the first item if it is due at this time. No slot has to be opened before. The
    /// caller clears [`Cold::is_queued`].
    #[inline(always)]
    pub(crate) fn pop(&mut self, due: u64) -> Option<Item> {
        let item = self.next().filter(|item| item.0 == due)?;
        if self.late.is_empty() || self.soon.last() == Some(&item) {
            self.soon.pop();
        } else {
            self.late.pop();
        }
        Some(item)
    }

    /// Opens the first slot that is not empty. `over_at` gives the present deadline of each place
    /// in it before it is rounded up, or `None` if the place has no entry that is ever due. `fetch`
    /// starts to load what `over_at` reads of a place besides its cold data.
    pub(crate) fn open(
        &mut self,
        times: &Times,
        cold: &mut [Cold],
        fetch: impl Fn(u32),
        over_at: impl Fn(u32, &Cold) -> Option<u64>,
    ) {
        if self.first == NEVER {
            return;
        }
        (self.opened, self.latest) = (self.first, Tick::NONE);
        let mut tick = Tick::NONE;
        let index = index_of(self.opened);
        self.full[index / 64] &= !(1 << (index % 64));
        self.first = self.next_full().unwrap_or(NEVER);
        let mut slot = self.slots.take(index);
        let mut next = self.slots.pop(&mut slot);
        while let Some(places) = next {
            // The memory of the next places is loaded while these are queued again.
            next = self.slots.pop(&mut slot);
            for number in next.as_ref().map_or(&[][..], Places::all).iter().rev() {
                prefetch(cold.get(*number as usize));
                fetch(*number);
            }
            // The latest one first. `soon` is nearly sorted then, as entries are due in the order
            // in which they came.
            for number in places.all().iter().rev() {
                let number = *number;
                let cold = &mut cold[number as usize];
                let due = over_at(number, cold).and_then(|time| tick.due(time, times));
                cold.is_queued = due.is_some();
                let Some(due) = due else { continue };
                match self.slot(due) {
                    Some(slot) => self.put(slot, number),
                    None => self.soon.push((due, cold.id, number)),
                }
            }
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
        (self.soon.len() + self.late.len()) * size_of::<Item>() + self.slots.bytes()
    }

    /// Removes all places, and sets new time-outs.
    pub(crate) fn clear(&mut self, times: &Times, cold: &mut [Cold]) {
        self.soon.clear();
        self.late.clear();
        cold.iter_mut().for_each(|cold| cold.is_queued = false);
        self.slots.clear();
        self.full.fill(0);
        (self.opened, self.first, self.latest) = (0, NEVER, Tick::NONE);
        self.lasts = times.idle.into_iter().chain(times.hard).min().unwrap_or(0);
        // At least 1, so that no slot has the number `NEVER`.
        self.shift = (64 - (self.lasts / (SLOTS as u64 / 2)).leading_zeros()).max(1);
    }
}

/// The index of a slot in the array.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is below `SLOTS`")]
fn index_of(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}
