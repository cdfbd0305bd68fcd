//! YAML files from other people: a bounded tree with lines, and typed access that names the key.

mod read;
mod tree;

pub use read::{At, Map};
pub use tree::{MAX_BYTES, parse};
