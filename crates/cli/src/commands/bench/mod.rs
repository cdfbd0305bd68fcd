//! `braid bench`: engines measured against each other and against floors.

mod instructions;
mod stages;

use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Duration;

use braid_bench::definition::{Case, Definition, Kind as Measures, Only, embedded};
use braid_bench::measure::{Plan, count, measure, pin};
use braid_bench::report::Row;
use braid_bench::setup::{Given, Source};
use braid_bench::subject::Kind;
use braid_bench::tables::{Cells, by_packets, cells, notes};
use braid_bench::trace::MAX_PACKETS;
use braid_bench::{Error, compile, export, html, machine, memory};
use braid_io::PacketSource as _;
use braid_ir::chain::Chain;
use braid_lang::Loader;
use braid_lang::diag::{Style, did_you_mean_help, render};
use braid_packet::Packet;

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Capture;
use crate::load;
use crate::output::{Output, warn};
use crate::progress::Progress;
use crate::table::{Align, table};

/// With `--quick`, the number of packets to measure where flows come and go.
const QUICK_PACKETS: u64 = 1 << 16;

/// Measure engines against each other and against floors
#[derive(clap::Args)]
pub struct Args {
    /// Benches by name, or files with your own definitions (NAME.toml) [default: all benches]
    names: Vec<String>,
    /// List the benches
    #[arg(long)]
    list: bool,
    /// Measure quickly: only the first and the last case of each series, in few and short trials
    #[arg(long)]
    quick: bool,
    /// Write an HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Engines and floors to measure, separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    engine: Vec<Kind>,
    /// Measure only cases with one of these values; keys as in a definition's sweep
    #[arg(long, value_name = "KEY=VALUE,…")]
    only: Vec<Only>,
    /// The number of trials of each engine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: Option<u64>,
    /// The most packets in a trial
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// About how many seconds to measure each case
    #[arg(long, value_name = "S", value_parser = seconds)]
    time: Option<Duration>,
    /// The core to run on [default: the last one]
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// A ClassBench file to take rules from, instead of generated ones
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// A route file for all routers, instead of generated ones
    #[arg(long, value_name = "FILE")]
    routes: Option<PathBuf>,
    /// A capture for benches of whole flows, instead of generated traces
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Count instructions with valgrind where the processor's counters cannot be used (takes
    /// minutes)
    #[arg(long)]
    callgrind: bool,
    /// Measure nothing: write each case's chain, rules, routes and packets to files below a folder
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Measure the case of this number in this process (for benches of compiling)
    #[arg(long, hide = true)]
    case: Option<usize>,
    /// Run the measured packets of the case, and print their number
    #[arg(long, hide = true)]
    count: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    if let [name] = args.names.as_slice()
        && name == stages::NAME
        && !args.list
    {
        return stages::run(args.quick, args.runs, output);
    }
    let definitions = chosen(&args.names)?;
    if args.list {
        return Ok(list(&definitions, output));
    }
    let given = given(args)?;
    if given.capture.is_some() && !definitions.iter().any(takes_capture) {
        let benches =
            "--capture is for benches of flows that begin and end: chain1, chain2, traces";
        return Err(Failure::usage(benches));
    }
    if let Some(folder) = &args.export {
        return write_cases(args, &definitions, &given, folder, output);
    }
    if let Some(number) = args.case {
        return one_case(args, &definitions, &given, number, output);
    }
    let facts = machine::describe();
    if cfg!(debug_assertions) {
        warn("this is a debug build: times are meaningless");
    }
    let core = pin(args.core).map_err(|why| failure(&why))?;
    let mut all: Vec<(&Definition, Vec<Row>)> = Vec::new();
    let mut wrong = Vec::new();
    for definition in &definitions {
        let rows = bench(args, definition, &given, output, &mut wrong)?;
        if !output.json {
            output.text(text(definition, &rows));
        }
        all.push((definition, rows));
    }
    if let Some(path) = &args.html {
        let mut facts = facts;
        facts.push(("core", core.to_string()));
        let benches: Vec<(&Definition, &[Row])> =
            all.iter().map(|(definition, rows)| (*definition, &rows[..])).collect();
        std::fs::write(path, html::page(&facts, &benches))
            .map_err(|why| Failure::file(path, why))?;
    }
    wrong.first().map_or(Ok(Answer::Yes), |first| Err(failure(first)))
}

