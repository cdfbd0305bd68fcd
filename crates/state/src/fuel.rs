//! Bounds on slots that records count in: a condition on a counter that holds so long as no more than so much is
//! counted ("until 100 packets"). How much a record may still count follows from all its bounds, and is all that its packets are asked
//! for: the record's count of bytes begins as far below what it can count.
//!
//! What is left is worked out anew when a record can count no more, and after someone else has found the entry. Several
//! records may count in one slot: each gets a part of what is left.

use crate::bugs::RecordBug;
use crate::links::{Link, group};
use crate::records::Records;
use crate::shelf::Body;
use crate::store::{Handle, Store, TableRef};
use crate::table::NONE;
use crate::uses::{Change, Use};
use braid_ir::model::Word;

/// What packets with records have at least: an Ethernet and an IPv4 header.
const LEAST_BYTES: Word = 34;
/// Records with bounds on one group: those of a connection, rather than of all that a host sends. Whenever anyone else finds an
/// entry, each has to work out anew what is left.
const MOST_SHARERS: usize = 4;

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

/// What becomes of a record that cannot count a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refill {
    /// Now it can.
    Filled,
    /// It can count others, perhaps.
    Kept,
    /// It has ended: the packet leaves its bounds.
    Ended,
}

/// What each packet of a record adds to a slot.
#[derive(Clone, Copy)]
struct Added {
    packets: Word,
    bytes: Word,
}

impl Added {
    /// What a record adds to a slot that it counts in.
    fn of(one: &Use, slot: u32) -> Option<Self> {
        let update = one.updates.iter().find(|update| update.slot == slot)?;
        let Change::Add { packets, bytes, .. } = update.change else { return None };
        // Fewer packets would only add more.
        Some(Self { packets: Word::try_from(packets).unwrap_or(0), bytes: bytes.into() })
    }

    /// What packets of so many bytes in all add at most.
    fn by(self, bytes: u32) -> Word {
        let bytes = Word::from(bytes);
        self.bytes * bytes + self.packets * (bytes / LEAST_BYTES)
    }

    /// Bytes of packets that add no more than this.
    fn bytes(self, left: Word) -> u32 {
        let per_least = LEAST_BYTES * self.bytes + self.packets;
        let bytes = left.saturating_mul(LEAST_BYTES).checked_div(per_least);
        bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(u32::MAX)
    }
}

impl Use {
    /// The slot is bounded, beside what it is already.
    pub fn bound(&mut self, new: Bound) {
        match self.bounds.iter_mut().find(|bound| bound.slot == new.slot) {
            Some(bound) => {
                bound.least = bound.least.max(new.least);
                bound.most = bound.most.min(new.most);
            }
            None => self.bounds.push(new),
        }
    }

    /// Whether a slot that holds this in front of a packet of so many bytes stays within a bound.
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
    /// A record with what it has counted since that was given away last.
    pub(crate) fn counted(&self, number: u32) -> Body {
        let mut body = self.body(number).clone();
        if let Some(from) = self.fuel.get(&number) {
            body.bytes = body.bytes.wrapping_sub(*from);
        }
        body
    }

    /// What a record has counted was given away. What it may still count stays.
    pub(crate) fn count_anew(&mut self, number: u32) {
        let body = self.body_mut(number);
        body.packets = 0;
        let bytes = body.bytes;
        match self.fuel.get_mut(&number) {
            Some(from) => *from = bytes,
            None => self.body_mut(number).bytes = 0,
        }
    }

    /// A record with bounds, which has counted nothing, may count packets of so many bytes in all.
    pub(crate) fn fill(&mut self, number: u32, bytes: u32) {
        let from = u32::MAX - bytes;
        self.fuel.insert(number, from);
        self.body_mut(number).bytes = from;
    }

    /// What a record may still count is not known any more.
    pub(crate) fn drain(&mut self, number: u32) {
        if self.fuel.contains_key(&number) {
            self.fill(number, 0);
        }
    }

    /// The links of a record to entries with bounds.
    fn bounded(&self, number: u32) -> impl Iterator<Item = (Link, &Use)> {
        let links = self.links(number).filter(|link| link.how != NONE);
        let uses = links.filter_map(|link| Some((link, self.uses.all.get(link.how as usize)?)));
        uses.filter(|(_, one)| !one.bounds.is_empty())
    }
}

