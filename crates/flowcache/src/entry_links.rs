//! Links between records and the entries that they depend on.
//!
//! A record has a row of links: the place of each entry that it depends on. The list of its uses of
//! these entries is the same for many records, so it is stored once
//! ([`crate::uses::Uses::list`]). A group of entries has a list of the records that depend on
//! it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer words, lists and records than 2^32"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "rows and lists keep their positions, and each table has a list of heads"
)]

use crate::absences::{Absences, Keys};
use crate::entry_use::{EntryUse, MOST_WRITERS};
use crate::mutants::{Mutants, RecordMutant};
use crate::slab::{NONE, Slabs};
use crate::uses::{Takes, UseList, Used, Uses};
use braid_state::{Group, Handle, Tables, lengthen, make_room};

/// A record's dependency on an entry or on its absence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    /// The number of its [`EntryUse`]; [`NONE`] if the entry must be absent.
    pub(crate) how: u32,
    /// The place of the entry in its table. For an absent entry: its number in
    /// [`crate::absences::Absences`].
    pub(crate) place: u32,
}

/// The links of all records.
#[derive(Debug, Default)]
struct Links {
    /// For each record: the number of its list of uses, and then two words for each link: the
    /// entry's place, and the record's rank in the list of records on the entry's group. If a
    /// record has several links to a group, only the first of them holds the rank.
    words: Vec<u32>,
    /// By number of links: the first free row of that size. A free row holds the position of the
    /// next one.
    spare: Vec<u32>,
}

impl Links {
    /// Allocates a row for `size` links and returns its position. The ranks in it are 0.
    fn allot(&mut self, list: u32, size: usize) -> u32 {
        lengthen(&mut self.spare, size + 1, NONE);
        let at = self.spare[size];
        if at == NONE {
            let at = self.words.len() as u32;
            make_room(&mut self.words, 1 + 2 * size);
            self.words.push(list);
            self.words.resize(self.words.len() + 2 * size, 0);
            return at;
        }
        let words = &mut self.words[at as usize..][..1 + 2 * size];
        self.spare[size] = std::mem::replace(&mut words[0], list);
        words[1..].fill(0);
        at
    }

    /// Sets the place of link number `number` of the row at `at`.
    fn set(&mut self, at: u32, number: usize, place: u32) {
        self.words[at as usize + 1 + 2 * number] = place;
    }

    /// Frees the row at `at`, which has `size` links.
    fn free(&mut self, at: u32, size: usize) {
        self.words[at as usize] = std::mem::replace(&mut self.spare[size], at);
    }

    /// The place and the rank of link number `number` of the row at `at`.
    fn get(&self, at: u32, number: usize) -> [u32; 2] {
        let words = &self.words[at as usize + 1 + 2 * number..][..2];
        [words[0], words[1]]
    }

    /// The rank in link number `number` of the row at `at`.
    fn rank(&mut self, at: u32, number: usize) -> &mut u32 {
        &mut self.words[at as usize + 2 + 2 * number]
    }
}

/// The records on a group that has several, or has had several since it last had none.
#[derive(Debug, Default)]
struct RecordList {
    records: Vec<u32>,
    takes: Takes,
}

/// The lists of records on groups. Most groups have one record.
#[derive(Debug, Default)]
struct Heads {
    /// By table and number of a group's root; absent keys have the table number after all tables.
    /// The value is the group's only record, or [`LIST`] plus a number in `lists`, or [`NONE`].
    all: Vec<Vec<u32>>,
    lists: Vec<RecordList>,
    /// The numbers of unused lists.
    spare: Vec<u32>,
}

/// The number of heads by which a list of heads grows at least.
const HEADS: usize = 64;

/// Marks the number of a list in `Heads::all`. Record numbers are below it.
pub(crate) const LIST: u32 = 1 << 30;

impl Heads {
    fn new(tables: usize) -> Self {
        Self { all: vec![Vec::new(); tables + 1], ..Self::default() }
    }

    #[inline(always)]
    fn get(&self, (table, number): Group) -> u32 {
        self.all[table].get(number).copied().unwrap_or(NONE)
    }

    /// The head of a group. There is one afterwards, as for all groups of its table before it.
    #[inline(always)]
    fn head(&mut self, (table, number): Group) -> &mut u32 {
        let heads = &mut self.all[table];
        if number >= heads.len() {
            lengthen(heads, (number + 1).next_multiple_of(HEADS), NONE);
        }
        &mut heads[number]
    }

    /// The list on a group, if the group has one.
    fn list(&self, group: Group) -> Option<&RecordList> {
        let head = self.get(group);
        let is_list = head != NONE && head & LIST != 0;
        is_list.then(|| &self.lists[(head ^ LIST) as usize])
    }

    /// The list on a group that has one.
    fn list_mut(&mut self, group: Group) -> &mut RecordList {
        let head = self.get(group);
        &mut self.lists[(head ^ LIST) as usize]
    }

