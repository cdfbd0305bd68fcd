//! `braid check`: reports all errors and warnings of a file at once.

use std::path::PathBuf;

use serde_json::json;

use crate::answer::{Answer, Outcome};
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
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut program = load::checked(&args.file)?;
    if let (Some(control), false) = (&args.control, program.has_errors()) {
        let choice = Choice { chain: args.chain.clone(), ..Choice::default() };
        let chain = program.chain(&choice)?;
        program.check_control(control, &chain)?;
    }
    let good = !program.has_errors();
    if output.json {
        output.value(&json!({
            "ok": good,
            "errors": program.errors(),
            "warnings": program.warnings(),
            "functions": program.function_names(),
            "chains": program.chain_names(),
            "diagnostics": program.diagnostics(),
        }));
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
    }
    Ok(Answer::of(good))
}
