//! Repository chores: checks of the repository's structure, as a library for its tests.
#![forbid(unsafe_code)]

pub mod structure;
