//! Sets of numbers as intervals.

/// An interval with both ends included.
pub type Interval = (u128, u128);

/// Sorted intervals with the same members, disjoint and not adjacent, with fewer than 2^128
/// members.
pub(super) fn normalised(intervals: &[Interval]) -> Vec<Interval> {
    let mut sorted: Vec<_> = intervals.iter().copied().filter(|(lo, hi)| lo <= hi).collect();
    sorted.sort_unstable();
    let mut merged: Vec<Interval> = Vec::with_capacity(sorted.len());
    for (lo, hi) in sorted {
        match merged.last_mut() {
            Some(last) if lo <= last.1 || lo - 1 == last.1 => last.1 = last.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    if let [(0, hi)] = merged.as_mut_slice() {
        *hi = (*hi).min(u128::MAX - 1);
    }
    merged
}

/// Intervals in the same order, each joined with the one before it where it begins behind it.
#[must_use]
pub fn joined(intervals: impl IntoIterator<Item = Interval>) -> Vec<Interval> {
    let mut all: Vec<Interval> = Vec::new();
    for (lo, hi) in intervals {
        match all.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(lo) => last.1 = hi,
            _ => all.push((lo, hi)),
        }
    }
    all
}

/// Whether a value is in one of these normalised intervals.
#[expect(clippy::indexing_slicing, reason = "`after` is at most the number of intervals")]
pub(super) fn contains(intervals: &[Interval], value: u128) -> bool {
    let after = intervals.partition_point(|&(lo, _)| lo <= value);
    after > 0 && value <= intervals[after - 1].1
}

/// The number of members of normalised intervals.
pub(super) fn count(intervals: &[Interval]) -> u128 {
    intervals.iter().map(|(lo, hi)| hi - lo + 1).sum()
}

/// The members of `a` that are not in `b`. Both are normalised.
#[expect(clippy::indexing_slicing, reason = "`first` is at most the number of intervals")]
pub(super) fn minus(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    for &(lo, hi) in a {
        let mut from = Some(lo);
        let first = b.partition_point(|&(_, b_hi)| b_hi < lo);
        for &(b_lo, b_hi) in b[first..].iter().take_while(|&&(b_lo, _)| b_lo <= hi) {
            let Some(start) = from else { break };
            if b_lo > start {
                out.push((start, b_lo - 1));
            }
            from = b_hi.checked_add(1).filter(|&next| next <= hi);
        }
        if let Some(start) = from {
            out.push((start, hi));
        }
    }
    out
}

/// The members that are in both. Both are normalised.
#[expect(clippy::indexing_slicing, reason = "`first` is at most the number of intervals")]
pub(super) fn common(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    for &(lo, hi) in a {
        let first = b.partition_point(|&(_, b_hi)| b_hi < lo);
        for &(b_lo, b_hi) in b[first..].iter().take_while(|&&(b_lo, _)| b_lo <= hi) {
            out.push((lo.max(b_lo), hi.min(b_hi)));
        }
    }
    out
}