/// Runs one bench. JSON rows are printed as soon as they are measured.
fn bench(
    args: &Args,
    definition: &Definition,
    given: &Given,
    output: &Output,
    wrong: &mut Vec<Error>,
) -> Result<Vec<Row>, Failure> {
    let cases = cases(args, definition);
    let bar = Progress::share(cases.len() as u64, &definition.name);
    let mut rows = Vec::new();
    for (done, case) in cases.iter().enumerate() {
        bar.set(done as u64);
        let found = match definition.kind {
            Measures::Speed | Measures::FlowTime | Measures::Once => {
                let setup = definition.set_up(case, given, &chain).map_err(|why| failure(&why))?;
                let measured = measure(definition, case, &setup, &plan(args));
                let mut measured = measured.map_err(|why| failure(&why))?;
                if args.callgrind && definition.kind == Measures::Once {
                    let same = |process: &mut Process| same_case(args, definition, done, process);
                    instructions::add(&mut measured.rows, &same)?;
                }
                for why in measured.wrong {
                    warn(&why);
                    wrong.push(why);
                }
                measured.rows
            }
            Measures::Compile | Measures::Memory => apart(args, definition, done)?,
        };
        if output.json {
            found.iter().for_each(|row| output.text(row.json() + "\n"));
        }
        rows.extend(found);
    }
    Ok(rows)
}

fn cases(args: &Args, definition: &Definition) -> Vec<Case> {
    let all = definition.cases(args.quick);
    let mut cases: Vec<Case> = all.into_iter().filter(|case| case.is_among(&args.only)).collect();
    if args.capture.is_some()
        && takes_capture(definition)
        && let Some(first) = cases.first().copied()
    {
        // The cases of a chain differ in the packets that they would generate, so one is enough.
        cases.retain(|case| Case { chain: first.chain, ..*case } == first);
    }
    cases
}

/// Whether a capture can take the place of a bench's packets.
fn takes_capture(definition: &Definition) -> bool {
    definition.trace.is_some() || !definition.mix.is_empty()
}

fn plan(args: &Args) -> Plan {
    let mut plan = if args.quick { Plan::quick() } else { Plan::full() };
    if !args.engine.is_empty() {
        plan.kinds.clone_from(&args.engine);
        plan.kinds.sort_unstable();
        plan.kinds.dedup();
    }
    if let Some(runs) = args.runs {
        plan.runs = runs as usize;
    }
    if let Some(packets) = args.packets {
        plan.packets = packets;
        plan.check = plan.check.min(packets);
        plan.warm = plan.warm.min(packets);
    }
    if let Some(time) = args.time {
        // Each trial has an uncounted quarter of a trial before it. The source is measured,
        // too.
        let turns = plan.runs * (plan.kinds.len() + 1);
        plan.trial = time.mul_f64(0.8 / turns as f64);
    }
    plan
}

/// Measures a case of compiling or of memory: each engine runs in a process of its own, so that its
/// memory is counted alone.
fn apart(args: &Args, definition: &Definition, case: usize) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let measured = |kind: &Kind| runs_apart(*kind, definition.kind);
    for kind in plan(args).kinds.into_iter().filter(measured) {
        let myself = std::env::current_exe().map_err(Failure::input)?;
        let mut process = Process::new(myself);
        same_case(args, definition, case, &mut process);
        process.args(["--engine", kind.name()]);
        let done = process.output().map_err(Failure::input)?;
        let text = String::from_utf8_lossy(&done.stdout);
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr);
            let why = why.trim_end().trim_start_matches("braid: ");
            let wrong = done.status.code() == Some(4);
            return Err(if wrong { Failure::inconsistent(why) } else { Failure::input(why) });
        }
        rows.push(serde_json::from_str(&text).map_err(Failure::inconsistent)?);
    }
    Ok(rows)
}

