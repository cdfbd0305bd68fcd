//! Decides how many cases generated tests try: few by default, more or fewer if `BRAID_CASES` is
//! set. All tests scale alike, whether seeds, rounds or proptest make their cases.
#![forbid(unsafe_code)]

use std::ops::Range;

/// The number of pairs on which engines are compared, unless `BRAID_CASES` sets it. All other tests
/// scale with this ratio.
pub const PAIRS: u64 = 240;

/// The number of cases of a test that tries `count` cases by default.
///
/// # Panics
/// When `BRAID_CASES` is set to something other than a number.
#[must_use]
pub fn cases(count: u32) -> u32 {
    u32::try_from(wanted(count.into())).unwrap_or(u32::MAX)
}

/// The same, but never fewer than `count`. It is for tests that also demand that their cases are of
/// many kinds.
///
/// # Panics
/// When `BRAID_CASES` is set to something other than a number.
#[must_use]
pub fn at_least(count: u32) -> u32 {
    cases(count).max(count)
}

/// The seeds of a test that tries `count` seeds by default. They start from `BRAID_SEED` if that is
/// set.
///
/// # Panics
/// When a variable is set to something other than a number.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let start = number("BRAID_SEED").unwrap_or(0);
    start..start.saturating_add(wanted(count))
}

fn wanted(count: u64) -> u64 {
    number("BRAID_CASES").map_or(count, |pairs| scaled(count, pairs))
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

/// The number that an environment variable holds, if it is set.
///
/// # Panics
/// When the variable is set to something other than a number.
#[must_use]
pub fn number(variable: &str) -> Option<u64> {
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
