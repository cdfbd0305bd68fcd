//! Sets of integers.

use crate::trie::{Run, Trie};
use braid_ir::model::Word;
use braid_ir::value::IntervalSet;

/// Sets with no more intervals than this are searched one by one.
const FEW: usize = 4;

/// A set made fast to look up: a bit for each value where all members have 16 bits, else a trie
/// (see `trie.rs`).
#[derive(Clone, Debug)]
pub struct SetTable(Form);

#[derive(Clone, Debug)]
enum Form {
    Few(Vec<(Word, Word)>),
    Bits(Box<[u64; 1024]>),
    Small(Trie<u32>),
    Large(Trie<u128>),
}

impl Default for SetTable {
    fn default() -> Self {
        Self(Form::Few(Vec::new()))
    }
}

impl SetTable {
    /// A table of this set.
    #[must_use]
    pub fn new(set: &IntervalSet) -> Self {
        let intervals = set.intervals();
        let most = intervals.last().map_or(0, |(_, hi)| *hi);
        if intervals.len() <= FEW {
            Self(Form::Few(intervals.to_vec()))
        } else if most <= u16::MAX.into() {
            let mut bits = Box::new([0; 1024]);
            for value in set.iter() {
                let value = usize::try_from(value).unwrap_or(0);
                bits[value / 64] |= 1 << (value % 64);
            }
            Self(Form::Bits(bits))
        } else if most <= u32::MAX.into() {
            Self(Form::Small(Trie::new(&runs(intervals, u32::MAX.into()))))
        } else {
            Self(Form::Large(Trie::new(&runs(intervals, u128::MAX))))
        }
    }

    /// A table of these members (a list's column), in any order, repeated or not.
    #[must_use]
    pub fn of_members(members: impl IntoIterator<Item = Word>) -> Self {
        Self::new(&IntervalSet::new(members.into_iter().map(|member| (member, member))))
    }

    /// Whether a value is a member.
    #[must_use]
    #[inline]
    pub fn contains(&self, value: Word) -> bool {
        match &self.0 {
            Form::Few(intervals) => intervals.iter().any(|(lo, hi)| *lo <= value && value <= *hi),
            Form::Bits(bits) => u16::try_from(value)
                .is_ok_and(|value| bits[usize::from(value / 64)] >> (value % 64) & 1 == 1),
            Form::Small(trie) => u32::try_from(value).is_ok_and(|value| trie.get(value) == 1),
            Form::Large(trie) => trie.get(value) == 1,
        }
    }
}

/// 1 within the intervals, 0 between them.
fn runs(intervals: &[(Word, Word)], last: Word) -> Vec<Run> {
    let inside = intervals.iter().flat_map(|&(lo, hi)| {
        [Some((lo, 1)), (hi < last).then(|| (hi + 1, 0))].into_iter().flatten()
    });
    let before = intervals.first().is_none_or(|(lo, _)| *lo > 0).then_some((0, 0));
    before.into_iter().chain(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::SetTable;
    use braid_ir::value::IntervalSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn members_are_those_of_the_set(
            bits in prop_oneof![Just(8_u32), Just(16), Just(32), Just(128)],
            ends in prop::collection::vec((any::<u128>(), 0_u128..9), 0..40),
        ) {
            let last = u128::MAX >> (128 - bits);
            let top = (last - 2, last);
            let cut = |(lo, len): (u128, u128)| (lo & last, (lo & last).saturating_add(len).min(last));
            let set = IntervalSet::new(ends.iter().copied().map(cut).chain([top]));
            let table = SetTable::new(&set);
            let near = set.intervals().iter().flat_map(|&(lo, hi)| {
                [lo.wrapping_sub(1), lo, hi, hi.wrapping_add(1)]
            });
            for value in near.chain([0, last, 1 << 16, 1 << 32, u128::MAX]) {
                prop_assert_eq!(table.contains(value), set.contains(value), "{:x}", value);
            }
        }
    }

    #[test]
    fn a_list_has_its_members_only() {
        let table = SetTable::of_members([443, 80, 80, 8080, 22, 25, 53]);
        assert_eq!(
            [22, 23, 80, 443, 444].map(|port| table.contains(port)),
            [true, false, true, true, false]
        );
        assert!(!SetTable::default().contains(0));
    }
}
