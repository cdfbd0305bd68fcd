//! Rules on length: a file or function above its limit must be split, or needs a reason here.

use super::{File, files, scan};

/// The most lines of a file.
const FILE_LINES: usize = 600;
/// The most lines of a function.
const FUNCTION_LINES: usize = 70;

/// Files that may be longer, each with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Functions that may be longer: file, name, reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Files above the limit, and exceptions that are not needed any more.
#[must_use]
pub fn files_over(all: &[File], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in all {
        let lines = file.text.lines().count();
        let exception = allowed.iter().any(|(path, _)| *path == file.path);
        if lines > FILE_LINES && !exception {
            wrong.push(format!("{}: {lines} lines (at most {FILE_LINES})", file.path));
        } else if lines <= FILE_LINES && exception {
            wrong.push(format!("{}: short again; remove its exception", file.path));
        }
    }
    wrong
}

/// Functions above the limit, and exceptions that are not needed any more.
#[must_use]
pub fn functions_over(all: &[File], allowed: &[(&str, &str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used = vec![false; allowed.len()];
    for file in all {
        for function in scan::functions(&file.text) {
            if function.lines <= FUNCTION_LINES {
                continue;
            }
            let exception = allowed
                .iter()
                .position(|(path, name, _)| *path == file.path && *name == function.name);
            match exception {
                Some(at) => used[at] = true,
                None => wrong.push(format!(
                    "{}:{}: {} has {} lines (at most {FUNCTION_LINES})",
                    file.path, function.line, function.name, function.lines
                )),
            }
        }
    }
    for (at, (path, name, _)) in allowed.iter().enumerate().filter(|(at, _)| !used[*at]) {
        wrong.push(format!("exception {at} ({path}, {name}): needed no more"));
    }
    wrong
}

/// Every Rust file is within the limit.
#[must_use]
pub fn files_are_short() -> Vec<String> {
    files_over(&files(&[".rs"]), LONG_FILES)
}

/// Every function is within the limit.
#[must_use]
pub fn functions() -> Vec<String> {
    functions_over(&files(&[".rs"]), LONG_FUNCTIONS)
}
