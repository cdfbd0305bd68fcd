//! The keyed hash of packed keys.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The number of words that the first stage takes at a time.
const BLOCK: usize = 8;

/// A key of the hash. Senders of packets choose the keys of tables, so each process draws a secret
/// hash key.
///
/// The first stage is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO '99). It adds
/// each word to a secret word and sums up the products of neighbours. Without the secret words,
/// nobody can choose keys that collide more often than by chance. The products are independent, so
/// they can be computed in parallel. The second stage is a folded multiplication, which spreads the
/// sum over all bits. The hash is fast, but not cryptographic: its values must stay secret.
#[derive(Clone, Debug)]
pub struct HashKey {
    add: [u64; BLOCK],
    mix: u64,
    by: u64,
}

impl HashKey {
    /// A key drawn by this process.
    #[must_use]
    pub fn random() -> Self {
        let random = RandomState::new();
        Self::draw(|number| {
            let mut hasher = random.build_hasher();
            hasher.write_u64(number);
            hasher.finish()
        })
    }

    /// The key with this seed, for tests and measurements that must repeat.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut rng = braid_externs::Rng::new(seed);
        Self::draw(|_| rng.next_u64())
    }

    /// A key for which all hashes are equal, for tests.
    #[must_use]
    pub fn colliding() -> Self {
        Self { add: [0; BLOCK], mix: 0, by: 0 }
    }

    fn draw(mut next: impl FnMut(u64) -> u64) -> Self {
        let add = std::array::from_fn(|at| next(at as u64));
        // Odd, so that the multiplication loses no bit of the other factor.
        Self { add, mix: next(BLOCK as u64), by: next(BLOCK as u64 + 1) | 1 }
    }

    /// The hash of a packed key with a size known at compile time.
    #[must_use]
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`add` has `BLOCK` words, and the key has no more")]
    pub fn hash_words<const N: usize>(&self, key: &[u64; N]) -> u64 {
        let mut hash = self.mix;
        for start in (0..N).step_by(BLOCK) {
            let term = |at: usize| key[at].wrapping_add(self.add[at - start]);
            // A last word without a neighbour is multiplied by a secret word.
            let second = |at: usize| if at < N { term(at) } else { self.by };
            let mut sum = 0_u128;
            for at in (start..N.min(start + BLOCK)).step_by(2) {
                sum = sum.wrapping_add(wide(term(at), second(at + 1)));
            }
            hash = fold(hash ^ xor_halves(sum), self.by);
        }
        hash
    }

    /// The hash of a packed key. All keys of a table have the same length.
    #[must_use]
    #[inline(always)]
    pub fn hash(&self, key: &[u64]) -> u64 {
        match *key {
            [a] => self.hash_words(&[a]),
            [a, b] => self.hash_words(&[a, b]),
            [a, b, c, d, e] => self.hash_words(&[a, b, c, d, e]),
            _ => self.hash_long(key),
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "chunks have at least one word, and those of `add` have two"
    )]
    fn hash_long(&self, key: &[u64]) -> u64 {
        let mut hash = self.mix;
        for block in key.chunks(BLOCK) {
            let mut sum = 0_u128;
            for (pair, add) in block.chunks(2).zip(self.add.chunks(2)) {
                let second = pair.get(1).map_or(self.by, |word| word.wrapping_add(add[1]));
                let product = wide(pair[0].wrapping_add(add[0]), second);
                sum = sum.wrapping_add(product);
            }
            hash = fold(hash ^ xor_halves(sum), self.by);
        }
        hash
    }
}

#[inline]
fn wide(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    xor_halves(wide(a, b))
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "one cast takes the low half, the other the high half"
)]
fn xor_halves(value: u128) -> u64 {
    (value as u64) ^ ((value >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::HashKey;

    const LINES: usize = 512;
    const KEYS: u64 = 4096;

    /// How unevenly some bits of the hashes distribute keys over lines, as chi-square. For a random
    /// distribution it is 511 on average, with a standard deviation of 32.
    fn unevenness(key: &HashKey, shift: u32, words: impl Fn(u64) -> Vec<u64>) -> f64 {
        let mut lines = [0_u32; LINES];
        for number in 0..KEYS {
            lines[(key.hash(&words(number)) >> shift) as usize % LINES] += 1;
        }
        let expected = KEYS as f64 / LINES as f64;
        lines.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn keys_that_differ_little_spread_over_all_bits() {
        let sets: [fn(u64) -> Vec<u64>; 7] = [
            |n| vec![n],
            |n| vec![n << 40 | 6],
            |n| vec![n % 64 + n / 64 * (1 << 32)],
            |n| vec![0x0a00_0001, n],
            |n| vec![n % 64, n / 64],
            // Flows between two hosts, and flows of many hosts to one port.
            |n| vec![0x000a_0000_0104, 0, 0x000a_0000_0200, 0, (1024 + n) << 16 | 0x0600],
            |n| vec![(0x0a00_0000 + n) << 8, 0, 0x000a_0000_0200, 0, 0x0050_0000_0600],
        ];
        for (set, words) in sets.iter().enumerate() {
            for seed in 0..braid_cases::cases(20).into() {
                let key = HashKey::seeded(seed);
                for shift in [0, 9, 55] {
                    let uneven = unevenness(&key, shift, words);
                    assert!(uneven < 511.0 + 6.0 * 32.0, "{set} {seed} {shift}: {uneven}");
                }
            }
        }
    }

    #[test]
    fn sizes_known_when_compiling_hash_alike() {
        let (key, words) = (HashKey::seeded(1), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        fn same<const N: usize>(key: &HashKey, words: &[u64]) {
            let array: &[u64; N] = words[..N].try_into().unwrap();
            assert_eq!(key.hash_words(array), key.hash(array), "{N}");
        }
        same::<0>(&key, &words);
        same::<1>(&key, &words);
        same::<2>(&key, &words);
        same::<3>(&key, &words);
        same::<5>(&key, &words);
        same::<8>(&key, &words);
        same::<10>(&key, &words);
    }
}
