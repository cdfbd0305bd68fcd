//! `braid gen`: makes captures.

use std::path::{Path, PathBuf};
use std::slice;

use braid_io::Precision;
use braid_traffic::flows::{self, Flows, FrameSize, Ports, Protocol};
use braid_traffic::repeat::{self, Repeat};
use braid_traffic::template::{self, Template};
use braid_traffic::{Arrivals, Error, Prefix, START_NS, Summary, Traffic, parse_time, write};
use clap::Subcommand;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::captures;
use crate::output::{Output, warn};
use crate::progress::Progress;
use crate::table::count;

/// Make traffic: from templates, from a capture, or synthetic flows
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    source: Source,
}

#[derive(Subcommand)]
enum Source {
    Template(TemplateArgs),
    Repeat(RepeatArgs),
    Flows(FlowsArgs),
}

/// Conversations at the rates of a template file (in TRex's format)
#[derive(clap::Args)]
struct TemplateArgs {
    /// The template file
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// Where to look for the captures that the file names, before its own folder
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Leave out templates whose capture is not found
    #[arg(long)]
    skip_missing: bool,
    /// Seconds during which connections begin; connections that have begun are finished
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<u64>,
    /// The most packets to make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Multiply the connections per second of every template by this
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    scale: f64,
    /// How connections arrive: poisson (independent of each other) or regular (equal gaps)
    #[arg(long, value_parser = arrivals, default_value = "poisson")]
    arrivals: Arrivals,
}

/// A capture, repeated at later times and with other addresses
#[derive(clap::Args)]
struct RepeatArgs {
    /// The capture
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// How often the capture appears in total
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: u64,
    /// Addresses in these prefixes change: each repetition adds to the part behind the prefix
    /// [default: unicast addresses, behind 8 bits of IPv4 and 16 bits of IPv6]
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    shift: Vec<Prefix>,
    /// What each repetition adds
    #[arg(long, value_name = "N", default_value_t = 1)]
    step: u64,
    /// Seconds from the end of a repetition to the next [default: the capture's mean gap]
    #[arg(long, value_name = "S", value_parser = seconds)]
    gap: Option<u64>,
}

/// Synthetic flows, all open at the same time
#[derive(clap::Args)]
struct FlowsArgs {
    #[command(flatten)]
    common: Common,
    /// The number of flows
    #[arg(long, value_name = "N")]
    flows: u64,
    /// The number of packets of all flows together
    #[arg(long, value_name = "M")]
    packets: u64,
    /// Packets per second
    #[arg(long, value_name = "PPS", default_value_t = 1_000_000)]
    rate: u64,
    /// How packets arrive: regular (equal gaps) or poisson (independent of each other)
    #[arg(long, value_parser = arrivals, default_value = "regular")]
    arrivals: Arrivals,
    /// Frame sizes in bytes without FCS: a size, a range A..B, or imix (7 of 60, 4 of 590, 1 of
    /// 1514)
    #[arg(long, default_value = "60")]
    size: FrameSize,
    /// The Pareto index of the flows' sizes, such as 1.2 [default: equal sizes]
    #[arg(long, value_name = "ALPHA")]
    tail: Option<f64>,
    /// Protocols: tcp, udp, or mix (three flows of four TCP)
    #[arg(long, value_parser = protocol, default_value = "mix")]
    proto: Protocol,
    /// The number of packets of a flow that come in a row
    #[arg(long, value_name = "T", default_value_t = 1)]
    trains: u32,
    /// Clients [default: 10.0.0.0/8 or 2001:db8:1::/64]
    #[arg(long, value_name = "PREFIX")]
    from: Option<Prefix>,
    /// Servers [default: 198.18.0.0/15 or 2001:db8:2::/64]
    #[arg(long, value_name = "PREFIX")]
    to: Option<Prefix>,
    /// Server ports and ranges of them
    #[arg(long, value_name = "LIST", default_value = "80,443")]
    dport: Ports,
    /// The share of data packets that go back, from 0 to 1; above 0, both sides open and close TCP
    /// connections
    #[arg(long, value_name = "SHARE", value_parser = millionths, default_value = "0")]
    replies: u32,
    /// Use IPv6 instead of IPv4
    #[arg(long)]
    ipv6: bool,
}

/// The options that all sources have.
#[derive(clap::Args)]
struct Common {
    /// Where to write the capture; `-` is standard output
    #[arg(long, value_name = "CAPTURE")]
    out: PathBuf,
    /// The same seed gives the same capture
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The time of the start, in seconds since the epoch [default: 2025-01-01T00:00:00Z; for
    /// repeat, when the capture starts]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<u64>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let common = match &args.source {
        Source::Template(args) => &args.common,
        Source::Repeat(args) => &args.common,
        Source::Flows(args) => &args.common,
    };
    if captures::is_standard(&common.out) {
        output.use_stderr();
    }
    let summary = match &args.source {
        Source::Template(args) => from_template(args)?,
        Source::Repeat(args) => from_repeat(args)?,
        Source::Flows(args) => from_flows(args)?,
    };
    if summary.packets == 0 {
        warn("no connection begins in this time, so there is no packet");
    }
    let seconds = summary.span_ns() as f64 / 1e9;
    if output.json {
        output.value(&json!({
            "packets": summary.packets,
            "bytes": summary.bytes,
            "flows": summary.flows,
            "seconds": seconds,
        }));
    } else {
        let flows = summary.flows.map_or("uncounted".to_owned(), count);
        output.text(format!(
            "{}: {} packets, {} bytes, {flows} flows, {seconds:.6} s\n",
            common.out.display(),
            count(summary.packets),
            count(summary.bytes)
        ));
    }
    Ok(Answer::Yes)
}

