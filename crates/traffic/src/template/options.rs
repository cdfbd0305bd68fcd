//! The options of templates.

use crate::{Arrivals, START_NS};
use std::path::PathBuf;

/// How templates are expanded.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The folder that is searched first for captures.
    pub captures: Option<PathBuf>,
    /// Whether to leave out templates whose capture is not found, with a warning.
    pub skip_missing: bool,
    /// The time for which connections begin. By default the file's `duration`, or no limit if
    /// `packets` is given.
    pub duration_ns: Option<u64>,
    /// The most packets.
    pub packets: Option<u64>,
    /// Multiplies every `cps`.
    pub scale: f64,
    /// How connections arrive.
    pub arrivals: Arrivals,
    /// Seed.
    pub seed: u64,
    /// The time of the start.
    pub start_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            captures: None,
            skip_missing: false,
            duration_ns: None,
            packets: None,
            scale: 1.0,
            arrivals: Arrivals::default(),
            seed: 0,
            start_ns: START_NS,
        }
    }
}
