//! Analyses of models and chains: action profiles.
#![forbid(unsafe_code)]

pub mod profile;