fn from_template(args: &TemplateArgs) -> Result<Summary, Failure> {
    let options = template::Options {
        captures: args.captures.clone(),
        skip_missing: args.skip_missing,
        duration_ns: args.seconds,
        packets: args.packets,
        scale: args.scale,
        arrivals: args.arrivals,
        seed: args.common.seed,
        start_ns: args.common.start.unwrap_or(START_NS),
    };
    let (mut traffic, warnings) =
        Template::open(&args.file, &options).map_err(|error| failure(error, &args.file))?;
    for warning in warnings {
        warn(warning);
    }
    let read: Vec<PathBuf> = traffic.captures().iter().chain([&args.file]).cloned().collect();
    generate(&mut traffic, &args.common.out, &read, Precision::Nano)
}

fn from_repeat(args: &RepeatArgs) -> Result<Summary, Failure> {
    let options = repeat::Options {
        times: args.times,
        shift: args.shift.clone(),
        step: args.step,
        gap_ns: args.gap,
        start_ns: args.common.start,
    };
    let mut traffic =
        Repeat::open(&args.file, options).map_err(|error| failure(error, &args.file))?;
    if let Some(warning) = traffic.warning() {
        warn(warning);
    }
    let precision = if traffic.nanoseconds() { Precision::Nano } else { Precision::Micro };
    generate(&mut traffic, &args.common.out, slice::from_ref(&args.file), precision)
}

fn from_flows(args: &FlowsArgs) -> Result<Summary, Failure> {
    let v6 = args.ipv6 || args.from.or(args.to).is_some_and(Prefix::is_v6);
    let (from, to) = flows::Options::prefixes(v6);
    let options = flows::Options {
        rate: args.rate,
        arrivals: args.arrivals,
        size: args.size,
        tail: args.tail,
        protocol: args.proto,
        train: args.trains,
        from: args.from.unwrap_or(from),
        to: args.to.unwrap_or(to),
        ports: args.dport.clone(),
        replies_ppm: args.replies,
        seed: args.common.seed,
        start_ns: args.common.start.unwrap_or(START_NS),
        ..flows::Options::new(args.flows, args.packets)
    };
    if args.ipv6 && !options.from.is_v6() && !options.to.is_v6() {
        return Err(Failure::usage("--ipv6 contradicts the prefixes of --from and --to"));
    }
    let out = &args.common.out;
    let mut traffic = Flows::new(options).map_err(|error| failure(error, out))?;
    generate(&mut traffic, out, &[], Precision::Nano)
}

/// Writes the traffic. The output must not be a file that the traffic comes from.
fn generate(
    traffic: &mut dyn Traffic,
    out: &Path,
    inputs: &[PathBuf],
    precision: Precision,
) -> Result<Summary, Failure> {
    if inputs.iter().any(|input| captures::same_file(input, out)) {
        let what = format!("{} is an input, so it cannot be the output", out.display());
        return Err(Failure::usage(what));
    }
    let mut sink = captures::create(out, precision)?;
    let mut bar: Option<Progress> = None;
    let mut progress = |now: braid_traffic::Progress| {
        bar.get_or_insert_with(|| Progress::share(now.total, "packets")).set(now.done);
    };
    write(traffic, &mut sink, &mut progress).map_err(|error| failure(error, out))
}

/// Converts an error to a failure with its exit code. A message that names no file gets `file`.
fn failure(error: Error, file: &Path) -> Failure {
    match error {
        Error::Options(_) | Error::Crowded { .. } | Error::End => Failure::usage(error),
        Error::Template(_) | Error::Write(_) => Failure::file(file, error),
        Error::Missing(_) | Error::Read { .. } | Error::Capture { .. } => Failure::input(error),
    }
}

fn arrivals(text: &str) -> Result<Arrivals, String> {
    named(text, Arrivals::NAMES)
}

fn protocol(text: &str) -> Result<Protocol, String> {
    named(text, Protocol::NAMES)
}

fn named<T: Copy>(text: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A duration in nanoseconds from seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=3.2e8).contains(number));
    number
        .map(|number| (number * 1e9) as u64)
        .ok_or_else(|| "expected seconds from 0 to 320000000".to_owned())
}

/// A share in millionths.
fn millionths(text: &str) -> Result<u32, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share
        .map(|share| (share * 1e6).round() as u32)
        .ok_or_else(|| "expected a share from 0 to 1, such as 0.4".to_owned())
}
