//! Changes of configuration that wait for their time.

use crate::outcome::RunError;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Engine, Outputs};
use std::collections::VecDeque;

/// The changes of a control file that have not been made yet, in the order of their times.
pub(crate) struct Script {
    waiting: VecDeque<Control>,
}

impl Script {
    /// Creates the script. Changes of equal time keep their order.
    pub(crate) fn new(mut changes: Vec<Control>) -> Self {
        changes.sort_by_key(|change| change.time_ns);
        Self { waiting: changes.into() }
    }

    /// The number of changes that have not been made.
    pub(crate) fn left(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a change is to be made at or before a time.
    pub(crate) fn is_due(&self, time_ns: u64) -> bool {
        self.waiting.front().is_some_and(|next| next.time_ns <= time_ns)
    }

    /// Makes all changes up to a time, and calls `made` with each of them. The engine runs this
    /// chain.
    pub(crate) fn until(
        &mut self,
        time_ns: u64,
        chain: &Chain,
        engine: &mut dyn Engine,
        out: &mut dyn Outputs,
        mut made: impl FnMut(&Control),
    ) -> Result<(), RunError> {
        for change in self.take(time_ns) {
            let done = engine.control(&change, out);
            done.map_err(|reason| Self::refused(chain, &change, reason))?;
            made(&change);
        }
        Ok(())
    }

    /// Takes all changes up to a time, in order.
    pub(crate) fn take(&mut self, time_ns: u64) -> Vec<Control> {
        let next = || self.waiting.pop_front_if(|next| next.time_ns <= time_ns);
        std::iter::from_fn(next).collect()
    }

    /// The error for a change that cannot be made.
    pub(crate) fn refused(chain: &Chain, change: &Control, reason: String) -> RunError {
        let node = chain.nodes.get(usize::from(change.node));
        let function = node.map_or_else(String::new, |node| node.name.clone());
        RunError::Control { function, time_ns: change.time_ns, reason }
    }
}
