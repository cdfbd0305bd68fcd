//! Errors of importers: the expectation, the text found, and its place. They are collected up to a
//! limit.

use std::fmt;

/// The most errors of a file that are kept. Further ones are counted.
pub const MAX_ERRORS: usize = 20;
/// The most characters of a line that an error shows.
const MAX_SHOWN: usize = 120;
/// The most characters of the unexpected text that an error shows.
const MAX_FOUND: usize = 40;

/// An error at a place of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The line. It is cut when it is long, and its control characters are replaced.
    pub text: String,
    /// The expectation at this place, or the problem with advice.
    pub expected: String,
    /// The text at this place.
    pub found: String,
}

/// All errors of a file, in order. There is at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportErrors {
    /// The first ones, at most [`MAX_ERRORS`].
    pub errors: Vec<ImportError>,
    /// Number of further errors.
    pub more: usize,
}

/// An error in a line: its byte offset, the expectation, and the text found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) expected: String,
    pub(super) found: String,
}

/// Collects the errors of a file.
#[derive(Default)]
pub(super) struct Collector {
    errors: Vec<ImportError>,
    more: usize,
}

impl ImportErrors {
    /// An error in the only line of a text.
    pub(super) fn of_line(line: &str, fault: Fault) -> Self {
        Self { errors: vec![ImportError::new(1, line, fault)], more: 0 }
    }
}

impl ImportError {
    fn new(line: u32, text: &str, fault: Fault) -> Self {
        let before = text.get(..fault.at).unwrap_or(text);
        let column = u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1);
        let text = shown(text.trim_end(), MAX_SHOWN);
        Self { line, column, text, expected: fault.expected, found: fault.found }
    }
}

impl Fault {
    /// An error at a byte offset: something else was expected.
    pub(super) fn new(at: usize, expected: impl Into<String>, found: &str) -> Self {
        let found = match found {
            "" => "the end of the line".to_owned(),
            found => format!("`{}`", shown(found, MAX_FOUND)),
        };
        Self { at, expected: expected.into(), found }
    }
}

impl Collector {
    pub(super) fn push(&mut self, line: u32, text: &str, fault: Fault) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(ImportError::new(line, text, fault));
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Counts errors that were not kept.
    pub(super) fn count_more(&mut self, more: usize) {
        self.more = self.more.saturating_add(more);
    }

    /// The value, if there were no errors.
    pub(super) fn finish<T>(self, value: T) -> Result<T, ImportErrors> {
        if self.errors.is_empty() {
            Ok(value)
        } else {
            Err(ImportErrors { errors: self.errors, more: self.more })
        }
    }
}

/// Text for a message. It is cut to a length, and control characters (including escape sequences of
/// a terminal) are replaced.
fn shown(text: &str, max: usize) -> String {
    let plain = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let mut out: String = text.chars().take(max).map(plain).collect();
    if text.chars().nth(max).is_some() {
        out.push('…');
    }
    out
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, text, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}\n  | {text}")
    }
}

impl fmt::Display for ImportErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ImportError {}
impl std::error::Error for ImportErrors {}

impl IntoIterator for ImportErrors {
    type Item = ImportError;
    type IntoIter = std::vec::IntoIter<ImportError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{Collector, Fault, MAX_ERRORS};

    #[test]
    fn message_says_place_expectation_finding_and_line() {
        let mut errors = Collector::default();
        errors.push(3, "pass é x ", Fault::new(8, "a flag", "x"));
        let errors = errors.finish(()).expect_err("one");
        let message = "line 3, column 8: expected a flag, found `x`\n  | pass é x";
        assert_eq!(errors.to_string(), message, "columns count characters");
    }

    #[test]
    fn long_lines_and_control_characters_do_not_reach_the_terminal() {
        let mut errors = Collector::default();
        let line = format!("\u{1b}[31m\t{}", "y".repeat(500));
        errors.push(1, &line, Fault::new(0, "x", &line));
        let error = errors.finish(()).expect_err("one").errors.remove(0);
        assert!(error.text.starts_with("\u{fffd}[31m yyy") && error.text.ends_with("y…"));
        assert_eq!(error.text.chars().count(), 121);
        assert_eq!(error.found.chars().count(), 43, "40, an ellipsis and the back quotes");
    }

    #[test]
    fn collector_keeps_a_stated_number() {
        let mut errors = Collector::default();
        for line in 1..=30 {
            errors.push(line, "", Fault::new(0, "x", ""));
        }
        let errors = errors.finish(()).expect_err("30");
        assert_eq!((errors.errors.len(), errors.more), (MAX_ERRORS, 10));
        assert!(Collector::default().finish(()).is_ok());
    }
}
