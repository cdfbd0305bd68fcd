//! A map from IPv4 addresses to numbers of 16 bits, constant over intervals: three levels of
//! arrays, by the upper half of the address, its third byte and its last byte.
//!
//! A lookup makes three memory accesses and no branches, whatever the address and the map. If the
//! number is decided at an upper level, the lower levels are blocks that contain a single value;
//! each number has its own. Maps that would take too many blocks use `trie.rs` instead.

use std::collections::HashMap;

/// The most blocks of a map.
const MOST: usize = 1 << 13;

type Block = [u16; 256];

/// The map.
#[derive(Clone, Debug)]
pub struct Steps {
    /// By the upper half of the address: a block of `middle`.
    top: Box<[u16; 1 << 16]>,
    /// By the third byte: a block of `low`.
    middle: Vec<Block>,
    low: Vec<Block>,
}

/// A map that is being built.
struct Builder<'a> {
    starts: &'a [u32],
    middle: Vec<Block>,
    low: Vec<Block>,
    /// Blocks that contain a single value, by interval.
    middle_of: HashMap<usize, u16>,
    low_of: HashMap<usize, u16>,
}

impl Steps {
    /// Builds a map from an address to the number of its interval. `starts` has the addresses at
    /// which intervals start, in order, the first at 0; each ends where the next one starts. `None`
    /// if the map would take too many blocks.
    #[must_use]
    pub fn new(starts: &[u32]) -> Option<Self> {
        u16::try_from(starts.len()).ok()?;
        let mut builder = Builder {
            starts,
            middle: Vec::new(),
            low: Vec::new(),
            middle_of: HashMap::new(),
            low_of: HashMap::new(),
        };
        let mut top: Box<[u16; 1 << 16]> = vec![0; 1 << 16].try_into().ok()?;
        builder.fill(&mut *top, 0, 16)?;
        Some(Self { top, middle: builder.middle, low: builder.low })
    }

    /// The number of an address's interval.
    #[must_use]
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "entries have numbers of blocks, and a block has 256 entries"
    )]
    pub fn get(&self, address: u32) -> u16 {
        let (third, last) = ((address >> 8 & 0xff) as usize, (address & 0xff) as usize);
        let middle = self.top[(address >> 16) as usize];
        let low = self.middle[usize::from(middle)][third];
        self.low[usize::from(low)][last]
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.top) + (self.middle.len() + self.low.len()) * size_of::<Block>()
    }
}

impl Builder<'_> {
    /// Writes the entries of a block for the addresses from `base` on. Each entry stands for
    /// 2^`bits` addresses.
    #[expect(
        clippy::indexing_slicing,
        reason = "`same` is at most the number of entries that are left"
    )]
    fn fill(&mut self, entries: &mut [u16], base: u32, bits: u32) -> Option<()> {
        let mut place = 0;
        while place < entries.len() {
            let first = u64::from(base) + ((place as u64) << bits);
            let next = self.starts.partition_point(|start| u64::from(*start) <= first);
            let end = self.starts.get(next).map_or(1 << 32, |start| u64::from(*start));
            // The number of entries that lie within one interval.
            let same = usize::try_from((end - first) >> bits).ok()?.min(entries.len() - place);
            let entry = match same {
                0 => self.block(u32::try_from(first).ok()?, bits)?,
                _ => self.same(next - 1, bits)?,
            };
            let past = place + same.max(1);
            entries[place..past].fill(entry);
            place = past;
        }
        Some(())
    }

    /// Adds a block for the 2^`bits` addresses from `base` on and returns its number.
    fn block(&mut self, base: u32, bits: u32) -> Option<u16> {
        let mut block = [0; 256];
        self.fill(&mut block, base, bits - 8)?;
        self.push(block, bits)
    }

    /// The entry for a whole interval: its number, or the number of a block that contains only this
    /// interval.
    fn same(&mut self, interval: usize, bits: u32) -> Option<u16> {
        if bits == 0 {
            return u16::try_from(interval).ok();
        }
        let known = if bits == 16 { &self.middle_of } else { &self.low_of };
        if let Some(known) = known.get(&interval) {
            return Some(*known);
        }
        let block = [self.same(interval, bits - 8)?; 256];
        let number = self.push(block, bits)?;
        let known = if bits == 16 { &mut self.middle_of } else { &mut self.low_of };
        known.insert(interval, number);
        Some(number)
    }

    /// Adds a block and returns its number, if there may be another one.
    fn push(&mut self, block: Block, bits: u32) -> Option<u16> {
        if self.middle.len() + self.low.len() == MOST {
            return None;
        }
        let blocks = if bits == 16 { &mut self.middle } else { &mut self.low };
        blocks.push(block);
        u16::try_from(blocks.len() - 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Steps};
    use proptest::prelude::*;

    fn agrees(starts: &[u32]) {
        let steps = Steps::new(starts).unwrap();
        let near = starts.iter().flat_map(|start| [start.wrapping_sub(1), *start, start | 255]);
        for address in near.chain([0, u32::MAX, 0x8000_0000]) {
            let number = starts.partition_point(|start| *start <= address) - 1;
            assert_eq!(usize::from(steps.get(address)), number, "{address:x} of {starts:x?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

        #[test]
        fn numbers_are_those_of_the_intervals(
            near in prop::collection::btree_set((0_u32..3, 0_u32..600, 0_u32..32), 0..60),
        ) {
            let starts = near.iter().map(|(high, low, shift)| (high << 30) ^ (low << (shift % 24)));
            let starts: std::collections::BTreeSet<u32> = starts.chain([0]).collect();
            agrees(&starts.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn ends_of_blocks_are_where_intervals_change() {
        agrees(&[0]);
        agrees(&[0, 1, 255, 256, 0xffff, 0x1_0000, 0x1_0100, 0xffff_0000, 0xffff_ff00, u32::MAX]);
    }

    #[test]
    fn maps_of_many_blocks_are_refused() {
        // One block for each start, and one for the addresses between them.
        let hosts = |count: u32| (0..count).map(|number| number << 16).collect::<Vec<u32>>();
        assert!(Steps::new(&hosts(1 << 11)).is_some());
        assert!(Steps::new(&hosts(MOST as u32)).is_none());
        let too_many: Vec<u32> = (0..1 << 16).collect();
        assert!(Steps::new(&too_many).is_none());
    }
}