/// The arguments of a process that works on one case of a bench.
fn same_case(args: &Args, definition: &Definition, case: usize, process: &mut Process) {
    let name = args.names.iter().find(|name| stem(name) == definition.name);
    process.args(["bench", name.unwrap_or(&definition.name), "--json"]);
    process.args(["--case", &case.to_string()]);
    for only in &args.only {
        process.args(["--only", &only.to_string()]);
    }
    if args.quick {
        process.arg("--quick");
    }
    let capture = if takes_capture(definition) { &args.capture } else { &None };
    let paths = [("--rules", &args.rules), ("--routes", &args.routes), ("--capture", capture)];
    for (option, path) in paths {
        process.args(path.iter().flat_map(|path| [Path::new(option), path.as_path()]));
    }
}

/// Whether benches of compiling or of memory measure this engine. (Flow records are compiled from
/// the programs of `synth`.)
fn runs_apart(kind: Kind, measures: Measures) -> bool {
    match kind {
        Kind::Sequential | Kind::Synth => true,
        Kind::Fused => measures == Measures::Memory,
        _ => false,
    }
}

/// The work of a process for one case.
fn one_case(
    args: &Args,
    definitions: &[Definition],
    given: &Given,
    number: usize,
    output: &Output,
) -> Outcome {
    if let Some(definition) = definitions.first().filter(|_| args.count) {
        let case = cases(args, definition).get(number).copied();
        let case = case.ok_or_else(|| Failure::usage("--case: the number of a case"))?;
        let given = Given { measured: Some(instructions::PACKETS), ..given.clone() };
        let setup = definition.set_up(&case, &given, &chain).map_err(|why| failure(&why))?;
        let packets = count(&setup, args.engine.first().copied()).map_err(Failure::input)?;
        output.text(format!("{packets}\n"));
        return Ok(Answer::Yes);
    }
    let found = definitions.first().zip(args.engine.first());
    let found = found.and_then(|(one, kind)| Some((one, kind, *cases(args, one).get(number)?)));
    let (definition, kind, case) =
        found.ok_or_else(|| Failure::usage("--case: a number, with one bench and one engine"))?;
    let row = match definition.kind {
        Measures::Memory => memory::measure(definition, &case, given, &chain, *kind),
        _ => compile::measure(definition, &case, given, &chain, *kind),
    };
    output.text(row.map_err(|why| failure(&why))?.json() + "\n");
    Ok(Answer::Yes)
}

fn write_cases(
    args: &Args,
    definitions: &[Definition],
    given: &Given,
    folder: &Path,
    output: &Output,
) -> Outcome {
    let mut written = Vec::new();
    for definition in definitions {
        for case in cases(args, definition) {
            let setup = definition.set_up(&case, given, &chain).map_err(|why| failure(&why))?;
            let path = export::export(definition, &case, &setup, folder);
            written.push(path.map_err(|why| failure(&why))?.display().to_string());
        }
    }
    if output.json {
        output.value(&serde_json::json!({ "folders": written }));
    } else {
        written.iter().for_each(|path| output.text(format!("{path}\n")));
    }
    Ok(Answer::Yes)
}

fn list(definitions: &[Definition], output: &Output) -> Answer {
    if output.json {
        let benches: Vec<_> = definitions
            .iter()
            .map(|one| {
                let cases = one.cases(false).len();
                serde_json::json!({ "name": one.name, "summary": one.summary, "cases": cases })
            })
            .collect();
        output.value(&serde_json::json!({ "benches": benches }));
    } else {
        let rows = definitions.iter().map(|one| {
            vec![one.name.clone(), one.cases(false).len().to_string(), one.summary.clone()]
        });
        let stages = [stages::NAME, "6", stages::SUMMARY].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = rows.chain([stages]).collect();
        let head = [("bench", Align::Left), ("cases", Align::Right), ("what", Align::Left)];
        output.text(table(&head, &rows));
    }
    Answer::Yes
}

