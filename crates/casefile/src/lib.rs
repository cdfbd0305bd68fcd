//! Cases: folders with a chain, steps, and expected outcomes. `docs/testing.md` describes the form.
//!
//! [`find`] lists cases, [`Script`] reads one, [`play()`] gives its steps to an engine, and
//! [`differences`] compares what happened with what the case expects. The module [`packet`] has the
//! text form of packets.
#![forbid(unsafe_code)]

pub mod convert;
mod difference;
mod listing;
mod outcome;
pub mod packet;
mod play;
mod script;
mod stimulus;
mod times;

pub use difference::{Difference, Line, differences};
pub use listing::{Case, find};
pub use outcome::Outcome;
pub use play::{Change, Played, play};
pub use script::{Mistake, Script, Step, StepKind};
pub use stimulus::{Output, Stimulus, step};
pub use times::{parse_time, show_time};
