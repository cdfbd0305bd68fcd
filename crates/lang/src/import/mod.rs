//! Importers: they read rule files, route tables, prefix lists, pattern files, lists of strings and
//! keys as values of parameters.
//!
//! Each importer is a function from a text to a value, or to all errors of the text with their
//! places. Importers open no files. `docs/rule-files.md` describes the formats. The input may be
//! hostile, so an importer never panics, and everything has a limit.

mod addr;
mod classbench;
mod cursor;
mod error;
mod keys;
mod patterns;
mod prefixes;
mod routes;
mod rules;
mod signatures;
mod strings;

pub use classbench::classbench;
pub use error::{ImportError, ImportErrors, MAX_ERRORS};
pub use keys::keys;
pub use patterns::patterns;
pub use prefixes::{Family, prefixes};
pub use routes::routes;
/// The most bytes of a file's text, after decompression.
pub const MAX_TEXT_BYTES: u64 = 256 << 20;

pub use rules::{parse_rule, rules};
pub use signatures::{Unsupported, signatures};
pub use strings::{hosts, strings};
