//! The seeded generator for every random choice: `random(n)`, and pools in random order.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
//! OOPSLA'14). It is part of a chain's meaning: all engines draw the same numbers in the same
//! order. Generated traffic and generated tests use it too. It is not for secrets.

/// A generator. Its state is one 64-bit number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rng {
    state: u64,
}

/// The odd number nearest to 2^64 divided by the golden ratio.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// The generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The generator of a function instance. It depends on the chain's seed, the instance's
    /// position in the chain, and the worker's shard (0 for state that is not sharded).
    #[must_use]
    pub fn for_instance(chain_seed: u64, position: u16, shard: u16) -> Self {
        // Seeds are outputs of a mixed seed, not neighbouring numbers: SplitMix64 streams overlap
        // when their states differ by a small multiple of GAMMA.
        let mut chain = Self::new(chain_seed);
        let place = u64::from(position) << 16 | u64::from(shard);
        Self::new(mix(chain.next_u64() ^ mix(place.wrapping_add(1))))
    }

    /// The state. A generator with this number as its seed goes on from here.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.state
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number from 0 to `bound - 1`, all equally likely. When `bound` is 0 or 1 the result is 0,
    /// and nothing is drawn.
    ///
    /// Draws only the bits that `bound - 1` needs (up to 2^64 the low bits of one draw, above it
    /// two draws, the high half first) and draws again while the number is out of range. The result
    /// is unbiased, and takes fewer than two rounds on average.
    pub fn below(&mut self, bound: u128) -> u128 {
        if bound <= 1 {
            return 0;
        }
        let top = bound - 1;
        let mask = u128::MAX >> top.leading_zeros();
        loop {
            let bits = if mask <= u128::from(u64::MAX) {
                u128::from(self.next_u64())
            } else {
                u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
            };
            if bits & mask <= top {
                return bits & mask;
            }
        }
    }
}

/// SplitMix64's finaliser (variant 13 of Stafford's mixers).
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        // Seed 1234567: the test vector of Vigna's reference splitmix64.c, as Rosetta Code lists
        // it.
        let mut rng = Rng::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn below_is_uniform_within_four_sigma() {
        // 60,000 draws from 6 faces: 10,000 each, sigma = sqrt(60000 * 1/6 * 5/6) = 91.3.
        let mut rng = Rng::new(7);
        let mut seen = [0_i64; 6];
        for _ in 0..60_000 {
            seen[usize::try_from(rng.below(6)).expect("below 6")] += 1;
        }
        assert!(seen.iter().all(|n| (n - 10_000).abs() < 366), "{seen:?}");
    }

    #[test]
    fn below_covers_bounds_at_and_beside_64_bits() {
        let mut rng = Rng::new(1);
        assert_eq!(rng, Rng::new(1));
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert_eq!(rng, Rng::new(1), "nothing drawn for trivial bounds");
        for bound in [2, 1 << 63, 1 << 64, (1 << 64) + 1, u128::MAX] {
            assert!((0..100).all(|_| rng.below(bound) < bound));
        }
        assert!((0..100).any(|_| rng.below(u128::MAX) > u128::from(u64::MAX)));
    }

    #[test]
    fn instances_draw_different_streams() {
        let first = |position, shard| Rng::for_instance(0, position, shard).next_u64();
        assert_ne!(first(0, 0), first(1, 0));
        assert_ne!(first(0, 0), first(0, 1));
        assert_ne!(first(0, 0), Rng::for_instance(1, 0, 0).next_u64());
    }
}
