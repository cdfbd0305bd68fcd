//! `braid bench stages`: functions in sequence against functions on several threads.

use braid_bench::stages::{Measured, Subject, measure};
use braid_lang::Loader;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::output::{Output, warn};
use crate::table::{Align, table};

/// The name of the bench.
pub const NAME: &str = "stages";

/// What the bench measures.
pub const SUMMARY: &str = "two functions in sequence, and on two threads (needs two cores)";

/// Functions of about 3,000 cycles, and functions that do next to nothing. What they compute goes
/// on from packet to packet, so that no record has the result.
const FUNCTIONS: &str = "
nf busy() { state sum: u32 global = 1; match { has ip => {
  let mut h = sum ^ u32(ip.src);
  for i in 0..ROUNDS { h = wrapping(h * 2654435761) ^ (h >> 15); }
  sum = h; output; } else => output; } }
nf ttl() { state sum: u32 global = 1; match { has ip => {
  let mut h = sum ^ u32(ip.src);
  for i in 0..ROUNDS { h = wrapping(h * 2654435761) ^ (h >> 15); }
  sum = h; if ip.ttl > 1 { ip.ttl = ip.ttl - 1; } output; } else => output; } }
nf scan(p: patterns) { state n: u32 global = 0; match {
  payload matches p => { n += 1; output; } else => output; } }
nf idle() { state n: u32 global = 0; match { has ip => { n += 1; output; } else => output; } }
nf gated() { state sum: u32 global = 1; match { ip.ttl == 0 => drop \"dead\"; has ip => {
  let mut h = sum ^ u32(ip.src);
  for i in 0..ROUNDS { h = wrapping(h * 2654435761) ^ (h >> 15); }
  sum = h; output; } else => output; } }
nf gate() { state n: u32 global = 0; match {
  has ip => { n += 1; if n == 0 { drop \"none\"; } output; } else => output; } }
";

/// The rounds of a busy function: about three cycles each.
const ROUNDS: usize = 1_000;

struct Files;

impl Loader for Files {
    fn read(&self, _: &str, _: &str) -> Result<Vec<u8>, String> {
        // A search for texts with all these beginnings looks at every byte.
        let patterns = (b'a'..=b'z').map(|first| format!("\"{}, no such text\"\n", first as char));
        Ok(patterns.collect::<String>().into_bytes())
    }
}

/// A case: its name, the chain, the length of packets, and the most stages of each row.
type Case = (&'static str, &'static str, usize);

/// The cases. Functions that are next to each other run side by side, if they can.
const CASES: [Case; 6] = [
    ("two busy functions", "busy() <-> busy()", 64),
    ("a busy function, and one that writes", "busy() <-> ttl()", 64),
    ("a busy one behind one that may drop", "gated() <-> busy()", 64),
    ("two scans of the payload", "scan(p: patterns(\"p\")) <-> scan(p: patterns(\"p\"))", 1500),
    ("two idle functions, side by side", "idle() <-> idle()", 64),
    ("two idle functions, one behind the other", "gate() <-> idle()", 64),
];

fn subject((name, path, length): Case, most: usize) -> Result<Subject, Failure> {
    let functions = FUNCTIONS.replace("ROUNDS", &ROUNDS.to_string());
    let text = format!(
        "{functions}\nchain bench {{ interface lan; interface wan; path lan <-> {path} <-> wan; }}"
    );
    let compiled = braid_lang::compile(("stages.braid", &text), &[], &Files);
    let problems: Vec<String> =
        compiled.diagnostics.iter().map(|found| format!("{found:?}")).collect();
    let chain = compiled.unit.and_then(|mut unit| unit.chains.pop());
    let chain = chain.ok_or_else(|| Failure::inconsistent(problems.join("\n")))?;
    Ok(Subject { name: name.to_owned(), chain, most, length })
}

/// Runs the bench.
pub fn run(quick: bool, runs: Option<u64>, output: &Output) -> Outcome {
    if cfg!(debug_assertions) {
        warn("this is a debug build: times are meaningless");
    }
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        warn("there is one core: threads take turns on it");
    }
    let trials =
        runs.map_or(if quick { 5 } else { 40 }, |runs| usize::try_from(runs).unwrap_or(usize::MAX));
    let rows = CASES.iter().flat_map(|case| [1, 2].map(|most| subject(*case, most)));
    let subjects: Vec<Subject> = rows.collect::<Result<_, _>>()?;
    let packets = if quick { 1 << 12 } else { 1 << 15 };
    let measured = measure(&subjects, trials, packets).map_err(Failure::inconsistent)?;
    let rows = subjects.iter().zip(&measured);
    if output.json {
        rows.for_each(|(subject, found)| output.value(&value(subject, found)));
    } else {
        let rows: Vec<Vec<String>> = rows.map(|(subject, found)| cells(subject, found)).collect();
        let head = [
            ("functions", Align::Left),
            ("bytes", Align::Right),
            ("stages", Align::Right),
            ("alone, ns", Align::Right),
            ("p10 to p90", Align::Right),
            ("in bursts, ns", Align::Right),
            ("p10 to p90", Align::Right),
        ];
        output.text(table(&head, &rows));
    }
    Ok(Answer::Yes)
}

fn cells(subject: &Subject, found: &Measured) -> Vec<String> {
    let range = |[low, _, high]: [f64; 3]| format!("{low:.0} to {high:.0}");
    vec![
        subject.name.clone(),
        subject.length.to_string(),
        found.stages.to_string(),
        format!("{:.0}", found.alone_ns[1]),
        range(found.alone_ns),
        format!("{:.1}", found.burst_ns[1]),
        range(found.burst_ns),
    ]
}

fn value(subject: &Subject, found: &Measured) -> serde_json::Value {
    json!({
        "bench": NAME,
        "functions": subject.name,
        "packet_bytes": subject.length,
        "stages": found.stages,
        "alone_ns": found.alone_ns,
        "burst_ns": found.burst_ns,
    })
}
