//! Runs chains on engines: captures in, captures out, control scripts, accounting.
//!
//! [`Live`](live::Live) drives an engine over live interfaces. [`Run`] is the offline driver. It
//! merges inputs in time order ([`Input`]) and finds the interface by which a packet of a shared
//! capture enters ([`split`]). If the user asks for it, captured replies answer the translated
//! requests ([`follow`]). At the end, the driver checks that every packet is accounted for.
//! [`report`] and [`json`] turn results into JSON for scripts.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

pub mod ctl;
mod engines;
pub mod follow;
mod hosts;
pub mod json;
mod keys;
mod listing;
pub mod live;
mod load;
mod loads;
mod merge;
mod one;
mod outcome;
mod outputs;
mod owned;
pub mod parallel;
mod queue;
mod reading;
pub mod report;
mod run;
mod script;
mod sharded;
mod share;
pub mod split;
pub mod state_files;
mod steer;
mod steering_program;
mod stray;
mod team;

pub use engines::Engines;
pub use merge::Input;
pub use outcome::{RefusedChange, RunError, Summary};
pub use outputs::{Sinks, Unwritten};
pub use run::{Progress, Run};
pub use sharded::Sharded;
pub use steer::{Steerer, workers};
pub use steering_program::steering_program;
