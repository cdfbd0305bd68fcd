//! `braid check`: reports all errors and warnings of a file at once.

mod divided;

use std::path::PathBuf;

use braid_compiler::sharding::{Sharding, Verdict, sharding};
use braid_ir::chain::Chain;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::load::{self, Choice};
use crate::output::{Output, tell};

/// Check a file: functions, chains, policy, and the files that chains name
#[derive(clap::Args)]
pub struct Args {
    /// The file
    file: PathBuf,
    /// A control file to check as well
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// The chain that the control file is for; needed if the file has several
    #[arg(long, value_name = "NAME", requires = "control")]
    chain: Option<String>,
    /// Show how each chain is divided over this many workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut program = load::checked(&args.file)?;
    if let (Some(control), false) = (&args.control, program.has_errors()) {
        let choice = Choice { chain: args.chain.clone(), ..Choice::default() };
        let chain = program.chain(&choice)?;
        program.check_control(control, &chain)?;
    }
    let divided = match program.has_errors() {
        true => Vec::new(),
        false => divided(&program, args.workers)?,
    };
    for found in divided.iter().filter(|found| found.verdict == Verdict::OneWorker) {
        program.not_divisible(&found.chain, &found.why_not);
    }
    let good = !program.has_errors();
    if output.json {
        let mut answer = json!({
            "ok": good,
            "errors": program.errors(),
            "warnings": program.warnings(),
            "functions": program.function_names(),
            "chains": program.chain_names(),
            "diagnostics": program.diagnostics(),
        });
        if let Some(workers) = args.workers {
            answer["workers"] = json!(workers);
            answer["sharding"] = json!(divided);
        }
        output.value(&answer);
    } else {
        tell(program.rendered());
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        output.text(format!(
            "{}: {}, {}; {}, {}\n",
            args.file.display(),
            count(program.function_names().len(), "function"),
            count(program.chain_names().len(), "chain"),
            count(program.errors(), "error"),
            count(program.warnings(), "warning"),
        ));
        if let Some(workers) = args.workers {
            divided.iter().for_each(|one| output.text(divided::describe(one, workers)));
        }
    }
    Ok(Answer::of(good))
}

/// How the chains of a program are divided over this many workers, or over as many as they ask for.
fn divided(program: &load::Program, workers: Option<u16>) -> Result<Vec<Sharding>, Failure> {
    let number = |chain: &Chain| workers.unwrap_or(chain.workers);
    let chains = program.chains().iter();
    let chains = chains.map(|chain| Chain { workers: number(chain), ..chain.clone() });
    let chains = chains.filter(|chain| workers.is_some() || chain.workers > 1);
    chains.map(|chain| sharding(&chain).map_err(Failure::inconsistent)).collect()
}
