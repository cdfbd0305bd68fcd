//! Bounds on slots in which records count. A condition on a counter ("until 100 packets") holds
//! until a certain amount has been counted. A record's *fuel* is the number of bytes that it may
//! still count before one of its bounds could be violated. The byte counter of the record starts at
//! its maximum minus the fuel, so a packet tests only whether the counter would overflow.
//!
//! The fuel is computed again when a record has used it up, and after a program has found the
//! entry. If several records count in one slot, each gets a share of the remaining amount.

use crate::entry_links::Link;
use crate::entry_use::{Bound, Change, EntryUse};
use crate::mutants::RecordMutant;
use crate::records::Records;
use crate::slab::NONE;
use braid_ir::model::Word;
use braid_state::{Handle, TableRef, Tables};

/// The least number of bytes of a packet with a record: an Ethernet and an IPv4 header. It limits
/// how many packets fit into an amount of fuel.
const LEAST_BYTES: Word = 34;
/// The largest number of records with bounds on one group of entries. It suffices for the records
/// of a connection, but not for those of a host. When a program finds the entry, all these records
/// must compute their fuel again.
const MOST_SHARERS: usize = 4;

/// The result of an attempt to give a record new fuel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refill {
    /// The record can count the packet now.
    Filled,
    /// The record has no fuel for this packet, but it may have fuel for others.
    Kept,
    /// The record has ended, because the packet leaves its bounds.
    Ended,
}

/// The amounts that each packet of a record adds to a slot: a constant, and one per byte.
#[derive(Clone, Copy)]
struct Added {
    packets: Word,
    bytes: Word,
}

impl Added {
    /// The amounts that a record adds to a slot. `None` if the record does not count in it.
    fn of(one: &EntryUse, slot: u32) -> Option<Self> {
        let update = one.updates.iter().find(|update| update.slot == slot)?;
        let Change::Add { packets, bytes, .. } = update.change else { return None };
        // A negative amount per packet is taken as 0: with fewer packets for the same bytes, the
        // slot grows more.
        Some(Self { packets: Word::try_from(packets).unwrap_or(0), bytes: bytes.into() })
    }

    /// The most that packets with `bytes` bytes in total can add.
    fn by(self, bytes: u32) -> Word {
        let bytes = Word::from(bytes);
        self.bytes * bytes + self.packets * (bytes / LEAST_BYTES)
    }

    /// The largest total number of bytes whose packets surely add no more than `left`.
    fn bytes(self, left: Word) -> u32 {
        let per_least = LEAST_BYTES * self.bytes + self.packets;
        let bytes = left.saturating_mul(LEAST_BYTES).checked_div(per_least);
        bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(u32::MAX)
    }
}

impl EntryUse {
    /// Adds a bound on a slot. An existing bound on the slot is narrowed.
    pub fn bound(&mut self, new: Bound) {
        match self.bounds.iter_mut().find(|bound| bound.slot == new.slot) {
            Some(bound) => {
                bound.least = bound.least.max(new.least);
                bound.most = bound.most.min(new.most);
            }
            None => self.bounds.push(new),
        }
    }

    /// Whether a slot stays within a bound when a packet of `bytes` bytes is counted. The slot
    /// holds `value` before the packet.
    #[must_use]
    pub fn stays_within(&self, bound: Bound, value: Word, bytes: u32) -> bool {
        let added = Added::of(self, bound.slot);
        let more = added.map_or(0, |by| by.bytes * Word::from(bytes) + by.packets);
        bound.least <= value && value.saturating_add(more) <= bound.most
    }

    /// Slots with bounds, as bits.
    pub(crate) fn bounded(&self) -> u64 {
        self.bounds.iter().fold(0, |slots, bound| slots | 1 << bound.slot)
    }
}

impl Records {
    /// The links of a record to entries with bounds.
    fn bounded(&self, number: u32) -> impl Iterator<Item = (Link, &EntryUse)> {
        let links = self.links(number).filter(|link| link.how != NONE);
        let uses = links.filter_map(|link| Some((link, self.use_of(link)?)));
        uses.filter(|(_, one)| !one.bounds.is_empty())
    }

    /// Whether a new record can have bounds on a slot in which it counts, in view of the uses that
    /// other records have of the slot.
    #[must_use]
    pub fn may_bound(
        &self,
        tables: &Tables,
        (table, entry): (TableRef, Handle),
        slot: u32,
    ) -> bool {
        let group = tables.group(table, entry.place());
        let is_free = self.takes(group, tables).may_bound(table, slot);
        is_free && self.on(group).len() < MOST_SHARERS
    }

