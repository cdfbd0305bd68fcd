//! A map from addresses to small numbers, constant over intervals: a trie with strides of 8 bits.
//!
//! The first 0, 8 or 16 bits index an array. The width grows with the number of intervals, so that
//! small maps stay small. Below the array there are three kinds of nodes, and most addresses need
//! one or two nodes. *Narrow* nodes have at most 12 runs of equal entries and take one cache line.
//! *Wide* nodes are plain arrays. *Skips* jump over strides in which nothing is decided, so that a
//! lone host route is one comparison instead of a chain of nodes. Skips also keep the trie shallow
//! for IPv6.

use std::fmt::Debug;

/// All values are below this.
pub const LIMIT: u32 = 1 << 30;

const KIND: u32 = 30;
const NARROW: u32 = 1;
const WIDE: u32 = 2;
const SKIP: u32 = 3;
const RUNS: usize = 12;

/// An address: `u32` for IPv4, `u128` for IPv6.
pub trait Key: Copy + Ord + Debug + Default + Into<u128> {
    /// The number of bits of an address.
    const BITS: u32;
    /// The eight bits above the last `rest` bits.
    fn byte(self, rest: u32) -> usize;
    /// The address without its last `rest` bits.
    fn above(self, rest: u32) -> Self;
    /// The address with this value, cut to the number of bits.
    fn cut(value: u128) -> Self;
}

impl Key for u32 {
    const BITS: u32 = 32;
    fn byte(self, rest: u32) -> usize {
        (self >> rest & 0xff) as usize
    }
    fn above(self, rest: u32) -> Self {
        self.checked_shr(rest).unwrap_or(0)
    }
    #[expect(clippy::cast_possible_truncation, reason = "the address is cut, as the name says")]
    fn cut(value: u128) -> Self {
        value as Self
    }
}

impl Key for u128 {
    const BITS: u32 = 128;
    fn byte(self, rest: u32) -> usize {
        (self >> rest & 0xff) as usize
    }
    fn above(self, rest: u32) -> Self {
        self.checked_shr(rest).unwrap_or(0)
    }
    fn cut(value: u128) -> Self {
        value
    }
}

/// The first address of an interval, and its value. The interval ends where the next one starts.
pub type Run = (u128, u32);

/// The map.
#[derive(Clone, Debug)]
pub struct Trie<K> {
    top_bits: u32,
    /// Values or nodes. The top two bits are the kind.
    top: Vec<u32>,
    narrow: Vec<Narrow>,
    wide: Vec<[u32; 256]>,
    skips: Vec<Skip<K>>,
}

/// At most 12 runs of equal entries.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Narrow {
    /// The last entry of each run; 255 for unused runs.
    ends: [u8; 16],
    entries: [u32; RUNS],
}

/// A node for a range of addresses whose values change only inside one block.
#[derive(Clone, Copy, Debug)]
struct Skip<K> {
    /// The block's address without its last `rest` bits.
    block: K,
    rest: u32,
    before: u32,
    inside: u32,
    after: u32,
}

impl Narrow {
    /// All 256 entries.
    #[expect(clippy::indexing_slicing, reason = "a run's number is below `RUNS`")]
    fn spread(&self) -> [u32; 256] {
        let mut run = 0;
        std::array::from_fn(|place| {
            while run + 1 < RUNS && usize::from(self.ends[run]) < place {
                run += 1;
            }
            self.entries[run]
        })
    }
}

impl<K: Key> Trie<K> {
    /// Builds the map from these runs: in order, the first at 0, all values below [`LIMIT`].
    #[must_use]
    pub fn new(runs: &[Run]) -> Self {
        let top_bits = match runs.len() {
            0..16 => 0,
            16..1024 => 8,
            _ => 16,
        };
        let mut trie = Self {
            top_bits,
            top: vec![0; 1 << top_bits],
            narrow: Vec::new(),
            wide: Vec::new(),
            skips: Vec::new(),
        };
        trie.update(0, K::BITS, &mut |_, _| runs.to_vec());
        trie
    }

