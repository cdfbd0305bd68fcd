//! `braid run`: runs a chain over captures, or over live interfaces.

mod kept;
mod live;
mod outputs;
mod sandbox;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_io::{Device, Faults, Precision};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_runtime::ctl::Socket;
use braid_runtime::live::{Clock, Done, Limits, Live, Ports};
use braid_runtime::{Engines, Run, RunError, Sinks, Summary, Unwritten, report};
use braid_sim::Goal;
use clap::ValueHint;
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::{Inputs, Named};
use crate::engines;
use crate::load::{self, Choice, Program};
use crate::native;
use crate::output::{Output, tell, warn};
use crate::planning::{self, Choice as EngineChoice};
use crate::progress::Progress;
use crate::summary::{summary, warn_refused};
use kept::Kept;
use live::{Devices, Surroundings};
pub use live::{duration, signal_flag};
use outputs::LineFile;
pub use sandbox::confine_function;
use sandbox::{Needs, User};

/// Run a chain over captures, or over live interfaces
#[derive(clap::Args)]
pub struct Args {
    /// The file with the chain
    file: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// A capture whose packets enter the chain, `-` for standard input; with IF=, all of them at
    /// this interface
    #[arg(long = "in", value_name = "[IF=]CAPTURE", num_args = 1..)]
    #[arg(conflicts_with = "devices", value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// A live device where packets enter and leave: af_packet:DEVICE, xdp:DEVICE, tap:DEVICE,
    /// replay:CAPTURE[,speed=FACTOR], memory:CAPTURE, or memory, where nothing enters
    #[arg(long = "if", value_name = "IF=KIND:DEVICE", num_args = 1..)]
    devices: Vec<String>,
    /// With --if: how long to run, such as 90s, 1.5s, 10m, 500ms; without it, until Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = live::duration)]
    #[arg(requires = "devices", conflicts_with = "inputs")]
    time: Option<std::time::Duration>,
    /// With --if: end with the burst in which this many packets have come
    #[arg(long, value_name = "N", requires = "devices", conflicts_with = "inputs")]
    packets: Option<u64>,
    /// With --if: injects faults, such as loss=1%,delay=2%,time=20ms,seed=7. The others are
    /// duplicate, reorder, corrupt, truncate, stall
    #[arg(long, value_name = "LIST", requires = "devices", conflicts_with = "inputs")]
    faults: Option<Faults>,
    /// With --if: a socket through which `braid ctl` looks into the run and changes it
    #[arg(long, value_name = "PATH", requires = "devices", conflicts_with = "inputs")]
    ctl: Option<PathBuf>,
    /// With --if: the user that the run becomes when its devices and files are open
    #[arg(long, value_name = "NAME", value_parser = User::named, requires = "devices")]
    #[arg(conflicts_with = "inputs")]
    user: Option<User>,
    /// With --if: process packets of established flows first when there are too many packets
    #[arg(long, requires = "devices", conflicts_with = "inputs")]
    established_first: bool,
    /// With --if: do not limit the files and system calls that the run may use
    #[arg(long, requires = "devices", conflicts_with = "inputs")]
    no_sandbox: bool,
    /// Where to write the packets that leave; with IF=, only the packets that leave by this
    /// interface; `-` is standard output, and the summary then goes to standard error
    #[arg(long = "out", value_name = "[IF=]CAPTURE", num_args = 1..)]
    #[arg(value_hint = ValueHint::FilePath)]
    outputs: Vec<String>,
    /// Rewrite each captured reply so that it answers the request as the chain sent it
    #[arg(long, conflicts_with = "devices")]
    follow: bool,
    /// The engine: fused, synth, sequential, parallel, parallel:N or reference; auto or
    /// auto:latency chooses between fused and parallel:N by measured costs
    #[arg(long, value_name = "NAME", default_value = engines::DEFAULT)]
    engine: String,
    /// A file of configuration changes to make during the run
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Compare the actions of native functions with their recordings of each flow
    #[arg(long)]
    check_native: bool,
    /// Where to write state entries at the end, as JSON lines
    #[arg(long, value_name = "FILE")]
    state_out: Option<PathBuf>,
    /// A folder for the chain's state: the run goes on from it, and saves its own there at the end
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// With --if and --state-dir: also save the state this often, such as 10s
    #[arg(long, value_name = "DURATION", value_parser = live::period)]
    #[arg(requires = "state_dir", requires = "devices", conflicts_with = "inputs")]
    state_every: Option<std::time::Duration>,
    /// Where to write events, as JSON lines
    #[arg(long, value_name = "FILE")]
    events_out: Option<PathBuf>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    if args.inputs.is_empty() && args.devices.is_empty() {
        return Err(Failure::usage(
            "nothing to run on: name a capture with --in [IF=]CAPTURE, or a device with \
             --if IF=KIND:DEVICE",
        ));
    }
    let goal = goal(args)?;
    let mut program = load::program(&args.file)?;
    let mut chain = program.chain(&args.choice)?;
    if args.check_native {
        native::check_records(&mut chain);
    }
    let inputs = Inputs::open(&args.inputs, &chain)?;
    let outputs = outputs::named(&args.outputs, &chain, output)?;
    let captures = live::captures(&args.devices, &chain)?;
    check(args, &program, &captures, &outputs, &inputs)?;
    let is_live = !args.devices.is_empty();
    let precision = if is_live { Precision::Nano } else { inputs.precision() };
    check_workers(chain.workers)?;
    let choice = goal.map(|goal| planning::choice(&chain, goal, &args.inputs)).transpose()?;
    choice.iter().for_each(|choice| tell(choice.text()));
    let engine = choice.as_ref().map_or(args.engine.as_str(), |choice| &choice.engine);
    let devices = is_live.then(|| live::open(&args.devices, args.faults, &chain)).transpose()?;
    let socket = socket(args)?;
    let mut kept = args.state_dir.as_deref().map(|dir| Kept::open(dir, &chain)).transpose()?;
    let clock = Clock::start();
    let first_time_ns = if is_live { clock.start_ns() } else { inputs.first_time_ns() };
    let is_new = kept.as_ref().is_none_or(|kept| !kept.has_state());
    let control = control(args, &mut program, &chain, (first_time_ns, is_new))?;
    // The control file may name further files.
    check(args, &program, &captures, &outputs, &inputs)?;
    let state = args.state_out.as_deref().map(LineFile::create).transpose()?;
    let events = args.events_out.as_deref().map(LineFile::create).transpose()?;
    let sinks = outputs::create(outputs, precision, events)?;
    if let Some(Devices { kinds, .. }) = &devices {
        native::open_sockets(&chain).map_err(Failure::input)?;
        confine(args, kinds, &program, &chain)?;
    }
    let bytes = inputs.bytes();
    let begin = || begin(args, engine, &chain, bytes);
    let mut engines = match &mut kept {
        Some(kept) => kept.resume(&chain, begin)?,
        None => begin()?,
    };
    let Done { chain, engine: mut ran, result } = match devices {
        None => {
            let result = drive(args, &chain, &mut engines, (inputs, sinks), control);
            Done { chain: Arc::new(chain), engine: engines.into_engine(), result: result? }
        }
        Some(Devices { ports, .. }) => {
            let mut run = Live::new(chain, engines, clock).control(control).sinks(sinks);
            if let Some(socket) = socket {
                run = run.socket(socket);
            }
            drive_live(args, engine, run, kept.as_mut(), ports)?
        }
    };
    // A run that failed has state, too: a device that is gone must not end connections.
    let unsaved = kept.and_then(|mut kept| kept.save(&ran.export()).err());
    let mut done = result.inspect_err(|_| unsaved.iter().for_each(warn))?;
    done.unwritten.extend(unsaved);
    if let Some(state) = state {
        done.unwritten.extend(state.write_state(&chain, ran.as_ref()).err());
    }
    present(&chain, ran.as_ref(), done, choice.as_ref(), output)
}

