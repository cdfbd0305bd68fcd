//! The costs of a simulation: measured, or named by the user.

use std::time::Duration;

use braid_bench::costs::{self, Measured};
use braid_compiler::parallel::stages::stages;
use braid_ir::chain::Chain;
use braid_ir::service_graph::stages::{Entry, Stages};
use braid_lang::diag::did_you_mean_help;
use braid_sim::{Cost, Traffic};

use crate::answer::Failure;
use crate::planning::sample::{Sample, sample};
use crate::planning::words::names;

/// The time to measure a chain, or the stages of a plan.
const LIMIT: Duration = Duration::from_millis(200);

/// The cost of a function, as the user names it.
#[derive(Clone, Debug)]
pub struct FunctionCost {
    function: String,
    packet_ns: f64,
}

/// Parses `FUNCTION=NS`.
pub fn function_cost(text: &str) -> Result<FunctionCost, String> {
    let wrong = || "expected FUNCTION=NS with 0 to 1000000000 nanoseconds".to_owned();
    let (function, ns) = text.split_once('=').ok_or_else(wrong)?;
    let packet_ns = ns.parse().ok().filter(|ns| (0.0..=1e9).contains(ns)).ok_or_else(wrong)?;
    Ok(FunctionCost { function: function.to_owned(), packet_ns })
}

/// Parses packets in a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (1.0..=1e12).contains(rate));
    rate.ok_or_else(|| "expected 1 to 1000000000000 packets in a second".to_owned())
}

/// The costs of a chain and of its plans.
pub struct Costs {
    /// The cost of the chain on one core.
    pub whole: Cost,
    /// Of each plan.
    pub plans: Vec<Measured>,
    /// The packets that were measured. Without any, all costs are named.
    pub sample: Sample,
    /// By function: where its cost comes from.
    pub functions: Vec<(String, Cost)>,
}

/// Functions that are one stage in every plan, their cost, and the share of packets that reach
/// them.
type Group = (Vec<u16>, Cost, f64);

impl Costs {
    /// Takes the costs that are named for functions (ns), and measures the others on the packets of
    /// captures or on generated ones. `bytes` is the length of packets if all costs are named.
    pub fn find(
        chain: &Chain,
        plans: &[Stages],
        named: &[Option<f64>],
        (inputs, bytes): (&[String], f64),
    ) -> Result<Self, Failure> {
        let finest = stages(chain, usize::MAX);
        let (sample, found) = match named.iter().all(Option::is_some) {
            true => {
                let sample = Sample { packets: Vec::new(), source: "no packets" };
                (sample, assumed(&finest, bytes))
            }
            false => {
                let sample = sample(inputs, chain)?;
                let found = measured(chain, &finest, &sample)?;
                (sample, found)
            }
        };
        let mut groups: Vec<Group> = Vec::new();
        let costs = found.costs.iter().zip(&found.reach);
        for (stage, (cost, reach)) in finest.stages.iter().zip(costs) {
            let cost = of_group(chain, &stage.functions, named, *cost)?;
            groups.push((stage.functions.clone(), cost, *reach));
        }
        let functions =
            groups.iter().map(|(functions, cost, _)| (names(chain, functions), *cost)).collect();
        let (whole, plans) = match named.iter().any(Option::is_some) {
            true => {
                let traffic = &found.traffic;
                let plan = |plan| of_groups(plan, &groups, &sample, traffic);
                let whole = groups.iter().map(|(_, cost, _)| *cost).sum();
                (whole, plans.iter().map(plan).collect())
            }
            false => {
                let whole = costs::whole(chain, &sample.packets, LIMIT).map_err(Failure::input)?;
                let plans = plans.iter().map(|plan| measured(chain, plan, &sample));
                (whole, plans.collect::<Result<_, Failure>>()?)
            }
        };
        Ok(Self { whole, plans, sample, functions })
    }
}

/// The costs of a plan: each stage costs as much as its functions together.
fn of_groups(plan: &Stages, groups: &[Group], sample: &Sample, traffic: &Traffic) -> Measured {
    let inside = |of: &[u16]| -> Vec<&Group> {
        groups.iter().filter(|(group, ..)| group.iter().all(|node| of.contains(node))).collect()
    };
    let stages: Vec<Vec<&Group>> =
        plan.stages.iter().map(|stage| inside(&stage.functions)).collect();
    let cost = |stage: &Vec<&Group>| stage.iter().map(|(_, cost, _)| *cost).sum();
    let reach = |stage: &Vec<&Group>| stage.iter().map(|(.., reach)| *reach).fold(0.0, f64::max);
    let routes = match sample.packets.is_empty() {
        true => assumed(plan, traffic.bytes).traffic.routes,
        false => sample.packets.iter().map(|packet| costs::route(plan, packet)).collect(),
    };
    Measured {
        costs: stages.iter().map(cost).collect(),
        reach: stages.iter().map(reach).collect(),
        traffic: Traffic { routes, bytes: traffic.bytes },
    }
}

fn measured(chain: &Chain, plan: &Stages, sample: &Sample) -> Result<Measured, Failure> {
    costs::stages(chain, plan, &sample.packets, LIMIT).map_err(Failure::input)
}

/// What holds without packets: all packets take the first route, and reach all of its stages.
fn assumed(plan: &Stages, bytes: f64) -> Measured {
    let route = plan.entries.iter().find_map(|entry| match entry {
        Entry::Routes { graph, .. } => Some(*graph),
        Entry::Unlinked | Entry::Leaves(_) => None,
    });
    let count = plan.stages.len();
    let traffic = Traffic { routes: vec![route], bytes };
    Measured { costs: vec![Cost::default(); count], reach: vec![1.0; count], traffic }
}

/// By function: its cost for each packet (ns), if it is named.
pub fn by_function(chain: &Chain, named: &[FunctionCost]) -> Result<Vec<Option<f64>>, Failure> {
    let mut found = vec![None; chain.nodes.len()];
    for FunctionCost { function, packet_ns } in named {
        let at = chain.nodes.iter().position(|node| node.name == *function);
        let Some(of) = at.and_then(|at| found.get_mut(at)) else {
            let names = || chain.nodes.iter().map(|node| node.name.as_str());
            let help = did_you_mean_help(function, names())
                .unwrap_or_else(|| format!("it has {}", names().collect::<Vec<_>>().join(", ")));
            let text = format!("the chain `{}` has no function `{function}`; {help}", chain.name);
            return Err(Failure::usage(text));
        };
        if of.replace(*packet_ns).is_some() {
            return Err(Failure::usage(format!("the cost of `{function}` is named twice")));
        }
    }
    Ok(found)
}

/// The cost of functions that are one stage in every plan.
fn of_group(
    chain: &Chain,
    functions: &[u16],
    named: &[Option<f64>],
    measured: Cost,
) -> Result<Cost, Failure> {
    let of = |node: &u16| named.get(usize::from(*node)).copied().flatten();
    let costs: Vec<f64> = functions.iter().filter_map(of).collect();
    match costs.len() {
        0 => Ok(measured),
        count if count == functions.len() => Ok(Cost::of_packet(costs.iter().sum())),
        _ => Err(Failure::usage(format!(
            "{} are always one stage: name the cost of each, or of none",
            names(chain, functions)
        ))),
    }
}
