//! Searches payloads for signatures, with Hyperscan if it is built in, otherwise with aho-corasick
//! and regex-automata.

#[cfg(feature = "hyperscan")]
#[allow(unsafe_code, reason = "Hyperscan is a C library")]
mod hyperscan;
mod signature;

pub use signature::Signature;

use braid_externs::patterns::PatternSet;

/// The default search engine.
pub const ENGINE: &str =
    if cfg!(feature = "hyperscan") { "hyperscan" } else { "aho-corasick, regex" };

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
        signature::portable(signatures).map(Self::Portable)
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
