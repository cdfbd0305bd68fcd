//! The `braid` command: arguments, output, exit codes. Each command is a file in `commands`.
#![forbid(unsafe_code)]

mod answer;
mod bug;
mod captures;
mod commands;
mod engines;
mod filter;
mod generated;
mod load;
mod native;
mod output;
mod planning;
mod progress;
mod read;
mod summary;
mod table;
mod write;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, Parser};
use serde_json::json;

use answer::{BAD_FILE, Failure, USAGE};
use braid_native::isolated;
use output::{Output, tell};

/// Run chains of network functions over captures or live interfaces.
///
/// Exit codes:
///
///   0   done, and the answer is yes
///   1   done, and the answer is no: captures differ, a case differs, a checked file has errors
///   2   wrong usage
///   3   a file cannot be read, understood or written
///   4   Braid contradicts itself
///   5   no answer was found
///   6   a difference that no run has confirmed
///   70  a bug
#[derive(Parser)]
#[command(name = "braid", version, arg_required_else_help = true, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
    /// Print results as JSON
    #[arg(long, global = true)]
    json: bool,
}

fn main() -> ExitCode {
    bug::install();
    // This program, also if its file has been exchanged meanwhile.
    isolated::start_by(vec!["/proc/self/exe".into(), "isolate".into()]);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    let output = Output::new(cli.json);
    let code = match cli.command.run(Cli::command, &output) {
        Ok(answer) => answer.code(),
        Err(failure) => fail(&failure, &output),
    };
    match output.failure() {
        Some(why) => {
            tell(format!("braid: standard output: {why}\n"));
            ExitCode::from(BAD_FILE)
        }
        None => ExitCode::from(code),
    }
}

/// Prints help or the version if the user asked for them, or else the error in the arguments.
fn not_understood(error: &clap::Error) -> ExitCode {
    // If standard error is closed, nobody reads the message.
    let _ = error.print();
    if let Some(hint) = hint(error) {
        tell(format!("\n  tip: {hint}\n"));
    }
    let asked = |arg: OsString| arg == "--json";
    if error.use_stderr() && env::args_os().any(asked) {
        Output::new(true).value(&json!({ "error": error.to_string().trim_end() }));
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// The ends of the names of captures.
const CAPTURES: &[&str] = &[".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".pcap.zst"];

/// The remedy where a capture stands alone behind a command that takes `--in`.
fn hint(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let arg = error.get(ContextKind::InvalidArg)?.to_string();
    let command = env::args().nth(1)?;
    let definition = Cli::command();
    let command = definition.find_subcommand(&command)?;
    let takes_in = command.get_arguments().any(|arg| arg.get_long() == Some("in"));
    let is_capture = CAPTURES.iter().any(|end| arg.ends_with(end));
    (takes_in && is_capture).then(|| format!("name a capture with '--in': --in {arg}"))
}

fn fail(failure: &Failure, output: &Output) -> u8 {
    tell(format!("braid: {}\n", failure.text.trim_end()));
    if output.json && !failure.is_printed {
        let mut value = json!({ "error": failure.text.trim_end() });
        if let Some(diagnostics) = &failure.diagnostics {
            value["diagnostics"] = diagnostics.clone();
        }
        output.value(&value);
    }
    failure.code
}
