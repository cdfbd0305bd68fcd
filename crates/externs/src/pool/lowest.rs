//! Free members of a pool in the order `Lowest`: disjoint intervals, which a release joins.

use super::interval::Interval;
use std::collections::BTreeMap;

/// Free members: upper ends by lower ends, of intervals that are disjoint and not adjacent.
#[derive(Clone, Debug)]
pub(super) struct FreeIntervals(BTreeMap<u128, u128>);

impl FreeIntervals {
    pub(super) fn new(members: &[Interval]) -> Self {
        Self(members.iter().copied().collect())
    }

    pub(super) fn take(&mut self) -> Option<u128> {
        let (lo, hi) = self.0.pop_first()?;
        if lo < hi {
            self.0.insert(lo + 1, hi);
        }
        Some(lo)
    }

    /// Removes a free member.
    pub(super) fn remove(&mut self, value: u128) {
        let Some((&lo, &hi)) = self.0.range(..=value).next_back() else { return };
        if value > hi {
            return;
        }
        self.0.remove(&lo);
        if lo < value {
            self.0.insert(lo, value - 1);
        }
        if value < hi {
            self.0.insert(value + 1, hi);
        }
    }

    /// Adds a member that is not free.
    pub(super) fn insert(&mut self, value: u128) {
        let (mut lo, mut hi) = (value, value);
        if let Some(next) = value.checked_add(1)
            && let Some(next_hi) = self.0.remove(&next)
        {
            hi = next_hi;
        }
        if let Some((&before_lo, &before_hi)) = self.0.range(..value).next_back()
            && before_hi + 1 == value
        {
            lo = before_lo;
        }
        self.0.insert(lo, hi);
    }
}