/// The changes of the control file for a run that begins at this time (ns), from the chain's file
/// or from a state.
fn control(
    args: &Args,
    program: &mut Program,
    chain: &Chain,
    (first_time_ns, is_new): (u64, bool),
) -> Result<Vec<Control>, Failure> {
    match &args.control {
        Some(file) => program.control(file, chain, first_time_ns, is_new),
        None => Ok(Vec::new()),
    }
}

/// What a choice of the engine is for, unless the user names an engine.
fn goal(args: &Args) -> Result<Option<Goal>, Failure> {
    let goal = engines::goal(&args.engine);
    if goal.is_none() {
        engines::check_or_auto(&args.engine)?;
    }
    Ok(goal)
}

/// Opens the socket through which others look into the run.
fn socket(args: &Args) -> Result<Option<Socket>, Failure> {
    let listen = |path| Socket::listen(path).map_err(|why| Failure::file(path, why));
    args.ctl.as_deref().map(listen).transpose()
}

/// The most workers for each core of the machine. With more of them, a run does little else than
/// switch between workers.
const WORKERS_PER_CORE: usize = 16;

/// Warns where workers share cores. Refuses a number of workers that the machine cannot run.
fn check_workers(workers: u16) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    let most = cores.saturating_mul(WORKERS_PER_CORE);
    let noun = if cores == 1 { "core" } else { "cores" };
    if usize::from(workers) > most {
        return Err(Failure::usage(format!(
            "{workers} workers are too many for {cores} {noun}: a run has at most {most} here; \
             `--workers auto` takes one for each core"
        )));
    }
    if usize::from(workers) > cores {
        warn(format!(
            "{workers} workers share {cores} {noun}, so they wait for each other; `--workers auto` \
             takes no more than there are"
        ));
    }
    Ok(())
}

