//! Interval sets as sets of possible values.

use braid_ir::model::Word;
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;

/// The largest number of intervals of a set. A set with more intervals is replaced by a superset
/// with fewer.
const MOST: usize = 64;

/// All values of this width.
pub(crate) fn full(width: u16) -> IntervalSet {
    IntervalSet::new([(0, max_of(width))])
}

/// The set with one value.
pub(crate) fn one(value: Word) -> IntervalSet {
    IntervalSet::new([(value, value)])
}

/// Whether the set contains all values of this width.
pub(super) fn is_full(set: &IntervalSet, width: u16) -> bool {
    set.intervals() == [(0, max_of(width))]
}

/// The set's member, if it has just one.
pub(super) fn only(set: &IntervalSet) -> Option<Word> {
    match set.intervals() {
        [(low, high)] if low == high => Some(*low),
        _ => None,
    }
}

/// The smallest and the largest member.
pub(super) fn ends(set: &IntervalSet) -> Option<(Word, Word)> {
    Some((set.intervals().first()?.0, set.intervals().last()?.1))
}

/// A set that contains the members of both sets, and possibly more.
pub(super) fn union(a: &IntervalSet, b: &IntervalSet) -> IntervalSet {
    coarse(a.union(b))
}

/// The set of all members plus a number, modulo 2^width.
pub(crate) fn shifted(set: &IntervalSet, by: Word, width: u16) -> IntervalSet {
    let max = max_of(width);
    let mut found = Vec::new();
    for (low, high) in set.intervals() {
        let (low, high) = (low.wrapping_add(by) & max, high.wrapping_add(by) & max);
        if low <= high {
            found.push((low, high));
        } else {
            found.extend([(0, high), (low, max)]);
        }
    }
    IntervalSet::new(found)
}

/// A superset with few intervals.
fn coarse(set: IntervalSet) -> IntervalSet {
    let all = set.intervals();
    match (all.get(MOST), all.last()) {
        (Some(_), Some(last)) => {
            let rest = (all[MOST - 1].0, last.1);
            IntervalSet::new(all[..MOST - 1].iter().copied().chain([rest]))
        }
        _ => set,
    }
}
