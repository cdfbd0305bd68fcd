//! Flow keys whose hash is computed once, and maps and sets of them.

use braid_packet::FlowKey;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hash, Hasher};

/// The bits of a [`KeySet`]. There are several for each packet of a burst.
const BITS: usize = 1024;

/// Secret words for the hashes of the ends of flows. Senders of packets choose the keys, so each
/// run draws its own words.
#[derive(Debug)]
pub(crate) struct Ends([u64; 3]);

impl Default for Ends {
    fn default() -> Self {
        let random = RandomState::new();
        Self([0, 1, 2].map(|number: u64| random.hash_one(number)))
    }
}

impl Ends {
    /// The hash of an address and a port. Adds a secret word to each word and multiplies the sums,
    /// as NH does.
    #[expect(clippy::cast_possible_truncation, reason = "the casts take both halves of the word")]
    fn hash(&self, address: u128, port: u16) -> u64 {
        let Self([low, high, mix]) = self;
        let sum =
            wide((address as u64).wrapping_add(*low), ((address >> 64) as u64).wrapping_add(*high));
        let folded = (sum as u64) ^ ((sum >> 64) as u64);
        let mixed = wide(folded.wrapping_add(u64::from(port)), *mix | 1);
        (mixed as u64) ^ ((mixed >> 64) as u64)
    }
}

fn wide(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}

/// A flow key with the hashes of its source and its destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed {
    pub(crate) key: FlowKey,
    ends: (u64, u64),
}

impl Keyed {
    pub(crate) fn new(key: FlowKey, ends: &Ends) -> Self {
        Self { key, ends: (ends.hash(key.src, key.sport), ends.hash(key.dst, key.dport)) }
    }

    /// The key of the opposite direction.
    pub(crate) fn reversed(self) -> Self {
        Self { key: self.key.reversed(), ends: (self.ends.1, self.ends.0) }
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Keyed {}

impl Keyed {
    fn hash(&self) -> u64 {
        self.ends.0.rotate_left(17).wrapping_add(self.ends.1)
    }
}

impl Hash for Keyed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash());
    }
}

/// A hasher for keys that contain their hash: it returns this hash unchanged.
#[derive(Default)]
pub(crate) struct Ready(u64);

impl Hasher for Ready {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map of flow keys.
pub(crate) type Keys<V> = HashMap<Keyed, V, BuildHasherDefault<Ready>>;

/// A small set of flow keys that knows quickly that a key is not in it.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// For each key, the bit that its hash selects.
    bits: [u64; BITS / 64],
    keys: Vec<FlowKey>,
}

impl Default for KeySet {
    fn default() -> Self {
        Self { bits: [0; BITS / 64], keys: Vec::new() }
    }
}

impl KeySet {
    #[expect(clippy::indexing_slicing, reason = "`place` gives a word of `bits`")]
    pub(crate) fn contains(&self, keyed: &Keyed) -> bool {
        let (word, bit) = place(keyed);
        self.bits[word] & bit != 0 && self.keys.contains(&keyed.key)
    }

    #[expect(clippy::indexing_slicing, reason = "`place` gives a word of `bits`")]
    pub(crate) fn insert(&mut self, keyed: Keyed) {
        let (word, bit) = place(&keyed);
        self.bits[word] |= bit;
        self.keys.push(keyed.key);
    }

    pub(crate) fn clear(&mut self) {
        self.bits.fill(0);
        self.keys.clear();
    }
}

/// The word and the bit of a key in [`KeySet::bits`].
fn place(keyed: &Keyed) -> (usize, u64) {
    let number = (keyed.hash() >> 20) as usize % BITS;
    (number / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> FlowKey {
        let (src, dst) = (u128::from(number) << 70, u128::from(number % 7));
        FlowKey { version: 6, src, dst, proto: 17, sport: number, dport: 443 }
    }

    #[test]
    fn sets_and_maps_hold_keys_of_one_direction() {
        let ends = Ends::default();
        let (mut set, mut map) = (KeySet::default(), Keys::default());
        for number in 0..500 {
            let keyed = Keyed::new(key(number), &ends);
            assert_eq!(keyed.reversed(), Keyed::new(key(number).reversed(), &ends));
            set.insert(keyed);
            map.insert(keyed, number);
        }
        for number in 0..1000 {
            let keyed = Keyed::new(key(number), &ends);
            assert_eq!(set.contains(&keyed), number < 500, "{number}");
            assert_eq!(map.get(&keyed), Some(&number).filter(|number| **number < 500));
            let reversed = Keyed::new(key(number).reversed(), &ends);
            assert!(!set.contains(&reversed) && !map.contains_key(&reversed), "{number}");
        }
        set.clear();
        assert!(!set.contains(&Keyed::new(key(0), &ends)));
    }

    #[test]
    fn keys_spread_over_the_bits_of_a_set() {
        let ends = Ends::default();
        let places = (0..64).map(|number| place(&Keyed::new(key(number), &ends)));
        let different: std::collections::HashSet<_> = places.collect();
        assert!(different.len() > 48, "{}", different.len());
    }
}
