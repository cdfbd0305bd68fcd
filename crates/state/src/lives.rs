//! The beginning and the end of an entry in its table. Flows that come and go spend most of their
//! time here, so callers whose keys have a known size get code for this size.

use crate::cold::Cold;
use crate::hash::HashKey;
use crate::index::Spot;
use crate::memory::{LINE, prefetch};
use crate::table::{Fresh, KEY, Table, number_of, root_in};

impl Table {
    /// Adds an entry. The table must have room and no entry with the same key. Returns the place,
    /// the entry's first word and the place's number.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "each place has cold data")]
    pub(crate) fn insert(&mut self, fresh: &Fresh<'_>, hash_key: &HashKey) -> (u32, u64, usize) {
        let place = self.next_place();
        let head = self.write(place, fresh);
        let number = self.number(place);
        if let Some(order) = &mut self.order {
            order.append(number);
        }
        let Self { hot, key_words, per_word, cold, index, .. } = self;
        let rehash = |place| hash_key.hash(hot.get(place as usize + KEY, *key_words));
        let moved = |place, spot| cold[number_of(place, *per_word)].spot = spot;
        let spot = index.insert_absent(fresh.absent, place, rehash, moved);
        let cold = &mut cold[number];
        let Fresh { now: created_ns, id, next: (next, next_state), shard: creator, .. } = *fresh;
        let is_queued = cold.is_queued;
        *cold = Cold { created_ns, id, next, spot, creator, next_state, is_queued };
        // Where many entries have ended at a time, the next free place is in no cache any more.
        self.prefetch_whole(self.free);
        (place, head, number)
    }

    /// Writes an entry to a free place. Returns the entry's first word.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "`word` is below `LINE`")]
    fn write(&mut self, place: u32, fresh: &Fresh<'_>) -> u64 {
        if self.stride > LINE {
            // A copy, so that the original needs no memory on the other path.
            return self.write_long(place, &Fresh { ..*fresh });
        }
        let (slots_at, seen_at) = (self.slots_at, self.seen_at);
        let (line, at) = (place as usize / LINE, place as usize % LINE);
        // An entry lies within one cache line, so no further bounds checks are necessary.
        let word = |offset: usize| at.wrapping_add(offset) % LINE;
        let line = self.hot.line_mut(line);
        let (head, free) = begun(line[word(0)], place, fresh.root);
        line[word(0)] = head;
        for (number, part) in fresh.key.iter().enumerate() {
            line[word(KEY.wrapping_add(number))] = *part;
        }
        // The limit spares the compiler code for many slots.
        for (number, slot) in fresh.slots.iter().take(LINE).enumerate() {
            line[word(slots_at.wrapping_add(number))] = *slot;
        }
        if fresh.root.is_none() {
            line[word(seen_at)] = fresh.now;
        }
        self.free = free;
        head
    }

    /// As [`Table::write`], for entries that do not fit into a cache line.
    #[inline(never)]
    #[expect(clippy::indexing_slicing, reason = "an entry has `stride` words")]
    fn write_long(&mut self, place: u32, fresh: &Fresh<'_>) -> u64 {
        let entry = self.hot.get_mut(place as usize, self.stride);
        let (head, free) = begun(entry[0], place, fresh.root);
        entry[0] = head;
        entry[KEY..self.slots_at].copy_from_slice(fresh.key);
        entry[self.slots_at..self.seen_at].copy_from_slice(fresh.slots);
        if self.site.is_root {
            entry[self.seen_at] = fresh.now;
        }
        self.free = free;
        head
    }

    /// Starts to load all data of a place, if there is such a place.
    #[inline(always)]
    pub(crate) fn prefetch_whole(&self, place: u32) {
        self.prefetch(place);
        prefetch(self.cold.get(self.number(place)));
    }

    /// Starts to load what the end of an entry changes besides the entry. `number` is that of its
    /// place.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self, number: usize) {
        if let Some(cold) = self.cold.get(number) {
            self.index.prefetch_spot(cold.spot);
        }
    }

    /// Removes the entry at a place. `number` is the place's number, and `spot` is that of its cold
    /// data.
    #[inline(always)]
    pub(crate) fn remove(&mut self, (place, number): (u32, usize), spot: Spot, hash_key: &HashKey) {
        if let Some(order) = &mut self.order {
            order.remove(number);
        }
        if !self.index.remove_at(spot, place) {
            self.remove_by_key(place, hash_key);
        }
        let head = self.hot.word_mut(place as usize);
        *head = ended(*head, std::mem::replace(&mut self.free, place));
    }

    /// Removes the entry at a place from the index, wherever it is there.
    #[inline(never)]
    fn remove_by_key(&mut self, place: u32, hash_key: &HashKey) {
        let hash = hash_key.hash(self.key(place));
        self.index.remove(hash, place);
    }
}

/// The first word of a place whose entry had this first word. `free` is the next free place.
#[inline(always)]
fn ended(head: u64, free: u32) -> u64 {
    // The shift removes the carry out of the 32 bits of the generation.
    (head >> 32).wrapping_add(1) << 32 | u64::from(free)
}

/// The first word of a new entry at a place that has this first word, and the next free place.
#[inline(always)]
fn begun(free: u64, place: u32, root: Option<u32>) -> (u64, u32) {
    let generation = (free >> 32).wrapping_add(1);
    (generation << 32 | u64::from(root.unwrap_or(place)), root_in(free))
}
