//! Analyses of models and chains: action profiles, and residual programs.
#![forbid(unsafe_code)]

pub mod classes;
pub mod parallel;
mod picture;
mod pipeline;
pub mod profile;
pub mod synth;
