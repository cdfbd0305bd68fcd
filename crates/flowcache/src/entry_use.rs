//! Uses: how records use the entries that they depend on. A record may need a slot's value to stay
//! the same, or each of its packets may change a slot in the same way.
//!
//! Packets that take a record do not write to entries. The record counts packets and bytes, and
//! holds the time at which it was last taken. From these counts follow the contents of its entries
//! (SpeedyBox's state functions, §V-C, without cost per packet). The cache computes the contents
//! when they are needed: when a program finds the entry, when the entry ends, and when state is
//! reported.

use crate::slab::Hot;
use braid_ir::model::Word;
use braid_state::{SlotShape, TableRef};

/// The largest number of records that may change one group of entries. When a program finds an
/// entry of the group, the cache asks all of these records.
pub(crate) const MOST_WRITERS: usize = 8;

/// How a record uses an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EntryUse {
    /// The entry's table.
    pub table: TableRef,
    /// Slots whose values the record depends on, as bits.
    pub reads: u64,
    /// Slots that the record reads for each packet, as bits.
    pub dynamic: u64,
    /// Slots that the record assigns for each packet, as bits.
    pub puts: u64,
    /// Counting slots and slots that hold the time of the last packet, each once. None of them is
    /// in the sets above.
    pub updates: Vec<Update>,
    /// The bounds of the counting slots, at most one for each slot.
    pub bounds: Vec<Bound>,
}

/// The bounds of a counting slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The slot; below 64.
    pub slot: u32,
    /// The least value that the slot may have before a packet.
    pub least: Word,
    /// The largest value that the slot may have after a packet.
    pub most: Word,
}

/// A slot that each packet changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Update {
    /// The slot; below 64.
    pub slot: u32,
    /// How each packet changes the slot.
    pub change: Change,
}

/// How packets change a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// Each packet adds `packets` plus `bytes` times its bytes on the wire. The sum is never below
    /// 0.
    Add {
        /// The amount for each packet.
        packets: i64,
        /// The amount for each byte.
        bytes: u32,
        /// Whether the slot wraps at its width. Otherwise it saturates.
        wraps: bool,
    },
    /// The slot holds the time of the last packet. When the record was made, the slot held no later
    /// time.
    Time,
}

impl EntryUse {
    /// An empty use of an entry of this table.
    #[must_use]
    pub fn of(table: TableRef) -> Self {
        Self { table, reads: 0, dynamic: 0, puts: 0, updates: Vec::new(), bounds: Vec::new() }
    }

    /// Makes the use empty.
    pub fn clear(&mut self) {
        (self.reads, self.dynamic, self.puts) = (0, 0, 0);
        self.updates.clear();
        self.bounds.clear();
    }

    /// Adds a slot whose value the record depends on.
    pub fn read(&mut self, slot: u32) {
        self.reads |= 1 << slot.min(63);
    }

    /// Whether the record changes none of the slots whose values it depends on.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.reads & (self.counts() | self.puts) == 0
    }

    /// The slots in `updates`, as bits.
    #[must_use]
    pub fn counts(&self) -> u64 {
        self.updates.iter().fold(0, |slots, update| slots | 1 << update.slot)
    }

    /// Whether packets assign the time to a slot.
    pub(crate) fn is_time(&self, slot: usize) -> bool {
        let time = |one: &Update| one.slot as usize == slot && one.change == Change::Time;
        self.updates.iter().any(time)
    }
}

/// The number of kinds of changes.
pub(crate) const KINDS: usize = 3;

impl Change {
    /// The kind of the change, below [`KINDS`]. Changes of one kind give the same result in any
    /// order.
    pub(crate) fn kind(self) -> usize {
        match self {
            Change::Time => 0,
            Change::Add { wraps: false, .. } => 1,
            Change::Add { wraps: true, .. } => 2,
        }
    }

    /// The content of a slot after the packets that a record has counted. `old` is the content
    /// before them, and `most` is the slot's largest value.
    fn after(self, old: Word, most: Word, record: &Hot) -> Word {
        match self {
            Change::Time => old.max(Word::from(record.seen)),
            Change::Add { packets, bytes, wraps } => {
                let packets = i128::from(packets) * i128::from(record.packets);
                let more = Word::from(bytes) * Word::from(record.bytes);
                let more = more.saturating_add_signed(packets);
                if wraps {
                    old.wrapping_add(more) & most
                } else {
                    old.saturating_add(more).min(most)
                }
            }
        }
    }
}

/// Adds the effects of a record's counted packets to an entry's slots.
pub(crate) fn apply(one: &EntryUse, record: &Hot, shape: &SlotShape, words: &mut [u64]) {
    for Update { slot, change } in &one.updates {
        let slot = *slot as usize;
        shape.put(words, slot, change.after(shape.get(words, slot), shape.most(slot), record));
    }
}
