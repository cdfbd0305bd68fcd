//! Importers: rule files, route tables, prefix lists and pattern files become values of parameters.
//!
//! Each importer is a function from text to a value or to all errors of the file, each with its
//! place. Reading files is [`read_text`]'s job alone, so that the importers stay pure. The formats
//! are described in `docs/rule-files.md`. Input is hostile: nothing panics, everything has a limit.

mod addr;
mod classbench;
mod cursor;
mod error;
mod patterns;
mod prefixes;
mod read;
mod routes;
mod rules;

pub use classbench::classbench;
pub use error::{ImportError, ImportErrors, MAX_ERRORS};
pub use patterns::patterns;
pub use prefixes::{Family, prefixes};
pub use read::{MAX_TEXT_BYTES, ReadError, read_text};
pub use routes::{MAX_ROUTES, routes};
pub use rules::{MAX_RULES, parse_rule, rules};
