//! What inspections could not see.

/// What inspections have not seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Directions whose bytes behind missing ones are not inspected.
    pub gaps: u64,
    /// Directions whose bytes behind the depth are not inspected.
    pub depths: u64,
    /// Directions and messages whose inspection would have taken too long.
    pub exhausted: u64,
    /// Directions whose HTTP ended at a malformed message.
    pub malformed: u64,
    /// Alerts that were left out, because their connection had too many of different rules.
    pub left_out: u64,
    /// Windows of thresholds that were forgotten, because there were too many.
    pub windows: u64,
    /// Bits that were not set, because their connection had too many.
    pub bits: u64,
}
