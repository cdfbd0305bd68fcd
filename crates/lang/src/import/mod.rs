//! Importers: rule files, route tables, prefix lists and pattern files become values of parameters.
//!
//! Each importer is a function from text to a value, or to all errors of the file with their places.
//! Importers open no files. `docs/rule-files.md` describes the formats. Input is hostile: nothing
//! panics, and everything has a limit.

mod addr;
mod classbench;
mod cursor;
mod error;
mod patterns;
mod prefixes;
mod routes;
mod rules;

pub use classbench::classbench;
pub use error::{ImportError, ImportErrors, MAX_ERRORS};
pub use patterns::patterns;
pub use prefixes::{Family, prefixes};
pub use routes::{MAX_ROUTES, routes};
/// Most bytes of a file's text, after decompression.
pub const MAX_TEXT_BYTES: u64 = 256 << 20;

pub use rules::{MAX_RULES, parse_rule, rules};
