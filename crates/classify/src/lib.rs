//! Decision structures: rule sets, route tables and sets made fast to look up.
#![forbid(unsafe_code)]

mod bits;
mod flat;
mod grid;
mod joint;
mod lpm;
mod packed;
mod rules;
pub mod sample;
mod sets;
mod side;
mod sparse;
mod steps;
mod tree;
mod trie;
mod tuples;

pub use joint::{Answer, ClassTrie, Classes, Found, Joint, Member, Side};
pub use lpm::Lpm;
pub use rules::RuleTable;
pub use sets::SetTable;
pub use side::Family;
