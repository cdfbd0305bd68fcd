//! A table: entries with stable places, found by key.

use crate::cold::{COLD, Cold, Next};
use crate::deadlines::{Queue, Times};
use crate::handle::Handle;
use crate::hash::HashKey;
use crate::index::{Absent, Index};
use crate::memory::{LINE, NONE, Words, lengthen};
use crate::mutants::{MoveMutant, Mutants};
use crate::order::Order;
use crate::shape::{KeyShape, SlotShape};
use crate::site::Site;
use braid_ir::engine::TableCounters;
use braid_ir::model::{StateDecl, WhenFull};

/// Limits of a table, from its declaration and the function's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) capacity: u64,
    pub(crate) times: Times,
}

/// The offset of the key in an entry.
pub(crate) const KEY: usize = 1;

/// The number of places that are added at a time.
const PLACES: usize = 64;

/// A table. An entry's place is the position of its first word in `hot`. The upper half of the
/// first word is the entry's generation, which is odd while the entry exists. The lower half is the
/// place of the group's root or, in a free place, the next free place. The key and the slots
/// follow. Roots also have the time at which the group was last seen.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Table {
    // The fields that lookups read come first, next to each other.
    pub(crate) hot: Words,
    pub(crate) index: Index,
    pub(crate) key_words: usize,
    pub(crate) slot_words: usize,
    pub(crate) slots_at: usize,
    pub(crate) seen_at: usize,
    /// The distance from one entry to the next, in words.
    pub(crate) stride: usize,
    /// As in [`number_of`].
    pub(crate) per_word: u64,
    /// The largest number of entries, because places have 32 bits. So a table has at most 32 GiB,
    /// whatever its capacity is.
    most: u64,
    near: Near,
    /// Whether dependents may have counted more than the entries' slots show.
    pub(crate) is_lazy: bool,
    pub(crate) site: Site,
    pub(crate) keys: KeyShape,
    pub(crate) slots: SlotShape,
    pub(crate) limits: Limits,
    pub(crate) counters: TableCounters,
    /// For tables with time-outs.
    pub(crate) queue: Option<Queue>,
    /// For tables with time-outs: the place in the store's list of such tables.
    pub(crate) timed: usize,
    /// For tables that evict.
    pub(crate) order: Option<Order>,
    /// By the number of the place.
    pub(crate) cold: Vec<Cold>,
    /// The first free place.
    pub(crate) free: u32,
}

/// The layout for [`Table::see_at`] of a table of roots whose entries lie within one cache line.
#[derive(Clone, Copy, Debug)]
struct Near {
    /// The number of words of a key. In all other tables, more words than any key has.
    words: u8,
    /// The distance from one entry to the next, as a power of two.
    shift: u8,
    /// The offset of the slots in an entry (words).
    slots: u8,
    /// The offset of the time at which the entry was last seen (words).
    seen: u8,
}

/// The contents of a new entry.
pub(crate) struct Fresh<'a> {
    pub(crate) key: &'a [u64],
    pub(crate) slots: &'a [u64],
    pub(crate) absent: Absent,
    pub(crate) now: u64,
    pub(crate) id: u64,
    pub(crate) shard: u16,
    /// The place of the group's root. `None` if the entry itself is the root.
    pub(crate) root: Option<u32>,
    /// The next member of the group.
    pub(crate) next: Next,
}

impl Table {
    pub(crate) fn new(decl: &StateDecl, site: Site, limits: Limits) -> Self {
        let (keys, slots) = (KeyShape::new(decl), SlotShape::new(decl));
        let slots_at = KEY + keys.words();
        let seen_at = slots_at + slots.words();
        let stride = stride(seen_at + usize::from(site.is_root));
        let timed = site.is_root && (decl.idle.is_some() || decl.hard.is_some());
        Self {
            site,
            limits,
            counters: TableCounters::default(),
            queue: timed.then(|| Queue::new(&limits.times)),
            timed: 0,
            order: (decl.when_full == WhenFull::EvictOldest).then(Order::default),
            key_words: keys.words(),
            slot_words: slots.words(),
            slots_at,
            seen_at,
            stride,
            per_word: u64::MAX / stride as u64 + 1,
            most: u64::from(NONE) / stride as u64,
            is_lazy: false,
            near: near(site.is_root && stride <= LINE, stride, (slots_at, seen_at)),
            keys,
            slots,
            hot: Words::default(),
            cold: Vec::new(),
            free: NONE,
            index: Index::new(),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.index.len() as u64
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.hot.bytes()
            + self.index.bytes()
            + size_of_val(&*self.cold)
            + self.queue.as_ref().map_or(0, Queue::bytes)
            + self.order.as_ref().map_or(0, |order| order.bytes())
    }

    /// The place of the entry with this key, and its first word.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, key: &[u64]) -> Option<(u32, u64)> {
        self.find_or_absent(hash, key).ok()
    }

