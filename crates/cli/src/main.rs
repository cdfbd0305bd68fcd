//! The `braid` command: arguments, output, exit codes.
#![forbid(unsafe_code)]

fn main() {}
