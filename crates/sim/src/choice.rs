//! The choice between run-to-completion and stages.

use crate::cost::{Cost, Overheads};
use crate::load::{Load, Predicted, run_to_completion};
use crate::stages::{Staged, Traffic, stages};
use serde::Serialize;

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Many packets in a second, where packets always wait.
    Throughput,
    /// A short time of a packet that passes alone.
    Latency,
}

/// What is predicted of a number of stages.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Candidate {
    /// The number of stages. 1 is run-to-completion.
    pub stages: usize,
    /// Where packets always wait.
    pub saturated: Predicted,
    /// Where packets pass alone.
    pub alone: Predicted,
}

/// Stages must be better by this share, because predictions are not exact.
pub const MARGIN: f64 = 0.1;

/// The number of packets to simulate for a prediction.
const PACKETS: usize = 2_048;

/// The candidate that serves a goal best. Stages must be better than run-to-completion, and more
/// stages better than fewer, by [`MARGIN`]. Candidates are in the order of their stages.
#[must_use]
pub fn choose(goal: Goal, candidates: &[Candidate]) -> Option<&Candidate> {
    candidates.iter().reduce(|best, next| {
        let is_better = next.time_ns(goal) < best.time_ns(goal) * (1.0 - MARGIN);
        if is_better { next } else { best }
    })
}

impl Candidate {
    /// A chain that one core runs to completion.
    #[must_use]
    pub fn on_one_core(cost: Cost) -> Self {
        Self::of(1, |load| run_to_completion(cost, load, PACKETS))
    }

    /// A chain in stages.
    #[must_use]
    pub fn in_stages(staged: &Staged<'_>, overheads: &Overheads, traffic: &Traffic) -> Self {
        let predict = |load| stages(staged, overheads, traffic, load, PACKETS);
        Self::of(staged.costs.len(), predict)
    }

    fn of(stages: usize, predict: impl Fn(Load) -> Predicted) -> Self {
        let (saturated, alone) = (predict(Load::Saturated), predict(Load::Alone));
        Self { stages, saturated, alone }
    }

    /// The time that counts for a goal (ns).
    #[must_use]
    pub fn time_ns(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Throughput => self.saturated.packet_ns,
            Goal::Latency => self.alone.latency.mean_ns,
        }
    }
}
