//! The result of a run: a summary, or the reason why it failed.

use crate::follow::FollowCounters;
use crate::merge::Unreadable;
use crate::outputs::Unwritten;
use braid_io::ReadError;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Counters;
use std::sync::atomic::{AtomicBool, Ordering};

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The engine's counters, and the packets that the driver lost.
    pub counters: Counters,
    /// The counters of following, if the user asked for it.
    pub follow: Option<FollowCounters>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Changes of configuration that could not be applied at their time.
    pub refused: Vec<RefusedChange>,
    /// Outputs that could not be written. The first one ended the run, unless it had already ended.
    pub unwritten: Vec<Unwritten>,
}

impl Summary {
    /// The results so far, while a run goes on.
    pub(crate) fn so_far(counters: Counters) -> Self {
        Self {
            counters,
            follow: None,
            warnings: Vec::new(),
            refused: Vec::new(),
            unwritten: Vec::new(),
        }
    }
}

/// A change of configuration that could not be applied at its time. The run went on without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedChange {
    /// The line of the control file.
    pub line: Option<u32>,
    /// The time (ns).
    pub time_ns: u64,
    /// The function.
    pub function: String,
    /// The parameter.
    pub parameter: String,
    /// The reason.
    pub reason: String,
}

impl RefusedChange {
    /// The change of a chain that was refused for this reason.
    pub(crate) fn new(chain: &Chain, change: &Control, reason: String) -> Self {
        let node = chain.nodes.get(usize::from(change.node));
        let decl = node.and_then(|node| node.model.params.get(change.param.index()));
        Self {
            line: change.line,
            time_ns: change.time_ns,
            function: node.map_or_else(String::new, |node| node.name.clone()),
            parameter: decl.map_or_else(String::new, |decl| decl.name.clone()),
            reason,
        }
    }
}

/// Shows the results so far whenever a flag is set.
pub(crate) struct Shown<'a> {
    flag: &'a AtomicBool,
    show: Box<dyn FnMut(&Summary) + 'a>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(flag: &'a AtomicBool, show: impl FnMut(&Summary) + 'a) -> Self {
        Self { flag, show: Box::new(show) }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Shows the results so far, and clears the flag.
    pub(crate) fn show(&mut self, so_far: &Summary) {
        self.flag.store(false, Ordering::Relaxed);
        (self.show)(so_far);
    }
}

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An input cannot be read (any further).
    #[error("{name}: {error}")]
    Read {
        /// The input's name.
        name: String,
        /// The reason.
        error: ReadError,
    },
    /// Packets are unaccounted for, which is a bug of the engine.
    #[error(
        "the packets do not add up: in {} + created {} + copied {} is not out {} + dropped {} + \
         consumed {} + held {} + lost {}; please report this",
        .0.packets_in, .0.created, .0.copied, .0.out.values().sum::<u64>(),
        .0.drops.values().sum::<u64>(), .0.consumed, .0.held, .0.lost.values().sum::<u64>()
    )]
    Unbalanced(Box<Counters>),
}

impl From<Unreadable> for RunError {
    fn from((name, error): Unreadable) -> Self {
        Self::Read { name, error }
    }
}
