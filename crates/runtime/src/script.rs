//! Changes of configuration that wait for their time.

use crate::outcome::RefusedChange;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Engine, Outputs};
use std::collections::VecDeque;

/// The changes of a control file that have not been made yet, in the order of their times.
pub(crate) struct Script {
    waiting: VecDeque<Control>,
    /// The changes that could not be applied.
    pub(crate) refused: Vec<RefusedChange>,
}

impl Script {
    /// Creates the script. Changes of equal time keep their order.
    pub(crate) fn new(mut changes: Vec<Control>) -> Self {
        changes.sort_by_key(|change| change.time_ns);
        Self { waiting: changes.into(), refused: Vec::new() }
    }

    /// The number of changes that have not been made.
    pub(crate) fn left(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a change is to be made at or before a time.
    pub(crate) fn is_due(&self, time_ns: u64) -> bool {
        self.waiting.front().is_some_and(|next| next.time_ns <= time_ns)
    }

    /// Makes all changes up to a time, and calls `made` with each of them. Changes that the engine
    /// refuses are noted. The engine runs this chain.
    pub(crate) fn until(
        &mut self,
        time_ns: u64,
        chain: &Chain,
        engine: &mut dyn Engine,
        out: &mut dyn Outputs,
        mut made: impl FnMut(&Control),
    ) {
        for change in self.take(time_ns) {
            match engine.control(&change, out) {
                Ok(()) => made(&change),
                Err(why) => self.refused.push(RefusedChange::new(chain, &change, why)),
            }
        }
    }

    /// Takes all changes up to a time, in order.
    pub(crate) fn take(&mut self, time_ns: u64) -> Vec<Control> {
        let next = || self.waiting.pop_front_if(|next| next.time_ns <= time_ns);
        std::iter::from_fn(next).collect()
    }
}
