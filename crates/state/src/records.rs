//! Flow records: what becomes of a flow's packets, found by the flow's key, as long as the state that it
//! rests on stays as it is (SpeedyBox's global table, §V-A, over the state of all functions).
//!
//! A record rests on entries: on their being there, and on what is in slots of theirs; and on others not being there
//! ([`crate::absent`]). When one of them ends or such a slot is assigned to, so does the record. In return, a packet that takes a record need not renew those
//! entries: they are as lately seen as the records that rest on them, which is looked up when their time would be
//! over. Nor does it count in them ([`crate::uses`]).
//!
//! What a record says is not this crate's business: it keeps the words.

use crate::absent::Absences;
use crate::bugs::RecordBug;
use crate::index::Index;
use crate::listing::Totals;
use crate::store::{Handle, Store, TableRef};
use crate::table::NONE;
use crate::uses::{MOST_WRITERS, Use, Uses};
use braid_ir::model::Word;
use std::hint::black_box;

/// Records of a table that stays in the processor's caches without any help.
const MANY: usize = 4096;

/// Words of a record's key: the first bytes of a packet, as far as its flow hangs on them.
pub const KEY: usize = 6;

/// A record: two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Record {
    /// Its flow: bytes of the packet, with zeros where they do not matter.
    pub key: [u64; KEY],
    /// When it was last taken (ns); 0: not yet.
    pub seen: u64,
    /// For which program it is.
    pub program: u32,
    /// What is to be done, but for the words below; [`Record::ENDED`] if the record has ended.
    pub class: u32,
    /// What is written over the packet's first bytes.
    pub head: [u64; KEY],
    /// What is added to the packet's two checksums.
    pub sums: [u16; 2],
    /// The first of its links, or the next free record.
    pub(crate) link: u32,
    /// Packets that have taken it and their bytes on the wire, since what follows from that was worked out.
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

impl Record {
    /// The class of a record that has ended.
    pub const ENDED: u32 = u32::MAX;

    /// Counts a packet of so many bytes that takes it now; false if it cannot count more.
    #[must_use]
    #[inline(always)]
    pub fn count(&mut self, now: u64, bytes: u32) -> bool {
        let (Some(packets), Some(bytes)) =
            (self.packets.checked_add(1), self.bytes.checked_add(bytes))
        else {
            return false;
        };
        (self.seen, self.packets, self.bytes) = (now, packets, bytes);
        true
    }
}

/// A new record.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// Its flow.
    pub key: [u64; KEY],
    /// For which program it is.
    pub program: u32,
    /// What is to be done.
    pub class: u32,
    /// What is written over the packet's first bytes.
    pub head: [u64; KEY],
    /// What is added to its checksums.
    pub sums: [u16; 2],
    /// Entries that it rests on: each once.
    pub rests_on: &'a [(Handle, Use)],
    /// Packed keys of which there must not be an entry.
    pub absent: &'a [(TableRef, Box<[u64]>)],
}

/// What has become of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCounters {
    /// Made.
    pub made: u64,
    /// Ended, since what they rested on changed.
    pub ended: u64,
    /// Not made, since there were too many, or they rest on too many entries not being there.
    pub refused: u64,
    /// Not made, since other records look at what this one would change, or the other way round, or too many
    /// change it.
    pub contended: u64,
}

/// That a record rests on an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The table of the root of the entry's group, and its number there. For an entry that must not be there,
    /// [`Records::absent_table`] and its number in [`Absences`].
    root: (u32, u32),
    pub(crate) record: u32,
    /// The next one of the record.
    pub(crate) next: u32,
    /// Its neighbours among those on the same group.
    before: u32,
    pub(crate) behind: u32,
    /// Where the entry is in its table.
    pub(crate) place: u32,
    /// The number of its [`Use`], or [`NONE`].
    pub(crate) how: u32,
}

/// The links on a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The first one.
    pub(crate) first: u32,
    len: u32,
    /// Slots that records take for granted and that they change, as bits that several slots may have ([`bits`]);
    /// also those of links that have ended since there was none.
    reads: u16,
    pub(crate) writes: u16,
}

impl Link {
    /// What it is on.
    pub(crate) fn root(&self) -> (u32, u32) {
        self.root
    }
}

