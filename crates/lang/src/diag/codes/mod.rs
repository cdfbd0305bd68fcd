//! The error catalogue: each code with its title, a long explanation, a wrong and a right example.
//!
//! Each hundred has a file. A row is `NAME = 101, Error, "title", "explanation", wrong: "…", right:
//! "…";` and defines the constant `NAME`. Examples are whole `.braid` files. If an example needs
//! further files (rules, a control file), a line `=== NAME ===` starts each one (see
//! [`example_files`]).

use std::fmt;

/// Makes the constants and the table of one hundred.
macro_rules! codes {
    ($($name:ident = $number:literal, $severity:ident, $title:literal, $explanation:literal,
        wrong: $wrong:literal, right: $right:literal;)*) => {
        $(#[doc = $title]
        pub const $name: $crate::diag::codes::Code = $crate::diag::codes::Code::new($number);)*
        /// The rows of this hundred.
        pub(super) const ENTRIES: &[$crate::diag::codes::Entry] = &[$($crate::diag::codes::Entry {
            code: $name,
            severity: $crate::diag::codes::Severity::$severity,
            title: $title,
            explanation: $explanation,
            wrong: $wrong,
            right: $right,
        }),*];
    };
}

mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;

pub use e01::*;
pub use e02::*;
pub use e03::*;
pub use e04::*;
pub use e05::*;
pub use e06::*;
pub use e07::*;
pub use e08::*;

/// The number of a message, printed as `E0101`. Only the catalogue makes codes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

impl Code {
    const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The code of a text such as `E0101`, `e0101` or `101`, if it is in the catalogue.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['E', 'e']).unwrap_or(text);
        let number: u16 = digits.parse().ok()?;
        entries().find(|entry| entry.code.0 == number).map(|entry| entry.code)
    }

    /// Its row of the catalogue.
    #[must_use]
    pub fn entry(self) -> Option<&'static Entry> {
        entries().find(|entry| entry.code == self)
    }

    /// Whether it is an error or a warning.
    #[must_use]
    pub(crate) fn severity(self) -> Severity {
        self.entry().map_or(Severity::Error, |entry| entry.severity)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:04}", self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How severe a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The program does not run.
    Error,
    /// The program runs, but the author should check it.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// A row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// A short title.
    pub title: &'static str,
    /// The rule and the reason for it.
    pub explanation: &'static str,
    /// A file that gets this code.
    pub wrong: &'static str,
    /// The same file, corrected.
    pub right: &'static str,
}

/// All rows, in order of their numbers.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        e01::ENTRIES,
        e02::ENTRIES,
        e03::ENTRIES,
        e04::ENTRIES,
        e05::ENTRIES,
        e06::ENTRIES,
        e07::ENTRIES,
        e08::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// Splits an example into its files. The first is the `.braid` file (its name is empty). Lines `===
/// NAME ===` start the others.
#[must_use]
pub fn example_files(example: &str) -> Vec<(&str, String)> {
    let mut files = vec![("", String::new())];
    for line in example.lines() {
        let name = line.strip_prefix("=== ").and_then(|rest| rest.strip_suffix(" ==="));
        match (name, files.last_mut()) {
            (Some(name), _) => files.push((name, String::new())),
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    files
}

/// The text that `braid explain` prints: title, explanation, both examples.
#[must_use]
pub fn explain(code: Code) -> Option<String> {
    let entry = code.entry()?;
    Some(format!(
        "{}: {}\n\n{}\n\nWrong:\n\n{}\n\nRight:\n\n{}\n",
        entry.code,
        entry.title,
        entry.explanation,
        indent(entry.wrong),
        indent(entry.right)
    ))
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.trim().lines().map(|line| format!("    {line}")).collect();
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_numbers_rise() {
        let numbers: Vec<u16> = entries().map(|entry| entry.code.number()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    }

    #[test]
    fn catalogue_rows_are_complete() {
        for entry in entries() {
            assert!(!entry.title.is_empty(), "{}", entry.code);
            assert!(entry.explanation.len() > 40, "{} explains too little", entry.code);
            assert!(entry.wrong != entry.right, "{}", entry.code);
        }
    }

    #[test]
    fn code_parses_in_all_its_forms() {
        for text in ["E0101", "e0101", "101", "0101"] {
            assert_eq!(Code::parse(text).map(Code::number), Some(101), "{text}");
        }
        assert_eq!(Code::parse("E9999"), None);
        assert_eq!(Code::parse("x"), None);
    }

    #[test]
    fn example_splits_at_headings() {
        let files = example_files("chain c {}\n=== a.rules ===\nx\ny\n");
        assert_eq!(files, [("", "chain c {}\n".to_owned()), ("a.rules", "x\ny\n".to_owned())]);
    }
}
