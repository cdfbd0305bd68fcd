//! `braid trace`: one packet's walk. The packets before it run first; then the engine is watched.

mod live;
mod steps;
mod watch;
mod why;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_engine::PacketPath;
use braid_ir::chain::Chain;
use braid_runtime::{Input, Run};
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Replay;
use crate::engines;
use crate::output::Output;
use steps::{Walk, text, value};
use watch::{Marking, Target, Watched};

pub use live::traced;

/// Show one packet's walk through a chain: every function and row, the fields and state that it
/// read and wrote, and why it was dropped
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    replay: Replay,
    /// The packet's number in the capture, from 1; with several captures its number among the
    /// packets that enter
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packet: u64,
    /// The engine: reference, or fused, which also shows the path that the packet took
    #[arg(long, value_name = "NAME", default_value = engines::DEFAULT)]
    engine: String,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    engines::check(&args.engine)?;
    if ![engines::REFERENCE, "fused"].contains(&args.engine.as_str()) {
        return Err(Failure::usage("trace shows the engines reference and fused"));
    }
    let (chain, inputs, control) = args.replay.open()?;
    let done = Arc::new(AtomicBool::new(false));
    let target = match args.replay.inputs.len() {
        1 => Target::Marked,
        _ => Target::Entering(args.packet),
    };
    let beside = match args.engine.as_str() {
        "fused" => Some(engines::fused(&chain)?),
        _ => None,
    };
    let mut engine = Watched::new(engines::reference(&chain)?, beside, target, Arc::clone(&done));
    let seen = Arc::new(AtomicU64::new(0));
    let mut run = Run::new(&chain, &mut engine).control(control).follow(args.replay.follow);
    for input in inputs.into_inputs() {
        let mark = (target == Target::Marked).then_some(args.packet);
        let Input { name, interface, source } = input;
        let source = Marking::new(source, mark, Arc::clone(&done), Arc::clone(&seen));
        run = run.input(Input { name, interface, source: Box::new(source) });
    }
    args.replay.warn_refused(&run.run()?);
    match engine.into_walk() {
        Some((walk, path)) => show(args, (&walk, path.as_ref()), &chain, output),
        None if target == Target::Marked && seen.load(Ordering::Relaxed) >= args.packet => {
            not_entered(args, output);
        }
        None => {
            let message = format!("there is no packet {}", args.packet);
            return Err(Failure::usage(format!(
                "{message}; {} were read",
                seen.load(Ordering::Relaxed)
            )));
        }
    }
    Ok(Answer::Yes)
}

fn show(args: &Args, (walk, path): (&Walk, Option<&PacketPath>), chain: &Chain, output: &Output) {
    if output.json {
        let mut value = value(args.packet, walk, chain);
        if let Some(path) = path {
            value["path"] = json!({
                "taken": why::taken(path), "why": why::why(path, chain), "rest": path.rest, "part": path.part
            });
        }
        output.value(&value);
    } else {
        output.text(text(args.packet, walk, chain));
        if let Some(path) = path {
            output.text(format!("with flow records\n  {}\n", why::line(path, chain)));
        }
    }
}

fn not_entered(args: &Args, output: &Output) {
    let why = "neither its source nor its destination address belongs to an interface; lost as \
               no_interface";
    if output.json {
        let lost = json!({ "what": "lost", "reason": "no_interface" });
        let steps = json!({ "packet": args.packet, "interface": null, "steps": [lost] });
        output.value(&steps);
    } else {
        output.text(format!("packet {} does not enter: {why}\n", args.packet));
    }
}
