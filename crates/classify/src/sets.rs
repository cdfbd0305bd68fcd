//! Sets of integers.

use braid_ir::model::Word;
use braid_ir::value::IntervalSet;

/// A set made fast to look up.
#[derive(Clone, Debug, Default)]
pub struct SetTable {
    set: IntervalSet,
}

impl SetTable {
    /// A table of this set.
    #[must_use]
    pub fn new(set: &IntervalSet) -> Self {
        Self { set: set.clone() }
    }

    /// A table of these members (a list's column), in any order, repeated or not.
    #[must_use]
    pub fn of_members(members: impl IntoIterator<Item = Word>) -> Self {
        Self { set: IntervalSet::new(members.into_iter().map(|member| (member, member))) }
    }

    /// Whether a value is a member.
    #[must_use]
    pub fn contains(&self, value: Word) -> bool {
        self.set.contains(value)
    }
}