impl Store {
    /// Whether a record can have bounds on a slot that it counts in, beside those that are there.
    #[must_use]
    pub fn may_bound(&self, table: TableRef, entry: Handle, slot: u32) -> bool {
        let group = group(&self.tables, table, entry.place());
        let is_free = self.records.takes(group, &self.tables).may_bound(table, slot);
        is_free && self.records.on(group).len() < MOST_SHARERS
    }

    /// Lets a record that cannot count a packet of so many bytes count again, if it may.
    pub fn refill(&mut self, number: u32, bytes: u32) -> Refill {
        self.settle(number);
        if self.can_count(number, bytes) {
            return Refill::Filled;
        }
        self.each_beside(number, |store, record| store.settle(record));
        if self.would_leave(number, bytes) && !self.has_bug(RecordBug::FuelEndless) {
            self.end_record(number);
            return Refill::Ended;
        }
        let mut fuel = self.fuel(number, true);
        if fuel < bytes {
            // What others have got and not used is taken back.
            self.each_beside(number, |store, record| store.records.drain(record));
            fuel = self.fuel(number, false);
        }
        if self.has_bug(RecordBug::FuelEndless) {
            fuel = u32::MAX;
        }
        self.records.fill(number, fuel);
        if fuel < bytes { Refill::Kept } else { Refill::Filled }
    }

    /// Does something with each record that rests on the same groups as a record's bounds, also with itself.
    fn each_beside(&mut self, number: u32, does: impl Fn(&mut Self, u32)) {
        for link in 0.. {
            let Some((link, one)) = self.records.bounded(number).nth(link) else { break };
            let group = group(&self.tables, one.table, link.place);
            for at in 0..self.records.on(group).len() {
                does(self, self.records.on(group)[at]);
            }
        }
    }

    /// What a slot of an entry holds; nothing is to be added to it.
    fn slot_of(&self, one: &Use, link: Link, slot: u32) -> Word {
        let table = self.at(one.table);
        table.slots.get(table.slots(link.place), slot as usize)
    }

    /// Whether a packet of so many bytes leaves a record's bounds.
    fn would_leave(&self, number: u32, bytes: u32) -> bool {
        self.records.bounded(number).any(|(link, one)| {
            one.bounds.iter().any(|bound| {
                let value = self.slot_of(one, link, bound.slot);
                let mut bound = *bound;
                if self.has_bug(RecordBug::LeastForgotten) {
                    bound.least = 0;
                }
                !one.stays_within(bound, value, bytes)
            })
        })
    }

    /// How many bytes a record may count. No bound of another record on the same slot may be left by that either,
    /// as long as the other record may still count: it would not notice. If the record shares what is left with
    /// others, it gets a part.
    fn fuel(&self, number: u32, shares: bool) -> u32 {
        let bounded = self.records.bounded(number);
        let all = bounded.flat_map(|(link, one)| one.bounds.iter().map(move |at| (link, one, at)));
        let fuel = all.map(|(link, one, bound)| {
            let (mut most, mut granted, mut writers) = (bound.most, 0, 1);
            for (with, has) in self.others_on(number, link, one) {
                let Some(by) = Added::of(with, bound.slot) else { continue };
                writers += 1;
                if has == 0 || self.has_bug(RecordBug::FuelSpentTwice) {
                    continue;
                }
                granted += by.by(has);
                let theirs = with.bounds.iter().find(|theirs| theirs.slot == bound.slot);
                let theirs = theirs.filter(|_| !self.has_bug(RecordBug::OtherBoundsIgnored));
                most = theirs.map_or(most, |theirs| most.min(theirs.most));
            }
            let value = self.slot_of(one, link, bound.slot);
            let left = most.saturating_sub(value).saturating_sub(granted);
            let own = if shares { left / writers } else { left };
            Added::of(one, bound.slot).map_or(0, |by| by.bytes(own))
        });
        fuel.min().unwrap_or(0)
    }

    /// What other records with bounds do with an entry on which a record rests, and how many bytes each of them may
    /// still count.
    fn others_on(&self, number: u32, link: Link, one: &Use) -> impl Iterator<Item = (&Use, u32)> {
        let group = group(&self.tables, one.table, link.place);
        let entry = (one.table, link.place);
        let others = self.records.on(group).iter().copied().filter(move |other| *other != number);
        others.flat_map(move |other| {
            let links = self.records.bounded(other);
            let same = links.filter(move |(at, with)| (with.table, at.place) == entry);
            same.map(move |(_, with)| (with, u32::MAX - self.records.body(other).bytes))
        })
    }
}
