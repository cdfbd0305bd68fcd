//! `braid test`: runs the cases of anyone's functions.

mod chains;
mod junit;
mod rows;
mod tested;

use std::path::PathBuf;
use std::time::Instant;

use braid_casefile::{Case, Mistake, Played, Script, differences, find, play};
use braid_ir::chain::Chain;
use serde_json::json;

use crate::answer::{Answer, BAD_FILE, Failure, Outcome};
use crate::engines;
use crate::load;
use crate::output::{Output, tell};
use crate::write::replace;
use chains::Chains;
use rows::Rows;
use tested::{End, Tested};

/// The name that stands for all engines.
const ALL: &str = "all";

/// Run the cases in folders: packets in, expected packets, state and events out
///
/// A case is a folder with a `case.txt`. Its chain is the `chain.braid` of this folder, or of the
/// nearest of the two folders above. Exit code 0 when all cases hold, 1 when one differs, 3 when
/// one cannot be run.
#[derive(clap::Args)]
pub struct Args {
    /// Folders with cases, at any depth
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Run only cases whose path contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    case: String,
    /// Write what happens as what is expected; review the difference
    #[arg(long)]
    bless: bool,
    /// The engine: reference, fused, synth, sequential, parallel, parallel:N, or all of them
    #[arg(long, value_name = "NAME", default_value = engines::REFERENCE)]
    engine: String,
    /// Exit with 1 also when a row of a function is taken by no case
    #[arg(long)]
    all_rows: bool,
    /// Where to write a report in JUnit's format
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let engines = engines(&args.engine)?;
    let cases = cases(args)?;
    let (mut chains, mut rows) = (Chains::default(), Rows::default());
    let mut tested = Vec::new();
    for case in &cases {
        for (at, engine) in engines.iter().enumerate() {
            let start = Instant::now();
            let first = at == 0;
            let end = chains.of(case, |program, chain| {
                rows.declare(program);
                let played = one(case, chain, engine, args.bless && first)?;
                if first {
                    rows.add(program, chain, &played.0.counters);
                }
                Ok(played.1)
            });
            let end = end.unwrap_or_else(End::Failed);
            let (name, engine) = (case.name.clone(), (*engine).to_owned());
            let one = Tested { name, engine, time: start.elapsed(), end };
            if !output.json {
                output.text(one.text(engines.len() > 1));
            }
            tested.push(one);
        }
    }
    if let Some(path) = &args.junit {
        replace(path, &junit::report(&tested)).map_err(|why| Failure::file(path, why))?;
    }
    report(args, &tested, &rows, output)
}

/// The engines of a name.
fn engines(name: &str) -> Result<Vec<&str>, Failure> {
    if name == ALL {
        // The reference comes first: its outcomes are the meaning of the chain.
        return Ok(engines::names().rev().collect());
    }
    engines::check(name)?;
    Ok(vec![name])
}

fn cases(args: &Args) -> Result<Vec<Case>, Failure> {
    let mut cases: Vec<Case> = Vec::new();
    for folder in &args.folders {
        let found = find(folder).map_err(|why| Failure::file(folder, why))?;
        if found.is_empty() {
            return Err(Failure::file(folder, "there is no case: no folder has a case.txt"));
        }
        cases.extend(found);
    }
    cases.retain(|case| case.name.contains(&args.case));
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases.dedup();
    if cases.is_empty() {
        return Err(Failure::usage(format!("no case has `{}` in its path", args.case)));
    }
    Ok(cases)
}

/// Runs a case on an engine.
fn one(case: &Case, chain: &Chain, engine: &str, bless: bool) -> Result<(Played, End), String> {
    let path = case.script();
    let at = |wrong: Mistake| format!("{}:{}: {}", path.display(), wrong.line, wrong.message);
    let text = load::text(&path).map_err(|failure| failure.text)?;
    let mut script = Script::read(&text).map_err(at)?;
    let mut engine = engines::make(engine, chain).map_err(|failure| failure.text)?;
    let change = |time_ns, line: &str| load::change_of_case(time_ns, line, chain, &path);
    let played = play(&case.folder, &script, chain, engine.as_mut(), &change).map_err(at)?;
    let found = differences(&script, &played.outcomes);
    if found.is_empty() {
        return Ok((played, End::Holds));
    }
    if !bless {
        return Ok((played, End::Differs(found)));
    }
    script.bless(&played.outcomes);
    replace(&path, &script.to_string()).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok((played, End::Blessed))
}

/// Prints the results of all cases.
fn report(args: &Args, tested: &[Tested], rows: &Rows, output: &Output) -> Outcome {
    let failed = tested.iter().filter(|one| matches!(one.end, End::Failed(_))).count();
    let differ = tested.iter().filter(|one| matches!(one.end, End::Differs(_))).count();
    let blessed = tested.iter().filter(|one| matches!(one.end, End::Blessed)).count();
    let every = rows.missed().next().is_none();
    let good = differ == 0 && failed == 0 && (every || !args.all_rows);
    if output.json {
        output.value(&json!({
            "ok": good,
            "cases": tested.iter().map(Tested::value).collect::<Vec<_>>(),
            "rows": rows.value(),
        }));
    } else {
        output.text(rows.text());
        let mut parts = vec![format!("{} hold", tested.len() - failed - differ - blessed)];
        let counted = [(blessed, "blessed"), (differ, "differ"), (failed, "cannot be run")];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        parts.extend(counted.map(|(count, what)| format!("{count} {what}")));
        let noun = if tested.len() == 1 { "case" } else { "cases" };
        let taken = rows.taken().unwrap_or_default();
        output.text(format!("{} {noun}: {}{taken}\n", tested.len(), parts.join(", ")));
    }
    if failed > 0 {
        let noun = if failed == 1 { "case" } else { "cases" };
        let text = format!("{failed} {noun} cannot be run");
        return Err(Failure { code: BAD_FILE, text, diagnostics: None, is_printed: true });
    }
    if args.all_rows && !every {
        tell("braid: a row is taken by no case\n");
    }
    Ok(Answer::of(good))
}