    /// Turns a group's only record into a list, so that more records can follow.
    fn gather(&mut self, group: Group, takes: Takes) {
        let only = self.get(group);
        let number = self.spare.pop().unwrap_or_else(|| {
            self.lists.push(RecordList::default());
            (self.lists.len() - 1) as u32
        });
        let list = &mut self.lists[number as usize];
        list.records.push(only);
        list.takes = takes;
        *self.head(group) = number | LIST;
    }

    /// Empties a group's list of records.
    fn clear(&mut self, group: Group) {
        let head = self.get(group);
        if head & LIST != 0 {
            self.spare.push(head ^ LIST);
        }
        *self.head(group) = NONE;
    }
}

/// The dependencies of records on entries and on absent keys.
#[derive(Debug)]
pub(crate) struct EntryLinks {
    links: Links,
    /// The groups to which the record that is being made will have links.
    met: Vec<Group>,
    heads: Heads,
    pub(crate) uses: Uses,
    pub(crate) absences: Absences,
}

impl EntryLinks {
    /// Creates the links for a store with this number of tables. No record depends on an entry yet.
    pub(crate) fn new(tables: usize) -> Self {
        Self {
            links: Links::default(),
            met: Vec::new(),
            heads: Heads::new(tables),
            uses: Uses::default(),
            absences: Absences::new(),
        }
    }

    /// Looks up the groups of the entries that a new record depends on. Returns whether other
    /// records depend on one of the groups, too, or `None` if an entry has ended.
    #[inline]
    pub(crate) fn meet(
        &mut self,
        tables: &Tables,
        entries: &[Handle],
        uses: &UseList,
    ) -> Option<bool> {
        self.met.clear();
        let mut is_shared = false;
        for (entry, one) in entries.iter().zip(&*uses.all) {
            let group = tables.group_if_exists(one.table, *entry)?;
            is_shared |= self.has_links(group);
            self.met.push(group);
        }
        Some(is_shared)
    }

    /// The groups of the entries of the record that is being made.
    pub(crate) fn met(&self) -> &[Group] {
        &self.met
    }

    /// Links a new record to the entries that it depends on, which it has met, and to the keys
    /// whose absence it depends on.
    pub(crate) fn add(
        &mut self,
        slabs: &mut Slabs,
        tables: &Tables,
        record: u32,
        (entries, (number, uses), absent): (&[Handle], (u32, &UseList), Option<&Keys>),
    ) {
        if uses.numbers.is_empty() {
            return;
        }
        let size = uses.numbers.len();
        let row = self.links.allot(number, size);
        slabs.set_link(record, row);
        for (at, entry) in entries.iter().enumerate() {
            self.links.set(row, at, entry.place());
        }
        for (at, (table, key)) in (entries.len()..).zip(absent.into_iter().flat_map(Keys::iter)) {
            let place = self.absences.number(table, key, tables.hash());
            self.links.set(row, at, place);
            self.met.push((self.absent_table(), place as usize));
        }
        for at in 0..self.met.len() {
            let head = self.heads.head(self.met[at]);
            if *head == NONE {
                *head = record;
            } else if *head != record {
                self.join(slabs, tables, (record, row, at), self.met[at], uses.all.get(at));
            }
        }
    }

    /// Adds a record to the list of records on a group that has other records. `at` is the number
    /// of the link in the record's row of links. The first link of the record to the group holds
    /// its rank.
    fn join(
        &mut self,
        slabs: &Slabs,
        tables: &Tables,
        (record, row, at): (u32, u32, usize),
        to: Group,
        used: Option<&Used>,
    ) {
        if self.heads.list(to).is_none() {
            self.heads.gather(to, self.takes(slabs, to, tables));
        }
        let list = self.heads.list_mut(to);
        if list.records.last() != Some(&record) {
            *self.links.rank(row, at) = list.records.len() as u32;
            list.records.push(record);
        }
        list.takes = list.takes.and(used.map(|one| one.takes).unwrap_or_default());
    }

    /// The use that a link stands for; `None` if the entry must be absent.
    pub(crate) fn use_of(&self, link: Link) -> Option<&EntryUse> {
        self.uses.all.get(link.how as usize)
    }

