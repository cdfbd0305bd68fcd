//! Random numbers that are the same on every machine.
//!
//! The generator is SplitMix64, the same as in chains. Logarithm and power use only the four basic
//! operations, because IEEE 754 defines their results to the last bit. The functions of system
//! libraries give different results on different machines.

use std::f64::consts::{LN_2, SQRT_2};

use braid_externs::rng::{GAMMA, Rng, mix};

/// A generator.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The generator for one purpose of a seed. Generators for different purposes are independent.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self(Rng::new(hash(seed, purpose)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number of `0..n`, evenly distributed; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.bits(), n)
    }

    /// A number from (0, 1], evenly distributed.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -ln(self.unit())
    }
}

/// Random bits that depend only on these two numbers.
pub fn hash(a: u64, b: u64) -> u64 {
    mix(mix(a.wrapping_add(GAMMA)) ^ b.wrapping_mul(GAMMA).wrapping_add(GAMMA))
}

/// Maps random bits evenly to `0..n`.
pub fn scale(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// The natural logarithm of a positive, normal number.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52 & 0x7ff) as f64 - 1023.0;
    let mut fraction = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if fraction > SQRT_2 {
        (fraction, exponent) = (fraction / 2.0, exponent + 1.0);
    }
    // ln f = 2 artanh t. As t is below 0.172, 12 terms are exact to the last bits of a double.
    let t = (fraction - 1.0) / (fraction + 1.0);
    let square = t * t;
    let series = (0..12).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent * LN_2 + 2.0 * t * series
}

/// `e` to the power of `x`, for `x` from -700 to 700. Other values give the result of the nearer
/// end.
pub fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let doublings = (x / LN_2).round();
    let rest = x - doublings * LN_2;
    let series = (1..20).rev().fold(1.0, |sum, k| 1.0 + sum * rest / f64::from(k));
    let power = f64::from_bits(((doublings as i64 + 1023) as u64) << 52);
    series * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{E, LN_10};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-14 * b.abs().max(1.0)
    }

    #[test]
    fn logarithm_is_that_of_tables() {
        assert_eq!(ln(1.0), 0.0);
        assert!(close(ln(2.0), LN_2));
        assert!(close(ln(10.0), LN_10));
        assert!(close(ln(0.001), -6.907_755_278_982_137));
        assert!(close(ln(1e300), 690.775_527_898_213_7));
    }

    #[test]
    fn exponential_function_undoes_the_logarithm() {
        assert_eq!(exp(0.0), 1.0);
        assert!(close(exp(1.0), E));
        for x in [1e-9, 0.3, 1.0, 1.414, 1.4143, 7.5, 1e9] {
            assert!((exp(ln(x)) / x - 1.0).abs() < 1e-13, "{x}");
        }
        assert!(exp(-1e9) > 0.0 && exp(1e9).is_finite());
    }

    #[test]
    fn splitmix_gives_its_published_numbers() {
        // The first two outputs for the seed 1234567, from the reference implementation.
        let mut random = Random(Rng::new(1_234_567));
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn exponential_numbers_have_mean_one() {
        // The mean of 40,000 deviates has a standard deviation of 1/200. The test allows 5 of
        // these.
        let mut random = Random::new(1, 2);
        let mean = (0..40_000).map(|_| random.exponential()).sum::<f64>() / 40_000.0;
        assert!((mean - 1.0).abs() < 0.025, "{mean}");
    }

    #[test]
    fn numbers_below_a_bound_reach_all_and_only_those() {
        let mut random = Random::new(3, 0);
        let mut seen = [0; 7];
        (0..7_000).for_each(|_| seen[random.below(7) as usize] += 1);
        // 1,000 each, with a standard deviation of 29.
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
