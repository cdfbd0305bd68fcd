//! Names in the source.

use crate::source::Span;

/// An identifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    /// Its text.
    pub text: String,
    /// Its place in the file.
    pub span: Span,
}

/// A dotted name: `ip.src`, `quoted.l4.sport`, or a single identifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Its parts.
    pub parts: Vec<Ident>,
    /// Its place in the file.
    pub span: Span,
}

/// A dotted name as text.
pub fn joined(path: &Path) -> String {
    let parts: Vec<&str> = path.parts.iter().map(|part| part.text.as_str()).collect();
    parts.join(".")
}
