//! Signatures, and their form for aho-corasick and regex-automata.

use braid_externs::patterns::{Matcher, Pattern, PatternError, PatternSet};

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

/// Compiles signatures for aho-corasick and regex-automata.
///
/// # Errors
/// The mistake in the signatures.
pub(super) fn portable(signatures: &[Signature]) -> Result<PatternSet, String> {
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
    let first =
        |errors: &[PatternError]| errors.first().map_or_else(String::new, ToString::to_string);
    set.map_err(|errors| first(&errors))
}
