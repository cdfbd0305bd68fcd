//! Flow records: what becomes of a flow's packets, found by the flow's key, as long as the state that it
//! rests on stays as it is (SpeedyBox's global table, §V-A, over the state of all functions).
//!
//! A record rests on groups of entries: on their being there, and on what is in them. When one of them ends or
//! is assigned to, so does the record. In return, a packet that takes a record need not renew those entries: they
//! are as lately seen as the records that rest on them, which is looked up when their time would be
//! over.
//!
//! What a record says is not this crate's business: it keeps the words.

use crate::index::Index;
use crate::store::{Handle, Store, TableRef};
use crate::table::NONE;
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
    pub bytes: [u64; KEY],
    /// What is added to the packet's two checksums.
    pub sums: [u16; 2],
    /// The first of its links, or the next free record.
    link: u32,
}

impl Record {
    /// The class of a record that has ended.
    pub const ENDED: u32 = u32::MAX;
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
    pub bytes: [u64; KEY],
    /// What is added to its checksums.
    pub sums: [u16; 2],
    /// Entries that it rests on.
    pub rests_on: &'a [(TableRef, Handle)],
}

/// What has become of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCounters {
    /// Made.
    pub made: u64,
    /// Ended, since what they rested on changed.
    pub ended: u64,
    /// Not made, since there were too many.
    pub refused: u64,
}

/// That a record rests on a group.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The table of the group's root, and its number there.
    root: (u32, u32),
    record: u32,
    /// The next one of the record.
    next: u32,
    /// Its neighbours among those on the same group.
    before: u32,
    behind: u32,
}

/// The records of a chain.
#[derive(Debug)]
pub(crate) struct Records {
    all: Vec<Record>,
    index: Index,
    /// The first free record.
    free: u32,
    links: Vec<Link>,
    /// The first free link.
    spare: u32,
    /// By table and number of a group's root: the first link on it.
    heads: Vec<Vec<u32>>,
    len: usize,
    most: usize,
    counters: RecordCounters,
}

impl Records {
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            all: Vec::new(),
            index: Index::new(),
            free: NONE,
            links: Vec::new(),
            spare: NONE,
            heads: vec![Vec::new(); tables],
            len: 0,
            most: 0,
            counters: RecordCounters::default(),
        }
    }

    /// The first link on the group with this root.
    #[inline]
    fn head(&self, table: usize, number: usize) -> u32 {
        self.heads[table].get(number).copied().unwrap_or(NONE)
    }

    /// When a record that rests on a group was last taken.
    pub(crate) fn seen(&self, table: usize, number: usize) -> Option<u64> {
        let mut at = self.head(table, number);
        let mut latest = None;
        while at != NONE {
            let link = &self.links[at as usize];
            latest = latest.max(Some(self.all[link.record as usize].seen));
            at = link.behind;
        }
        latest
    }

    /// Lets a record rest on a group.
    fn tie(&mut self, record: u32, root: (u32, u32)) {
        let (table, number) = (root.0 as usize, root.1 as usize);
        if self.heads[table].len() <= number {
            self.heads[table].resize(number + 1, NONE);
        }
        let behind = self.heads[table][number];
        let link =
            Link { root, record, next: self.all[record as usize].link, before: NONE, behind };
        let at = self.spare;
        let at = if at == NONE {
            self.links.push(link);
            (self.links.len() - 1) as u32
        } else {
            self.spare = self.links[at as usize].next;
            self.links[at as usize] = link;
            at
        };
        if behind != NONE {
            self.links[behind as usize].before = at;
        }
        self.heads[table][number] = at;
        self.all[record as usize].link = at;
    }

    /// Takes a link out of those on its group, and gives it back: its group and the record's next one.
    fn untie(&mut self, at: u32) -> Link {
        let link = self.links[at as usize];
        match link.before {
            NONE => self.heads[link.root.0 as usize][link.root.1 as usize] = link.behind,
            before => self.links[before as usize].behind = link.behind,
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
            let lines = all.get(number as usize).map(|record| record.seen ^ record.bytes[0]);
            sum ^= lines.unwrap_or(0);
        }
        black_box(sum);
    }

    /// Makes a record, if there is room and all that it rests on is there. The flow has none.
    pub fn make_record(&mut self, new: &NewRecord<'_>) -> bool {
        if self.records.len >= self.records.most {
            self.records.counters.refused += 1;
            return false;
        }
        if !new.rests_on.iter().all(|(table, entry)| self.exists(*table, *entry)) {
            return false;
        }
        let records = &mut self.records;
        let record = Record {
            key: new.key,
            seen: 0,
            program: new.program,
            class: new.class,
            bytes: new.bytes,
            sums: new.sums,
            link: NONE,
        };
        let number = if records.free == NONE {
            records.all.push(record);
            (records.all.len() - 1) as u32
        } else {
            let number = records.free;
            records.free = records.all[number as usize].link;
            records.all[number as usize] = record;
            number
        };
        let (all, hash) = (&records.all, &self.hash);
        let rehash = |number: u32| hash.hash_words(&all[number as usize].key);
        records.index.insert(hash.hash_words(&new.key), number, rehash);
        records.len += 1;
        records.counters.made += 1;
        for (table, entry) in new.rests_on {
            let table = &self.tables[table.0 as usize];
            let root = table.site.root;
            let place = table.head(entry.place()) as u32;
            let root = (root as u32, self.tables[root].number(place) as u32);
            if !self.records.rests(number, root) {
                self.records.tie(number, root);
            }
        }
        true
    }

    /// Ends all records.
    pub fn end_records(&mut self) {
        for number in 0..self.records.all.len() {
            self.end_record(number as u32);
        }
    }

    /// Ends a record, if it has not ended: what it rested on was seen when it was last taken.
    fn end_record(&mut self, number: u32) {
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
            self.tables[link.root.0 as usize].renew_number(link.root.1, seen);
            at = link.next;
        }
        self.records.all[number as usize].link = self.records.free;
        self.records.free = number;
    }

    /// A group with this root has changed: the records that rest on it end.
    #[inline]
    pub(crate) fn changed(&mut self, root: usize, place: u32) {
        if self.records.len > 0 {
            self.end_resting(root, place);
        }
    }

    /// As [`Self::changed`], for the group of an entry.
    #[inline]
    pub(crate) fn changed_at(&mut self, table: TableRef, entry: Handle) {
        if self.records.len > 0 {
            let table = self.at(table);
            let (root, place) = (table.site.root, table.head(entry.place()) as u32);
            self.end_resting(root, place);
        }
    }

    #[inline(never)]
    fn end_resting(&mut self, root: usize, place: u32) {
        let number = self.tables[root].number(place);
        loop {
            let head = self.records.head(root, number);
            if head == NONE {
                return;
            }
            self.end_record(self.records.links[head as usize].record);
        }
    }

    /// The group with this root is as lately seen as the records that rest on it.
    pub(crate) fn renew_by_records(&mut self, root: usize, number: u32) {
        if let Some(seen) = self.records.seen(root, number as usize) {
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
            (differs == 0 && record.program == program).then_some(number)
        })
    }

    /// Whether a record rests on a group.
    fn rests(&self, record: u32, root: (u32, u32)) -> bool {
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
}
