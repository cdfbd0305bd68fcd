//! The names of a program: where each is declared and used, for editors.
//!
//! [`index`] never fails: where the text has errors, it knows the parts without. Names are resolved
//! as the checks resolve them (`sema::names`), but without lowering anything.

mod expr;
mod names;
mod program;
mod scope;
mod stmt;
mod ty;

pub use names::{Definition, Index, Kind, Words, is_name, words};
pub use program::index;
