//! Synthetic flows: a given number of flows and packets, with given sizes, in order of time.
//!
//! All flows are open at the same time. The packets of each flow, in trains, are spread evenly over
//! the whole run, beginning at a random point. A table of flows therefore fills early and stays
//! full, which a benchmark of functions with state needs.

mod endpoints;
pub mod life;
mod options;
mod size;
mod spread;

pub use options::{MAX_FLOWS, MAX_PACKETS, MAX_RATE, Options, Ports, Protocol};
pub use size::FrameSize;
pub use spread::Flows;
