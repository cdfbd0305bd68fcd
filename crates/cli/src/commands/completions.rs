//! `braid completions`: what shells complete.

use clap_complete::{Shell, generate};
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;

/// Print a script with which a shell completes commands and options
///
/// bash: `braid completions bash > ~/.local/share/bash-completion/completions/braid`
///
/// zsh: `braid completions zsh > DIR/_braid`, where DIR is in `fpath`
///
/// fish: `braid completions fish > ~/.config/fish/completions/braid.fish`
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: &Args, definition: fn() -> clap::Command, output: &Output) -> Outcome {
    let mut script = Vec::new();
    generate(args.shell, &mut definition(), "braid", &mut script);
    let script = String::from_utf8(script).map_err(Failure::inconsistent)?;
    if output.json {
        output.value(&json!({ "shell": args.shell.to_string(), "script": script }));
    } else {
        output.text(script);
    }
    Ok(Answer::Yes)
}
