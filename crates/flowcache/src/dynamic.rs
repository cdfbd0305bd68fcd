//! Dynamic values: values that a record computes for each packet from the time, the packet's length
//! and the current contents of slots. A token bucket needs them, for example. The record tests all
//! conditions on them before it changes anything.

use braid_ir::model::{BinOp, CmpOp, Word};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The largest number of values of a path.
pub(crate) const MOST: usize = 32;

/// The dynamic values of a path, the conditions on them, and the slots that they are assigned to.
/// Values refer to each other by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Dynamic {
    pub(crate) values: Vec<Expr>,
    /// Conditions: the number of a value, and whether it must be true.
    pub(crate) checks: Vec<(u8, bool)>,
    /// The assignments: the number of an entry among the entries that the record depends on, its
    /// slot, and the value.
    pub(crate) puts: Vec<(u8, u32, u8)>,
    /// Tags that the packet must not have.
    pub(crate) lacks: Vec<Arc<str>>,
    /// Whether the packet must not have any tag.
    pub(crate) is_bare: bool,
    /// How many entries the record depends on.
    pub(crate) entries: u8,
}

/// A value, computed from earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Expr {
    Const(Word),
    /// The packet's bytes on the wire.
    Length,
    /// The time.
    Time,
    /// The content of a slot: the number of an entry among the entries that the record depends on,
    /// and the slot.
    Slot(u8, u32),
    /// The result of an operation on earlier values.
    Of(Operation),
}

/// An operation on values, which are given by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operation {
    Bin(BinOp, u16, u8, u8),
    Cmp(CmpOp, u8, u8),
    /// The complement of a value, masked with the largest value of the result's type.
    Not(Word, u8),
    /// The low bits of a value, masked with the largest value of the result's type.
    Resize(Word, u8),
    /// The value, limited to the largest value of the result's type.
    Clamp(Word, u8),
}

impl Dynamic {
    /// The cost for each packet: the number of values, plus twice the number of assignments.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are at most `MOST` values, and assignments to a few slots"
    )]
    pub(crate) fn size(&self) -> u32 {
        (self.values.len() + 2 * self.puts.len()) as u32
    }

    /// Adds a value. Returns its number, or `None` if there are too many values.
    #[expect(clippy::cast_possible_truncation, reason = "a number below `MOST` has 8 bits")]
    pub(crate) fn add(&mut self, expr: Expr) -> Option<u8> {
        let known = self.values.iter().position(|one| *one == expr);
        if known.is_none() && self.values.len() < MOST {
            self.values.push(expr);
            return Some(self.values.len() as u8 - 1);
        }
        known.map(|number| number as u8)
    }

    /// Adds the result of an operation as a value.
    pub(crate) fn compute(&mut self, operation: Operation) -> Option<u8> {
        self.add(Expr::Of(operation))
    }

    /// Adds the condition that a value is true (`is`) or false.
    pub(crate) fn check(&mut self, value: u8, is: bool) {
        if !self.checks.contains(&(value, is)) {
            self.checks.push((value, is));
        }
    }

    /// Adds the condition that the packet arrives without this tag, or without any (`None`), which
    /// is a faster test.
    pub(crate) fn lack(&mut self, tag: Option<Arc<str>>) {
        match tag {
            None => self.is_bare = true,
            Some(tag) if !self.lacks.contains(&tag) => self.lacks.push(tag),
            Some(_) => {}
        }
    }

    /// Adds an assignment of a value to a slot of an entry that has none yet.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`depends_on` refuses records with more than 255 entries"
    )]
    pub(crate) fn put(&mut self, entry: usize, slot: u32, value: u8) {
        self.puts.push((entry as u8, slot, value));
    }

    /// Removes the assignment to a slot of an entry.
    pub(crate) fn forget(&mut self, entry: usize, slot: u32) {
        self.puts.retain(|(one, of, _)| (usize::from(*one), *of) != (entry, slot));
    }

    /// Adds the time as a value.
    pub(crate) fn time(&mut self) -> Option<u8> {
        self.add(Expr::Time)
    }

    /// Sets the number of entries that the record depends on. `None` if there are more than 255.
    pub(crate) fn depends_on(&mut self, entries: usize) -> Option<()> {
        self.entries = u8::try_from(entries).ok()?;
        Some(())
    }

    /// Hashes the values, but not the conditions and assignments.
    pub(crate) fn hash_values<H: Hasher>(&self, state: &mut H) {
        self.values.iter().for_each(|value| value.hash(state));
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.checks.clear();
        self.puts.clear();
        self.lacks.clear();
        self.is_bare = false;
    }
}
