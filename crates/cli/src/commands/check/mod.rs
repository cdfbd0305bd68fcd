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
    /// The chain for the control file and for --workers; a control file needs it if the file has
    /// several
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,
    /// Show how each chain is divided over this many workers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut program = load::checked(&args.file)?;
    let mut divided = Vec::new();
    if !program.has_errors() {
        let choice = Choice { chain: args.chain.clone(), ..Choice::default() };
        if let Some(control) = &args.control {
            let chain = program.chain(&choice)?;
            program.check_control(control, &chain)?;
        }
        divided = self::divided(&program, args)?;
    }
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

/// How the chains of a program, or the one that was chosen, are divided over as many workers as the
/// command says, or over as many as they ask for.
fn divided(program: &load::Program, args: &Args) -> Result<Vec<Sharding>, Failure> {
    let number = |chain: &Chain| args.workers.unwrap_or(chain.workers);
    let chains = match &args.chain {
        Some(name) => vec![program.named(name)?],
        None => program.chains().iter().collect(),
    };
    let chains = chains.into_iter().map(|chain| Chain { workers: number(chain), ..chain.clone() });
    let chains = chains.filter(|chain| args.workers.is_some() || chain.workers > 1);
    chains.map(|chain| sharding(&chain).map_err(Failure::inconsistent)).collect()
}
