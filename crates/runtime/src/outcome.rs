//! The result of a run: a summary, or the reason why it failed.

use crate::follow::FollowCounters;
use crate::merge::Unreadable;
use crate::outputs::Unwritten;
use braid_io::ReadError;
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
    /// Outputs that could not be written. The first one ended the run, unless it had already ended.
    pub unwritten: Vec<Unwritten>,
}

impl Summary {
    /// The results so far, while a run goes on.
    pub(crate) fn so_far(counters: Counters) -> Self {
        Self { counters, follow: None, warnings: Vec::new(), unwritten: Vec::new() }
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
    /// A change of configuration cannot be made.
    #[error("the change of `{function}` at {time_ns} ns cannot be made: {reason}")]
    Control {
        /// The function.
        function: String,
        /// The time of the change.
        time_ns: u64,
        /// The reason.
        reason: String,
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
