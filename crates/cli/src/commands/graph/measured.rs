//! `braid graph --plan --measure`: costs measured on this machine, what they predict, and what
//! `--engine auto` would take.

use std::fmt::Write as _;

use braid_bench::costs::Measured;
use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::Stages;
use braid_sim::{Cost, Goal, choose};
use serde_json::{Value, json};

use crate::planning::words::{names, overheads};
use crate::planning::{Planned, engine, goal_name};
use crate::table::{Align, table};

const GOALS: [Goal; 2] = [Goal::Throughput, Goal::Latency];

/// The costs and predictions as text.
pub fn text(chain: &Chain, planned: &Planned) -> String {
    let Planned { packets, source, .. } = planned;
    let mut text = format!("\nmeasured on {packets} packets of {source}\n\n");
    text += &costs(chain, planned);
    text += "\nwhat stages cost on this machine\n";
    text += &overheads(&planned.overheads);
    text += "\npredicted\n";
    text += &predictions(planned);
    for goal in GOALS {
        if let Some(best) = choose(goal, &planned.candidates) {
            let _ = writeln!(text, "auto:{} takes {}", goal_name(goal), engine(best));
        }
    }
    text
}

/// The costs of the chain and of the stages of each plan.
fn costs(chain: &Chain, planned: &Planned) -> String {
    let row = |run: String, functions: String, cost: Cost, reach: f64| {
        let Cost { call_ns, packet_ns } = cost;
        let percent = format!("{:.0} %", reach * 100.0);
        vec![run, functions, format!("{call_ns:.1}"), format!("{packet_ns:.1}"), percent]
    };
    let all = names(chain, &(0..).zip(&chain.nodes).map(|(node, _)| node).collect::<Vec<_>>());
    let mut rows = vec![row("fused".to_owned(), all, planned.whole, 1.0)];
    for (plan, Measured { costs, reach, .. }) in &planned.plans {
        let count = plan.stages.len();
        for (number, (stage, (cost, reach))) in
            (1..).zip(plan.stages.iter().zip(costs.iter().zip(reach)))
        {
            let name = format!("stage {number} of {count}");
            rows.push(row(name, names(chain, &stage.functions), *cost, *reach));
        }
    }
    let head = [
        ("runs as", Align::Left),
        ("functions", Align::Left),
        ("a call, ns", Align::Right),
        ("a packet, ns", Align::Right),
        ("reached by", Align::Right),
    ];
    table(&head, &rows)
}

fn predictions(planned: &Planned) -> String {
    let rows = planned.candidates.iter().map(|candidate| {
        let (saturated, alone) = (candidate.saturated, candidate.alone);
        vec![
            engine(candidate),
            format!("{:.3}", 1e3 / saturated.packet_ns),
            format!("{:.0}", saturated.packet_ns),
            format!("{:.0}", saturated.latency.mean_ns),
            format!("{:.0}", alone.latency.mean_ns),
        ]
    });
    let head = [
        ("engine", Align::Left),
        ("Mpackets/s", Align::Right),
        ("a packet, ns", Align::Right),
        ("latency in full bursts, ns", Align::Right),
        ("latency alone, ns", Align::Right),
    ];
    table(&head, &rows.collect::<Vec<_>>())
}

/// The costs and predictions as JSON.
pub fn value(chain: &Chain, planned: &Planned) -> Value {
    let stage = |(plan, found): &(Stages, Measured)| -> Value {
        let stages = plan.stages.iter().zip(found.costs.iter().zip(&found.reach));
        let stage = stages.map(|(stage, (cost, reach))| {
            json!({ "functions": names(chain, &stage.functions), "cost": cost, "reach": reach })
        });
        stage.collect()
    };
    let takes = GOALS.map(|goal| {
        let best = choose(goal, &planned.candidates).map(engine);
        (goal_name(goal).to_owned(), json!(best))
    });
    json!({
        "packets": planned.packets,
        "source": planned.source,
        "whole": planned.whole,
        "plans": planned.plans.iter().map(stage).collect::<Vec<_>>(),
        "overheads": planned.overheads,
        "predicted": planned.candidates,
        "auto": Value::Object(takes.into_iter().collect()),
    })
}
