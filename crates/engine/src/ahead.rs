//! Rule sets asked about packets of a batch before the first of them runs: accesses to memory that many
//! packets need overlap, and programs find the answers made.
//!
//! An answer is for a rule set and for what rules look at in a packet, and holds as long as the rules do,
//! which nothing changes within a batch. Packets run in the order in which they asked, so that the next
//! answer is nearly always the one that is wanted; where it is not, the rule set is asked anew.

use crate::instance::Instance;
use braid_ir::model::ParamId;
use braid_ir::rules::RuleWords;

/// Rule sets with more rules than this do not stay in the nearest cache.
const LARGE: usize = 1000;

/// Whether rules are so many that asking ahead pays.
pub(crate) fn is_large(instance: &Instance, param: ParamId) -> bool {
    let rules = instance.rules.get(param.index()).and_then(Option::as_ref);
    rules.is_some_and(|rules| rules.table.set().rules.len() > LARGE)
}

/// What was asked ahead.
#[derive(Default)]
pub(crate) struct Ahead {
    /// Whether a program asks.
    pub(crate) is_used: bool,
    asked: Vec<Asked>,
    /// The question whose answer is likely wanted next.
    next: usize,
}

/// A question and its answer.
struct Asked {
    node: u16,
    param: ParamId,
    words: RuleWords,
    answer: (bool, u32),
}

impl Ahead {
    /// A question of the next packet.
    #[inline]
    pub(crate) fn ask(&mut self, node: u16, param: ParamId, words: RuleWords) {
        self.asked.push(Asked { node, param, words, answer: (false, 0) });
    }

    /// All questions are answered.
    pub(crate) fn answer(&mut self, instances: &[Instance]) {
        for asked in &mut self.asked {
            let rules = &instances[usize::from(asked.node)].rules[asked.param.index()];
            if let Some(rules) = rules {
                asked.answer = rules.table.lookup4(&asked.words);
            }
        }
    }

    /// The answer, if just this was asked.
    #[inline]
    pub(crate) fn known(
        &mut self,
        node: u16,
        param: ParamId,
        words: &RuleWords,
    ) -> Option<(bool, u32)> {
        // The packet in front may have gone another way than to its question.
        for place in [self.next, self.next + 1] {
            let asked = self.asked.get(place)?;
            if asked.words == *words && asked.node == node && asked.param == param {
                self.next = place + 1;
                return Some(asked.answer);
            }
        }
        None
    }

    /// The batch is over.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.asked.clear();
        self.next = 0;
    }
}
