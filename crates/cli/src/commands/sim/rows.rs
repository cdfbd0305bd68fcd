//! Simulated runs, and their real counterparts.

use braid_ir::service_graph::stages::Stages;
use braid_sim::{Load, Overheads, Predicted, Staged, run_to_completion, stages};
use serde::Serialize;

use super::costs::Costs;

/// A simulated run.
pub struct Row {
    /// The number of stages; 1 is run-to-completion.
    pub stages: usize,
    /// When packets come.
    pub load: Load,
    /// What the simulation says.
    pub predicted: Predicted,
    /// What was measured.
    pub real: Option<Real>,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Real {
    /// The time of a packet (ns): the median of parts of the packets.
    pub packet_ns: f64,
    /// How much more the simulation says; 0.1 is 10 %.
    pub difference: f64,
}

/// Simulates run-to-completion and all plans under a load.
pub fn simulated(
    costs: &Costs,
    plans: &[Stages],
    overheads: &Overheads,
    load: Load,
    packets: usize,
) -> Vec<Row> {
    let row = |stages, predicted| Row { stages, load, predicted, real: None };
    let mut rows = vec![row(1, run_to_completion(costs.whole, load, packets))];
    for (plan, costs) in plans.iter().zip(&costs.plans) {
        let staged =
            Staged { routes: &plan.routes, costs: costs.costs.clone(), reach: costs.reach.clone() };
        let predicted = stages(&staged, overheads, &costs.traffic, load, packets);
        rows.push(row(plan.stages.len(), predicted));
    }
    rows
}
