//! `braid graph`: which functions of a chain can work at the same time (NFP).

mod measured;
mod plan;

use std::fmt::Write as _;
use std::path::PathBuf;

use braid_compiler::parallel::action::Kind;
use braid_compiler::parallel::chain::{Path, paths};
use braid_compiler::parallel::depend::{Conflict, Parallel};
use braid_compiler::parallel::dot::dot;
use braid_compiler::parallel::policy::Pair;
use braid_compiler::parallel::stages::stages;
use braid_compiler::parallel::svg::svg;
use braid_ir::chain::Chain;
use braid_ir::service_graph::{Extent, Merge, Operation, Verdict};
use clap::ValueHint;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::engines;
use crate::load::{self, Choice};
use crate::output::Output;
use crate::planning::sample::sample;
use crate::planning::{self, obstacle};

/// Show which functions of a chain can work on a packet at the same time, and the service graph
/// that follows (NFP)
#[derive(clap::Args)]
pub struct Args {
    /// The file
    file: PathBuf,
    /// The chain of the file; needed if the file has several
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// The output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Show the stages of the engine `parallel` instead
    #[arg(long)]
    plan: bool,
    /// With --plan: the most stages; as many as the machine has cores if you name no number
    #[arg(long, value_name = "N", requires = "plan")]
    stages: Option<usize>,
    /// With --plan: measure the stages and this machine, and predict what stages bring
    #[arg(long, requires = "plan")]
    measure: bool,
    /// With --measure: a capture with the packets to measure with, instead of generated ones
    #[arg(long = "in", value_name = "[IF=]CAPTURE", num_args = 1.., requires = "measure")]
    #[arg(value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
}

/// The output format of a graph.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Text
    Text,
    /// JSON, with all findings and tables
    Json,
    /// DOT, for Graphviz
    Dot,
    /// An SVG picture
    Svg,
}

/// The most reasons to show for a pair.
const MAX_REASONS: usize = 3;

pub fn run(args: &Args, output: &Output) -> Outcome {
    let choice = Choice { chain: args.chain.clone(), ..Choice::default() };
    let chain = load::program(&args.file)?.chain(&choice)?;
    if args.plan {
        return plan_of(args, &chain, output);
    }
    let found =
        paths(&chain).map_err(|why| Failure::input(format!("{}: {why}", args.file.display())))?;
    match args.format {
        _ if output.json => output.value(&json!({ "chain": chain.name, "paths": found })),
        Format::Json => output.value(&json!({ "chain": chain.name, "paths": found })),
        Format::Dot => output.text(dot(&chain.name, &found)),
        Format::Svg => output.text(svg(&chain.name, &found)),
        Format::Text => output.text(text(&chain.name, &found)),
    }
    Ok(Answer::Yes)
}

/// Shows the stages of a chain, and what they cost if the user asks for it.
fn plan_of(args: &Args, chain: &Chain, output: &Output) -> Outcome {
    if matches!(args.format, Format::Dot | Format::Svg) {
        return Err(Failure::usage("a plan is text or JSON: --format text, --format json"));
    }
    let most = args.stages.unwrap_or_else(engines::cores);
    let plan = stages(chain, most);
    let planned = match args.measure.then(|| obstacle(chain, most)) {
        None => None,
        Some(Some(why)) => Some(Err(why)),
        Some(None) => Some(planning::plan(chain, &sample(&args.inputs, chain)?, most)),
    };
    if output.json || args.format == Format::Json {
        let mut value = plan::value(chain, &plan);
        match &planned {
            Some(Ok(planned)) => value["measured"] = measured::value(chain, planned),
            Some(Err(why)) => value["not_measured"] = json!(why),
            None => {}
        }
        output.value(&value);
        return Ok(Answer::Yes);
    }
    let mut text = plan::text(chain, &plan);
    match &planned {
        Some(Ok(planned)) => text += &measured::text(chain, planned),
        Some(Err(why)) => text += &format!("\nnot measured, so auto takes fused: {why}\n"),
        None => {}
    }
    output.text(text);
    Ok(Answer::Yes)
}

