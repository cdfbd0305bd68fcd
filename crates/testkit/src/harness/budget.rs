//! Decides how many generated cases a test runs: few by default, more on request.

use std::ops::Range;
use std::time::Instant;

/// The number of pairs on which engines are compared, unless `BRAID_CASES` sets it. Other tests
/// scale with this ratio.
pub const PAIRS: u64 = 240;

/// The seeds of a property's cases. Their number is `count`, scaled by the ratio of `BRAID_CASES`
/// to [`PAIRS`]. They start from `BRAID_SEED` if that is set.
///
/// # Panics
/// When a variable is set to something other than a number.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let start = number("BRAID_SEED").unwrap_or(0);
    let count = number("BRAID_CASES").map_or(count, |pairs| scaled(count, pairs));
    start..start.saturating_add(count)
}

fn scaled(count: u64, pairs: u64) -> u64 {
    match pairs {
        // The case of a single seed, or none.
        0 | 1 => pairs,
        _ => count.saturating_mul(pairs).div_ceil(PAIRS),
    }
}

/// Whether a case also runs slow engines: one case in `every`, or all cases if `BRAID_CASES` is
/// set.
#[must_use]
pub fn in_full(case: u64, every: u64) -> bool {
    case.is_multiple_of(every) || is_asked()
}

/// Whether `BRAID_CASES` is set.
#[must_use]
pub fn is_asked() -> bool {
    std::env::var_os("BRAID_CASES").is_some()
}

/// Reports the progress of a run that `BRAID_CASES` made long, and its findings at the end.
pub struct Progress {
    seeds: Range<u64>,
    start: Instant,
    /// Number of cases with machine code.
    native: u64,
    /// The differences.
    found: Vec<String>,
}

/// The number of cases with a difference after which a run stops.
const ENOUGH: usize = 5;

impl Progress {
    /// A run over these seeds.
    #[must_use]
    pub fn new(seeds: Range<u64>) -> Self {
        Self { seeds, start: Instant::now(), native: 0, found: Vec::new() }
    }

    /// Records the end of the case of a seed.
    ///
    /// # Panics
    /// When enough cases had differences.
    pub fn done(&mut self, seed: u64, native: bool, found: Option<String>) {
        self.native += u64::from(native);
        self.found.extend(found);
        let done = seed + 1 - self.seeds.start;
        if self.found.len() >= ENOUGH || self.seeds.end == seed + 1 || done.is_multiple_of(1000) {
            self.say(done);
        }
        assert!(self.found.len() < ENOUGH, "{}", self.found.join("\n"));
    }

    fn say(&self, done: u64) {
        if !is_asked() {
            return;
        }
        let Range { start, end } = self.seeds;
        eprintln!(
            "{done} of {} pairs done (seeds {start} to {}; {} with machine code): {} differ, {:.0} s",
            end - start,
            start + done - 1,
            self.native,
            self.found.len(),
            self.start.elapsed().as_secs_f64(),
        );
    }

    /// Ends the run.
    ///
    /// # Panics
    /// When a case had a difference.
    pub fn end(self) {
        assert!(self.found.is_empty(), "{}", self.found.join("\n"));
    }
}

/// Number of packets of each capture: `most`, unless `BRAID_PACKETS` sets it.
///
/// # Panics
/// When the variable is set to something other than a number.
#[must_use]
pub fn captured(most: usize) -> usize {
    number("BRAID_PACKETS").map_or(most, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{variable}={text}: expected a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::{PAIRS, scaled};

    #[test]
    fn all_tests_are_scaled_alike() {
        assert_eq!([PAIRS, 3, 1000].map(|count| scaled(count, PAIRS)), [PAIRS, 3, 1000]);
        assert_eq!(
            [PAIRS, 3, 1000].map(|count| scaled(count, 10 * PAIRS)),
            [10 * PAIRS, 30, 10_000]
        );
        assert_eq!([PAIRS, 3, 1000].map(|count| scaled(count, PAIRS / 10)), [PAIRS / 10, 1, 100]);
        assert_eq!([PAIRS, 3, 1000].map(|count| scaled(count, 1)), [1, 1, 1]);
    }
}