    /// The links of a record, in the order in which they were added: entries first.
    pub(crate) fn links(
        &self,
        slabs: &Slabs,
        record: u32,
    ) -> impl DoubleEndedIterator<Item = Link> + '_ {
        let row = self.links.words.get(slabs.link(record) as usize..).unwrap_or(&[]);
        let (list, places) = row.split_first().map_or((&[][..], &[][..]), |(list, places)| {
            let list = self.uses.list(*list).map_or(&[][..], |list| &list.numbers);
            (list, places.as_chunks::<2>().0)
        });
        list.iter().zip(places).map(|(how, row)| Link { how: *how, place: row[0] })
    }

    /// Whether the packets of a record change any slot.
    pub(crate) fn updates(&self, slabs: &Slabs, record: u32) -> bool {
        let list = self.links.words.get(slabs.link(record) as usize);
        list.and_then(|list| self.uses.list(*list)).is_some_and(|list| list.updates)
    }

    /// The group of a link.
    fn group(&self, tables: &Tables, link: Link) -> Group {
        match self.uses.all.get(link.how as usize) {
            Some(one) => tables.group(one.table, link.place),
            None => (self.absent_table(), link.place as usize),
        }
    }

    /// The links of a record to a group, with their numbers.
    fn links_to<'a>(
        &'a self,
        slabs: &Slabs,
        record: u32,
        to: Group,
        tables: &'a Tables,
    ) -> impl Iterator<Item = (usize, Link)> + 'a {
        let is_it = move |link: &Link| {
            let table = self.uses.roots.get(link.how as usize).map(|root| *root as usize);
            table.unwrap_or(self.absent_table()) == to.0 && self.group(tables, *link) == to
        };
        self.links(slabs, record).enumerate().filter(move |(_, link)| is_it(link))
    }

    /// The records on a group.
    pub(crate) fn on(&self, of: Group) -> &[u32] {
        if let Some(list) = self.heads.list(of) {
            return &list.records;
        }
        let only = self.heads.all[of.0].get(of.1).filter(|only| **only != NONE);
        only.map_or(&[], std::slice::from_ref)
    }

    /// The uses that the records on a group have of it.
    pub(crate) fn takes(&self, slabs: &Slabs, of: Group, tables: &Tables) -> Takes {
        if let Some(list) = self.heads.list(of) {
            return list.takes;
        }
        let links = self.on(of).iter().flat_map(|record| self.links_to(slabs, *record, of, tables));
        let uses = links.filter_map(|(_, link)| self.uses.all.get(link.how as usize));
        uses.fold(Takes::default(), |all, one| all.and(Takes::of(one)))
    }

    /// Whether any record depends on a group.
    #[inline(always)]
    pub(crate) fn has_links(&self, group: Group) -> bool {
        self.heads.get(group) != NONE
    }

    /// When a record that depends on a group was last taken.
    pub(crate) fn seen(&self, slabs: &Slabs, of: Group) -> Option<u64> {
        match self.heads.get(of) {
            NONE => None,
            only if only & LIST == 0 => Some(slabs.hot(only).seen),
            _ => self.on(of).iter().map(|record| slabs.hot(*record).seen).max(),
        }
    }

    /// Whether a record with this use of an entry is compatible with the records on the entry's
    /// group, which have the uses `there`.
    pub(crate) fn fits(&self, of: Group, new: Takes, there: Takes) -> bool {
        let few = self.on(of).len() < MOST_WRITERS || there.counts | new.counts == 0;
        let clash = new.reads & (there.counts | there.puts)
            | new.counts & (there.reads | there.dynamic | there.puts)
            | new.dynamic & there.counts
            | new.puts & (there.reads | there.counts)
            | new.bounded & there.free
            | new.free & there.bounded;
        few && clash == 0
    }

    /// The table number under which records on absent entries are stored.
    pub(crate) fn absent_table(&self) -> usize {
        self.heads.all.len() - 1
    }

    /// Removes the links of a record that ends. Calls `each` with each group that the record
    /// depended on.
    pub(crate) fn untie(
        &mut self,
        slabs: &mut Slabs,
        record: u32,
        tables: &mut Tables,
        mutants: Mutants,
        mut each: impl FnMut(&mut Tables, Group),
    ) {
        let row = slabs.link(record);
        if row == NONE {
            return;
        }
        slabs.set_link(record, NONE);
        let Some(uses) = self.uses.list(self.links.words[row as usize]).cloned() else { return };
        let size = uses.numbers.len();
        for number in 0..size {
            let [place, rank] = self.links.get(row, number);
            let of = match uses.all.get(number) {
                Some(one) => tables.group(one.table, place),
                None => (self.absent_table(), place as usize),
            };
            let head = self.heads.head(of);
            let is_only = *head == record;
            if is_only {
                *head = NONE;
            }
            if is_only || self.leave(slabs, record, of, rank as usize, tables, mutants) {
                if of.0 == self.absent_table() && !self.has_links(of) {
                    self.absences.forget(of.1 as u32, tables.hash());
                }
                each(tables, of);
            }
        }
        self.links.free(row, size);
    }

    /// Removes a record with rank `rank` from the list of records on a group. Returns false if the
    /// list does not have the record at this rank.
    fn leave(
        &mut self,
        slabs: &Slabs,
        record: u32,
        of: Group,
        rank: usize,
        tables: &Tables,
        mutants: Mutants,
    ) -> bool {
        if self.on(of).get(rank) != Some(&record) {
            return false;
        }
        if self.on(of).len() == 1 {
            if self.heads.list(of).is_some() {
                self.heads.list_mut(of).records.clear();
            }
            self.heads.clear(of);
            return true;
        }
        let list = self.heads.list_mut(of);
        list.records.swap_remove(rank);
        // The list's last record has moved to this rank.
        if let Some(moved) = list.records.get(rank).copied() {
            let first = self.links_to(slabs, moved, of, tables).next();
            if let Some((number, _)) = first.filter(|_| !mutants.has(RecordMutant::RankForgotten)) {
                let row = slabs.link(moved);
                *self.links.rank(row, number) = rank as u32;
            }
        }
        true
    }
}
