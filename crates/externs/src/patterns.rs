//! Pattern sets over payloads: many literals and regular expressions at once.
//!
//! One pass with Aho-Corasick automata searches all literals (one automaton for exact case, one for
//! ASCII case-insensitive literals). One pass with `regex-automata` searches all regular
//! expressions, in time linear in the payload. Patterns match bytes. Pattern files are untrusted
//! input, so every quantity has a limit, which is checked before or during compilation.

mod compiled;

use compiled::Compiled;
use std::fmt;
use std::sync::Arc;

/// The most patterns in a set.
pub const MAX_PATTERNS: usize = 65_536;
/// The most bytes of all literals of a set together.
pub const MAX_LITERAL_BYTES: usize = 1 << 20;
/// The longest sequence of literals in a set in which each literal ends with the next one and each
/// number is below the number before. The limit bounds the matches at one position of a payload,
/// and the automaton's memory.
pub const MAX_NESTED_LITERALS: usize = 16;
/// The most bytes of one regular expression's source.
pub const MAX_REGEX_BYTES: usize = 4_096;
/// The most bytes of the sources of all regular expressions of a set together.
pub const MAX_REGEX_BYTES_TOTAL: usize = 1 << 20;
/// The most bytes of the compiled automaton of all regular expressions of a set.
pub const MAX_AUTOMATON_BYTES: usize = 16 << 20;

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The number that a match reports. Several patterns may have the same number.
    pub number: u32,
    /// The bytes that match.
    pub matcher: Matcher,
}

/// The bytes that a pattern matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Matcher {
    /// These bytes, anywhere in the payload.
    Literal {
        /// The bytes, at least one.
        bytes: Vec<u8>,
        /// Whether ASCII letters match in either case.
        nocase: bool,
    },
    /// A regular expression in the syntax of the `regex` crate without Unicode: `.`, classes and
    /// `\w` match bytes, `\xHH` is a byte, and `^` and `$` are the ends of the payload.
    Regex {
        /// The source without delimiters.
        source: String,
        /// Whether ASCII letters match in either case.
        nocase: bool,
    },
}

/// A compiled set of patterns. Cheap to clone; equal when the patterns are equal.
#[derive(Clone)]
pub struct PatternSet {
    patterns: Arc<[Pattern]>,
    compiled: Arc<Compiled>,
}

/// The reasons why patterns can't be used. `index` is the pattern's place in the list, from 0.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// Too many patterns.
    #[error("{count} patterns, but a set holds at most {MAX_PATTERNS}")]
    TooMany {
        /// The number of patterns.
        count: usize,
    },
    /// A literal without bytes would match everything.
    #[error("an empty literal would match every payload")]
    EmptyLiteral {
        /// The literal.
        index: usize,
    },
    /// Too many bytes of literals.
    #[error("the literals up to this one are longer than {MAX_LITERAL_BYTES} bytes together")]
    LiteralsTooLong {
        /// The first literal past the limit.
        index: usize,
    },
    /// A sequence of literals in which each ends with the next one is too long.
    #[error(
        "{} literals end with one another, this one is the longest; at most \
         {MAX_NESTED_LITERALS} such literals are allowed; give the shorter ones the lower numbers",
        MAX_NESTED_LITERALS + 1
    )]
    LiteralsNested {
        /// The longest of these literals.
        index: usize,
    },
    /// A regular expression is too long.
    #[error("a regular expression of {length} bytes, but at most {MAX_REGEX_BYTES} are allowed")]
    RegexTooLong {
        /// The regular expression.
        index: usize,
        /// Its length in bytes.
        length: usize,
    },
    /// A regular expression has a syntax error.
    #[error("{message}")]
    RegexSyntax {
        /// The regular expression.
        index: usize,
        /// The place of the error in the source, in bytes from 0.
        offset: usize,
        /// The error.
        message: String,
    },
    /// Too many bytes of regular expressions.
    #[error(
        "the regular expressions up to this one are longer than {MAX_REGEX_BYTES_TOTAL} bytes together"
    )]
    RegexesTooLong {
        /// The first regular expression past the limit.
        index: usize,
    },
    /// The regular expressions are too big when compiled.
    #[error(
        "the regular expressions up to this one compile to more than {} MiB together; use fewer, \
         or smaller counts in `{{n,m}}`",
        MAX_AUTOMATON_BYTES >> 20
    )]
    RegexesTooBig {
        /// The first regular expression past the limit.
        index: usize,
    },
    /// The automata can't be built, for another reason.
    #[error("the patterns can't be compiled: {message}")]
    Build {
        /// The library's message.
        message: String,
    },
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
            | Self::RegexesTooBig { index } => Some(index),
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
