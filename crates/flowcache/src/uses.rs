//! Lists of the uses that records have of their entries. There are few lists, because records of
//! the same template use their entries in the same way.
#![expect(clippy::indexing_slicing, reason = "the arrays have an element for each kind of change")]

use crate::entry_use::{EntryUse, KINDS};
use crate::slab::NONE;
use braid_state::{Handle, TableRef, Tables};
use foldhash::HashMap;
use std::sync::Arc;

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
    pub(crate) fn list(&self, number: u32) -> Option<&Arc<UseList>> {
        self.lists.get(number as usize)
    }
}

/// The uses that records have of a group's slots, as bits. Several slots may share a bit
/// ([`bits`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Takes {
    /// Slots whose values the records depend on. Uses of ended records stay included until the
    /// group has no record any more.
    pub(crate) reads: u16,
    /// Slots in [`EntryUse::updates`].
    pub(crate) counts: u16,
    /// Slots that are read for each packet, and slots that are assigned for each packet.
    pub(crate) dynamic: u16,
    pub(crate) puts: u16,
    /// Slots in `counts` that have bounds, and slots in `counts` that have none.
    pub(crate) bounded: u16,
    pub(crate) free: u16,
    /// Slots in `counts`, by the kind of change (`Change::kind`). Changes of different kinds give
    /// another result in another order.
    kinds: [u16; KINDS],
}

impl Takes {
    pub(crate) fn of(one: &EntryUse) -> Self {
        let (counts, bounded) = (one.counts(), one.bounded());
        let slots = [one.reads, counts, one.dynamic, one.puts, bounded, counts & !bounded];
        let [reads, counts, dynamic, puts, bounded, free] =
            slots.map(|slots| bits(one.table, slots));
        let mut kinds = [0; KINDS];
        for update in &one.updates {
            kinds[update.change.kind()] |= bits(one.table, 1 << update.slot);
        }
        Self { reads, counts, dynamic, puts, bounded, free, kinds }
    }

    /// Whether records read or assign slots for each packet.
    pub(crate) fn computes(self) -> bool {
        self.dynamic | self.puts != 0
    }

    /// Whether these uses allow bounds on a slot.
    pub(crate) fn may_bound(self, table: TableRef, slot: u32) -> bool {
        (self.dynamic | self.puts) & bits(table, 1 << slot.min(63)) == 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads | other.reads,
            counts: self.counts | other.counts,
            dynamic: self.dynamic | other.dynamic,
            puts: self.puts | other.puts,
            bounded: self.bounded | other.bounded,
            free: self.free | other.free,
            kinds: std::array::from_fn(|kind| self.kinds[kind] | other.kinds[kind]),
        }
    }

    /// Whether records of both change a slot in different ways.
    pub(crate) fn mixes_kinds(self, other: Self) -> bool {
        let mixes = |kind| {
            let others = (0..KINDS).filter(|other| *other != kind);
            self.kinds[kind] & others.fold(0, |slots, kind| slots | other.kinds[kind]) != 0
        };
        (0..KINDS).any(mixes)
    }
}

/// Maps the slots of a table, as 64 bits, to 16 bits. The tables of a group get different
/// rotations, so that their slots rarely share a bit.
#[expect(clippy::cast_possible_truncation, reason = "the loop visits all four parts of 16 bits")]
pub(crate) fn bits(table: TableRef, slots: u64) -> u16 {
    let all = (0..4).fold(0, |all, part| all | (slots >> (16 * part)) as u16);
    all.rotate_left(table.to_bits() % 16)
}
