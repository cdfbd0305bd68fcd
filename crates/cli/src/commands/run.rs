//! `braid run`: a chain over captures, or over live interfaces.

mod live;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_runtime::live::{Clock, Live};
use braid_runtime::{Run, RunError, Summary, json, report};

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::{self, Inputs, Named, same_file};
use crate::engines;
use crate::load::{self, Choice};
use crate::native;
use crate::output::{Output, warn};
use crate::progress::Progress;
use crate::summary::summary;

/// Run a chain over captures, or over live interfaces
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// A capture whose packets enter; with IF= all of them at that interface
    #[arg(long = "in", value_name = "[IF=]CAPTURE", num_args = 1..)]
    #[arg(required_unless_present = "devices", conflicts_with = "devices")]
    inputs: Vec<String>,
    /// A device where packets enter and leave, live: af_packet:DEVICE or tap:DEVICE
    #[arg(long = "if", value_name = "IF=KIND:DEVICE", num_args = 1..)]
    devices: Vec<String>,
    /// With --if: how long, such as 90s, 10m, 500ms; else until Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = live::duration)]
    #[arg(requires = "devices", conflicts_with = "inputs")]
    time: Option<std::time::Duration>,
    /// With --if: ends after so many packets
    #[arg(long, value_name = "N", requires = "devices", conflicts_with = "inputs")]
    packets: Option<u64>,
    /// Where to write the packets that leave; with IF= only those of that interface
    #[arg(long = "out", value_name = "[IF=]CAPTURE", num_args = 1..)]
    outputs: Vec<String>,
    /// Rewrite each captured reply by what its request left with
    #[arg(long, conflicts_with = "devices")]
    follow: bool,
    /// How the chain runs
    #[arg(long, value_name = "NAME", default_value = engines::DEFAULT)]
    engine: String,
    /// Changes of configuration while it runs
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Compare what native functions do with what they recorded of each flow
    #[arg(long)]
    check_native: bool,
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
    let mut chain = program.chain(&args.choice)?;
    if args.check_native {
        native::check_records(&mut chain);
    }
    let inputs = Inputs::open(&args.inputs, &chain)?;
    let outputs: Vec<Named> =
        args.outputs.iter().map(|text| captures::named(text, &chain)).collect::<Result<_, _>>()?;
    check_outputs(args, &outputs, &inputs)?;
    let ports = live::open(&args.devices, &chain)?;
    let clock = Clock::start();
    let first_time_ns = if ports.is_empty() { inputs.first_time_ns() } else { clock.start_ns() };
    let control = match &args.control {
        Some(file) => program.control(file, &chain, first_time_ns)?,
        None => Vec::new(),
    };
    let mut engine = engines::make(&args.engine, &chain)?;
    let mut done = if ports.is_empty() {
        drive(args, &chain, engine.as_mut(), inputs, outputs, control)?
    } else {
        let run = Live::new(&chain, engine.as_mut(), clock).control(control);
        live::drive(args, run, ports, outputs)?
    };
    if let Some(path) = &args.state_out {
        write_state(path, &chain, engine.as_ref())?;
    }
    let problems = native::problems(&chain, engine.as_ref());
    let answer = Answer::of(problems.is_empty());
    done.warnings.extend(problems);
    for warning in &done.warnings {
        warn(warning);
    }
    if output.json {
        output.value(&report::report(&chain, &done));
    } else {
        output.text(summary(&chain, &done));
    }
    Ok(answer)
}

fn drive(
    args: &Args,
    chain: &Chain,
    engine: &mut dyn Engine,
    inputs: Inputs,
    outputs: Vec<Named>,
    control: Vec<Control>,
) -> Result<Summary, Failure> {
    let precision = inputs.precision();
    let mut run = Run::new(chain, engine).control(control).follow(args.follow);
    for Named { interface, path } in outputs {
        let sink = captures::create(&path, precision)?;
        run = run.output(path.display().to_string(), interface, sink);
    }
    if let Some(path) = &args.events_out {
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

/// Refuses outputs that would overwrite an input or each other, before any is created.
fn check_outputs(args: &Args, outputs: &[Named], inputs: &Inputs) -> Result<(), Failure> {
    let others = [&args.state_out, &args.events_out].into_iter().flatten();
    let mut written: Vec<&Path> = Vec::new();
    for path in outputs.iter().map(|named| &named.path).chain(others) {
        inputs.is_apart(path)?;
        let shown = path.display();
        if [Some(&args.file), args.control.as_ref()]
            .into_iter()
            .flatten()
            .any(|read| same_file(path, read))
        {
            return Err(Failure::usage(format!("{shown} is read, so it cannot be an output")));
        }
        if written.iter().any(|other| same_file(path, other)) {
            return Err(Failure::usage(format!("{shown} is named for two outputs")));
        }
        if path.as_os_str() == "-" {
            return Err(Failure::usage("standard output is for results: name a file to write"));
        }
        written.push(path);
    }
    Ok(())
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
