//! Searches payloads for signatures, with Hyperscan if it is built in, otherwise with aho-corasick
//! and regex-automata.

#[cfg(feature = "hyperscan")]
#[allow(unsafe_code, reason = "Hyperscan is a C library")]
mod hyperscan;

use braid_externs::patterns::{Matcher, Pattern, PatternSet};

/// The default search engine.
pub const ENGINE: &str =
    if cfg!(feature = "hyperscan") { "hyperscan" } else { "aho-corasick, regex" };

/// A signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The number that a match reports.
    pub number: u32,
    /// Whether the text is a regular expression. Otherwise it is literal bytes.
    pub regex: bool,
    /// Whether ASCII letters match in either case.
    pub nocase: bool,
    /// The bytes or the expression.
    pub text: Vec<u8>,
}

/// Signatures that are compiled to be searched all at once.
pub enum Search {
    /// Compiled for aho-corasick and regex-automata.
    Portable(PatternSet),
    /// Compiled for Hyperscan.
    #[cfg(feature = "hyperscan")]
    Hyperscan(hyperscan::Database),
}

impl Search {
    /// Compiles signatures for the default engine.
    ///
    /// # Errors
    /// The mistake in the signatures.
    pub fn new(signatures: &[Signature]) -> Result<Self, String> {
        #[cfg(feature = "hyperscan")]
        return hyperscan::Database::new(signatures).map(Self::Hyperscan);
        #[cfg(not(feature = "hyperscan"))]
        Self::portable(signatures)
    }

    /// Compiles signatures for aho-corasick and regex-automata.
    ///
    /// # Errors
    /// The mistake in the signatures.
    pub fn portable(signatures: &[Signature]) -> Result<Self, String> {
        let pattern = |signature: &Signature| {
            let (nocase, text) = (signature.nocase, signature.text.clone());
            let matcher = if signature.regex {
                let source = String::from_utf8(text).map_err(|_| "an expression is no text")?;
                Matcher::Regex { source, nocase }
            } else {
                Matcher::Literal { bytes: text, nocase }
            };
            Ok(Pattern { number: signature.number, matcher })
        };
        let patterns = signatures.iter().map(pattern).collect::<Result<_, &str>>()?;
        let set = PatternSet::new(patterns);
        let first = |errors: &[braid_externs::patterns::PatternError]| {
            errors.first().map_or_else(String::new, ToString::to_string)
        };
        set.map(Self::Portable).map_err(|errors| first(&errors))
    }

    /// The lowest number among the signatures that occur in a payload.
    #[must_use]
    pub fn lowest(&self, payload: &[u8]) -> Option<u32> {
        match self {
            Self::Portable(set) => set.lowest_match(payload),
            #[cfg(feature = "hyperscan")]
            Self::Hyperscan(database) => database.lowest(payload),
        }
    }
}
