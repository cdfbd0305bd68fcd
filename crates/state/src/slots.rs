//! The places of a table by the slot of time in which they are due.
//!
//! The places of a slot lie in chunks of a cache line. So the memory of many entries can be loaded
//! at a time when the slot is opened.
#![expect(
    clippy::indexing_slicing,
    reason = "slots are counted modulo `SLOTS`, and heads and links name chunks"
)]

use crate::memory::{NONE, make_room};

/// The number of slots.
pub(crate) const SLOTS: usize = 2048;

/// The number of places in a full chunk.
const FULL: u32 = 15;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Chunk {
    numbers: [u32; FULL as usize],
    /// The next chunk of the slot, or of the unused chunks.
    next: u32,
}

/// The places of a slot: the first chunk or [`NONE`], and the number of its places. All other
/// chunks are full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    chunk: u32,
    len: u32,
}

const EMPTY: Slot = Slot { chunk: NONE, len: 0 };

/// All slots. A place is known by its number.
#[derive(Debug)]
pub(crate) struct Slots {
    all: Box<[Slot; SLOTS]>,
    chunks: Vec<Chunk>,
    /// The first unused chunk, or [`NONE`].
    unused: u32,
}

/// Some places of a slot.
pub(crate) struct Places {
    numbers: [u32; FULL as usize],
    len: usize,
}

impl Places {
    /// The places in the order in which they came.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[u32] {
        self.numbers.get(..self.len).unwrap_or_default()
    }
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self { all: Box::new([EMPTY; SLOTS]), chunks: Vec::new(), unused: NONE }
    }

    /// Adds a place to a slot.
    #[inline(always)]
    pub(crate) fn add(&mut self, slot: usize, number: u32) {
        let Slot { chunk, len } = self.all[slot];
        if chunk == NONE || len == FULL {
            return self.add_chunk(slot, number);
        }
        self.chunks[chunk as usize].numbers[len as usize] = number;
        self.all[slot].len = len.wrapping_add(1);
    }

    /// Adds a place to a slot that is empty, or whose first chunk is full.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer chunks than places")]
    fn add_chunk(&mut self, slot: usize, number: u32) {
        let mut chunk = Chunk { numbers: [0; FULL as usize], next: self.all[slot].chunk };
        chunk.numbers[0] = number;
        let at = match self.unused {
            NONE => {
                make_room(&mut self.chunks, 1);
                self.chunks.push(chunk);
                self.chunks.len() as u32 - 1
            }
            at => {
                let old = std::mem::replace(&mut self.chunks[at as usize], chunk);
                self.unused = old.next;
                at
            }
        };
        self.all[slot] = Slot { chunk: at, len: 1 };
    }

    /// Empties a slot. [`Slots::pop`] gives its places.
    pub(crate) fn take(&mut self, slot: usize) -> Slot {
        std::mem::replace(&mut self.all[slot], EMPTY)
    }

    /// Takes some places out of a slot that was taken. `None` if there are no more.
    pub(crate) fn pop(&mut self, slot: &mut Slot) -> Option<Places> {
        let Slot { chunk: at, len } = *slot;
        let chunk = self.chunks.get_mut(at as usize)?;
        let places = Places { numbers: chunk.numbers, len: len as usize };
        *slot = Slot { chunk: chunk.next, len: FULL };
        chunk.next = std::mem::replace(&mut self.unused, at);
        Some(places)
    }

    /// Removes all places.
    pub(crate) fn clear(&mut self) {
        self.all.fill(EMPTY);
        self.chunks.clear();
        self.unused = NONE;
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.all) + size_of_val(&*self.chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL, SLOTS, Slots};

    fn taken(slots: &mut Slots, slot: usize) -> Vec<u32> {
        let mut all = Vec::new();
        let mut slot = slots.take(slot);
        while let Some(places) = slots.pop(&mut slot) {
            all.extend(places.all());
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn slots_give_back_their_places_and_use_chunks_again() {
        let mut slots = Slots::new();
        let ends = [0, 7, SLOTS - 1];
        for round in 0..50 {
            let counts = [round, 3 * FULL, FULL + 1];
            for (at, (slot, count)) in (0_u32..).zip(ends.into_iter().zip(counts)) {
                (0..count).for_each(|number| slots.add(slot, 1000 * at + number));
            }
            for (at, (slot, count)) in (0_u32..).zip(ends.into_iter().zip(counts)) {
                let expected: Vec<u32> = (0..count).map(|number| 1000 * at + number).collect();
                assert_eq!(taken(&mut slots, slot), expected);
                assert_eq!(taken(&mut slots, slot), []);
            }
        }
        // 49 places need 4 chunks, 45 need 3, and 16 need 2.
        assert_eq!(slots.chunks.len(), 9);
    }
}
