//! How many generated cases a test takes: few by default, more on request.

use std::ops::Range;

/// Seeds of a property's cases: `count` of them unless `BRAID_CASES` says how many, from
/// `BRAID_SEED` on if it is set.
///
/// # Panics
/// When a variable is set to something that is no number.
#[must_use]
pub fn seeds(count: u64) -> Range<u64> {
    let start = number("BRAID_SEED").unwrap_or(0);
    let count = number("BRAID_CASES").unwrap_or(count);
    start..start.saturating_add(count)
}

/// Whether a case also takes engines that need long: one in `every`, or all when `BRAID_CASES` asks for
/// a number of cases.
#[must_use]
pub fn in_full(case: u64, every: u64) -> bool {
    case.is_multiple_of(every) || std::env::var_os("BRAID_CASES").is_some()
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
