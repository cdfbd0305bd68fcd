//! Sets of numbers as ranges, for addresses and ports.

use std::sync::Arc;

/// A set of numbers: sorted, disjoint ranges that do not touch. Both ends belong to a range. Cheap to
/// clone, so that rules share the lists that variables name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges(Arc<[(u128, u128)]>);

impl Ranges {
    /// The set of all members of these ranges, in any order.
    pub fn new(mut all: Vec<(u128, u128)>) -> Self {
        all.retain(|(low, high)| low <= high);
        all.sort_unstable();
        all.dedup_by(|(low, high), last| {
            let meets = *low <= last.1 || *low - 1 == last.1;
            if meets {
                last.1 = last.1.max(*high);
            }
            meets
        });
        Self(all.into())
    }

    /// The members of all sets.
    pub fn union<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(all.into_iter().flat_map(|one| one.0.iter().copied()).collect())
    }

    /// The numbers up to `most` that are no members.
    pub fn complement(&self, most: u128) -> Self {
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
        found.extend(next.filter(|from| *from <= most).map(|from| (from, most)));
        Self(found.into())
    }

    /// The members that are not in another set.
    pub fn without(&self, other: &Self) -> Self {
        // De Morgan: neither outside this set nor in the other one.
        Self::union([&self.complement(u128::MAX), other]).complement(u128::MAX)
    }

    pub fn contains(&self, number: u128) -> bool {
        let after = self.0.partition_point(|(low, _)| *low <= number);
        let last = after.checked_sub(1).and_then(|at| self.0.get(at));
        last.is_some_and(|(_, high)| number <= *high)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_join_where_they_meet() {
        let set = Ranges::new(vec![(5, 6), (1, 2), (3, 3), (9, 8)]);
        assert_eq!(set, Ranges([(1, 3), (5, 6)].into()));
        let members: Vec<u128> = (0..8).filter(|number| set.contains(*number)).collect();
        assert_eq!(members, [1, 2, 3, 5, 6]);
    }

    #[test]
    fn complement_reaches_the_largest_number() {
        let set = Ranges::new(vec![(0, 2), (7, 9)]);
        assert_eq!(set.complement(9), Ranges([(3, 6)].into()));
        assert_eq!(set.complement(12), Ranges([(3, 6), (10, 12)].into()));
        let all = Ranges::new(vec![(0, u128::MAX)]);
        assert!(all.complement(u128::MAX).is_empty());
        assert_eq!(all.without(&set).complement(u128::MAX), set);
    }
}
