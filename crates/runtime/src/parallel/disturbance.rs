//! Stalls between stages, for tests.

/// Delays that a seed chooses. Only tests have any.
#[derive(Clone, Copy, Default)]
pub(super) struct Disturbance {
    #[cfg(feature = "mutants")]
    pub(super) seed: Option<u64>,
}

impl Disturbance {
    #[cfg_attr(not(feature = "mutants"), expect(unused_variables, reason = "only tests have any"))]
    pub(super) fn of(options: super::Options) -> Self {
        Self {
            #[cfg(feature = "mutants")]
            seed: options.stalls,
        }
    }

    /// Delays a stage before a batch.
    #[cfg(feature = "mutants")]
    pub(super) fn stall(self, stage: usize, turn: u64) {
        use std::time::Duration;
        let Some(seed) = self.seed else { return };
        let mixed = (seed ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stage as u64) << 17;
        match (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 59) & 15 {
            0 => std::thread::sleep(Duration::from_micros(200)),
            1..4 => std::thread::yield_now(),
            _ => {}
        }
    }

    /// Delays a stage before a batch.
    #[cfg(not(feature = "mutants"))]
    #[expect(clippy::unused_self, reason = "only tests have delays")]
    pub(super) fn stall(self, _: usize, _: u64) {}
}
