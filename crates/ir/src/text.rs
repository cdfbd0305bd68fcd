//! The text form of models: `print` and `parse` are inverse. `docs/ir.md` describes it.

mod decl;
mod declared;
mod names;
mod ops;
mod parse;
mod parse_bytes;
mod parse_ops;
mod parse_value;
mod print;
mod scan;
mod value;

pub use decl::{period, state_schema};
pub use declared::{Declared, MOST_TAGS};
pub use parse::{parse, parse_param};
pub use print::{print, print_program};
pub use scan::TextError;
pub use value::print_param;

/// Parts of the text form that programs of other kinds also use.
pub(crate) mod words {
    pub(crate) use super::names::{refer, resolve};
    pub(crate) use super::ops::{dest, print_op, reason, target, typed};
    pub(crate) use super::parse_ops::{Parser, typed as parse_typed};
    pub(crate) use super::parse_value::field;
    pub(crate) use super::scan::{Result, Scan};
}
