//! The ends of a command: exit codes, and messages of failures.

use std::fmt;
use std::path::Path;

use braid_runtime::RunError;

/// The answer of a command. The exit code shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The command is done, and the answer is yes.
    Yes,
    /// The command is done, and the answer is no: captures differ, a file has errors.
    No,
    /// The command found no answer.
    Unknown,
    /// It found a difference that no run has confirmed.
    Unconfirmed,
}

/// Exit code for wrong usage. clap uses it, too.
pub const USAGE: u8 = 2;
/// Exit code for a file that cannot be used.
pub const BAD_FILE: u8 = 3;
/// Exit code if Braid contradicts itself, for example in its accounting.
pub const INCONSISTENT: u8 = 4;
/// Exit code if no answer was found.
pub const UNKNOWN: u8 = 5;
/// Exit code for a difference that no run has confirmed.
pub const UNCONFIRMED: u8 = 6;
/// Exit code for a panic, which is always a bug (`EX_SOFTWARE`).
pub const BUG: u8 = 70;

impl Answer {
    /// `Yes` if `holds`, else `No`.
    pub fn of(holds: bool) -> Self {
        if holds { Answer::Yes } else { Answer::No }
    }

    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Answer::Yes => 0,
            Answer::No => 1,
            Answer::Unknown => UNKNOWN,
            Answer::Unconfirmed => UNCONFIRMED,
        }
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The message, one line or more.
    pub text: String,
    /// Findings in the language's files, for `--json`.
    pub diagnostics: Option<serde_json::Value>,
    /// Standard output already has the result, with the error in it.
    pub is_printed: bool,
}

impl Failure {
    fn new(code: u8, text: impl fmt::Display) -> Self {
        Self { code, text: text.to_string(), diagnostics: None, is_printed: false }
    }

    /// Wrong usage of the command.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(USAGE, text)
    }

    /// A file cannot be read, written or understood.
    pub fn file(path: &Path, why: impl fmt::Display) -> Self {
        Self::new(BAD_FILE, format!("{}: {why}", path.display()))
    }

    /// Several files, or their contents, cannot be used.
    pub fn input(text: impl fmt::Display) -> Self {
        Self::new(BAD_FILE, text)
    }

    /// Braid contradicts itself.
    pub fn inconsistent(text: impl fmt::Display) -> Self {
        Self::new(INCONSISTENT, text)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Unbalanced(_) => Self::inconsistent(error),
            RunError::Read { .. } => Self::input(error),
        }
    }
}

/// The result of a command.
pub type Outcome = Result<Answer, Failure>;
