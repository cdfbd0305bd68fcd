//! Cases: folders with a chain, steps, and expected outcomes. `docs/testing.md` describes the form.

mod listing;
mod outcome;
mod run;
mod script;
mod times;

pub use listing::{Case, list};
pub use outcome::Outcome;
pub use run::{Difference, check, replay, rows};
pub use script::{Mistake, Script, Step, StepKind};
pub use times::{parse_time, show_time};