impl Head {
    const NONE: Head = Head { first: NONE, len: 0, reads: 0, writes: 0 };
}

/// Bits for slots of one of a group's tables.
fn bits(table: TableRef, slots: u64) -> u16 {
    let all = (0..4).fold(0, |all, part| all | (slots >> (16 * part)) as u16);
    all.rotate_left(table.0 % 16)
}

/// The records of a chain.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) all: Vec<Record>,
    index: Index,
    /// The first free record.
    free: u32,
    pub(crate) links: Vec<Link>,
    /// The first free link.
    spare: u32,
    /// By table and number of a group's root; behind the tables, those on absent entries.
    heads: Vec<Vec<Head>>,
    pub(crate) absences: Absences,
    pub(crate) uses: Uses,
    /// By class: packets and bytes of its records, but for those that records have counted themselves.
    pub(crate) counts: Vec<(u64, u64)>,
    pub(crate) totals: Totals,
    len: usize,
    most: usize,
    counters: RecordCounters,
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<RecordBug>,
}

impl Records {
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            all: Vec::new(),
            index: Index::new(),
            free: NONE,
            links: Vec::new(),
            spare: NONE,
            heads: vec![Vec::new(); tables + 1],
            absences: Absences::default(),
            uses: Uses::default(),
            counts: Vec::new(),
            totals: Totals::default(),
            len: 0,
            most: 0,
            counters: RecordCounters::default(),
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }

    /// The links on the group with this root.
    #[inline]
    pub(crate) fn head(&self, (table, number): (usize, usize)) -> Head {
        self.heads[table].get(number).copied().unwrap_or(Head::NONE)
    }

    /// When a record that rests on a group was last taken.
    pub(crate) fn seen(&self, root: (usize, usize)) -> Option<u64> {
        let mut at = self.head(root).first;
        let mut latest = None;
        while at != NONE {
            let link = &self.links[at as usize];
            latest = latest.max(Some(self.all[link.record as usize].seen));
            at = link.behind;
        }
        latest
    }

    /// Whether a record that does this with an entry of a group gets on with those that are there.
    fn fits(&self, root: (u32, u32), one: &Use) -> bool {
        let head = self.head((root.0 as usize, root.1 as usize));
        let (reads, writes) = (bits(one.table, one.reads), bits(one.table, one.writes()));
        if self.has_bug(RecordBug::ContentionIgnored) {
            return true;
        }
        let few = head.len < MOST_WRITERS || head.writes | writes == 0;
        few && reads & head.writes == 0 && writes & head.reads == 0
    }

    /// Where links on absent entries are.
    pub(crate) fn absent_table(&self) -> u32 {
        (self.heads.len() - 1) as u32
    }

    /// Lets a record rest on an entry of a group.
    pub(crate) fn tie(&mut self, record: u32, root: (u32, u32), place: u32, one: Option<&Use>) {
        let how = one.map_or(NONE, |one| self.uses.number(one));
        let heads = &mut self.heads[root.0 as usize];
        let number = root.1 as usize;
        if heads.len() <= number {
            heads.resize(number + 1, Head::NONE);
        }
        let head = &mut heads[number];
        if let Some(one) = one {
            head.reads |= bits(one.table, one.reads);
            head.writes |= bits(one.table, one.writes());
        }
        head.len += 1;
        let (next, behind) = (self.all[record as usize].link, head.first);
        let link = Link { root, record, next, before: NONE, behind, place, how };
        let at = self.spare;
        let at = if at == NONE {
            self.links.push(link);
            (self.links.len() - 1) as u32
        } else {
            self.spare = self.links[at as usize].next;
            self.links[at as usize] = link;
            at
        };
        head.first = at;
        if behind != NONE {
            self.links[behind as usize].before = at;
        }
        self.all[record as usize].link = at;
    }

    /// Takes a link out of those on its group, and gives it back: its group and the record's next one.
    fn untie(&mut self, at: u32) -> Link {
        let link = self.links[at as usize];
        let head = &mut self.heads[link.root.0 as usize][link.root.1 as usize];
        head.len -= 1;
        match link.before {
            NONE => head.first = link.behind,
            before => self.links[before as usize].behind = link.behind,
        }
        if head.first == NONE {
            *head = Head::NONE;
            if link.root.0 as usize == self.heads.len() - 1 {
                self.absences.forget(link.root.1);
            }
        }
        if link.behind != NONE {
            self.links[link.behind as usize].before = link.before;
        }
        self.links[at as usize].next = self.spare;
        self.spare = at;
        link
    }
}

