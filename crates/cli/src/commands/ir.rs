//! `braid ir`: the lowered form of functions, and the residual programs of chains pass by pass.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_compiler::passes::PASSES;
use braid_compiler::synth::{SYMBOLIC, residual_after};
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::Graph;
use braid_ir::model::{Model, RIGHT};
use braid_ir::residual::{Extent, Point};
use braid_ir::text::print;
use braid_lang::diag::did_you_mean_help;
use braid_packet::{HEADERS, Header};
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::load::{self, Choice};
use crate::output::Output;

/// Print the lowered form of the functions of a file and of all functions that its chains use; with
/// --shape, the program that a chain becomes
#[derive(clap::Args)]
pub struct Args {
    /// The file
    #[arg(required_unless_present = "passes")]
    file: Option<PathBuf>,
    /// Only this function
    #[arg(long, value_name = "NAME", conflicts_with = "shape")]
    function: Option<String>,
    /// Print the chain's program for packets with these headers, such as `eth,ip,udp`, instead
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    shape: Vec<String>,
    /// Print the program as it is after this pass (--passes lists them), instead of after the last
    /// one
    #[arg(long, value_name = "PASS", requires = "shape")]
    after: Option<String>,
    /// The interface where the packets enter, instead of the chain's first
    #[arg(long, value_name = "NAME", requires = "shape")]
    from: Option<String>,
    /// List the passes that make a chain's programs, in order
    #[arg(long, conflicts_with_all = ["file", "function", "shape"])]
    passes: bool,
    #[command(flatten)]
    choice: Choice,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let Some(file) = &args.file else {
        list_passes(output);
        return Ok(Answer::Yes);
    };
    if !args.shape.is_empty() {
        return program(file, args, output);
    }
    let mut models = load::program(file)?.models();
    if let Some(name) = &args.function {
        only(&mut models, name)?;
    }
    if output.json {
        let entry = |model: &Arc<Model>| json!({ "name": model.name, "ir": print(model) });
        output.value(&json!({ "functions": models.iter().map(entry).collect::<Vec<_>>() }));
    } else {
        let texts: Vec<String> = models.iter().map(|model| print(model)).collect();
        output.text(texts.join("\n"));
    }
    Ok(Answer::Yes)
}

fn only(models: &mut Vec<Arc<Model>>, name: &str) -> Result<(), Failure> {
    let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
    models.retain(|model| model.name == name);
    if models.is_empty() {
        let help = did_you_mean_help(name, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("it has {}", names.join(", ")));
        return Err(Failure::usage(format!("the file has no function `{name}`; {help}")));
    }
    Ok(())
}

/// All stages of a program, with their reasons.
fn stages() -> Vec<(&'static str, &'static str)> {
    let first = (SYMBOLIC, "the functions on the packets' paths become one program");
    std::iter::once(first).chain(PASSES.iter().map(|pass| (pass.name, pass.reason))).collect()
}

fn list_passes(output: &Output) {
    let stages = stages();
    if output.json {
        let entry = |(name, reason): &(&str, &str)| json!({ "name": name, "reason": reason });
        output.value(&json!({ "passes": stages.iter().map(entry).collect::<Vec<_>>() }));
        return;
    }
    let width = stages.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = stages.iter().map(|(name, reason)| format!("{name:width$}  {reason}\n"));
    output.text(lines.collect::<String>());
}

/// Prints the program of a chain for one shape of packets.
fn program(file: &Path, args: &Args, output: &Output) -> Outcome {
    let chain = load::program(file)?.chain(&args.choice)?;
    let graph = Graph::new(&chain).map_err(Failure::inconsistent)?;
    let presence = presence(&args.shape)?;
    let point = entry(&chain, &graph, args.from.as_deref(), presence)?;
    let last = PASSES.last().map_or(SYMBOLIC, |pass| pass.name);
    let after = args.after.as_deref().unwrap_or(last);
    let made = residual_after(&chain, &graph, point, presence, Extent::Chain, after);
    let Some(made) = made else {
        let names: Vec<&str> = stages().into_iter().map(|(name, _)| name).collect();
        return Err(unknown("pass", after, &names));
    };
    let text = braid_ir::residual::print(&made, &chain);
    if output.json {
        output.value(&json!({ "chain": chain.name, "after": after, "program": text }));
    } else {
        output.text(text);
    }
    Ok(Answer::Yes)
}

fn unknown(what: &str, name: &str, all: &[&str]) -> Failure {
    let help = did_you_mean_help(name, all.iter().copied())
        .unwrap_or_else(|| format!("there are {}", all.join(", ")));
    Failure::usage(format!("there is no {what} `{name}`; {help}"))
}

/// The bits of headers that are given by their names, including the headers that they imply.
fn presence(names: &[String]) -> Result<u128, Failure> {
    let mut bits = Header::Pkt.bit();
    for name in names {
        let name = name.trim();
        let Some(header) = Header::by_name(name) else {
            let all: Vec<&str> = HEADERS.iter().map(|(_, name)| *name).collect();
            return Err(unknown("header", name, &all));
        };
        bits |= header.closure();
    }
    Ok(bits)
}

/// The point where packets of an interface with these headers enter the chain's first function.
fn entry(
    chain: &Chain,
    graph: &Graph,
    from: Option<&str>,
    presence: u128,
) -> Result<Point, Failure> {
    let names: Vec<&str> = chain.interfaces.iter().map(|one| one.name.as_str()).collect();
    let name = from.or(names.first().copied()).unwrap_or_default();
    let number = (0..).zip(&names).find(|(_, other)| **other == name);
    let Some((number, _)) = number else { return Err(unknown("interface", name, &names)) };
    match graph.entry(number) {
        Some(Sink::Port(node, port))
            if graph.has_programs(node) && !graph.goes_to_stack(node, presence) =>
        {
            Ok(Point { node, backward: port == RIGHT, held: false })
        }
        _ => Err(Failure::input(format!(
            "packets of interface `{name}` have no program: they come to no function, to a native \
             one, to the TCP stack of a stream function, or to functions under Priority"
        ))),
    }
}
