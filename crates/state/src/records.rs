//! Flow records: what becomes of a flow's packets, found by the flow's key, as long as the state that it
//! rests on stays as it is (SpeedyBox's global table, §V-A, over the state of all functions).
//!
//! A record rests on entries: on their being there, and on what is in slots of theirs; and on others not being there
//! ([`crate::absent`]). When one of them ends or such a slot is assigned to, so does the record. In return, a packet
//! that takes a record need not renew those entries: they are as lately seen as the records that rest on them, which is
//! looked up when their time would be over. Nor does it count in them ([`crate::uses`]).
//!
//! What a record says is not this crate's business: it keeps the words.

use crate::absent::{Absences, Keys};
use crate::bugs::RecordBug;
use crate::classes::Classes;
use crate::links::{CROWD, Group, Heads, Link, Links, Takes, bits, group};
use crate::listing::Totals;
use crate::shelf::{Body, IS_WIDE, NARROW, Record, Shelf, WIDE};
use crate::store::{Handle, Store, TableRef};
use crate::table::NONE;
use crate::uses::{Use, Uses};
use braid_ir::model::Word;
use std::collections::HashMap;
use std::hint::black_box;

/// Records of a table that stays in the processor's caches without any help.
const MANY: usize = 4096;

/// How long a record must not have been taken to make room for another (ns).
const STALE_NS: u64 = 1_000_000_000;

/// A new record; see [`Record`].
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a, const K: usize, const W: usize> {
    /// Its flow.
    pub key: [u64; K],
    /// That key's [`Store::record_hash`].
    pub hash: u64,
    /// For which packets it is, beside the key.
    pub kind: u32,
    /// What is to be done.
    pub class: u32,
    /// What is written over the packet.
    pub head: [u64; W],
    /// What is added to its checksums.
    pub sums: [u16; 2],
    /// The time (ns).
    pub now: u64,
    /// Entries that it rests on: each once.
    pub rests_on: &'a [(Handle, Use)],
    /// Packed keys of which there must not be an entry.
    pub absent: &'a Keys,
}

impl<'a, const K: usize, const W: usize> NewRecord<'a, K, W> {
    /// The same as a record of another size.
    #[must_use]
    pub fn with<const L: usize, const V: usize>(
        &self,
        key: [u64; L],
        head: [u64; V],
    ) -> NewRecord<'a, L, V> {
        let NewRecord { hash, kind, class, sums, now, rests_on, absent, .. } = *self;
        NewRecord { key, hash, kind, class, head, sums, now, rests_on, absent }
    }
}

/// What has become of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCounters {
    /// Made.
    pub made: u64,
    /// Ended, since what they rested on changed.
    pub ended: u64,
    /// Ended of those, since they were outdated, or nobody had taken them for a second, when another one needed their
    /// room.
    pub replaced: u64,
    /// Not made, since there were too many, or they rest on too many entries not being there.
    pub refused: u64,
    /// Not made, since other records look at what this one would change, or the other way round, or too many
    /// change it.
    pub contended: u64,
}

/// The records of a chain. Their numbers are places on their shelves, which are below [`CROWD`], with [`IS_WIDE`] for wide
/// ones.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) narrow: Shelf<{ NARROW.0 }, { NARROW.1 }>,
    pub(crate) wide: Shelf<{ WIDE.0 }, { WIDE.1 }>,
    pub(crate) links: Links,
    /// Those of a record that is made.
    made: Vec<Link>,
    pub(crate) heads: Heads,
    pub(crate) absences: Absences,
    pub(crate) uses: Uses,
    pub(crate) classes: Classes,
    pub(crate) totals: Totals,
    /// Where the count of bytes of each record with bounds began ([`crate::fuel`]).
    pub(crate) fuel: HashMap<u32, u32>,
    len: usize,
    most: usize,
    counters: RecordCounters,
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<RecordBug>,
}

/// A store holds records of a size.
pub trait Holds<const K: usize, const W: usize> {
    /// Those records.
    fn shelf(&self) -> &Shelf<K, W>;
    /// Those records.
    fn shelf_mut(&mut self) -> &mut Shelf<K, W>;
    /// What the numbers of such records have in common.
    const MARK: u32;
}

impl Holds<{ NARROW.0 }, { NARROW.1 }> for Store {
    #[inline(always)]
    fn shelf(&self) -> &Shelf<{ NARROW.0 }, { NARROW.1 }> {
        &self.records.narrow
    }

    #[inline(always)]
    fn shelf_mut(&mut self) -> &mut Shelf<{ NARROW.0 }, { NARROW.1 }> {
        &mut self.records.narrow
    }