impl Store {
    /// Allows so many records, none if 0: all that there are end.
    pub fn allow_records(&mut self, most: usize) {
        self.end_records();
        self.records.most = most.min(NONE as usize - 1);
    }

    /// What has become of records.
    #[must_use]
    pub fn record_counters(&self) -> RecordCounters {
        self.records.counters
    }

    /// The hash by which a record is found.
    #[must_use]
    #[inline(always)]
    pub fn record_hash(&self, key: &[u64; KEY]) -> u64 {
        self.hash.hash_words(key)
    }

    /// Whether a flow has a record for a program.
    #[must_use]
    #[inline]
    pub fn has_record(&self, hash: u64, key: &[u64; KEY], program: u32) -> bool {
        self.records.find(hash, key, program).is_some()
    }

    /// The record of a flow for a program, if there is one.
    #[inline(always)]
    pub fn take_record(
        &mut self,
        hash: u64,
        key: &[u64; KEY],
        program: u32,
    ) -> Option<&mut Record> {
        let number = self.records.find(hash, key, program)?;
        self.records.all.get_mut(number as usize)
    }

    /// Works out what a flow's record has counted, if it can count no more.
    pub fn settle_full(&mut self, hash: u64, key: &[u64; KEY], program: u32) {
        let Some(number) = self.records.find(hash, key, program) else { return };
        if self.records.all[number as usize].bytes > u32::MAX / 2 {
            self.settle(number);
        }
    }

    /// Whether there are so many records that fetching them ahead of time pays.
    #[must_use]
    pub fn has_many_records(&self) -> bool {
        self.records.len >= MANY
    }

    /// Fetches the records that these hashes likely lead to.
    pub fn fetch_records(&self, hashes: impl Iterator<Item = u64> + Clone) {
        let Records { index, all, .. } = &self.records;
        let mut sum = hashes.clone().fold(0, |sum, hash| sum ^ index.touch(hash));
        for number in hashes.filter_map(|hash| index.guess(hash)) {
            let lines = all.get(number as usize).map(|record| record.seen ^ record.head[0]);
            sum ^= lines.unwrap_or(0);
        }
        black_box(sum);
    }

    /// Makes a record, if there is room, all that it rests on is there, and it gets on with the other records.
    /// The flow has none.
    pub fn make_record(&mut self, new: &NewRecord<'_>) -> bool {
        let absences = &self.records.absences;
        if self.records.len >= self.records.most || !absences.has_room(new.absent.len()) {
            self.records.counters.refused += 1;
            return false;
        }
        let there = |(entry, one): &(Handle, Use)| self.exists(one.table, *entry);
        if !new.rests_on.iter().all(there) {
            return false;
        }
        let fits = |(entry, one): &(Handle, Use)| self.records.fits(self.group(*entry, one), one);
        if !new.rests_on.iter().all(fits) {
            self.records.counters.contended += 1;
            return false;
        }
        let number = self.records.add(new);
        let (all, hash) = (&self.records.all, &self.hash);
        let rehash = |number: u32| hash.hash_words(&all[number as usize].key);
        self.records.index.insert(hash.hash_words(&new.key), number, rehash);
        self.records.len += 1;
        self.records.counters.made += 1;
        for (entry, one) in new.rests_on {
            let root = self.group(*entry, one);
            self.records.tie(number, root, entry.place(), Some(one));
            if !one.updates.is_empty() {
                self.tables[one.table.0 as usize].set_lazy();
            }
        }
        for (table, key) in new.absent {
            if self.has_bug(RecordBug::AbsenceForgotten) {
                break;
            }
            self.records.tie_absent(number, *table, key);
        }
        true
    }

    /// The table and number of the root of an entry's group.
    fn group(&self, entry: Handle, one: &Use) -> (u32, u32) {
        let table = self.at(one.table);
        let (root, place) = (table.site.root, table.head(entry.place()) as u32);
        (root as u32, self.tables[root].number(place) as u32)
    }

