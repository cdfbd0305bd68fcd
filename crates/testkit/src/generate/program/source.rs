//! The text of a generated program, and options for its generation.

use std::collections::BTreeMap;

/// A program: one source file with functions and a chain, and the files that it names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Source text.
    pub source: String,
    /// The files that it names, by name.
    pub files: BTreeMap<String, String>,
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source)?;
        for (name, text) in &self.files {
            write!(f, "\n// === {name} ===\n{text}")?;
        }
        Ok(())
    }
}

/// Additions to a generated program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Number of a function on the main path. If it exists, a function that passes everything is
    /// inserted behind it.
    pub pass_through: Option<usize>,
    /// Whether most functions publish events for others, or take events.
    pub shares_events: bool,
}
