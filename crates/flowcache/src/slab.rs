//! Slabs of flow records, found by their keys.

use crate::mutants::{Mutants, RecordMutant};
use braid_state::{HashKey, Index};

/// No place.
pub(crate) const NONE: u32 = u32::MAX;

/// Words of most records' keys, and of what they write: such a record is one cache line.
pub const NARROW: (usize, usize) = (2, 2);
/// The same of other records, of three cache lines.
pub const WIDE: (usize, usize) = (10, 10);
/// Records for which there is address space from the first one on, so that no record is ever moved to make room.
const RESERVED: usize = 1 << 22;
/// In a record's number: that it is a wide one.
pub(crate) const IS_WIDE: u32 = 1 << 31;

/// A record with a key of `K` words, for packets of which `W` words are changed.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Record<const K: usize, const W: usize> {
    /// Its flow: parts of the packet, with zeros where they do not matter.
    pub key: [u64; K],
    /// What all records have.
    pub hot: Hot,
    /// What is written over the packet.
    pub head: [u64; W],
    /// What is added to the packet's two checksums.
    pub sums: [u16; 2],
    /// The first of its links, or the next free record.
    pub(crate) link: u32,
}

/// What records have, whatever their size.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Hot {
    /// When it was last taken (ns); 0: not yet.
    pub seen: u64,
    /// For which packets it is, beside the key.
    pub kind: u32,
    /// What is to be done, but for the words; [`Hot::ENDED`] if the record has ended.
    pub template: u32,
    /// Packets that have taken it and their bytes on the wire, since what follows from that was worked out.
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

impl Hot {
    /// The template of a record that has ended.
    pub const ENDED: u32 = u32::MAX;

    /// Whether it can count a packet of so many bytes. (There are no fewer bytes than packets.)
    #[must_use]
    #[inline(always)]
    pub fn can_count(&self, bytes: u32) -> bool {
        self.bytes.checked_add(bytes).is_some()
    }

    /// Counts a packet of so many bytes that takes it now.
    #[inline(always)]
    pub fn count(&mut self, now: u64, bytes: u32) {
        self.seen = now;
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// Records of one size.
#[derive(Debug)]
pub struct Slab<const K: usize, const W: usize> {
    pub(crate) all: Vec<Record<K, W>>,
    index: Index,
    /// The first free one.
    free: u32,
    /// Where records are looked for that nobody takes any more.
    hand: usize,
}

impl<const K: usize, const W: usize> Slab<K, W> {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), index: Index::new(), free: NONE, hand: 0 }
    }

    /// The place of a flow's record.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        hash: u64,
        key: &[u64; K],
        kind: u32,
        mutants: Mutants,
    ) -> Option<u32> {
        self.index.find(hash, |place| {
            let record = self.all.get(place as usize)?;
            let words = record.key.iter().zip(key);
            let differs = words.fold(0, |differs, (a, b)| differs | (a ^ b));
            let is_same = differs == 0 || mutants.has(RecordMutant::HashOnly);
            let is_for = record.hot.kind == kind || mutants.has(RecordMutant::ProgramIgnored);
            (is_same && is_for).then_some(place)
        })
    }

    /// Reads what finding the record of this hash will read first.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        self.index.touch(hash)
    }

    /// Reads the record that this hash likely leads to.
    #[inline]
    pub(crate) fn touch_record(&self, hash: u64) -> u64 {
        let place = self.index.guess(hash).unwrap_or(NONE);
        self.all.get(place as usize).map_or(0, |record| record.hot.seen ^ record.head[0])
    }

    /// Adds a record, of `most` at most: its place.
    pub(crate) fn add(
        &mut self,
        record: Record<K, W>,
        hash: u64,
        most: usize,
        hash_key: &HashKey,
    ) -> u32 {
        let place = if self.free == NONE {
            if self.all.capacity() == 0 {
                // The system gives memory as it is used.
                self.all.reserve_exact(most.min(RESERVED));
            }
            self.all.push(record);
            (self.all.len() - 1) as u32
        } else {
            let place = self.free;
            self.free = self.all[place as usize].link;
            self.all[place as usize] = record;
            place
        };
        let all = &self.all;
        let rehash = |place: u32| hash_key.hash_words(&all[place as usize].key);
        self.index.insert(hash, place, rehash);
        place
    }

    /// A record has ended, and its links are gone.
    pub(crate) fn remove(&mut self, place: u32, hash: &HashKey) {
        let record = &mut self.all[place as usize];
        self.index.remove(hash.hash_words(&record.key), place);
        record.link = self.free;
        self.free = place;
    }

    /// The hashes of those that there are.
    pub(crate) fn hashes(&self, hash: &HashKey) -> impl Iterator<Item = u64> {
        let there = self.all.iter().filter(|record| record.hot.template != Hot::ENDED);
        there.map(|record| hash.hash_words(&record.key))
    }

    /// Of some next records the one that others can do without best: its place, whether it is outdated, and when it
    /// was last taken.
    pub(crate) fn stale(&mut self, is_outdated: impl Fn(u32) -> bool) -> Option<(u32, bool, u64)> {
        let len = self.all.len();
        let some = (0..len.min(16)).map(|step| (self.hand + step) % len);
        let there = some.filter(|place| self.all[*place].hot.template != Hot::ENDED);
        let found = there.map(|place| {
            let Hot { seen, template, .. } = self.all[place].hot;
            (place as u32, is_outdated(template), seen)
        });
        let found = found.min_by_key(|(_, is_outdated, seen)| (!is_outdated, *seen));
        self.hand = (self.hand + 16) % len.max(1);
        found
    }
}

