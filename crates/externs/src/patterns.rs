//! Pattern sets over payloads: many literals and regular expressions at once.
//!
//! One pass with Aho-Corasick automata searches all literals (one automaton for exact case, one for
//! ASCII case-insensitive literals). One pass with `regex-automata` searches all regular
//! expressions, in time linear in the payload. Patterns match bytes. Pattern files are untrusted
//! input, so every quantity has a limit, which is checked before or during compilation.
//!
//! A set also searches streams, whose bytes come in parts. See [`PatternSet::scan`].

mod compiled;
mod literals;
mod pattern;
mod place;
mod scan;
mod simulation;
mod starts;

use compiled::Compiled;
pub use pattern::{
    MAX_AUTOMATON_BYTES, MAX_LITERAL_BYTES, MAX_NESTED_LITERALS, MAX_PATTERNS, MAX_REGEX_BYTES,
    MAX_REGEX_BYTES_TOTAL, Matcher, Pattern, PatternError,
};
pub use scan::Scan;
use std::fmt;
use std::sync::Arc;

/// A compiled set of patterns. Cheap to clone; equal when the patterns are equal.
#[derive(Clone)]
pub struct PatternSet {
    patterns: Arc<[Pattern]>,
    compiled: Arc<Compiled>,
}

/// A match in a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match {
    /// The pattern's number.
    pub number: u32,
    /// The first byte of the match.
    pub start: usize,
    /// The first byte behind the match.
    pub end: usize,
}

impl PatternError {
    /// The pattern's place in the list, from 0, if the error is about one pattern.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        match *self {
            Self::EmptyLiteral { index }
            | Self::LiteralsTooLong { index }
            | Self::LiteralsNested { index }
            | Self::RegexTooLong { index, .. }
            | Self::RegexSyntax { index, .. }
            | Self::RegexesTooLong { index }
            | Self::RegexesTooBig { index }
            | Self::NeedsLaterBytes { index } => Some(index),
            Self::TooMany { .. } | Self::Build { .. } => None,
        }
    }
}

impl PatternSet {
    /// Compiles patterns.
    ///
    /// # Errors
    /// An error for each pattern that can't be used, in order, or one error about the
    /// whole set.
    pub fn new(patterns: Vec<Pattern>) -> Result<Self, Vec<PatternError>> {
        let compiled = Arc::new(Compiled::new(&patterns)?);
        Ok(Self { patterns: patterns.into(), compiled })
    }

    /// The lowest number among the patterns that match the payload.
    #[must_use]
    pub fn lowest_match(&self, payload: &[u8]) -> Option<u32> {
        self.compiled.lowest_match(payload)
    }

    /// The match of a pattern with the lowest number of all that match. Of several, it is the
    /// one that begins first; of several that begin there, that of the first pattern in order. A
    /// regular expression prefers its matches as written: `a+` takes as many bytes as it can, and
    /// `a|ab` takes `a`. In time linear in the payload for each pattern with this number.
    #[must_use]
    pub fn first_match(&self, payload: &[u8]) -> Option<Match> {
        let number = self.lowest_match(payload)?;
        let (start, end) = self.compiled.first_place(&self.patterns, number, payload)?;
        Some(Match { number, start, end })
    }

    /// Checks that [`scan`](Self::scan) finds all patterns. It makes the automata for searches of
    /// streams, which the first search makes otherwise.
    ///
    /// # Errors
    /// An error for each regular expression with an assertion about the bytes behind a match, such
    /// as `$` or `\b`: the next bytes of a stream may come late or never.
    pub fn check_streams(&self) -> Result<(), Vec<PatternError>> {
        let refused = self.compiled.streams(&self.patterns).refused();
        if refused.is_empty() { Ok(()) } else { Err(refused.to_vec()) }
    }

    /// Searches the next bytes of a stream: the lowest number among the patterns with a match that
    /// ends in these bytes. The match may begin in earlier bytes. An empty match counts when the
    /// byte in front of it comes, and an empty match at the start counts with the first byte.
    ///
    /// The result does not depend on the cuts: the lowest number of two parts is the number of both
    /// together. Patterns that [`check_streams`](Self::check_streams) refuses are never found.
    pub fn scan(&self, scan: &mut Scan, bytes: &[u8]) -> Option<u32> {
        if bytes.is_empty() { None } else { self.compiled.scan(&self.patterns, scan, bytes) }
    }

    /// Reads the bytes of a search of this set. `None` if they are not of such a search. Not every
    /// change to the bytes is noticed, but what is read can be used. The bytes depend on the
    /// versions of the libraries that make the automata.
    #[must_use]
    pub fn read_scan(&self, bytes: &[u8]) -> Option<Scan> {
        self.compiled.streams(&self.patterns).read(bytes)
    }

    /// The patterns in the order given.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }
}

impl Default for PatternSet {
    /// No patterns: matches nothing.
    fn default() -> Self {
        Self { patterns: Arc::new([]), compiled: Arc::new(Compiled::default()) }
    }
}

impl PartialEq for PatternSet {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for PatternSet {}

impl fmt::Debug for PatternSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PatternSet").field(&self.patterns).finish()
    }
}

impl fmt::Display for Pattern {
    /// The pattern as a line of a pattern file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.number)?;
        match &self.matcher {
            Matcher::Literal { bytes, nocase } => {
                f.write_str("\"")?;
                for &byte in bytes {
                    match byte {
                        b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                        b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                        _ => write!(f, "\\x{byte:02x}")?,
                    }
                }
                f.write_str(if *nocase { "\" nocase" } else { "\"" })
            }
            Matcher::Regex { source, nocase } => {
                write!(f, "/{source}/{}", if *nocase { "i" } else { "" })
            }
        }
    }
}
