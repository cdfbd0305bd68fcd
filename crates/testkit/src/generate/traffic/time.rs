//! Advances time. Mostly by a little, and sometimes to a time-out, just before or after one, or to
//! a multiple of a tick.

use crate::generate::{Boundaries, Rng};

/// The time of the next stimulus (ns).
pub(super) fn next(rng: &mut Rng, boundaries: &Boundaries, now: u64) -> u64 {
    let durations: Vec<u64> = boundaries.durations.iter().copied().collect();
    let step = match rng.below(20) {
        0..8 => 0,
        8..15 => rng.range(1, 2_000_000),
        15..17 => rng.range(1, 500_000_000),
        _ if durations.is_empty() => 10_000_000_000,
        17 => {
            let duration = *rng.pick(&durations);
            return duration_multiple(now, duration);
        }
        _ => {
            let duration = *rng.pick(&durations);
            let beside = [duration - 1, duration, duration.saturating_add(1), duration / 2];
            *rng.pick(&beside)
        }
    };
    now.saturating_add(step)
}

/// The next multiple of a duration.
fn duration_multiple(now: u64, duration: u64) -> u64 {
    now.checked_next_multiple_of(duration).unwrap_or(now)
}