    /// Ends all records.
    pub fn end_records(&mut self) {
        for number in 0..self.records.all.len() {
            self.end_record(number as u32);
        }
        self.records.counts.clear();
        self.records.uses = Uses::default();
    }

    /// Ends a record, if it has not ended: what it rested on was seen when it was last taken.
    pub(crate) fn end_record(&mut self, number: u32) {
        self.settle(number);
        let record = &mut self.records.all[number as usize];
        if record.class == Record::ENDED {
            return;
        }
        record.class = Record::ENDED;
        let (seen, mut at) = (record.seen, record.link);
        let hash = self.hash.hash_words(&record.key);
        self.records.index.remove(hash, number);
        self.records.len -= 1;
        self.records.counters.ended += 1;
        while at != NONE {
            let link = self.records.untie(at);
            let keeps = !self.records.has_bug(RecordBug::LivenessLostAtEnd);
            if let Some(table) = self.tables.get_mut(link.root.0 as usize).filter(|_| keeps) {
                table.renew_number(link.root.1, seen);
            }
            at = link.next;
        }
        self.records.all[number as usize].link = self.records.free;
        self.records.free = number;
    }

    /// A group with this root is about to end: the records that rest on it do.
    #[inline]
    pub(crate) fn group_ends(&mut self, root: usize, place: u32) {
        if self.records.len > 0 && !self.has_bug(RecordBug::StaleEntry) {
            self.end_resting(root, place, |_, _| true);
        }
    }

    /// Whether there are any records.
    #[inline(always)]
    pub(crate) fn has_records(&self) -> bool {
        self.records.len > 0
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
        let is_same = at.slots.get(at.slots(place), slot) == value;
        if is_same || self.has_bug(RecordBug::StaleSlot) {
            return;
        }
        let (root, head) = (at.site.root, at.head(place) as u32);
        let is_late = value > Word::from(now) && !self.has_bug(RecordBug::StaleTime);
        self.end_resting(root, head, |link, one| {
            let reads = one.reads >> slot.min(63) & 1 == 1;
            let is_it = (one.table, link.place) == (table, place);
            is_it && (reads || is_late && one.is_time(slot))
        });
    }

    /// Ends the records on a group of which this is true.
    #[inline(never)]
    fn end_resting(&mut self, root: usize, place: u32, ends: impl Fn(&Link, &Use) -> bool) {
        let number = self.tables[root].number(place);
        let mut at = self.records.head((root, number)).first;
        while at != NONE {
            let link = self.records.links[at as usize];
            at = link.behind;
            if ends(&link, &self.records.uses.all[link.how as usize]) {
                // The record may have another link on the group, just behind.
                while at != NONE && self.records.links[at as usize].record == link.record {
                    at = self.records.links[at as usize].behind;
                }
                self.end_record(link.record);
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

impl Records {
    /// The number of a flow's record for a program.
    #[inline(always)]
    fn find(&self, hash: u64, key: &[u64; KEY], program: u32) -> Option<u32> {
        self.index.find(hash, |number| {
            let record = self.all.get(number as usize)?;
            let words = record.key.iter().zip(key);
            let differs = words.fold(0, |differs, (a, b)| differs | (a ^ b));
            let is_same = differs == 0 || self.has_bug(RecordBug::HashOnly);
            let of_program = record.program == program || self.has_bug(RecordBug::ProgramIgnored);
            (is_same && of_program).then_some(number)
        })
    }

    /// Whether a record rests on this already.
    pub(crate) fn rests(&self, record: u32, root: (u32, u32)) -> bool {
        let mut at = self.all[record as usize].link;
        while at != NONE {
            let link = &self.links[at as usize];
            if link.root == root {
                return true;
            }
            at = link.next;
        }
        false
    }

    /// Adds a record that rests on nothing yet.
    fn add(&mut self, new: &NewRecord<'_>) -> u32 {
        let record = Record {
            key: new.key,
            seen: 0,
            program: new.program,
            class: new.class,
            head: new.head,
            sums: new.sums,
            link: NONE,
            packets: 0,
            bytes: 0,
        };
        if self.free == NONE {
            self.all.push(record);
            return (self.all.len() - 1) as u32;
        }
        let number = self.free;
        self.free = self.all[number as usize].link;
        self.all[number as usize] = record;
        self.totals.start(number);
        number
    }
}