    /// As [`Table::find`]. The error is for a new entry with this key.
    #[inline(always)]
    pub(crate) fn find_or_absent(&self, hash: u64, key: &[u64]) -> Result<(u32, u64), Absent> {
        if key.len() != self.key_words {
            return Err(self.index.absent(hash));
        }
        // These are the most common sizes: addresses and ports, flows.
        if let Ok(key) = <&[u64; 1]>::try_from(key) {
            self.find_words(hash, key)
        } else if let Ok(key) = <&[u64; 2]>::try_from(key) {
            self.find_words(hash, key)
        } else if let Ok(key) = <&[u64; 5]>::try_from(key) {
            self.find_words(hash, key)
        } else {
            let is = |place| (self.key(place) == key).then(|| (place, self.head(place)));
            self.index.find_or_absent(hash, is)
        }
    }

    /// As [`Table::find_or_absent`], for a key whose size is known at compile time and is that of
    /// the table.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "an entry begins with a word and its key")]
    pub(crate) fn find_words<const N: usize>(
        &self,
        hash: u64,
        key: &[u64; N],
    ) -> Result<(u32, u64), Absent> {
        self.index.find_or_absent(hash, |place| {
            let entry = self.hot.get(place as usize, KEY + N);
            // Written out, because a comparison of slices may become a call.
            let words = entry[KEY..].iter().zip(key);
            let differs = words.fold(0, |differs, (a, b)| differs | (a ^ b));
            (differs == 0).then(|| (place, entry[0]))
        })
    }

