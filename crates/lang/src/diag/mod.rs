//! Diagnostics: the problem, its place, the expectation and advice. They are collected and never
//! thrown.
//!
//! Every message has a code from the catalogue in [`codes`]. `render` prints them.

mod bytes;
pub mod codes;
mod finding;
mod foreign;
mod render;
mod suggest;

pub use codes::{Code, Entry, Severity};
pub(crate) use finding::MAX_DIAGNOSTICS;
pub use finding::{Diagnostic, Diagnostics};
pub(crate) use foreign::{foreign_field, foreign_statement, foreign_unit};
pub use render::{Style, render, to_json};
pub(crate) use suggest::did_you_mean;
pub use suggest::did_you_mean_help;
