//! Patterns, their limits, and the reasons why patterns can't be used.

use regex_automata::util::syntax;
use regex_syntax::hir::Hir;

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

/// The deepest nesting of groups in a regular expression. It keeps the parser's recursion shallow.
const MAX_NESTING: u32 = 100;

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
    /// The bytes behind a match decide whether it is one, but streams do not have them yet.
    #[error(
        "a search of a stream can't look at the bytes behind a match, so `$`, `\\z`, `\\b` and \
         other such assertions can't be used; `^` and `\\A` can"
    )]
    NeedsLaterBytes {
        /// The regular expression.
        index: usize,
    },
    /// The automata can't be built, for another reason.
    #[error("the patterns can't be compiled: {message}")]
    Build {
        /// The library's message.
        message: String,
    },
}

/// Parses a regular expression.
pub(super) fn parse(index: usize, source: &str, nocase: bool) -> Result<Hir, PatternError> {
    if source.len() > MAX_REGEX_BYTES {
        return Err(PatternError::RegexTooLong { index, length: source.len() });
    }
    let config = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(nocase)
        .nest_limit(MAX_NESTING);
    syntax::parse_with(source, &config).map_err(|error| {
        let (offset, message) = match &error {
            regex_syntax::Error::Parse(e) => (e.span().start.offset, e.kind().to_string()),
            regex_syntax::Error::Translate(e) => (e.span().start.offset, e.kind().to_string()),
            other => (0, other.to_string()),
        };
        PatternError::RegexSyntax { index, offset, message }
    })
}
