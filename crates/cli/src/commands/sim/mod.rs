//! `braid sim`: a chain in stages on more cores than the machine has, simulated.

mod costs;
mod real;
mod rows;
mod shown;

use std::path::PathBuf;

use braid_sim::Load;
use clap::ValueHint;

use crate::answer::{Answer, Failure, Outcome};
use crate::load::{self, Choice};
use crate::output::Output;
use crate::planning::{calibration, plans, undivided, unmeasurable};
use costs::{Costs, FunctionCost};
use rows::simulated;

/// Simulate a chain on one core and in stages on several cores: throughput and latency from costs
/// that are measured or named
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    /// The chain of the file; needed if the file has several
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// A capture with the packets to measure with, instead of generated ones
    #[arg(long = "in", value_name = "[IF=]CAPTURE", num_args = 1..)]
    #[arg(value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// The cost of a function for each packet (ns), instead of measuring it
    #[arg(long = "cost", value_name = "FUNCTION=NS", value_parser = costs::function_cost)]
    #[arg(num_args = 1..)]
    costs: Vec<FunctionCost>,
    /// The number of cores: the chain has at most as many stages
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: u16,
    /// Packets in a second, at random times [default: one packet after the other, and full bursts]
    #[arg(long, value_name = "PACKETS", value_parser = costs::rate)]
    rate: Option<f64>,
    /// The number of packets to simulate
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    packets: u32,
    /// The length of packets (bytes) if all costs are named
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    bytes: u32,
    /// Also run the chain on this machine with the same packets, and show the difference
    #[arg(long, conflicts_with_all = ["costs", "rate"])]
    compare: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let choice = Choice { chain: args.chain.clone(), ..Choice::default() };
    let chain = load::program(&args.file)?.chain(&choice)?;
    let most = usize::from(args.cores);
    let named = costs::by_function(&chain, &args.costs)?;
    let is_measured = named.iter().any(Option::is_none);
    let file = args.file.display();
    if let Some(why) = is_measured.then(|| unmeasurable(&chain)).flatten() {
        return Err(Failure::input(format!(
            "{file}: the costs of the chain's functions cannot be measured: {why}; name the cost \
             of each function with --cost FUNCTION=NS"
        )));
    }
    if let Some(why) = undivided(&chain, most.max(2)) {
        return Err(Failure::input(format!(
            "{file}: the chain has no stages to simulate: {why}; `braid graph {file}` shows which \
             functions depend on each other"
        )));
    }
    let plans = plans(&chain, most);
    let bytes = f64::from(args.bytes);
    let costs = Costs::find(&chain, &plans, &named, (&args.inputs, bytes))?;
    let overheads = calibration::undisturbed().map_err(Failure::inconsistent)?;
    let loads = match args.rate {
        Some(rate) => vec![Load::Rate(rate)],
        None => vec![Load::Alone, Load::Saturated],
    };
    let mut rows = Vec::new();
    for load in loads {
        rows.extend(simulated(&costs, &plans, &overheads, load, args.packets as usize));
    }
    if args.compare {
        real::add(&mut rows, &chain, &costs.sample)?;
    }
    match output.json {
        true => output.value(&shown::value(&chain, &costs, &overheads, &rows)),
        false => output.text(shown::text(&chain, &costs, &overheads, &rows)),
    }
    Ok(Answer::Yes)
}
