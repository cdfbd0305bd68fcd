//! `braid flows`: the flow records that the engine `fused` has after captures.

mod text;
mod value;

use braid_engine::{FlowTable, Payload};
use braid_ir::chain::{Chain, Interface, Node};
use braid_ir::model::RowId;
use braid_runtime::Run;

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Replay;
use crate::commands::run::failure;
use crate::engines;
use crate::output::{Output, warn};

/// Run a chain over captures with flow records, and show those that there are at the end: what each one
/// does with its flow's packets, what it takes for granted, and what it rests on
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    replay: Replay,
    /// Most records that are shown
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Show only classes: what many records have in common
    #[arg(long, conflicts_with = "limit")]
    classes: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let (chain, inputs, control) = args.replay.open()?;
    let mut engine = engines::fused(&chain)?;
    engine.keep_flow_totals();
    let mut run = Run::new(&chain, &mut engine).control(control).follow(args.replay.follow);
    for input in inputs.into_inputs() {
        run = run.input(input);
    }
    let done = run.run().map_err(|error| failure(&error))?;
    for warning in &done.warnings {
        warn(warning);
    }
    let table = engine.flow_table();
    let table = table.ok_or_else(|| Failure::inconsistent("the engine keeps no flow records"))?;
    let shown = shown(args, &table);
    if output.json {
        output.value(&value::value(&chain, &table, shown));
    } else {
        output.text(text::text(&chain, &table, shown));
    }
    Ok(Answer::Yes)
}

/// Which records are shown.
#[derive(Clone, Copy)]
enum Shown {
    /// None: only classes.
    Classes,
    /// So many.
    Records(usize),
}

fn shown(args: &Args, table: &FlowTable) -> Shown {
    match args.classes {
        true => Shown::Classes,
        false => Shown::Records(args.limit.min(table.records.len())),
    }
}

/// What state functions do with the payload (SpeedyBox §IV-A2).
fn payload_word(payload: Payload) -> &'static str {
    match payload {
        Payload::Ignore => "ignore",
        Payload::Read => "read",
        Payload::Write => "write",
    }
}

/// Names for a chain's numbers.
#[derive(Clone, Copy)]
struct Names<'c>(&'c Chain);

impl<'c> Names<'c> {
    fn node(self, node: u16) -> Option<&'c Node> {
        self.0.nodes.get(usize::from(node))
    }

    fn name(self, node: u16) -> &'c str {
        self.node(node).map_or("?", |node| &node.name)
    }

    fn model(self, node: u16) -> &'c str {
        self.node(node).map_or("?", |node| &node.model.name)
    }

    fn interface(self, at: u16) -> &'c str {
        let found: Option<&'c Interface> = self.0.interfaces.get(usize::from(at));
        found.map_or("?", |interface| &interface.name)
    }

    /// A row's number and text.
    fn row(self, node: u16, row: RowId) -> (&'c str, &'c str) {
        let decl = self.node(node).and_then(|node| node.model.rows.get(row.index()));
        decl.map_or(("?", ""), |decl| (&decl.label, &decl.text))
    }

    /// The name of a slot: empty if a table has but one.
    fn slot(self, node: u16, table: &str, slot: u32) -> &'c str {
        let states = self.node(node).map(|node| &*node.model.state);
        let decl = states.and_then(|all| all.iter().find(|decl| decl.name == table));
        decl.and_then(|decl| decl.slots.get(slot as usize)).map_or("", |(name, _)| name)
    }

    /// The name of a parameter.
    fn param(self, node: u16, param: braid_ir::model::ParamId) -> &'c str {
        let decl = self.node(node).and_then(|node| node.model.params.get(param.index()));
        decl.map_or("?", |decl| &decl.name)
    }
}
