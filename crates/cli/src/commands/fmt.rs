//! `braid fmt`: formats files.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::load;
use crate::output::Output;
use crate::write::replace;

/// Format files in place
#[derive(clap::Args)]
pub struct Args {
    /// The files; `-` formats standard input to standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; exit with 1 when a file is not formatted
    #[arg(long)]
    check: bool,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let mut results = Vec::with_capacity(args.files.len());
    let mut changed_any = false;
    // All files are read and formatted before the first is written, so that an error in one
    // leaves all as they were.
    let mut formatted = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let text = if is_stdin(path) { stdin()? } else { load::text(path)? };
        let new = load::format(path, &text)?;
        formatted.push((path, text, new));
    }
    for (path, old, new) in &formatted {
        let changed = old != new;
        changed_any |= changed;
        results.push(json!({ "file": path.display().to_string(), "changed": changed }));
        if args.check {
            if changed && !output.json {
                output.text(format!("{} is not formatted\n", path.display()));
            }
        } else if is_stdin(path) {
            if !output.json {
                output.text(new);
            }
        } else if changed {
            replace(path, new).map_err(|why| Failure::file(path, why))?;
        }
    }
    if output.json {
        output.value(&json!({ "files": Value::Array(results) }));
    }
    Ok(Answer::of(!(args.check && changed_any)))
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let most = load::MAX_BYTES as u64 + 1;
    let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
    read.map_err(|why| Failure::input(format!("standard input: {why}")))?;
    Ok(text)
}
