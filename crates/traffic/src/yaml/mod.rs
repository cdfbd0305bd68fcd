//! Reads YAML files from other people: a bounded tree with line numbers, and typed access with
//! errors that name the key.

mod read;
mod tree;

pub use read::{At, Map};
pub use tree::{MAX_BYTES, parse};
