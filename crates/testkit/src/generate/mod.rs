//! Generators of functions and chains as source text, and of traffic aimed at a chain's boundaries.
//! A seed determines everything.

pub mod boundaries;
pub mod program;
mod readings;
pub mod traffic;

pub use crate::rng::Rng;
pub use boundaries::Boundaries;
