//! Sets of numbers as intervals: parameters, conditions of functions, addresses and ports of
//! signatures.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

use std::sync::Arc;

/// A set of unsigned integers as inclusive intervals. The intervals are sorted, disjoint and not
/// adjacent. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IntervalSet(Arc<[(u128, u128)]>);

impl IntervalSet {
    /// The set of all members of these inclusive intervals. They may overlap and come in any order.
    /// An interval whose lower end is above its upper end is empty.
    #[must_use]
    pub fn new(intervals: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let mut all: Vec<_> = intervals.into_iter().filter(|(lo, hi)| lo <= hi).collect();
        all.sort_unstable();
        all.dedup_by(|(lo, hi), last| {
            let meets = *lo <= last.1 || *lo - 1 == last.1;
            if meets {
                last.1 = last.1.max(*hi);
            }
            meets
        });
        Self(all.into())
    }

    /// The intervals in order.
    #[must_use]
    pub fn intervals(&self) -> &[(u128, u128)] {
        &self.0
    }

    /// Whether `value` is a member.
    #[must_use]
    pub fn contains(&self, value: u128) -> bool {
        let after = self.0.partition_point(|&(lo, _)| lo <= value);
        let last = after.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|&(_, hi)| value <= hi)
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of members, limited to the largest representable number.
    #[must_use]
    pub fn len(&self) -> u128 {
        self.0
            .iter()
            .fold(0, |sum: u128, &(lo, hi)| sum.saturating_add((hi - lo).saturating_add(1)))
    }

    /// The members of this set and of another one.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::union_of([self, other])
    }

    /// The members of all these sets.
    #[must_use]
    pub fn union_of<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(all.into_iter().flat_map(|one| one.intervals()).copied())
    }

    /// The members that another set has, too.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            found.push((x.0.max(y.0), x.1.min(y.1)));
            if x.1 < y.1 {
                a.next();
            } else {
                b.next();
            }
        }
        Self::new(found)
    }

    /// The values from 0 to this one that are no members.
    #[must_use]
    pub fn complement(&self, max: u128) -> Self {
        let mut found = Vec::new();
        let mut next = Some(0);
        for (low, high) in self.0.iter() {
            if let Some(from) = next
                && from < *low
            {
                found.push((from, low - 1));
            }
            next = high.checked_add(1);
        }
        if let Some(from) = next.filter(|from| *from <= max) {
            found.push((from, max));
        }
        Self::new(found)
    }

    /// The members that another set lacks.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.intersection(&other.complement(u128::MAX))
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        self.0.iter().flat_map(|&(lo, hi)| lo..=hi)
    }
}

#[cfg(test)]
mod tests {
    use super::IntervalSet;

    #[test]
    fn intervals_join_where_they_meet() {
        let set = IntervalSet::new([(5, 6), (1, 2), (3, 3), (9, 8)]);
        assert_eq!(set.intervals(), [(1, 3), (5, 6)]);
        let members: Vec<u128> = (0..8).filter(|number| set.contains(*number)).collect();
        assert_eq!(members, [1, 2, 3, 5, 6]);
        assert_eq!(set.iter().collect::<Vec<_>>(), members);
    }

    #[test]
    fn complement_reaches_the_largest_number() {
        let set = IntervalSet::new([(0, 2), (7, 9)]);
        assert_eq!(set.complement(9).intervals(), [(3, 6)]);
        assert_eq!(set.complement(12).intervals(), [(3, 6), (10, 12)]);
        let all = IntervalSet::new([(0, u128::MAX)]);
        assert!(all.complement(u128::MAX).is_empty());
        assert_eq!(all.without(&set).complement(u128::MAX), set);
    }
}
