//! The work that the evaluation of rules may take, so that no traffic takes too long.

use crate::flowbits::BitsOfRule;
use crate::limits::RULE_WORK;

/// The work that all rules may still take, in bytes to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work(pub u64);

/// The work that one rule may still take.
pub struct RuleWork<'a> {
    left: u64,
    all: &'a mut Work,
}

/// The work is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted;

impl Work {
    /// Whether it does not suffice for another rule.
    pub fn is_used_up(self) -> bool {
        self.0 < RULE_WORK
    }

    /// Takes the work to look up the bits of a rule.
    pub fn look_up(&mut self, bits: &BitsOfRule) {
        self.0 = self.0.saturating_sub(bits.names() as u64);
    }

    /// The work of the next rule.
    pub fn of_rule(&mut self) -> RuleWork<'_> {
        RuleWork { left: RULE_WORK, all: self }
    }
}

impl RuleWork<'_> {
    /// Takes the work to search these bytes, each as costly as `weight` bytes of a literal.
    pub fn spend(&mut self, bytes: usize, weight: usize) -> Result<(), Exhausted> {
        let cost = bytes.saturating_mul(weight).saturating_add(16) as u64;
        self.all.0 = self.all.0.saturating_sub(cost.min(self.left));
        self.left = self.left.checked_sub(cost).ok_or(Exhausted)?;
        Ok(())
    }
}
