//! Runs chains on engines: captures in, captures out, control scripts, accounting.
//!
//! [`Live`](live::Live) drives an engine over live interfaces. [`Run`] is the offline driver. It merges inputs in time order ([`Input`]), decides by which
//! interface a packet of a common capture enters ([`split`]), rewrites captured replies by what
//! their requests left with when asked to ([`follow`]), and at the end checks that every packet is
//! accounted for. [`report`] and [`json`] turn results into what scripts read; [`diff`] compares
//! captures.
#![forbid(unsafe_code)]

pub mod diff;
pub mod follow;
pub mod json;
pub mod live;
mod merge;
mod outputs;
pub mod report;
mod run;
pub mod split;

pub use merge::Input;
pub use run::{Progress, Run, RunError, Summary};
