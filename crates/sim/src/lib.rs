//! Predicts what stages on several cores bring (NFP, Sun et al., SIGCOMM 2017): a discrete-event
//! simulation of the engine `parallel` ([`stages()`]), the same for a chain that one core runs to
//! completion ([`run_to_completion`]), and the choice between the two ([`choose`]).
//!
//! Nothing here runs packets or reads a clock. The costs come from outside.
#![forbid(unsafe_code)]

mod choice;
mod cost;
mod load;
mod stages;
#[cfg(test)]
mod tests;

pub use choice::{Candidate, Goal, MARGIN, choose};
pub use cost::{Calls, Cost, Overheads};
pub use load::{BURST, Latency, Load, Predicted, run_to_completion};
pub use stages::{BUNDLE, Staged, Traffic, stages};
