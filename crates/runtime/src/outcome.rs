//! What a run ends with: a summary, or the reason why it failed.

use crate::follow::FollowCounters;
use crate::merge::Unreadable;
use crate::outputs::Unwritten;
use braid_io::ReadError;
use braid_ir::engine::Counters;

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The engine's counters, and the packets that the driver lost.
    pub counters: Counters,
    /// Counters of following, if it was asked for.
    pub follow: Option<FollowCounters>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Outputs that couldn't be written. The first one ended the run, if it was still going on.
    pub unwritten: Vec<Unwritten>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An input can't be read (any further).
    #[error("{name}: {error}")]
    Read {
        /// The input's name.
        name: String,
        /// Why.
        error: ReadError,
    },
    /// A change of configuration can't be made.
    #[error("the change of `{function}` at {time_ns} ns cannot be made: {reason}")]
    Control {
        /// The function.
        function: String,
        /// When.
        time_ns: u64,
        /// Why.
        reason: String,
    },
    /// Packets are unaccounted for: a defect of the engine.
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
