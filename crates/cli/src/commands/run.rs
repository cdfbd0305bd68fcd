//! `braid run`: a chain over captures.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_runtime::{Run, RunError, Summary, json, report};

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::{self, Inputs};
use crate::engines;
use crate::load::{self, Choice};
use crate::output::{Output, warn};
use crate::progress::Progress;
use crate::summary::summary;

/// Run a chain over captures
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// A capture whose packets enter; with IF= all of them at that interface
    #[arg(long = "in", value_name = "[IF=]CAPTURE", required = true, num_args = 1..)]
    inputs: Vec<String>,
    /// Where to write the packets that leave; with IF= only those of that interface
    #[arg(long = "out", value_name = "[IF=]CAPTURE", num_args = 1..)]
    outputs: Vec<String>,
    /// Rewrite each captured reply by what its request left with
    #[arg(long)]
    follow: bool,
    /// How the chain runs
    #[arg(long, value_name = "NAME", default_value = engines::DEFAULT)]
    engine: String,
    /// Changes of configuration while it runs
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Where to write state entries at the end, as JSON lines
    #[arg(long, value_name = "FILE")]
    state_out: Option<PathBuf>,
    /// Where to write events, as JSON lines
    #[arg(long, value_name = "FILE")]
    events_out: Option<PathBuf>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    engines::check(&args.engine)?;
    let mut program = load::program(&args.file)?;
    let chain = program.chain(&args.choice)?;
    let inputs = Inputs::open(&args.inputs, &chain)?;
    let control = match &args.control {
        Some(file) => program.control(file, &chain, inputs.first_time_ns())?,
        None => Vec::new(),
    };
    let mut engine = engines::make(&args.engine, &chain)?;
    let done = drive(args, &chain, engine.as_mut(), inputs, control)?;
    if let Some(path) = &args.state_out {
        write_state(path, &chain, engine.as_ref())?;
    }
    for warning in &done.warnings {
        warn(warning);
    }
    if output.json {
        output.value(&report::report(&chain, &done));
    } else {
        output.text(summary(&chain, &done));
    }
    Ok(Answer::Yes)
}

fn drive(
    args: &Args,
    chain: &Chain,
    engine: &mut dyn Engine,
    inputs: Inputs,
    control: Vec<Control>,
) -> Result<Summary, Failure> {
    let precision = inputs.precision();
    let mut sinks = Vec::with_capacity(args.outputs.len());
    for text in &args.outputs {
        let named = captures::named(text, chain)?;
        inputs.is_apart(&named.path)?;
        sinks.push((named.path.display().to_string(), named.interface, named.path));
    }
    let mut run = Run::new(chain, engine).control(control).follow(args.follow);
    for (name, interface, path) in sinks {
        run = run.output(name, interface, captures::create(&path, precision)?);
    }
    if let Some(path) = &args.events_out {
        inputs.is_apart(path)?;
        run = run.events(create(path)?);
    }
    for input in inputs.into_inputs() {
        run = run.input(input);
    }
    let mut bar: Option<Progress> = None;
    let run = run.progress(move |now| {
        if bar.is_none() && now.total > 0 {
            bar = Some(Progress::bytes(now.total, "packets"));
        }
        if let Some(bar) = &bar {
            bar.set(now.read);
        }
    });
    run.run().map_err(|error| failure(&error))
}

/// A run's error with its exit code.
pub fn failure(error: &RunError) -> Failure {
    match error {
        RunError::Unbalanced(_) => Failure::inconsistent(error),
        RunError::Read { .. }
        | RunError::Write { .. }
        | RunError::Events(_)
        | RunError::Control { .. } => Failure::input(error),
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|why| Failure::file(path, why))
}

fn write_state(path: &Path, chain: &Chain, engine: &dyn Engine) -> Result<(), Failure> {
    let mut file = create(path)?;
    let entries = engine.state();
    let mut write = || {
        for line in json::state_lines(chain, &entries) {
            writeln!(file, "{line}")?;
        }
        file.flush()
    };
    write().map_err(|why| Failure::file(path, why))
}