    /// The value of an address.
    #[must_use]
    #[inline]
    pub fn get(&self, key: K) -> u32 {
        let (mut at, mut rest) = self.start(key);
        while at >> KIND != 0 {
            (at, rest) = self.step(key, at, rest);
        }
        at
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "`top` has an entry for each value of the top bits"
    )]
    fn start(&self, key: K) -> (u32, u32) {
        let rest = K::BITS - self.top_bits;
        (self.top[index(key.above(rest))], rest)
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a number of a node is its place, and fewer than `RUNS` ends are in use"
    )]
    fn step(&self, key: K, at: u32, rest: u32) -> (u32, u32) {
        let node = (at & (LIMIT - 1)) as usize;
        match at >> KIND {
            NARROW => {
                let (node, byte) = (&self.narrow[node], key.byte(rest - 8));
                let before: u8 =
                    node.ends.iter().map(|end| u8::from(usize::from(*end) < byte)).sum();
                (node.entries[usize::from(before)], rest - 8)
            }
            WIDE => (self.wide[node][key.byte(rest - 8)], rest - 8),
            _ => {
                let node = &self.skips[node];
                let next = match key.above(node.rest).cmp(&node.block) {
                    std::cmp::Ordering::Less => node.before,
                    std::cmp::Ordering::Equal => node.inside,
                    std::cmp::Ordering::Greater => node.after,
                };
                (next, node.rest)
            }
        }
    }

    /// Rebuilds the map for the addresses that differ from `address` only in the last `host` bits.
    /// `runs` returns the new runs for an address and a number of bits; the first run starts at or
    /// before the address. The space of replaced nodes is lost until the whole map is rebuilt.
    #[expect(
        clippy::indexing_slicing,
        reason = "`top` has an entry for each value of the top bits, and no more runs are used than there are"
    )]
    pub fn update(
        &mut self,
        address: u128,
        host: u32,
        runs: &mut dyn FnMut(u128, u32) -> Vec<Run>,
    ) {
        let rest = K::BITS - self.top_bits;
        let first = index(K::cut(address).above(rest));
        if host < rest {
            let at = self.top[first];
            self.top[first] = self.renew(at, address & !ones(rest), rest, (address, host), runs);
        } else {
            let runs = runs(address, host);
            let mut left = runs.as_slice();
            for entry in first..first + (1 << (host - rest)) {
                let base = if rest >= 128 { 0 } else { (entry as u128) << rest };
                left = &left[current(left, base)..];
                let (node, used) = self.build(left, base, rest);
                self.top[entry] = node;
                left = &left[used..];
            }
        }
    }

    /// Rebuilds a node for the addresses from `base` on that differ in the last `rest` bits, after
    /// the addresses of `part` (a smaller range, see [`Self::update`]) have changed. Returns the
    /// new entry.
    #[expect(
        clippy::indexing_slicing,
        reason = "a number of a node is its place, and no more runs are used than there are"
    )]
    fn renew(
        &mut self,
        at: u32,
        base: u128,
        rest: u32,
        part: (u128, u32),
        runs: &mut dyn FnMut(u128, u32) -> Vec<Run>,
    ) -> u32 {
        let (address, host) = part;
        let number = (at & (LIMIT - 1)) as usize;
        let mut entries = match at >> KIND {
            NARROW => self.narrow[number].spread(),
            WIDE => self.wide[number],
            SKIP => {
                let Skip { block, rest: inner, inside, .. } = self.skips[number];
                let within = host < inner && K::cut(address).above(inner) == block;
                if !within {
                    return self.build(&runs(base, rest), base, rest).0;
                }
                let inside = self.renew(inside, address & !ones(inner), inner, part, runs);
                self.skips[number].inside = inside;
                return at;
            }
            _ => return self.build(&runs(base, rest), base, rest).0,
        };
        let child = rest - 8;
        let first = K::cut(address).byte(child);
        if host < child {
            let base = address & !ones(child);
            entries[first] = self.renew(entries[first], base, child, part, runs);
        } else {
            let runs = runs(address, host);
            let mut left = runs.as_slice();
            let places = first..first + (1 << (host - child));
            for (entry, base) in entries[places].iter_mut().zip(0_u128..) {
                let base = address + (base << child);
                left = &left[current(left, base)..];
                let (node, used) = self.build(left, base, child);
                *entry = node;
                left = &left[used..];
            }
        }
        if at >> KIND == WIDE {
            self.wide[number] = entries;
            return at;
        }
        self.store(&entries)
    }

    /// Builds a node for the addresses from `base` on that differ in the last `rest` bits. `runs`
    /// starts with the run that contains `base`. Also returns the number of the run that contains
    /// the last address.
    #[expect(
        clippy::indexing_slicing,
        reason = "a part of the addresses has at least the run that it begins in"
    )]
    fn build(&mut self, runs: &[Run], base: u128, rest: u32) -> (u32, usize) {
        let end = base | ones(rest);
        if runs.get(1).is_none_or(|next| next.0 > end) {
            return (runs[0].1, 0);
        }
        let used = count_up_to(&runs[1..], end);
        let inner = &runs[1..=used];
        let (Some(first), Some(last)) = (inner.first(), inner.last()) else {
            return (runs[0].1, 0);
        };
        // All decisions lie between these two addresses.
        let (low, high) = (first.0, (last.0 - 1).max(first.0));
        let differ = (u128::BITS - (low ^ high).leading_zeros()).next_multiple_of(8);
        if differ + 8 < rest {
            let block = low & !ones(differ);
            let inside = if low == block { 1 } else { 0 };
            let (inside, _) = self.build(&runs[inside..], block, differ);
            let node = Skip {
                block: K::cut(block).above(differ),
                rest: differ,
                before: runs[0].1,
                inside,
                after: last.1,
            };
            self.skips.push(node);
            return (tagged(SKIP, self.skips.len()), used);
        }
        let mut entries = [0; 256];
        let mut left = runs;
        for (entry, index) in entries.iter_mut().zip(0_u128..) {
            let base = base + (index << (rest - 8));
            left = &left[current(left, base)..];
            let (node, used) = self.build(left, base, rest - 8);
            *entry = node;
            left = &left[used..];
        }
        (self.store(&entries), used)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a node with more than `RUNS` runs has returned, and windows have two entries"
    )]
    fn store(&mut self, entries: &[u32; 256]) -> u32 {
        let mut node = Narrow { ends: [u8::MAX; 16], entries: [entries[0]; RUNS] };
        let mut runs = 0;
        for (pair, index) in entries.windows(2).zip(0_u8..) {
            if pair[0] != pair[1] {
                if runs + 1 == RUNS {
                    self.wide.push(*entries);
                    return tagged(WIDE, self.wide.len());
                }
                node.ends[runs] = index;
                runs += 1;
                node.entries[runs] = pair[1];
            }
        }
        self.narrow.push(node);
        tagged(NARROW, self.narrow.len())
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.top.capacity() * 4
            + self.narrow.capacity() * size_of::<Narrow>()
            + self.wide.capacity() * size_of::<[u32; 256]>()
            + self.skips.capacity() * size_of::<Skip<K>>()
    }

    /// The number of nodes, including nodes that were replaced.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.narrow.len() + self.wide.len() + self.skips.len()
    }
}