    /// Gives new fuel to a record that cannot count a packet of `bytes` bytes, if its bounds allow
    /// that. Otherwise ends the record if the packet violates a bound.
    pub fn refill(&mut self, tables: &mut Tables, number: u32, bytes: u32) -> Refill {
        self.settle(tables, number);
        if self.can_count(number, bytes) {
            return Refill::Filled;
        }
        self.each_beside(tables, number, |records, tables, record| records.settle(tables, record));
        if self.would_leave(tables, number, bytes) && !self.has_mutant(RecordMutant::FuelEndless) {
            self.end(tables, number);
            return Refill::Ended;
        }
        let mut fuel = self.fuel(tables, number, true);
        if fuel < bytes {
            // Takes back the unused fuel of other records.
            self.each_beside(tables, number, |records, _, record| records.drain(record));
            fuel = self.fuel(tables, number, false);
        }
        if self.has_mutant(RecordMutant::FuelEndless) {
            fuel = u32::MAX;
        }
        self.fill(number, fuel);
        if fuel < bytes { Refill::Kept } else { Refill::Filled }
    }

    /// Calls `does` for each record on the groups on which record `number` has bounds, including
    /// record `number` itself.
    #[expect(
        clippy::indexing_slicing,
        reason = "no caller's `does` changes the list of records on a group"
    )]
    fn each_beside(
        &mut self,
        tables: &mut Tables,
        number: u32,
        does: impl Fn(&mut Self, &mut Tables, u32),
    ) {
        for link in 0.. {
            let Some((link, one)) = self.bounded(number).nth(link) else { break };
            let group = tables.group(one.table, link.place);
            for at in 0..self.on(group).len() {
                does(self, tables, self.on(group)[at]);
            }
        }
    }

    /// Whether a packet of `bytes` bytes violates a bound of the record.
    fn would_leave(&self, tables: &Tables, number: u32, bytes: u32) -> bool {
        self.bounded(number).any(|(link, one)| {
            one.bounds.iter().any(|bound| {
                let value = tables.slot(one.table, link.place, bound.slot as usize);
                let mut bound = *bound;
                if self.has_mutant(RecordMutant::LeastForgotten) {
                    bound.least = 0;
                }
                !one.stays_within(bound, value, bytes)
            })
        })
    }

    /// The number of bytes that a record may count. The record must also respect the bounds of
    /// other records on the same slot that still have fuel, because these records do not notice
    /// what this record counts. With `shares`, the record gets an equal share of the remaining
    /// amount.
    fn fuel(&self, tables: &Tables, number: u32, shares: bool) -> u32 {
        let bounded = self.bounded(number);
        let all = bounded.flat_map(|(link, one)| one.bounds.iter().map(move |at| (link, one, at)));
        let fuel = all.map(|(link, one, bound)| {
            let (mut most, mut granted, mut writers) = (bound.most, 0, 1);
            for (with, has) in self.others_on(tables, number, link, one) {
                let Some(by) = Added::of(with, bound.slot) else { continue };
                writers += 1;
                if has == 0 || self.has_mutant(RecordMutant::FuelSpentTwice) {
                    continue;
                }
                granted += by.by(has);
                let theirs = with.bounds.iter().find(|theirs| theirs.slot == bound.slot);
                let theirs = theirs.filter(|_| !self.has_mutant(RecordMutant::OtherBoundsIgnored));
                most = theirs.map_or(most, |theirs| most.min(theirs.most));
            }
            let value = tables.slot(one.table, link.place, bound.slot as usize);
            let left = most.saturating_sub(value).saturating_sub(granted);
            let own = if shares { left / writers } else { left };
            Added::of(one, bound.slot).map_or(0, |by| by.bytes(own))
        });
        fuel.min().unwrap_or(0)
    }

    /// The uses that other records with bounds have of the entry of a link, each with the record's
    /// remaining fuel in bytes.
    fn others_on(
        &self,
        tables: &Tables,
        number: u32,
        link: Link,
        one: &EntryUse,
    ) -> impl Iterator<Item = (&EntryUse, u32)> {
        let group = tables.group(one.table, link.place);
        let entry = (one.table, link.place);
        let others = self.on(group).iter().copied().filter(move |other| *other != number);
        others.flat_map(move |other| {
            let links = self.bounded(other);
            let same = links.filter(move |(at, with)| (with.table, at.place) == entry);
            same.map(move |(_, with)| (with, u32::MAX - self.hot(other).bytes))
        })
    }
}
