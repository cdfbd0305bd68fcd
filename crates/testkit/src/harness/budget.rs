//! How many generated cases and captured packets a test runs, and reports on long runs.

use std::ops::Range;
use std::time::Instant;

pub use braid_cases::{PAIRS, in_full, is_asked, number, seeds};

/// Reports the progress of a run that `BRAID_CASES` made long, and its findings at the end.
pub struct Progress {
    seeds: Range<u64>,
    start: Instant,
    /// Number of cases with machine code.
    machine_code: u64,
    /// The differences.
    found: Vec<String>,
}

/// The number of cases with a difference after which a run stops.
const ENOUGH: usize = 5;

impl Progress {
    /// A run over these seeds.
    #[must_use]
    pub fn new(seeds: Range<u64>) -> Self {
        Self { seeds, start: Instant::now(), machine_code: 0, found: Vec::new() }
    }

    /// Records the end of the case of a seed.
    ///
    /// # Panics
    /// When enough cases had differences.
    pub fn done(&mut self, seed: u64, machine_code: bool, found: Option<String>) {
        self.machine_code += u64::from(machine_code);
        self.found.extend(found);
        let done = seed + 1 - self.seeds.start;
        if self.found.len() >= ENOUGH || self.seeds.end == seed + 1 || done.is_multiple_of(1000) {
            self.say(done);
        }
        assert!(self.found.len() < ENOUGH, "{}", self.found.join("\n"));
    }

    fn say(&self, done: u64) {
        if !is_asked() {
            return;
        }
        let Range { start, end } = self.seeds;
        eprintln!(
            "{done} of {} pairs done (seeds {start} to {}; {} with machine code): {} differ, {:.0} s",
            end - start,
            start + done - 1,
            self.machine_code,
            self.found.len(),
            self.start.elapsed().as_secs_f64(),
        );
    }

    /// Ends the run.
    ///
    /// # Panics
    /// When a case had a difference.
    pub fn end(self) {
        assert!(self.found.is_empty(), "{}", self.found.join("\n"));
    }
}

/// Number of packets of each capture: `most`, unless `BRAID_PACKETS` sets it.
///
/// # Panics
/// When the variable is set to something other than a number.
#[must_use]
pub fn captured(most: usize) -> usize {
    number("BRAID_PACKETS").map_or(most, |count| usize::try_from(count).unwrap_or(usize::MAX))
}
