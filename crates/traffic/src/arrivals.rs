//! Arrival times: at regular intervals, or as a Poisson process.

use crate::random::Random;

/// How arrivals are spread over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrivals {
    /// Arrivals are independent of each other: the gaps are exponentially distributed.
    #[default]
    Poisson,
    /// Equal gaps. The first arrival comes after a random part of a gap.
    Regular,
}

impl Arrivals {
    /// Names and values, for options.
    pub const NAMES: &[(&str, Arrivals)] =
        &[("poisson", Arrivals::Poisson), ("regular", Arrivals::Regular)];
}

/// Gives the times of arrivals one by one, in nanoseconds from the start.
#[derive(Clone, Debug)]
pub struct Clock {
    arrivals: Arrivals,
    gap_ns: f64,
    now_ns: f64,
    random: Random,
}

impl Clock {
    /// A clock with `per_second` arrivals a second on average. The rate must be positive and
    /// finite.
    pub fn new(arrivals: Arrivals, per_second: f64, mut random: Random) -> Self {
        let gap_ns = 1e9 / per_second;
        let now_ns = match arrivals {
            Arrivals::Poisson => 0.0,
            Arrivals::Regular => gap_ns * (random.unit() - 1.0),
        };
        Self { arrivals, gap_ns, now_ns, random }
    }

    /// The time of the next arrival, rounded down. It is never before the last arrival.
    pub fn next_ns(&mut self) -> u64 {
        self.now_ns += match self.arrivals {
            Arrivals::Poisson => self.gap_ns * self.random.exponential(),
            Arrivals::Regular => self.gap_ns,
        };
        self.now_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_arrivals_keep_their_gap() {
        let mut clock = Clock::new(Arrivals::Regular, 4.0, Random::new(7, 7));
        let times: Vec<u64> = (0..100).map(|_| clock.next_ns()).collect();
        assert!(times[0] <= 250_000_000);
        // Rounding down makes a difference of at most one.
        assert!(times.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(250_000_000) <= 1));
    }

    #[test]
    fn poisson_arrivals_come_at_their_rate_and_vary() {
        let mut clock = Clock::new(Arrivals::Poisson, 1000.0, Random::new(7, 7));
        let times: Vec<u64> = (0..10_000).map(|_| clock.next_ns()).collect();
        // 10 s, with a standard deviation of 0.1 s.
        assert!(times[9_999].abs_diff(10_000_000_000) < 500_000_000);
        // A gap is above its mean with probability 1/e = 0.368.
        let long = times.windows(2).filter(|pair| pair[1] - pair[0] > 1_000_000).count();
        assert!((3_450..3_900).contains(&long), "{long}");
    }
}
