//! What records do with the entries that they rest on: slots that they take for granted, and slots that each of
//! their packets changes in the same way.
//!
//! Such changes are not made packet by packet. A record counts packets and bytes and knows when it was last
//! taken; what its entries hold follows from that (SpeedyBox's state functions, §V-C, at no cost), and is worked out
//! when anyone else looks: when a program finds an entry, when it ends, when state is shown.

use crate::slab::{Hot, NONE};
use braid_ir::model::Word;
use braid_state::{SlotShape, TableRef};
use std::collections::HashMap;
use std::sync::Arc;

/// Records that may change one group of entries. All of them are asked whenever the group is found.
pub(crate) const MOST_WRITERS: usize = 8;

/// What a record does with an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EntryUse {
    /// The entry's table.
    pub table: TableRef,
    /// Slots that it takes for granted, as bits.
    pub reads: u64,
    /// Slots that are read for each packet.
    pub dynamic: u64,
    /// Slots that are assigned for each packet.
    pub puts: u64,
    /// Slots that each of its packets changes in a way that adds up: none of the others, each once.
    pub updates: Vec<Update>,
    /// Bounds of such slots: one for each.
    pub bounds: Vec<Bound>,
}

/// What a slot that a record counts in holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bound {
    /// The slot; below 64.
    pub slot: u32,
    /// What it holds in front of each packet at least.
    pub least: Word,
    /// What it holds behind it at most.
    pub most: Word,
}

/// A slot that each packet changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Update {
    /// The slot; below 64.
    pub slot: u32,
    /// How.
    pub change: Change,
}

/// How packets change a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// Each adds this much, and `bytes` times its bytes on the wire: in all no less than 0.
    Add {
        /// For each packet.
        packets: i64,
        /// For each byte.
        bytes: u32,
        /// Whether it goes round behind the largest value, where it else stops.
        wraps: bool,
    },
    /// It is the time of the last one. (It was not later than that when the record was made.)
    Time,
}

impl EntryUse {
    /// Nothing, with an entry of this table.
    #[must_use]
    pub fn of(table: TableRef) -> Self {
        Self { table, reads: 0, dynamic: 0, puts: 0, updates: Vec::new(), bounds: Vec::new() }
    }

    /// Nothing is done with the entry.
    pub fn clear(&mut self) {
        (self.reads, self.dynamic, self.puts) = (0, 0, 0);
        self.updates.clear();
        self.bounds.clear();
    }

    /// A slot is taken for granted.
    pub fn read(&mut self, slot: u32) {
        self.reads |= 1 << slot.min(63);
    }

    /// Whether no slot that changes is taken for granted.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.reads & (self.counts() | self.puts) == 0
    }

    /// Slots that count, as bits.
    #[must_use]
    pub fn counts(&self) -> u64 {
        self.updates.iter().fold(0, |slots, update| slots | 1 << update.slot)
    }

    /// Whether a slot becomes the time.
    pub(crate) fn is_time(&self, slot: usize) -> bool {
        let time = |one: &Update| one.slot as usize == slot && one.change == Change::Time;
        self.updates.iter().any(time)
    }
}

/// Uses by number. There are few: records of a template have the same ones.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) all: Vec<EntryUse>,
    numbers: HashMap<EntryUse, u32>,
    /// The table of the roots of the groups of each one's entries.
    pub(crate) roots: Vec<u32>,
    /// By table: the one that was asked for last.
    latest: Vec<u32>,
    /// What records do with all their entries: numbers of uses, [`NONE`] for entries that must not be there.
    lists: Vec<Arc<[u32]>>,
    list_numbers: HashMap<Arc<[u32]>, u32>,
    latest_list: u32,
    /// The list that is asked for.
    wanted: Vec<u32>,
}

impl Uses {
    /// Forgets all uses: there are no records.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The number of a use of entries of groups whose roots are in this table.
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

    /// The number of a list.
    pub(crate) fn list(&mut self, all: impl Iterator<Item = u32>) -> u32 {
        self.wanted.clear();
        self.wanted.extend(all);
        if self.listed(self.latest_list) != self.wanted {
            let known = self.list_numbers.get(&*self.wanted).copied();
            self.latest_list = known.unwrap_or_else(|| {
                let (list, number) = (Arc::<[u32]>::from(&*self.wanted), self.lists.len() as u32);
                self.lists.push(list.clone());
                self.list_numbers.insert(list, number);
                number
            });
        }
        self.latest_list
    }

    /// The list with this number; the empty one if there is none.
    pub(crate) fn listed(&self, number: u32) -> &[u32] {
        self.lists.get(number as usize).map_or(&[], |list| list)
    }
}

impl Change {
    /// What a slot holds after the packets that a record has counted.
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

/// An entry's slots after what a record has counted.
pub(crate) fn apply(one: &EntryUse, record: &Hot, shape: &SlotShape, words: &mut [u64]) {
    for Update { slot, change } in &one.updates {
        let slot = *slot as usize;
        shape.put(words, slot, change.after(shape.get(words, slot), shape.most(slot), record));
    }
}
