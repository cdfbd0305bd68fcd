//! How a command ends: exit codes, and what is printed when it fails.

use std::fmt;
use std::path::Path;

/// What a command says by its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It did what was asked, and the answer is yes.
    Yes,
    /// It did what was asked, and the answer is no: a difference, a file that is not right.
    No,
    /// It did what it could, and the answer is not known.
    Unknown,
    /// It found a difference that no run has confirmed.
    Unconfirmed,
}

/// Exit code of a wrong use of the command; clap uses it, too.
pub const USAGE: u8 = 2;
/// Exit code where a file cannot be used.
pub const BAD_FILE: u8 = 3;
/// Exit code where Braid contradicts itself, such as in its accounting.
pub const INCONSISTENT: u8 = 4;
/// Exit code where the answer could not be found.
pub const UNKNOWN: u8 = 5;
/// Exit code where a difference was found that no run has confirmed.
pub const UNCONFIRMED: u8 = 6;
/// Exit code of a panic, which is always a bug (`EX_SOFTWARE`).
pub const BUG: u8 = 70;

impl Answer {
    /// `Yes` if it holds.
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

/// Why a command did not do what was asked.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One line or more for the person.
    pub text: String,
    /// Findings in the language's files, for `--json`.
    pub diagnostics: Option<serde_json::Value>,
}

impl Failure {
    fn new(code: u8, text: impl fmt::Display) -> Self {
        Self { code, text: text.to_string(), diagnostics: None }
    }

    /// The command was used in a wrong way.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(USAGE, text)
    }

    /// A file cannot be read, written or understood.
    pub fn file(path: &Path, why: impl fmt::Display) -> Self {
        Self::new(BAD_FILE, format!("{}: {why}", path.display()))
    }

    /// Several files, or what is in them, cannot be used.
    pub fn input(text: impl fmt::Display) -> Self {
        Self::new(BAD_FILE, text)
    }

    /// Braid contradicts itself.
    pub fn inconsistent(text: impl fmt::Display) -> Self {
        Self::new(INCONSISTENT, text)
    }
}

/// What commands give back.
pub type Outcome = Result<Answer, Failure>;
