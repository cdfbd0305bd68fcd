//! Generates payloads. Some match patterns.

use crate::generate::{Boundaries, Rng};

/// A payload. It is often short, and sometimes contains a pattern or the beginning of one.
pub(super) fn random(rng: &mut Rng, boundaries: &Boundaries) -> Vec<u8> {
    if !boundaries.payloads.is_empty() && rng.one_in(2) {
        // Strings are looked up at the beginning, patterns anywhere.
        let mut body = vec![b'.'; if rng.one_in(2) { 0 } else { rng.below(12) }];
        body.extend(rng.pick(&boundaries.payloads));
        if rng.one_in(4) {
            body.pop();
        }
        return body;
    }
    let len = match rng.below(12) {
        0..4 => 0,
        4..10 => rng.below(40),
        10 => 500 + rng.below(80),
        _ => 1400 + rng.below(80),
    };
    (0..len).map(|_| rng.byte()).collect()
}
