//! Decision structures: fast lookups in rule sets and route tables.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod bits;
mod flat;
mod grid;
mod groups;
mod lpm;
mod packed;
mod rules;
pub mod sample;
mod side;
mod sparse;
mod steps;
mod tree;
mod trie;
mod tuples;

pub use groups::{GroupTrie, Groups};
pub use lpm::Lpm;
pub use rules::RuleTable;
pub use side::Family;
