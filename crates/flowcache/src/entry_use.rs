//! Uses: how records use the entries that they depend on. A record may need a slot's value to stay
//! the same, or each of its packets may change a slot in the same way.
//!
//! Packets that take a record do not write to entries. The record counts packets and bytes, and
//! holds the time at which it was last taken. From these counts follow the contents of its entries
//! (SpeedyBox's state functions, §V-C, without cost per packet). The cache computes the contents
//! when they are needed: when a program finds the entry, when the entry ends, and when state is
//! reported.

use crate::entry_links::Takes;
use crate::slab::{Hot, NONE};
use braid_ir::model::Word;
use braid_state::{Handle, SlotShape, TableRef, Tables};
use foldhash::HashMap;
use std::sync::Arc;

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

/// All uses, by number. There are few, because records of the same template have the same uses.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) all: Vec<EntryUse>,
    numbers: HashMap<EntryUse, u32>,
    /// For each use: the table of the roots of its entries' groups.
    pub(crate) roots: Vec<u32>,
    /// By table: the number of the use that was asked for last.
    latest: Vec<u32>,
    /// The lists of uses that records have.
    lists: Vec<Arc<UseList>>,
    list_numbers: HashMap<Arc<[u32]>, u32>,
}

/// A list of the uses that a record has of the entries that it depends on.
#[derive(Debug)]
pub(crate) struct UseList {
    /// The numbers of the uses, one for each link. [`NONE`] stands for an entry that must be
    /// absent.
    pub(crate) numbers: Arc<[u32]>,
    /// The uses of entries that must be there, which come first.
    pub(crate) all: Box<[Used]>,
    /// Whether any slot has bounds, and whether the record's packets change any slot.
    pub(crate) is_bounded: bool,
    pub(crate) updates: bool,
}

/// What the maker of a record needs of a use.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) table: TableRef,
    pub(crate) takes: Takes,
}

impl Uses {
    /// Removes all uses, because there are no records.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The number of a use, which is added if it is new. `root` is the table with the roots of the
    /// entries' groups.
    #[expect(clippy::indexing_slicing, reason = "`latest` is made long enough for the table")]
    #[expect(clippy::cast_possible_truncation, reason = "there are fewer uses than 2^32")]
    pub(crate) fn number(&mut self, one: &EntryUse, root: u32) -> u32 {
        let table = one.table.index();
        if self.latest.len() <= table {
            self.latest.resize(table + 1, NONE);
        }
        let latest = self.latest[table];
        if self.all.get(latest as usize) == Some(one) {
            return latest;
        }
        let known = self.numbers.get(one).copied();
        let number = known.unwrap_or_else(|| {
            self.numbers.insert(one.clone(), self.all.len() as u32);
            self.all.push(one.clone());
            self.roots.push(root);
            (self.all.len() - 1) as u32
        });
        self.latest[table] = number;
        number
    }

    /// The number of a list of uses, which is added if it is new. `absent` is the number of entries
    /// that must be absent.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer tables and lists than 2^32"
    )]
    pub(crate) fn number_of(
        &mut self,
        tables: &mut Tables,
        uses: &[(Handle, EntryUse)],
        absent: usize,
    ) -> u32 {
        let mut numbers = Vec::with_capacity(uses.len() + absent);
        for (_, one) in uses {
            numbers.push(self.number(one, tables.root(one.table) as u32));
            if !one.updates.is_empty() {
                tables.set_lazy(one.table);
            }
        }
        numbers.resize(uses.len() + absent, NONE);
        if let Some(known) = self.list_numbers.get(&*numbers) {
            return *known;
        }
        let number = self.lists.len() as u32;
        let numbers = Arc::<[u32]>::from(numbers);
        let used = |(_, one): &(Handle, EntryUse)| Used { table: one.table, takes: Takes::of(one) };
        let is_bounded = uses.iter().any(|(_, one)| !one.bounds.is_empty());
        let updates = uses.iter().any(|(_, one)| !one.updates.is_empty());
        let all = uses.iter().map(used).collect();
        let list = UseList { numbers: numbers.clone(), all, is_bounded, updates };
        self.lists.push(Arc::new(list));
        self.list_numbers.insert(numbers, number);
        number
    }

    /// The list with this number.
    #[expect(clippy::indexing_slicing, reason = "numbers come from `number_of`")]
    pub(crate) fn list(&self, number: u32) -> &Arc<UseList> {
        &self.lists[number as usize]
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
