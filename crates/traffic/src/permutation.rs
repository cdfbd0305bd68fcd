//! A random order of `0..n` that is computed, not stored. Flows get distinct addresses and ports
//! without a table of the used ones.

use crate::random::hash;

const ROUNDS: u64 = 4;

/// A bijection of `0..n` to itself: a Feistel network over the next power of four, repeated until
/// the result is below n (Black and Rogaway 2002, "cycle walking").
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// A permutation of `0..n`, for `n` from 1 to 2^62.
    pub fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.clamp(1, 1 << 62).saturating_sub(1).leading_zeros();
        Self { n, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// The image of `i`, which must be below `n`.
    pub fn at(&self, i: u64) -> u64 {
        let mut at = self.once(i);
        // These are steps along a cycle that contains `i`. As `i` is below `n`, the loop ends.
        while at >= self.n {
            at = self.once(at);
        }
        at
    }

    fn once(&self, i: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (i >> self.half_bits & mask, i & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ hash(self.key ^ round << 60, right) & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_hit_once() {
        for n in [1, 2, 3, 5, 16, 17, 1_000] {
            let permutation = Permutation::new(n, 42);
            let mut seen: Vec<u64> = (0..n).map(|i| permutation.at(i)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>(), "{n}");
        }
    }

    #[test]
    fn order_depends_on_the_key() {
        let order = |key| (0..100).map(|i| Permutation::new(100, key).at(i)).collect::<Vec<_>>();
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }
}
