//! The keyed hash of packed keys.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Words that the first stage takes at a time.
const BLOCK: usize = 8;

/// The key of the hash. Keys of tables come from the wire, so each process draws its own.
///
/// First NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO '99), which adds up products of
/// two words, each plus a secret one: whoever does not know those cannot choose words that collide
/// more often than by chance. The products do not wait for each other. Then a folded multiplication
/// spreads the sum over all bits. It is fast, not cryptographic: outputs are never shown to anyone.
#[derive(Clone, Debug)]
pub struct HashKey {
    add: [u64; BLOCK],
    mix: u64,
    by: u64,
}

impl HashKey {
    /// A key of this process's own.
    #[must_use]
    pub fn random() -> Self {
        let random = RandomState::new();
        Self::draw(|number| {
            let mut hasher = random.build_hasher();
            hasher.write_u64(number);
            hasher.finish()
        })
    }

    /// The key with this seed: for measurements that must repeat.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut rng = braid_externs::Rng::new(seed);
        Self::draw(|_| rng.next_u64())
    }

    /// A key under which all hashes are equal, but those of keys of two words: for tests.
    #[must_use]
    pub fn colliding() -> Self {
        Self { add: [0; BLOCK], mix: 0, by: 0 }
    }

    fn draw(mut next: impl FnMut(u64) -> u64) -> Self {
        let add = std::array::from_fn(|at| next(at as u64));
        // Odd, so that no bit of the other factor is lost.
        Self { add, mix: next(BLOCK as u64), by: next(BLOCK as u64 + 1) | 1 }
    }

    /// The hash of a packed key of a size known when compiling.
    #[must_use]
    #[inline]
    pub fn hash_words<const N: usize>(&self, key: &[u64; N]) -> u64 {
        if N > BLOCK {
            return self.hash_long(key);
        }
        let term = |at: usize| key.get(at).map_or(0, |word| word.wrapping_add(self.add[at]));
        // An odd word is multiplied by a secret one.
        let second = |at: usize| if at < N { term(at) } else { self.by };
        let mut sum = 0_u128;
        for at in (0..N).step_by(2) {
            sum = sum.wrapping_add(wide(term(at), second(at + 1)));
        }
        let hash = xor_halves(sum);
        if N <= 2 { hash } else { fold(hash ^ self.mix, self.by) }
    }

    /// The hash of a packed key. Keys of one table are of one length.
    #[must_use]
    #[inline]
    pub fn hash(&self, key: &[u64]) -> u64 {
        match *key {
            [a] => self.hash_words(&[a]),
            [a, b] => self.hash_words(&[a, b]),
            [a, b, c, d, e] => self.hash_words(&[a, b, c, d, e]),
            _ => self.hash_long(key),
        }
    }

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
fn xor_halves(value: u128) -> u64 {
    (value as u64) ^ ((value >> 64) as u64)
}
