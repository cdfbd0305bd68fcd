//! Analyses of models and chains: action profiles, service graphs, and residual programs.
#![forbid(unsafe_code)]

pub mod classes;
pub mod parallel;
pub mod passes;
mod picture;
pub mod profile;
pub mod sharding;
pub mod streams;
mod symbolic;
pub mod synth;
