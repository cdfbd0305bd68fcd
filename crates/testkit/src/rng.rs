//! A small generator of random numbers. One seed determines everything that is generated.

use braid_externs::rng::Rng as SplitMix;

/// The random generator of chains, with the draws that generated tests need.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix);

impl Rng {
    /// A generator for this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix::new(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next 128 bits.
    pub fn wide(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    /// A number below `n`. It is 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        usize::try_from(self.bits().checked_rem(n).unwrap_or(0)).unwrap_or(0)
    }

    /// A number from `low` to `high`, both ends included.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low);
        low + if span == u64::MAX { self.bits() } else { self.bits() % (span + 1) }
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A random element.
    ///
    /// # Panics
    /// When there is no element.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.bits().to_be_bytes()[0]
    }

    /// Two bytes.
    pub fn short(&mut self) -> u16 {
        let [high, low, ..] = self.bits().to_be_bytes();
        u16::from_be_bytes([high, low])
    }

    /// Four bytes.
    pub fn word(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.bits().to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }

    /// A generator that is independent of this one.
    pub fn split(&mut self) -> Rng {
        Rng::new(self.bits())
    }
}