    const MARK: u32 = 0;
}

impl Holds<{ WIDE.0 }, { WIDE.1 }> for Store {
    #[inline(always)]
    fn shelf(&self) -> &Shelf<{ WIDE.0 }, { WIDE.1 }> {
        &self.records.wide
    }

    #[inline(always)]
    fn shelf_mut(&mut self) -> &mut Shelf<{ WIDE.0 }, { WIDE.1 }> {
        &mut self.records.wide
    }

    const MARK: u32 = IS_WIDE;
}

impl Records {
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            narrow: Shelf::new(),
            wide: Shelf::new(),
            links: Links::default(),
            made: Vec::new(),
            heads: Heads::new(tables),
            absences: Absences::new(),
            uses: Uses::default(),
            classes: Classes::default(),
            totals: Totals::default(),
            fuel: HashMap::new(),
            len: 0,
            most: 0,
            counters: RecordCounters::default(),
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }

    /// A record by its number.
    pub(crate) fn body(&self, number: u32) -> &Body {
        let place = (number & !IS_WIDE) as usize;
        if number & IS_WIDE == 0 {
            &self.narrow.all[place].body
        } else {
            &self.wide.all[place].body
        }
    }

    /// A record by its number.
    pub(crate) fn body_mut(&mut self, number: u32) -> &mut Body {
        let place = (number & !IS_WIDE) as usize;
        if number & IS_WIDE == 0 {
            &mut self.narrow.all[place].body
        } else {
            &mut self.wide.all[place].body
        }
    }

    /// Where the links of a record are.
    pub(crate) fn link(&self, number: u32) -> u32 {
        let place = (number & !IS_WIDE) as usize;
        if number & IS_WIDE == 0 { self.narrow.all[place].link } else { self.wide.all[place].link }
    }

    pub(crate) fn set_link(&mut self, number: u32, link: u32) {
        let place = (number & !IS_WIDE) as usize;
        if number & IS_WIDE == 0 {
            self.narrow.all[place].link = link;
        } else {
            self.wide.all[place].link = link;
        }
    }

    /// The numbers of all records, also of those that have ended.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        let wide = (IS_WIDE..).take(self.wide.all.len());
        (0..self.narrow.all.len() as u32).chain(wide)
    }
}

impl Store {
    /// Allows so many records, none if 0: all that there are end.
    pub fn allow_records(&mut self, most: usize) {
        self.end_records();
        self.records.most = most.min(CROWD as usize - 1);
    }

    /// What has become of records.
    #[must_use]
    #[inline]
    pub fn record_counters(&self) -> RecordCounters {
        self.records.counters
    }

    /// The hash by which a record is found.
    #[must_use]
    #[inline(always)]
    pub fn record_hash<const K: usize>(&self, key: &[u64; K]) -> u64 {
        self.hash.hash_words(key)
    }

    /// The number of the record of a flow, if there is one.
    #[must_use]
    #[inline(always)]
    pub fn find_record<const K: usize, const W: usize>(
        &self,
        hash: u64,
        key: &[u64; K],
        kind: u32,
    ) -> Option<u32>
    where
        Self: Holds<K, W>,
    {
        let place = self.shelf().find(hash, key, kind, |bug| self.has_bug(bug));
        place.map(|place| place | Self::MARK)
    }

    /// A record by its number.
    #[must_use]
    #[inline(always)]
    pub fn record<const K: usize, const W: usize>(
        &mut self,
        number: u32,
    ) -> Option<&mut Record<K, W>>
    where
        Self: Holds<K, W>,
    {
        self.shelf_mut().all.get_mut((number & !IS_WIDE) as usize)
    }

    /// All narrow records by number, also those that have ended.
    #[inline]
    pub fn narrow_records(&mut self) -> &mut [Record<{ NARROW.0 }, { NARROW.1 }>] {
        &mut self.records.narrow.all
    }

    /// Whether a record can count a packet of so many bytes.
    #[must_use]
    pub fn can_count(&self, number: u32, bytes: u32) -> bool {
        self.records.body(number).can_count(bytes)
    }

    /// The class of a record.
    #[must_use]
    pub fn record_class(&self, number: u32) -> u32 {
        self.records.body(number).class
    }

    /// Whether there are so many records that fetching them ahead of time pays.
    #[must_use]
    pub fn has_many_records(&self) -> bool {
        self.records.len >= MANY
    }

