//! How a bench measures: the subjects, the number of trials and their length.

use std::time::Duration;

use crate::subject::Kind;

/// How to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The engines and floors to measure.
    pub kinds: Vec<Kind>,
    /// Number of trials of each engine or floor.
    pub runs: usize,
    /// The approximate time of a trial.
    pub trial: Duration,
    /// The largest number of packets of a trial.
    pub packets: u64,
    /// Number of packets on which engines are compared with `reference` before.
    pub check: u64,
    /// The least number of packets that an engine processes before it is measured.
    pub warm: u64,
}

impl Plan {
    /// The plan for published results: all floors and engines.
    #[must_use]
    pub fn full() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
            runs: 21,
            trial: Duration::from_millis(8),
            packets: u64::MAX,
            check: 20_000,
            warm: 200_000,
        }
    }

    /// The plan for a quick look: fewer and shorter trials.
    #[must_use]
    pub fn quick() -> Self {
        let trial = Duration::from_millis(2);
        Self { runs: 5, trial, check: 4_000, warm: 50_000, ..Self::full() }
    }
}
