//! What a function has missed of its connections.

use crate::http::HttpCounts;
use braid_signatures::Counts;

/// What a function has missed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missed {
    /// What inspections by its signatures have not seen.
    pub inspected: Counts,
    pub http: HttpCounts,
}
