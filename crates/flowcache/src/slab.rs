//! Slabs of flow records, with an index by key.
#![expect(
    clippy::cast_possible_truncation,
    reason = "places are below 2^31, where `IS_WIDE` begins"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "callers use the numbers that the slabs have given to records"
)]

use crate::mutants::{Mutants, RecordMutant};
use braid_state::{HashKey, Index, prefetch};

/// Stands for no record, link or place.
pub(crate) const NONE: u32 = u32::MAX;

/// The size of narrow records: words of the key, and words that the record writes. A narrow record
/// takes one cache line. Most records are narrow.
pub const NARROW: (usize, usize) = (2, 2);
/// The size of wide records, as for [`NARROW`]. A wide record takes three cache lines.
pub const WIDE: (usize, usize) = (10, 10);
/// The number of records for which a slab reserves address space with its first record, so that
/// records rarely move when the slab grows.
const RESERVED: usize = 1 << 22;
/// The bit of a record's number that marks wide records.
pub(crate) const IS_WIDE: u32 = 1 << 31;

/// A record with a key of `K` words, for packets in which it changes `W` words.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Record<const K: usize, const W: usize> {
    /// The flow's key: words of the packet, masked.
    pub key: [u64; K],
    /// The part with the same layout in records of all sizes.
    pub hot: Hot,
    /// The words that the record writes over the packet's first bytes, under the template's mask.
    pub head: [u64; W],
    /// The amounts that the record adds to the packet's IPv4 and transport checksums.
    pub sums: [u16; 2],
    /// The position of the record's row of links. In a free place: the next free place.
    pub(crate) link: u32,
}

/// The part of a record that has the same layout in all sizes.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Hot {
    /// When the record was last taken (ns); 0 if never.
    pub seen: u64,
    /// The kind of the record ([`crate::key::kind`]).
    pub kind: u32,
    /// The record's template; [`Hot::ENDED`] if the record has ended.
    pub template: u32,
    /// Packets that have taken the record, and their bytes on the wire, since the record last
    /// handed these counts over. In records with bounds, the byte counter starts at a higher value
    /// ([`crate::fuel`]).
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

impl Hot {
    /// The template of a record that has ended.
    pub const ENDED: u32 = u32::MAX;

    /// Whether the record can count a packet of `bytes` bytes. Only the byte counter is tested,
    /// because it is never below the packet counter.
    #[must_use]
    #[inline(always)]
    pub fn can_count(&self, bytes: u32) -> bool {
        self.bytes.checked_add(bytes).is_some()
    }

    /// Counts a packet of `bytes` bytes that takes the record now.
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
    /// The first free record.
    free: u32,
    /// The position at which the search for unused records continues.
    hand: usize,
}

impl<const K: usize, const W: usize> Slab<K, W> {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), index: Index::new(), free: NONE, hand: 0 }
    }

    /// The place of the record with this key and kind.
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

    /// Prefetches the part of the index that a lookup of this hash reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Prefetches the record that this hash probably leads to.
    #[inline]
    pub(crate) fn prefetch_record(&self, hash: u64) {
        let place = self.index.guess(hash).unwrap_or(NONE);
        if let Some(record) = self.all.get(place as usize) {
            prefetch(Some(&record.hot.seen));
            prefetch(record.head.first());
        }
    }

    /// Adds a record and returns its place. `most` is the largest number of records.
    pub(crate) fn add(
        &mut self,
        record: Record<K, W>,
        hash: u64,
        most: usize,
        hash_key: &HashKey,
    ) -> u32 {
        let place = if self.free == NONE {
            if self.all.capacity() == 0 {
                // The operating system provides the memory only when it is used.
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

    /// Frees the place of a record that has ended and has no links.
    pub(crate) fn remove(&mut self, place: u32, hash: &HashKey) {
        let record = &mut self.all[place as usize];
        self.index.remove(hash.hash_words(&record.key), place);
        record.link = self.free;
        self.free = place;
    }

    /// The hashes of the existing records.
    pub(crate) fn hashes(&self, hash: &HashKey) -> impl Iterator<Item = u64> {
        let there = self.all.iter().filter(|record| record.hot.template != Hot::ENDED);
        there.map(|record| hash.hash_words(&record.key))
    }

    /// Of the next few records, the one that can best make room: an outdated one, or the one that
    /// was taken the longest ago. Returns its place, whether it is outdated, and when it was last
    /// taken.
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
/// records.
#[derive(Debug)]
pub(crate) struct Slabs {
    pub(crate) narrow: Slab<{ NARROW.0 }, { NARROW.1 }>,
    pub(crate) wide: Slab<{ WIDE.0 }, { WIDE.1 }>,
}

/// The place of a record on its slab.
#[inline(always)]
fn place(number: u32) -> usize {
    (number & !IS_WIDE) as usize
}

impl Slabs {
    pub(crate) fn new() -> Self {
        Self { narrow: Slab::new(), wide: Slab::new() }
    }

    /// The hot part of a record.
    pub(crate) fn hot(&self, number: u32) -> &Hot {
        match number & IS_WIDE {
            0 => &self.narrow.all[place(number)].hot,
            _ => &self.wide.all[place(number)].hot,
        }
    }

    /// The hot part of a record, for changes.
    pub(crate) fn hot_mut(&mut self, number: u32) -> &mut Hot {
        match number & IS_WIDE {
            0 => &mut self.narrow.all[place(number)].hot,
            _ => &mut self.wide.all[place(number)].hot,
        }
    }

    /// The position of a record's row of links.
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

    /// Frees the place of a record that has ended and has no links.
    pub(crate) fn remove(&mut self, number: u32, hash: &HashKey) {
        match number & IS_WIDE {
            0 => self.narrow.remove(number, hash),
            _ => self.wide.remove(number & !IS_WIDE, hash),
        }
    }

    /// The number of places on both slabs.
    pub(crate) fn len(&self) -> usize {
        self.narrow.all.len() + self.wide.all.len()
    }

    /// The number of the record at a position. The positions of wide records follow those of narrow
    /// ones.
    pub(crate) fn number(&self, position: usize) -> u32 {
        let narrow = self.narrow.all.len();
        match position.checked_sub(narrow) {
            None => position as u32,
            Some(wide) => wide as u32 | IS_WIDE,
        }
    }

    /// The numbers of all records, including ended ones.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(|position| self.number(position))
    }
}

/// A holder of records of one size.
pub(crate) trait Holds<const K: usize, const W: usize> {
    /// The slab of these records.
    fn slab(&self) -> &Slab<K, W>;
    /// The slab of these records, for changes.
    fn slab_mut(&mut self) -> &mut Slab<K, W>;
    /// The bits that the numbers of these records have besides their places.
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
