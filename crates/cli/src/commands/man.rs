//! `braid man`: manual pages for `man`.

use std::path::PathBuf;

use clap_mangen::generate_to;
use serde_json::json;

use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;

/// Write a manual page for each command: DIR/braid.1, DIR/braid-run.1, …
#[derive(clap::Args)]
pub struct Args {
    /// The folder; made if it does not exist. `man -l DIR/braid.1` shows a page
    dir: PathBuf,
}

pub fn run(args: &Args, definition: fn() -> clap::Command, output: &Output) -> Outcome {
    let failure = |why: std::io::Error| Failure::file(&args.dir, why);
    std::fs::create_dir_all(&args.dir).map_err(failure)?;
    generate_to(definition(), &args.dir).map_err(failure)?;
    if output.json {
        output.value(&json!({ "folder": args.dir }));
    } else {
        let dir = args.dir.display();
        output.text(format!("{dir}/ has braid.1 and a page for each command\n"));
    }
    Ok(Answer::Yes)
}
