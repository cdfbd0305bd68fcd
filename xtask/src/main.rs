//! Repository chores: `cargo xtask structure` prints what is wrong with the repository's structure.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use xtask::structure;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("structure") {
        eprintln!("usage: cargo xtask structure");
        return ExitCode::from(2);
    }
    let found: Vec<String> = structure::RULES.iter().flat_map(|(_, rule)| rule()).collect();
    for line in &found {
        println!("{line}");
    }
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
