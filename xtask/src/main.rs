//! Repository chores: `cargo xtask NAME`.
#![forbid(unsafe_code)]

fn main() {}
