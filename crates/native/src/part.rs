//! The part of a chain's packets that an instance gets, if the chain has several workers.

use braid_ir::engine::share;
use serde::{Deserialize, Serialize};

/// The part that is an instance's, among the instances of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Its number, from 0.
    pub number: u16,
    /// The number of instances.
    pub of: u16,
}

impl Part {
    /// The only instance of a function.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// The instance's share of a limit.
    #[must_use]
    pub fn share(self, total: u64) -> u64 {
        share(total, self.of, self.number)
    }
}
