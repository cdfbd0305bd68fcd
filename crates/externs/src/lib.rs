//! Operators written in Rust with declared action profiles: hashes, consistent hashing, patterns, pools, checksums.
#![forbid(unsafe_code)]

pub mod patterns;