    /// Fetches the records that these hashes likely lead to.
    pub fn fetch_records(&self, hashes: impl Iterator<Item = u64> + Clone) {
        let narrow = &self.records.narrow;
        let sum = hashes.clone().fold(0, |sum, hash| sum ^ narrow.touch(hash));
        black_box(hashes.fold(sum, |sum, hash| sum ^ narrow.touch_record(hash)));
    }

    /// Makes a record, if there is room or room can be made, all that it rests on is there, and it gets on with the
    /// other records. The flow has none.
    pub fn make_record<const K: usize, const W: usize>(&mut self, new: &NewRecord<'_, K, W>) -> bool
    where
        Self: Holds<K, W>,
    {
        let has_room = self.records.absences.has_room(new.absent.len());
        if !has_room || !self.make_room::<K, W>(new.now) {
            self.records.counters.refused += 1;
            return false;
        }
        let there = |(entry, one): &(Handle, Use)| self.exists(one.table, *entry);
        if !new.rests_on.iter().all(there) {
            return false;
        }
        let fits = |(entry, one): &(Handle, Use)| {
            let group = group(&self.tables, one.table, entry.place());
            self.records.fits(group, one, &self.tables)
        };
        if !new.rests_on.iter().all(fits) {
            self.records.counters.contended += 1;
            self.make_way(new.rests_on);
            return false;
        }
        let NewRecord { key, hash, kind, class, head, sums, .. } = *new;
        let body = Body { seen: 0, kind, class, packets: 0, bytes: 0 };
        let record = Record { key, body, head, sums, link: NONE };
        let (hash_key, most) = (self.hash.clone(), self.records.most);
        let number = self.shelf_mut().add(record, hash, most, &hash_key) | Self::MARK;
        self.records.totals.start(number);
        if new.rests_on.iter().any(|(_, one)| !one.bounds.is_empty()) {
            self.records.fill(number, 0);
        }
        self.records.classes.join(class);
        self.records.len += 1;
        self.records.counters.made += 1;
        self.tie(number, new.rests_on, new.absent);
        true
    }

    /// Records with bounds make way for those that look at each packet: of these there can be more on an entry.
    fn make_way(&mut self, rests_on: &[(Handle, Use)]) {
        for (entry, one) in rests_on.iter().filter(|(_, one)| one.live | one.puts != 0) {
            let group = group(&self.tables, one.table, entry.place());
            self.end_resting(group, |_, other| !other.bounds.is_empty());
        }
    }

    /// Lets a new record rest on entries, and on the absence of others.
    fn tie(&mut self, number: u32, rests_on: &[(Handle, Use)], absent: &Keys) {
        let mut links = std::mem::take(&mut self.records.made);
        links.clear();
        for (entry, one) in rests_on {
            let root = self.at(one.table).site.root as u32;
            links.push(Link { how: self.records.uses.number(one, root), place: entry.place() });
            if !one.updates.is_empty() {
                self.tables[one.table.0 as usize].set_lazy();
            }
        }
        let forgets = self.has_bug(RecordBug::AbsenceForgotten);
        for (table, key) in absent.iter().filter(|_| !forgets) {
            let place = self.records.absences.number(table, key, &self.hash);
            let link = Link { how: NONE, place };
            if !links.contains(&link) {
                links.push(link);
            }
        }
        self.records.tie(number, &links, &self.tables);
        self.records.made = links;
    }

    /// Whether there is room for one more record: at the limit, one ends that is outdated or that nobody has taken
    /// for a while.
    fn make_room<const K: usize, const W: usize>(&mut self, now: u64) -> bool
    where
        Self: Holds<K, W>,
    {
        if self.records.len < self.records.most {
            return true;
        }
        let classes = std::mem::take(&mut self.records.classes);
        let stale = self.shelf_mut().stale(|class| classes.is_outdated(class));
        self.records.classes = classes;
        match stale {
            Some((place, is_outdated, seen))
                if is_outdated || now.saturating_sub(seen) > STALE_NS =>
            {
                self.end_record(place | Self::MARK);
                self.records.counters.replaced += 1;
                true
            }
            _ => false,
        }
    }

    /// The hashes by which the records that there are are found.
    pub fn record_hashes(&self) -> impl Iterator<Item = u64> {
        let Records { narrow, wide, .. } = &self.records;
        narrow.hashes(&self.hash).chain(wide.hashes(&self.hash))
    }

    /// Ends all records.
    pub fn end_records(&mut self) {
        for place in 0..self.records.narrow.all.len() {
            self.end_record(place as u32);
        }
        for place in 0..self.records.wide.all.len() {
            self.end_record(place as u32 | IS_WIDE);
        }
        self.records.classes = Classes::default();
        self.records.uses = Uses::default();
    }

    /// Ends the narrow records of such kinds.
    pub fn end_narrow_records(&mut self, is_it: impl Fn(u32) -> bool) {
        for place in 0..self.records.narrow.all.len() {
            if is_it(self.records.narrow.all[place].body.kind) {
                self.end_record(place as u32);
            }
        }
    }

    /// Ends a record, if it has not ended: what it rested on was seen when it was last taken.
    pub fn end_record(&mut self, number: u32) {
        self.settle(number);
        let body = self.records.body_mut(number);
        if body.class == Body::ENDED {
            return;
        }
        let class = std::mem::replace(&mut body.class, Body::ENDED);
        let seen = body.seen;
        self.records.fuel.remove(&number);
        self.records.classes.leave(class);
        self.records.len -= 1;
        self.records.counters.ended += 1;
        let keeps = !self.has_bug(RecordBug::LivenessLostAtEnd);
        self.records.untie(number, &mut self.tables, &self.hash, |tables, (table, number)| {
            if let Some(table) = tables.get_mut(table).filter(|_| keeps) {
                table.renew_number(number as u32, seen);
            }
        });
        match number & IS_WIDE {
            0 => self.records.narrow.remove(number, &self.hash),
            _ => self.records.wide.remove(number & !IS_WIDE, &self.hash),
        }
    }

    /// A group with this root is about to end: the records that rest on it do.
    #[inline]
    pub(crate) fn group_ends(&mut self, root: usize, place: u32) {
        if self.records.len > 0 && !self.has_bug(RecordBug::StaleEntry) {
            self.end_resting((root, self.tables[root].number(place)), |_, _| true);
        }
    }

    /// Whether there are any records.
    #[inline(always)]
    pub(crate) fn has_records(&self) -> bool {
        self.records.len > 0
    }

    /// Whether any record rests on the group of an entry with this first word.
    #[inline(always)]
    pub(crate) fn is_rested_on(&self, table: usize, head: u64) -> bool {
        let root = self.tables[table].site.root;
        self.records.has_links(root, self.tables[root].number(head as u32))
    }

    /// All slots of an entry are about to be assigned to.
    #[inline(never)]
    pub(crate) fn slots_change(&mut self, table: TableRef, entry: Handle, words: &[u64], now: u64) {
        let slots = self.slot_shape(table).slots();
        for slot in 0..slots {
            let value = self.slot_shape(table).get(words, slot);
            self.slot_changes(table, entry, slot, value, now);
        }
    }

    /// A slot of an entry is about to be assigned to: records end that take it for granted, unless it holds the
    /// same already, and those by which it would not be later than it is.
    #[inline(never)]
    pub(crate) fn slot_changes(
        &mut self,
        table: TableRef,
        entry: Handle,
        slot: usize,
        value: Word,
        now: u64,
    ) {
        let at = self.at(table);
        let place = entry.place();
        let (root, head) = (at.site.root, at.head(place) as u32);
        let slots = bits(table, 1 << slot.min(63));
        let group = (root, self.tables[root].number(head));
        let Takes { reads, counts, .. } = self.records.takes(group, &self.tables);
        if (reads | counts) & slots == 0 {
            return;
        }
        let is_same = at.slots.get(at.slots(place), slot) == value;
        if is_same || self.has_bug(RecordBug::StaleSlot) {
            return;
        }
        let is_late = value > Word::from(now) && !self.has_bug(RecordBug::StaleTime);
        self.end_resting(group, |link, one| {
            let reads = one.reads >> slot.min(63) & 1 == 1;
            let is_it = (one.table, link.place) == (table, place);
            is_it && (reads || is_late && one.is_time(slot))
        });
    }

    /// Ends the records on a group of which this is true.
    #[inline(never)]
    fn end_resting(&mut self, group: Group, ends: impl Fn(Link, &Use) -> bool) {
        // Backwards, since the place of one that ends is taken by the last one.
        for at in (0..self.records.on(group).len()).rev() {
            let Some(record) = self.records.on(group).get(at).copied() else { continue };
            let uses = &self.records.uses.all;
            let is_it = |link: Link| uses.get(link.how as usize).is_some_and(|one| ends(link, one));
            if self.records.links(record).any(is_it) {
                self.end_record(record);
            }
        }
    }

    /// The group with this root is as lately seen as the records that rest on it.
    pub(crate) fn renew_by_records(&mut self, root: usize, number: u32) {
        if let Some(seen) = self.records.seen((root, number as usize))
            && !self.has_bug(RecordBug::LivenessLost)
        {
            self.tables[root].renew_number(number, seen);
        }
    }
}