fn text(definition: &Definition, rows: &[Row]) -> String {
    let source = rows.iter().find_map(|row| row.source_ns);
    let source = source.map_or_else(String::new, |ns| format!("; source {ns:.1} ns, subtracted"));
    let first = shown(cells(definition, rows));
    let second = by_packets(rows).map(|cells| format!("\n{}", shown(cells))).unwrap_or_default();
    let notes: String = notes(definition, rows).iter().map(|note| format!("{note}\n")).collect();
    format!("{}: {}{source}\n{first}{second}{notes}\n", definition.name, definition.summary)
}

fn shown((head, body): Cells) -> String {
    let align = |at| if at == 0 { Align::Left } else { Align::Right };
    let head: Vec<_> = head.into_iter().enumerate().map(|(at, name)| (name, align(at))).collect();
    table(&head, &body)
}

/// The definitions that the user names, or all built-in ones.
fn chosen(names: &[String]) -> Result<Vec<Definition>, Failure> {
    let known = embedded().map_err(Failure::inconsistent)?;
    if names.is_empty() {
        return Ok(known);
    }
    names.iter().map(|name| find(name, &known)).collect()
}

fn find(name: &str, known: &[Definition]) -> Result<Definition, Failure> {
    if name.ends_with(".toml") {
        let text = load::text(Path::new(name))?;
        return Definition::parse(stem(name), &text).map_err(|why| failure(&why));
    }
    known.iter().find(|definition| definition.name == name).cloned().ok_or_else(|| {
        let names = || known.iter().map(|definition| definition.name.as_str());
        let help = did_you_mean_help(name, names())
            .unwrap_or_else(|| format!("there are {}", names().collect::<Vec<_>>().join(", ")));
        Failure::usage(format!("there is no bench `{name}`; {help}"))
    })
}

/// The name of a definition that the user asked for: the name of its file without the extension.
fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".toml").unwrap_or(file)
}

fn given(args: &Args) -> Result<Given, Failure> {
    let read = |path: &Option<PathBuf>| path.as_deref().map(load::text).transpose();
    let capture = args.capture.as_deref().map(packets).transpose()?;
    let measured = args.quick.then_some(QUICK_PACKETS);
    Ok(Given { rules: read(&args.rules)?, routes: read(&args.routes)?, measured, capture })
}

/// The first packets of a capture.
fn packets(path: &Path) -> Result<Vec<Packet>, Failure> {
    let mut capture = Capture::open(path)?;
    let mut packets = Vec::new();
    while packets.len() < MAX_PACKETS
        && let Some(packet) = capture.next_packet().map_err(|why| Failure::file(path, why))?
    {
        packets.push(packet);
    }
    Ok(packets)
}

/// Compiles a bench's chain.
fn chain(source: &Source) -> Result<Chain, String> {
    let library: Vec<(&str, &str)> =
        braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = braid_lang::compile((&source.name, &source.text), &library, &Files(source));
    let chains = compiled.unit.map(|unit| unit.chains).unwrap_or_default();
    match <[Chain; 1]>::try_from(chains) {
        Ok([chain]) if !compiled.diagnostics.has_errors() => Ok(chain),
        Err(chains) if !compiled.diagnostics.has_errors() => {
            Err(format!("its text has {} chains instead of one", chains.len()))
        }
        _ => Err(render(&compiled.diagnostics, &compiled.sources, Style::default())),
    }
}

/// The files that come with a bench.
struct Files<'a>(&'a Source);

impl Loader for Files<'_> {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        let found = self.0.files.get(path).map(|text| text.clone().into_bytes());
        found.ok_or_else(|| "the bench has no such file".to_owned())
    }
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::Differs { .. } | Error::NoHits { .. } => Failure::inconsistent(error),
        Error::Machine(_) => Failure::usage(error),
        Error::Definition { .. } | Error::Chain { .. } | Error::File { .. } => {
            Failure::input(error)
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.001..=3600.0).contains(number));
    number.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds up to 3600".to_owned())
}
