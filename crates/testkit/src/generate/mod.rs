//! Generators: functions and chains as source text, and traffic aimed at a chain's boundaries.
//! Everything follows from a seed.

pub mod boundaries;
pub mod program;
mod rng;
pub mod traffic;

pub use boundaries::Boundaries;
pub use rng::Rng;