fn index<K: Key>(key: K) -> usize {
    let index: u128 = key.into();
    usize::try_from(index).unwrap_or(0)
}

/// The number of the run that contains an address.
fn current(runs: &[Run], address: u128) -> usize {
    // Nearly always one of the first few.
    runs.iter().skip(1).take_while(|run| run.0 <= address).count()
}

/// The number of runs that start up to an address. The search doubles its step, because nearly
/// every call counts only a few of many runs.
fn count_up_to(runs: &[Run], address: u128) -> usize {
    let mut reach = 8;
    while runs.get(reach).is_some_and(|run| run.0 <= address) {
        reach *= 2;
    }
    runs.get(..reach).unwrap_or(runs).partition_point(|run| run.0 <= address)
}

fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(u128::BITS - bits).unwrap_or(0)
}

/// The entry for the node that was pushed last. No memory can hold more than 2^30 nodes.
fn tagged(kind: u32, len: usize) -> u32 {
    kind << KIND | u32::try_from(len - 1).unwrap_or(LIMIT - 1).min(LIMIT - 1)
}

#[cfg(test)]
mod tests {
    use super::{Key, Run, Trie};
    use proptest::prelude::*;

    fn naive(runs: &[Run], key: u128) -> u32 {
        runs[runs.partition_point(|run| run.0 <= key) - 1].1
    }

    /// Looks up addresses at and around all ends, and the last address.
    fn agrees<K: Key>(runs: &[Run]) {
        let trie = Trie::<K>::new(runs);
        let last = super::ones(K::BITS);
        let near = runs.iter().flat_map(|run| [run.0.wrapping_sub(1) & last, run.0, run.0 + 1]);
        for key in near.chain([last, 0]).filter(|key| *key <= last) {
            assert_eq!(trie.get(K::cut(key)), naive(runs, key), "{key:x} of {runs:x?}");
        }
    }

    fn runs(bits: u32) -> impl Strategy<Value = Vec<Run>> {
        // Clustered starts: prefixes with few values, with tails of few values.
        let start = (0_u128..4, 0_u32..=16, 0_u128..3, 0_u32..=120).prop_map(
            move |(high, shift, low, place)| {
                ((high << (bits - 2))
                    ^ (high << (bits / 2))
                    ^ (low << (place % bits))
                    ^ (1 << shift))
                    & super::ones(bits)
            },
        );
        prop::collection::btree_map(start, 0_u32..5, 0..60).prop_map(|map| {
            let mut runs: Vec<Run> = map.into_iter().collect();
            if runs.first().is_none_or(|run| run.0 != 0) {
                runs.insert(0, (0, 9));
            }
            runs
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

        #[test]
        fn values_are_those_of_the_runs(four in runs(32), six in runs(128)) {
            agrees::<u32>(&four);
            agrees::<u128>(&six);
        }
    }

    #[test]
    fn many_runs_take_wide_nodes_and_a_large_first_array() {
        let runs: Vec<Run> = (0..5000).map(|n| (n * 7, (n % 11) as u32)).collect();
        agrees::<u32>(&runs);
        agrees::<u128>(&runs);
        assert_eq!(Trie::<u32>::new(&runs).top_bits, 16);
    }

    #[test]
    fn a_lone_host_is_one_skip() {
        let host = 0x2001_0db8_0000_0000_0000_0000_0000_00ff;
        let trie = Trie::<u128>::new(&[(0, 1), (host, 2), (host + 1, 1)]);
        assert_eq!((trie.nodes(), trie.skips.len()), (1, 1));
        assert_eq!([host - 1, host, host + 1].map(|key| trie.get(key)), [1, 2, 1]);
    }
}