fn text(chain: &str, paths: &[Path]) -> String {
    let mut text = format!("chain {chain}\n");
    for path in paths {
        path_text(path, &mut text);
    }
    text
}

fn name(path: &Path, function: usize) -> &str {
    path.functions.get(function).map_or("", String::as_str)
}

fn names(path: &Path, functions: &[usize]) -> String {
    functions.iter().map(|function| name(path, *function)).collect::<Vec<_>>().join(", ")
}

fn path_text(path: &Path, text: &mut String) {
    let graph = &path.graph;
    let _ = writeln!(text, "\n{}", path.title());
    let _ = writeln!(text, "  chain   {}", path.functions.join(" -> "));
    let _ = writeln!(text, "  graph   {}", graph.root.text(&|f| name(path, f).to_owned()));
    let _ = writeln!(text, "          {}", path.summary());
    for copy in &graph.copies {
        let extent = match copy.extent {
            Extent::Headers => "the headers of",
            Extent::Full => "all of",
        };
        let _ = writeln!(text, "  copy    v{} is {extent} v{}", copy.to, copy.from);
    }
    for merging in &graph.tables.merging {
        merge_text(path, &merging.merge, text);
    }
    if path.whole_payload {
        text.push_str("  packets whose payload the capture has cut take the chain\n");
    }
    for pair in &graph.representation.pairs {
        pair_text(path, pair, text);
    }
}

fn merge_text(path: &Path, merge: &Merge, text: &mut String) {
    let verdict = match &merge.verdict {
        Verdict::AnyDrops(function) => {
            format!("dropped if any drops it, else as {} says", name(path, *function))
        }
        Verdict::FirstThatMayDrop(functions) => {
            format!("the verdict is that of the first that may drop of {}", names(path, functions))
        }
        Verdict::BetweenOrFirst { between, first } => format!(
            "the verdict is that of {} if the packet ends there or goes elsewhere, else that of the \
             first that may drop of {}",
            names(path, between),
            names(path, first)
        ),
    };
    let (into, expects) = (merge.into, merge.expects);
    let _ = writeln!(text, "  merge   {expects} into v{into}; {verdict}");
    for operation in &merge.operations {
        let (what, unless) = match operation {
            Operation::Modify { part, from, by, unless } => (
                format!("modify(v{into}, v{from}: {part}) if {} wrote it", name(path, *by)),
                unless,
            ),
            Operation::Add { header, from, by, unless } => {
                (format!("add(v{from}: {header}) if {} added it", name(path, *by)), unless)
            }
            Operation::Remove { header, by, unless } => {
                (format!("remove(v{into}: {header}) if {} removed it", name(path, *by)), unless)
            }
        };
        let but = match unless.as_slice() {
            [] => String::new(),
            some => format!(", unless {} did", names(path, some)),
        };
        let _ = writeln!(text, "          {what}{but}");
    }
}

/// Whether to print a conflict beside the pair's other conflicts. A function after one that may end
/// a packet's path must wait in any case, so one reason is enough.
fn tells(conflict: &Conflict) -> bool {
    match conflict.first.kind() {
        Kind::Drop | Kind::Steer | Kind::Emit | Kind::Hold => conflict.second.kind() == Kind::Count,
        _ => true,
    }
}

fn pair_text(path: &Path, pair: &Pair, text: &mut String) {
    let (first, second) = (name(path, pair.first), name(path, pair.second));
    let by = match (&pair.rule, pair.priority) {
        (Some(rule), true) => format!(" by {rule}"),
        _ => String::new(),
    };
    let _ = writeln!(text, "  {first}, {second}: {}{by}", pair.finding.parallel);
    let reasons: Vec<&Conflict> =
        pair.finding.conflicts.iter().filter(|conflict| tells(conflict)).collect();
    for reason in reasons.iter().take(MAX_REASONS) {
        let _ = writeln!(text, "          {}", reason.text(first, second));
    }
    if reasons.len() > MAX_REASONS {
        let _ = writeln!(text, "          and {} more", reasons.len() - MAX_REASONS);
    }
    if pair.finding.parallel == Parallel::WithoutCopy && reasons.is_empty() {
        text.push_str("          nothing that one changes matters to the other\n");
    }
}
