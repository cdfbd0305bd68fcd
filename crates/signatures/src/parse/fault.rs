//! Faults in lines.

/// Why a line is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It is no rule of Suricata's language.
    Wrong,
    /// It needs something that inspections do not have.
    Unsupported,
}

/// A fault in a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub cause: Cause,
    pub name: String,
    pub why: String,
    /// Where in the line, if that is known.
    pub at: Option<usize>,
}

impl Fault {
    pub fn wrong(name: &str, why: impl Into<String>) -> Self {
        Self { cause: Cause::Wrong, name: name.to_owned(), why: why.into(), at: None }
    }

    pub fn unsupported(name: &str, why: impl Into<String>) -> Self {
        Self { cause: Cause::Unsupported, ..Self::wrong(name, why) }
    }

    /// The same fault at a place.
    pub fn at(self, at: usize) -> Self {
        Self { at: Some(self.at.unwrap_or(at)), ..self }
    }
}
