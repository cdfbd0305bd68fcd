//! `braid flows`: the flow records that the engine `fused` holds after a run over captures.

mod bits;
mod described;
mod fields;
mod text;
mod value;

use braid_engine::FlowTable;
use braid_ir::chain::Chain;
use braid_runtime::Run;
use serde_json::Value;

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Replay;
use crate::engines;
use crate::output::{Output, warn};
use described::{Listing, Shown};

pub use bits::condition;

/// Run a chain over captures with flow records, and show the records at the end: what each one does
/// with its flow's packets, and which state and parameters it depends on
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    replay: Replay,
    /// The most records to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Show only the record templates (the parts that many records share)
    #[arg(long, conflicts_with = "limit")]
    templates: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let (chain, inputs, control) = args.replay.open()?;
    let mut engine = engines::fused(&chain)?;
    engine.keep_flow_totals();
    let mut run = Run::new(&chain, &mut engine).control(control).follow(args.replay.follow);
    for input in inputs.into_inputs() {
        run = run.input(input);
    }
    let done = run.run()?;
    done.warnings.iter().for_each(warn);
    args.replay.warn_refused(&done);
    let table = engine.flow_table();
    let table = table.ok_or_else(|| Failure::inconsistent("the engine keeps no flow records"))?;
    let shown = shown(args, &table);
    if output.json {
        output.value(&value::value(&Listing::of(&chain, &table), shown));
    } else {
        output.text(text::text(&Listing::of(&chain, &table), shown));
    }
    Ok(Answer::Yes)
}

/// A page of a live run's flow records, without records whose JSON lacks a text. Returns also where
/// the next page begins.
pub fn page(
    chain: &Chain,
    page: &FlowTable,
    contains: Option<&str>,
    as_text: bool,
) -> (Value, Option<usize>) {
    let mut table = Listing::of(chain, page);
    if let Some(contains) = contains {
        let value = |one| table.names.record_value(&table, one).to_string();
        let records = table.records.iter().copied().filter(|one| value(one).contains(contains));
        table.records = records.collect();
    }
    let shown = Shown::Records(table.records.len());
    let flows = match as_text {
        true => Value::from(text::text(&table, shown)),
        false => value::value(&table, shown),
    };
    (flows, page.next)
}

fn shown(args: &Args, table: &FlowTable) -> Shown {
    match args.templates {
        true => Shown::Templates,
        false => Shown::Records(args.limit.min(table.records.len())),
    }
}
