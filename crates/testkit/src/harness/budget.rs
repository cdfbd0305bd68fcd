//! How many generated cases a test takes: few by default, more on request.

use std::ops::Range;
use std::time::Instant;

/// Pairs that engines are compared on unless `BRAID_CASES` says how many: against this all other tests are scaled.
pub const PAIRS: u64 = 240;

/// Seeds of a property's cases: `count` of them, and as many times more (or fewer) as `BRAID_CASES` is more than
/// [`PAIRS`]; from `BRAID_SEED` on if it is set.
///
/// # Panics
/// When a variable is set to something that is no number.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let start = number("BRAID_SEED").unwrap_or(0);
    let count = number("BRAID_CASES").map_or(count, |pairs| scaled(count, pairs));
    start..start.saturating_add(count)
}

fn scaled(count: u64, pairs: u64) -> u64 {
    match pairs {
        // That of a seed alone.
        0 | 1 => pairs,
        _ => count.saturating_mul(pairs).div_ceil(PAIRS),
    }
}

/// Whether a case also takes engines that need long: one in `every`, or all when `BRAID_CASES` asks for
/// a number of cases.
#[must_use]
pub fn in_full(case: u64, every: u64) -> bool {
    case.is_multiple_of(every) || is_asked()
}

/// Whether `BRAID_CASES` asks for a number of cases.
#[must_use]
pub fn is_asked() -> bool {
    std::env::var_os("BRAID_CASES").is_some()
}

/// Says how far a run is that `BRAID_CASES` made long, and in the end what it has shown.
pub struct Progress {
    seeds: Range<u64>,
    start: Instant,
    /// Cases with machine code.
    native: u64,
    /// What differed.
    found: Vec<String>,
}

/// Most cases that differ before a run gives up.
const ENOUGH: usize = 5;

impl Progress {
    /// A run over these seeds.
    #[must_use]
    pub fn new(seeds: Range<u64>) -> Self {
        Self { seeds, start: Instant::now(), native: 0, found: Vec::new() }
    }

    /// The case of a seed is done.
    ///
    /// # Panics
    /// When enough cases have differed.
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

    /// All cases are done.
    ///
    /// # Panics
    /// When one has differed.
    pub fn end(self) {
        assert!(self.found.is_empty(), "{}", self.found.join("\n"));
    }
}

/// Packets of each capture: `most` unless `BRAID_PACKETS` says how many.
///
/// # Panics
/// When the variable is set to something that is no number.
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
