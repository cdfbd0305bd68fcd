//! Repository chores: checks the repository's structure, lowers exceptions, and draws crates and
//! modules.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use xtask::structure::{self, allowed, drawing};

const USAGE: &str = "usage: cargo xtask COMMAND
  structure  print what is wrong with the repository's structure
  lower      lower the numbers of xtask/exceptions.txt to what is still needed
  drawing    write the drawing of crates and modules into docs/architecture.md";

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("structure") => return print_structure(),
        Some("lower") => allowed::lower(&structure::with_exceptions()),
        Some("drawing") => drawing::write(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn print_structure() -> ExitCode {
    let found: Vec<String> = structure::RULES.iter().flat_map(|(_, rule)| rule()).collect();
    for line in &found {
        println!("{line}");
    }
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
