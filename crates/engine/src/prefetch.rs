//! Rule prefetch: searches rule sets for all packets of a batch before the first packet runs. So
//! the memory accesses of many packets overlap, and the programs find the results ready.
//!
//! A result belongs to a rule set and to the words of the packet that rules test. It stays valid
//! within a batch, because rules do not change during a batch. Packets run in the order of their
//! questions, so the next result is nearly always the right one. If it is not, the rule set is
//! searched again.

use crate::instance::Instance;
use braid_ir::chain::Chain;
use braid_ir::model::ParamId;
use braid_ir::rules::RuleWords;
use braid_ir::value::ParamValue;

/// The number of rules above which a rule set does not stay in the nearest cache.
const LARGE: usize = 1000;

/// Whether a rule set has enough rules for a prefetch to pay.
pub(crate) fn is_large(chain: &Chain, node: u16, param: ParamId) -> bool {
    let params = chain.nodes.get(usize::from(node)).map(|node| &node.params);
    let value = params.and_then(|params| params.get(param.index()));
    matches!(value, Some(ParamValue::Rules(set)) if set.rules.len() > LARGE)
}

/// The prefetched rule lookups of a batch.
#[derive(Default)]
pub(crate) struct Prefetch {
    /// Whether any program prefetches rule lookups.
    pub(crate) is_used: bool,
    asked: Vec<Asked>,
    /// The position of the question whose answer is probably needed next.
    next: usize,
}

/// A question and its answer.
struct Asked {
    node: u16,
    param: ParamId,
    words: RuleWords,
    answer: (bool, u32),
}

impl Prefetch {
    /// Adds a question for the next packet.
    #[inline]
    pub(crate) fn ask(&mut self, node: u16, param: ParamId, words: RuleWords) {
        self.asked.push(Asked { node, param, words, answer: (false, 0) });
    }

    /// Answers all questions.
    #[expect(
        clippy::indexing_slicing,
        reason = "machine code names functions and parameters of the chain"
    )]
    pub(crate) fn answer(&mut self, instances: &[Instance]) {
        for asked in &mut self.asked {
            let rules = &instances[usize::from(asked.node)].rules[asked.param.index()];
            if let Some(rules) = rules {
                asked.answer = rules.table.lookup4(&asked.words);
            }
        }
    }

    /// The result, if the next question or the one after it is exactly this one.
    #[inline]
    pub(crate) fn known(
        &mut self,
        node: u16,
        param: ParamId,
        words: &RuleWords,
    ) -> Option<(bool, u32)> {
        // The previous packet may have skipped its question.
        for place in [self.next, self.next + 1] {
            let asked = self.asked.get(place)?;
            if asked.words == *words && asked.node == node && asked.param == param {
                self.next = place + 1;
                return Some(asked.answer);
            }
        }
        None
    }

    /// Forgets all questions at the end of a batch.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.asked.clear();
        self.next = 0;
    }
}
