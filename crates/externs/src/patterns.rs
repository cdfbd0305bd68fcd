//! Pattern sets over payloads: many literals and regular expressions at once.

/// A compiled set of patterns.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternSet;