    /// Starts to load the line of the index that a lookup of a key with this hash reads first.
    #[inline]
    pub(crate) fn prefetch_lookup(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// The place and the first word of the entry with this number, if it exists and has this key.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "the stride is at least 1, so an entry has a first word"
    )]
    #[expect(clippy::cast_possible_truncation, reason = "places have 32 bits (see `has_room`)")]
    pub(crate) fn find_at(&self, number: u32, key: &[u64]) -> Option<(u32, u64)> {
        let place = (number as usize).wrapping_mul(self.stride);
        let entry = self.hot.try_get(place, self.stride)?;
        let is_it = entry.get(KEY..self.slots_at)? == key && exists(entry[0]);
        is_it.then_some((place as u32, entry[0]))
    }

    /// As [`Table::find_at`], in a table of roots whose entries lie within one cache line. Returns
    /// the entry's first word, which contains the place, and the rest of its line from the slots
    /// on. The entry counts as seen at `now`.
    ///
    /// The layout of these entries makes all bounds checks but one unnecessary.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "`word` is below `LINE`")]
    pub(crate) fn see_at(&mut self, number: u32, key: &[u64], now: u64) -> Option<(u64, &[u64])> {
        let Near { words, shift, slots, seen } = self.near;
        if usize::from(words) != key.len() {
            return None;
        }
        let place = (number as usize).wrapping_shl(shift.into());
        let line = self.hot.try_line_mut(place / LINE)?;
        let word = |at: usize| place.wrapping_add(at) % LINE;
        let differs = |(at, part): (usize, &u64)| line[word(KEY.wrapping_add(at))] ^ part;
        let differs = key.iter().enumerate().map(differs).fold(0, |all, one| all | one);
        let head = line[word(0)];
        if differs != 0 || !exists(head) {
            return None;
        }
        line[word(seen.into())] = now;
        Some((head, &line[word(slots.into())..]))
    }

    /// Starts to load what lookups read of the entry at a place, if there is such a place.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: u32) {
        self.hot.prefetch(place as usize);
    }

    /// As [`Table::prefetch`], for the place with this number.
    #[inline]
    pub(crate) fn prefetch_number(&self, number: u32) {
        self.hot.prefetch((number as usize).wrapping_mul(self.stride));
    }

    /// The place that a lookup of a key with this hash tries first, if any.
    #[inline]
    pub(crate) fn guess(&self, hash: u64) -> Option<u32> {
        self.index.guess(hash)
    }

    /// The first word at a place: the entry's generation, above the place of its group's root.
    #[inline]
    pub(crate) fn head(&self, place: u32) -> u64 {
        self.hot.word(place as usize)
    }

    /// Whether the entry with this generation is still at its place.
    #[inline]
    pub(crate) fn has(&self, place: u32, generation: u32) -> bool {
        let head = self.hot.try_word(place as usize).unwrap_or(0);
        generation % 2 == 1 && (head >> 32) as u32 == generation
    }

    /// The first word of an entry, unless it has ended.
    #[inline]
    pub(crate) fn head_of(&self, entry: Handle) -> Option<u64> {
        let head = self.hot.try_word(entry.place() as usize)?;
        (exists(head) && (head >> 32) as u32 == entry.generation()).then_some(head)
    }

    #[inline]
    pub(crate) fn key(&self, place: u32) -> &[u64] {
        self.hot.get((place as usize).wrapping_add(KEY), self.key_words)
    }

    #[inline]
    pub(crate) fn slots(&self, place: u32) -> &[u64] {
        self.hot.get((place as usize).wrapping_add(self.slots_at), self.slot_words)
    }

    /// The key and the slots of an entry.
    #[inline(always)]
    pub(crate) fn contents(&self, place: u32) -> (&[u64], &[u64]) {
        let words = self.key_words.wrapping_add(self.slot_words);
        self.hot.get((place as usize).wrapping_add(KEY), words).split_at(self.key_words)
    }

    #[inline]
    pub(crate) fn slots_mut(&mut self, place: u32) -> &mut [u64] {
        self.hot.get_mut(place as usize + self.slots_at, self.slot_words)
    }

    /// The slots of the entry at a place, and their layout.
    pub(crate) fn slots_of(&mut self, place: u32) -> (&SlotShape, &mut [u64]) {
        let words = self.hot.get_mut(place as usize + self.slots_at, self.slot_words);
        (&self.slots, words)
    }

    pub(crate) fn put(&mut self, place: u32, slot: usize, value: u128) {
        let (shape, words) = self.slots_of(place);
        shape.put(words, slot, value);
    }

    /// Marks the table as lazy. From now on, records may count for its entries, and every lookup
    /// must ask the dependents first. So [`Table::see_at`] finds no entry any more.
    pub(crate) fn set_lazy(&mut self) {
        self.is_lazy = true;
        self.near.words = u8::MAX;
    }

    /// The number of a place, from 0.
    #[inline(always)]
    pub(crate) fn number(&self, place: u32) -> usize {
        number_of(place, self.per_word)
    }

    /// The place with this number.
    #[expect(clippy::cast_possible_truncation, reason = "places have 32 bits (see `has_room`)")]
    pub(crate) fn place(&self, number: usize) -> u32 {
        number.wrapping_mul(self.stride) as u32
    }

    #[expect(clippy::indexing_slicing, reason = "each place has cold data")]
    pub(crate) fn cold(&self, place: u32) -> &Cold {
        &self.cold[self.number(place)]
    }

    /// When the group with the root at this place was last seen (ns).
    pub(crate) fn last_seen(&self, place: u32) -> u64 {
        self.hot.word((place as usize).wrapping_add(self.seen_at))
    }

    #[inline]
    pub(crate) fn renew(&mut self, place: u32, now: u64) {
        self.hot.set((place as usize).wrapping_add(self.seen_at), now);
    }

    /// Sets the time at which the group of a root was last seen, unless it was seen later. `number`
    /// is the root's number.
    pub(crate) fn renew_number(&mut self, number: u32, seen: u64) {
        let place = self.place(number as usize);
        self.renew(place, self.last_seen(place).max(seen));
    }

    /// Whether there is room for one more entry.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.limits.capacity && self.len() < self.most
    }

    /// The place of the oldest entry. `None` if the table is empty or does not evict.
    pub(crate) fn oldest(&self) -> Option<u32> {
        let first = self.order.as_ref()?.first;
        (first != NONE).then(|| self.place(first as usize))
    }

    /// The place that the next entry gets. The table must have room for one more entry.
    #[inline(always)]
    pub(crate) fn next_place(&mut self) -> u32 {
        if self.free == NONE {
            self.add_places();
        }
        self.free
    }

    /// Adds some free places. The table must have room for one more entry.
    #[cold]
    fn add_places(&mut self) {
        let first = self.cold.len();
        let most = usize::try_from(self.limits.capacity.min(self.most)).unwrap_or(usize::MAX);
        let room = most.saturating_sub(first);
        let count = room.clamp(1, PLACES);
        self.hot.cover((first + count) * self.stride);
        for number in (first..first + count).rev() {
            let place = self.place(number);
            self.hot.set(place as usize, self.free.into());
            self.free = place;
        }
        lengthen(&mut self.cold, first + count, COLD);
    }

    /// Sets the next member of the group after the entry at a place. Returns the previous one.
    #[expect(clippy::indexing_slicing, reason = "each place has cold data")]
    #[inline(always)]
    pub(crate) fn follow(&mut self, place: u32, next: Next) -> Next {
        let number = self.number(place);
        let cold = &mut self.cold[number];
        let before = (cold.next, cold.next_state);
        (cold.next, cold.next_state) = next;
        before
    }

    /// A copy in this memory, from which the entries can be read. Lookups in it find nothing.
    pub(crate) fn copy(&self, (hot, mut cold): (Vec<u64>, Vec<Cold>)) -> Self {
        cold.clone_from(&self.cold);
        Self { hot: self.hot.copy(hot), cold, ..self.emptied() }
    }

    /// A table of the same layout without entries, from which only entries can be read.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            hot: Words::default(),
            cold: Vec::new(),
            keys: self.keys.clone(),
            slots: self.slots.clone(),
            index: Index::new(),
            queue: None,
            order: None,
            free: NONE,
            ..*self
        }
    }

    /// Takes over the entries of a table with the same layout. Their deadlines follow from this
    /// table's time-outs.
    pub(crate) fn take_over(&mut self, old: &mut Table, mutants: Mutants) {
        std::mem::swap(self, old);
        std::mem::swap(&mut self.site, &mut old.site);
        std::mem::swap(&mut self.limits, &mut old.limits);
        std::mem::swap(&mut self.near, &mut old.near);
        std::mem::swap(&mut self.is_lazy, &mut old.is_lazy);
        std::mem::swap(&mut self.timed, &mut old.timed);
        match mutants.active() {
            Some(MoveMutant::DeadlinesLeft) => std::mem::swap(&mut self.queue, &mut old.queue),
            Some(MoveMutant::OrderLeft) => std::mem::swap(&mut self.order, &mut old.order),
            Some(MoveMutant::CountersLeft) => self.counters = TableCounters::default(),
            _ => {}
        }
        if self.limits.times != old.limits.times && !mutants.has(MoveMutant::DeadlinesKept) {
            self.reschedule();
        }
    }

    /// Switches to another hash for lookups.
    pub(crate) fn rehash(&mut self, hash_key: &HashKey) {
        self.index = Index::new();
        let all: Vec<u32> = self.places().collect();
        let (hot, words) = (&self.hot, self.key_words);
        let hash = |place: u32| hash_key.hash(hot.get(place as usize + KEY, words));
        all.into_iter().for_each(|place| self.index.insert(hash(place), place, hash));
    }

    /// The places of all entries, in any order.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + '_ {
        let places = (0..self.cold.len()).map(|number| self.place(number));
        places.filter(|place| self.head(*place) >> 32 & 1 == 1)
    }
}