/// The remedy where a native function of a live run refuses what it took when its chain was
/// checked.
const NEEDS_MORE: &str = "; if the function needs more than a live run may do (docs/operations.md), \
    use --no-sandbox";

/// Makes the engines of a run whose captures have this number of bytes.
fn begin(args: &Args, engine: &str, chain: &Chain, bytes: u64) -> Result<Engines, Failure> {
    if args.devices.is_empty() {
        return engines::offline(engine, chain, bytes);
    }
    let is_confined = !args.no_sandbox && native::any(chain);
    engines::live(engine, chain).map_err(|failure| Failure {
        text: failure.text + if is_confined { NEEDS_MORE } else { "" },
        ..failure
    })
}

/// Refuses outputs that would overwrite a file that is read, or each other. `captures` are those of
/// devices.
fn check(
    args: &Args,
    program: &Program,
    captures: &[PathBuf],
    outputs: &[Named],
    inputs: &Inputs,
) -> Result<(), Failure> {
    let read = [Some(&args.file), args.control.as_ref()].into_iter().flatten();
    let read: Vec<&Path> =
        read.chain(captures).chain(program.named_files()).map(PathBuf::as_path).collect();
    outputs::check(&read, &[&args.state_out, &args.events_out], outputs, inputs)
}

/// Gives up what a live run does not need.
fn confine(
    args: &Args,
    devices: &[Device],
    program: &Program,
    chain: &Chain,
) -> Result<(), Failure> {
    let mut folders = program.folders();
    folders.extend(native::served_folders(chain));
    sandbox::confine(&Needs {
        user: args.user.as_ref(),
        is_limited: !args.no_sandbox,
        devices,
        has_native: native::any(chain),
        file: &args.file,
        folders: &folders,
        state: args.state_dir.as_deref(),
        sockets: &args.ctl.iter().cloned().chain(native::sockets(chain)).collect::<Vec<_>>(),
    })
}

/// Prints the results of a run.
fn present(
    chain: &Chain,
    engine: &dyn Engine,
    mut done: Summary,
    choice: Option<&EngineChoice>,
    output: &Output,
) -> Outcome {
    let problems = native::problems(chain, engine);
    let answer = Answer::of(problems.iter().all(|told| told.of_traffic));
    done.warnings.extend(problems.into_iter().map(|told| told.text));
    done.warnings.iter().for_each(warn);
    let failure = unwritten(&done.unwritten);
    if output.json {
        let mut value = report::report(chain, &done);
        if let Some(choice) = choice {
            value["choice"] = choice.value();
        }
        if let Some(failure) = &failure {
            value["error"] = Value::from(failure.text.as_str());
        }
        output.value(&value);
    } else {
        output.text(summary(chain, &done));
    }
    failure.map_or(Ok(answer), Err)
}

/// Runs over live interfaces.
fn drive_live(
    args: &Args,
    engine: &str,
    run: Live<'_>,
    kept: Option<&mut Kept>,
    ports: Vec<Ports>,
) -> Result<Done, Failure> {
    let mut run = run
        .limits(Limits { time: args.time, packets: args.packets })
        .established_first(args.established_first);
    if let Some(period) = args.state_every {
        run = run.save_every(period);
    }
    let mut surroundings = Surroundings {
        file: &args.file,
        choice: &args.choice,
        engine,
        check_native: args.check_native,
        control: args.control.as_deref(),
        kept,
    };
    let is_endless = args.time.is_none() && args.packets.is_none();
    let done = live::drive(run, &mut surroundings, ports, is_endless);
    braid_server::sockets::close_all();
    done
}

/// The failure of a run that could not write all its outputs. Its summary is printed nevertheless.
fn unwritten(outputs: &[Unwritten]) -> Option<Failure> {
    let text: Vec<String> = outputs.iter().map(Unwritten::to_string).collect();
    let failure = || Failure { is_printed: true, ..Failure::input(text.join("\n")) };
    (!text.is_empty()).then(failure)
}

fn drive(
    args: &Args,
    chain: &Chain,
    engines: &mut Engines,
    (inputs, sinks): (Inputs, Sinks<'_>),
    control: Vec<Control>,
) -> Result<Result<Summary, RunError>, Failure> {
    let stop = live::signal_flag(&[SIGINT, SIGTERM, SIGHUP], true)?;
    let shown = live::signal_flag(&[SIGUSR1], false)?;
    let run = match engines {
        Engines::One(engine) => Run::new(chain, engine.as_mut()),
        Engines::Workers(workers) => Run::on_workers(chain, workers),
    };
    let mut run = run.control(control).follow(args.follow).stop(&stop);
    run = run.sinks(sinks).show(&shown, |so_far| tell(summary(chain, so_far)));
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
    let result = run.run();
    if let Ok(done) = &result {
        warn_refused(args.control.as_deref(), &done.refused);
    }
    Ok(result)
}
