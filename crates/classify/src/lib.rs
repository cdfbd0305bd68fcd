//! Decision structures: rule sets, route tables and sets made fast to look up.

mod joint;
mod lpm;
mod rules;
mod sets;
mod trie;

pub use joint::{Answer, Joint, Member, Side};
pub use lpm::Lpm;
pub use rules::RuleTable;
pub use sets::SetTable;