/// The records of both sizes. A record's number is its place on its slab, with [`IS_WIDE`] for wide
/// ones.
#[derive(Debug)]
pub(crate) struct Slabs {
    pub(crate) narrow: Slab<{ NARROW.0 }, { NARROW.1 }>,
    pub(crate) wide: Slab<{ WIDE.0 }, { WIDE.1 }>,
}

/// Where a record is on its slab.
#[inline(always)]
fn place(number: u32) -> usize {
    (number & !IS_WIDE) as usize
}

impl Slabs {
    pub(crate) fn new() -> Self {
        Self { narrow: Slab::new(), wide: Slab::new() }
    }

    /// A record by its number.
    pub(crate) fn hot(&self, number: u32) -> &Hot {
        match number & IS_WIDE {
            0 => &self.narrow.all[place(number)].hot,
            _ => &self.wide.all[place(number)].hot,
        }
    }

    /// A record by its number.
    pub(crate) fn hot_mut(&mut self, number: u32) -> &mut Hot {
        match number & IS_WIDE {
            0 => &mut self.narrow.all[place(number)].hot,
            _ => &mut self.wide.all[place(number)].hot,
        }
    }

    /// Where the links of a record are.
    pub(crate) fn link(&self, number: u32) -> u32 {
        match number & IS_WIDE {
            0 => self.narrow.all[place(number)].link,
            _ => self.wide.all[place(number)].link,
        }
    }

    pub(crate) fn set_link(&mut self, number: u32, link: u32) {
        match number & IS_WIDE {
            0 => self.narrow.all[place(number)].link = link,
            _ => self.wide.all[place(number)].link = link,
        }
    }

    /// A record has ended, and its links are gone.
    pub(crate) fn remove(&mut self, number: u32, hash: &HashKey) {
        match number & IS_WIDE {
            0 => self.narrow.remove(number, hash),
            _ => self.wide.remove(number & !IS_WIDE, hash),
        }
    }

    /// Places on both slabs.
    pub(crate) fn len(&self) -> usize {
        self.narrow.all.len() + self.wide.all.len()
    }

    /// The number of the record at a position, where wide ones come behind narrow ones.
    pub(crate) fn number(&self, position: usize) -> u32 {
        let narrow = self.narrow.all.len();
        match position.checked_sub(narrow) {
            None => position as u32,
            Some(wide) => wide as u32 | IS_WIDE,
        }
    }

    /// The numbers of all records, also of those that have ended.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|position| self.number(position))
    }
}

/// Records of one size are kept here.
pub(crate) trait Holds<const K: usize, const W: usize> {
    /// Those records.
    fn slab(&self) -> &Slab<K, W>;
    /// Those records.
    fn slab_mut(&mut self) -> &mut Slab<K, W>;
    /// The bits that the numbers of such records have in common.
    const MARK: u32;
}

impl Holds<{ NARROW.0 }, { NARROW.1 }> for Slabs {
    #[inline(always)]
    fn slab(&self) -> &Slab<{ NARROW.0 }, { NARROW.1 }> {
        &self.narrow
    }

    #[inline(always)]
    fn slab_mut(&mut self) -> &mut Slab<{ NARROW.0 }, { NARROW.1 }> {
        &mut self.narrow
    }

    const MARK: u32 = 0;
}

impl Holds<{ WIDE.0 }, { WIDE.1 }> for Slabs {
    #[inline(always)]
    fn slab(&self) -> &Slab<{ WIDE.0 }, { WIDE.1 }> {
        &self.wide
    }

    #[inline(always)]
    fn slab_mut(&mut self) -> &mut Slab<{ WIDE.0 }, { WIDE.1 }> {
        &mut self.wide
    }

    const MARK: u32 = IS_WIDE;
}
