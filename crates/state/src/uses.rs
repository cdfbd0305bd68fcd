//! What records do with the entries that they rest on: slots that they take for granted, and slots that each of
//! their packets changes in the same way.
//!
//! Such changes are not made packet by packet. A record counts packets and bytes and knows when it was last
//! taken; what its entries hold follows from that (SpeedyBox's state functions, §V-C, at no cost), and is worked out
//! when anyone else looks: when a program finds an entry, when it ends, when state is shown.

use crate::bugs::RecordBug;
use crate::fuel::Bound;
use crate::records::Records;
use crate::shape::SlotShape;
use crate::shelf::Body;
use crate::store::{Store, TableRef};
use crate::table::NONE;
use braid_ir::model::Word;
use std::collections::HashMap;
use std::sync::Arc;

/// Records that may change one group of entries. All of them are asked whenever the group is found.
pub(crate) const MOST_WRITERS: usize = 8;

/// What a record does with an entry.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Use {
    /// The entry's table.
    pub table: TableRef,
    /// Slots that it takes for granted, as bits.
    pub reads: u64,
    /// Slots that are read for each packet.
    pub live: u64,
    /// Slots that are assigned for each packet.
    pub puts: u64,
    /// Slots that each of its packets changes in a way that adds up: none of the others, each once.
    pub updates: Vec<Update>,
    /// Bounds of such slots: one for each.
    pub bounds: Vec<Bound>,
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

impl Use {
    /// Nothing, with an entry of this table.
    #[must_use]
    pub fn of(table: TableRef) -> Self {
        Self { table, reads: 0, live: 0, puts: 0, updates: Vec::new(), bounds: Vec::new() }
    }

    /// Nothing is done with the entry.
    pub fn clear(&mut self) {
        (self.reads, self.live, self.puts) = (0, 0, 0);
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

/// Uses by number. There are few: records of a class have the same ones.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) all: Vec<Use>,
    numbers: HashMap<Use, u32>,
    /// The table of the roots of the groups of each one's entries.
    pub(crate) roots: Vec<u32>,
    /// By table: the one that was asked for last.
    latest: Vec<u32>,
    /// What records do with all that they rest on: numbers of uses, [`NONE`] for entries that must not be there.
    lists: Vec<Arc<[u32]>>,
    list_numbers: HashMap<Arc<[u32]>, u32>,
    latest_list: u32,
    /// The list that is asked for.
    wanted: Vec<u32>,
}

impl Uses {
    /// The number of a use of entries of groups whose roots are in this table.
    pub(crate) fn number(&mut self, one: &Use, root: u32) -> u32 {
        let table = one.table.0 as usize;
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
    fn after(self, old: Word, most: Word, record: &Body) -> Word {
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
fn apply(one: &Use, record: &Body, shape: &SlotShape, words: &mut [u64]) {
    for Update { slot, change } in &one.updates {
        let slot = *slot as usize;
        shape.put(words, slot, change.after(shape.get(words, slot), shape.most(slot), record));
    }
}

impl Records {
    /// The table and place of an entry that a record rests on; the last one has the number 0.
    fn entry(&self, record: u32, number: usize) -> Option<(usize, u32)> {
        let link = self.links(record).rev().filter(|link| link.how != NONE).nth(number)?;
        Some((self.uses.all.get(link.how as usize)?.table.0 as usize, link.place))
    }

    /// Makes an entry's slots what they are now.
    pub(crate) fn bring_up(
        &self,
        (table, place): (usize, u32),
        root: (usize, usize),
        shape: &SlotShape,
        words: &mut [u64],
    ) {
        for number in self.on(root) {
            let record = &self.counted(*number);
            let links = self.links(*number).filter(|link| link.place == place);
            let uses = links.filter_map(|link| self.uses.all.get(link.how as usize));
            for one in uses.filter(|one| one.table.0 as usize == table && record.packets > 0) {
                apply(one, record, shape, words);
            }
        }
    }
}

impl Store {
    /// What a record has counted is added to what its class counts, and made of its entries.
    pub(crate) fn settle(&mut self, number: u32) {
        let loses = self.has_bug(RecordBug::CountsLost);
        let record = self.records.counted(number);
        if record.packets == 0 {
            return;
        }
        if !loses {
            self.records.classes.count(record.class, record.packets, record.bytes);
        }
        self.records.totals.add(number, record.packets, record.bytes);
        for link in self.records.links(number) {
            let one = self.records.uses.all.get(link.how as usize);
            if let Some(one) = one.filter(|one| !one.updates.is_empty()) {
                let (shape, words) = self.tables[one.table.0 as usize].slots_of(link.place);
                apply(one, &record, shape, words);
            }
        }
        self.records.count_anew(number);
    }

    /// What a slot holds, of an entry that a record rests on: the last one has the number 0.
    #[must_use]
    pub fn record_slot(&self, record: u32, entry: usize, slot: usize) -> Word {
        let Some((table, place)) = self.records.entry(record, entry) else { return 0 };
        let table = &self.tables[table];
        table.slots.get(table.slots(place), slot)
    }

    /// Assigns a slot of an entry that a record rests on.
    pub fn put_record_slot(&mut self, record: u32, entry: usize, slot: usize, value: Word) {
        let Some((table, place)) = self.records.entry(record, entry) else { return };
        self.tables[table].put(place, slot, value);
    }

    /// An entry is found in a table with slots that records change: they are brought up to now.
    #[inline(never)]
    pub(crate) fn settle_found(&mut self, table: usize, head: u64) {
        let root = self.tables[table].site.root;
        let number = self.tables[root].number(head as u32);
        let group = (root, number);
        let takes = self.records.takes(group, &self.tables);
        if takes.counts == 0 || self.has_bug(RecordBug::CountersUnsettled) {
            return;
        }
        for at in 0..self.records.on(group).len() {
            let record = self.records.on(group)[at];
            self.settle(record);
            if !self.has_bug(RecordBug::FuelKept) {
                self.records.drain(record);
            }
        }
    }
}