/// The number of a place, from 0. `per_word` is 2^64 divided by the table's stride, rounded up.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the number is at most the place")]
pub(crate) fn number_of(place: u32, per_word: u64) -> usize {
    // A multiplication in place of a division. The result is exact, because places and strides
    // have 32 bits.
    (u128::from(place).wrapping_mul(per_word.into()) >> 64) as usize
}

/// The layout of a table for [`Table::see_at`].
#[expect(
    clippy::cast_possible_truncation,
    reason = "all numbers are less than the number of words in a line"
)]
fn near(is_near: bool, stride: usize, (slots, seen): (usize, usize)) -> Near {
    if !is_near {
        return Near { words: u8::MAX, shift: 0, slots: 0, seen: 0 };
    }
    let shift = stride.trailing_zeros() as u8;
    Near { words: (slots - KEY) as u8, shift, slots: slots as u8, seen: seen as u8 }
}

/// The place in the lower half of an entry's first word.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the generation is in the upper half")]
pub(crate) fn root_in(head: u64) -> u32 {
    head as u32
}

/// Whether an entry with this first word exists.
#[inline(always)]
pub(crate) fn exists(head: u64) -> bool {
    // The generation in the upper half is odd while the entry exists.
    head >> 32 & 1 == 1
}

/// The stride of entries with this number of words, at least 2. Small entries do not straddle cache
/// lines.
fn stride(words: usize) -> usize {
    let words = words.max(2);
    if words <= LINE { words.next_power_of_two() } else { words.next_multiple_of(LINE / 2) }
}
