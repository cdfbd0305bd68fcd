//! The round-trip time and the retransmission timeout (RFC 6298).

use crate::settings::{MILLISECOND, SECOND};

const LEAST: u64 = 200 * MILLISECOND;
const MOST: u64 = 60 * SECOND;

/// What is known of the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rtt {
    /// The smoothed time and its variation (ns).
    pub smoothed: Option<(u64, u64)>,
    /// The timeout without back-off (ns).
    pub timeout: u64,
    /// How often the timeout is doubled.
    pub doublings: u8,
}

impl Default for Rtt {
    fn default() -> Self {
        Self { smoothed: None, timeout: SECOND, doublings: 0 }
    }
}

impl Rtt {
    /// Takes a measurement (ns).
    pub fn sample(&mut self, time: u64) {
        let time = time.min(MOST);
        let (smoothed, variation) = match self.smoothed {
            None => (time, time / 2),
            Some((smoothed, variation)) => {
                let variation = (3 * variation + smoothed.abs_diff(time)) / 4;
                ((7 * smoothed + time) / 8, variation)
            }
        };
        self.smoothed = Some((smoothed, variation));
        self.timeout = (smoothed + 4 * variation).clamp(LEAST, MOST);
        self.doublings = 0;
    }

    /// The timeout (ns).
    pub fn timeout(&self) -> u64 {
        self.timeout.saturating_mul(1 << self.doublings.min(16)).min(MOST)
    }

    /// Doubles the timeout.
    pub fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1).min(16);
    }

    /// Takes a longer timeout if the SYN was retransmitted and nothing was measured (RFC 6298
    /// §5.7).
    pub fn distrust(&mut self) {
        if self.smoothed.is_none() && self.doublings > 0 {
            *self = Self { timeout: 3 * SECOND, ..Self::default() };
        }
    }

    /// Whether an endpoint would hold this.
    pub fn is_right(&self) -> bool {
        let times = self.smoothed.unwrap_or_default();
        times.0.max(times.1) <= MOST
            && (LEAST..=MOST).contains(&self.timeout)
            && self.doublings <= 16
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST, Rtt};
    use crate::settings::{MILLISECOND, SECOND};

    #[test]
    fn timeout_follows_the_measurements() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), SECOND);
        rtt.sample(100 * MILLISECOND);
        assert_eq!(rtt.timeout(), 300 * MILLISECOND);
        for _ in 0..100 {
            rtt.sample(100 * MILLISECOND);
        }
        assert_eq!(rtt.timeout(), LEAST);
        rtt.sample(u64::MAX);
        assert!(rtt.timeout() > 10 * SECOND && rtt.is_right());
    }

    #[test]
    fn timeout_doubles_until_the_next_measurement() {
        let mut rtt = Rtt::default();
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(), 4 * SECOND);
        (0..300).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), MOST);
        rtt.sample(100 * MILLISECOND);
        assert_eq!(rtt.timeout(), 300 * MILLISECOND);
    }
}
