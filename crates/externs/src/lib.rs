//! Operators written in Rust with declared action profiles: hashes, consistent hashing, patterns, pools, checksums.
//!
//! `signature` says what an operator looks like from outside, `call` how it is called, `ops` holds
//! one file per operator and the registry. `patterns` and `pool` are what the IR's own operations
//! on patterns and pools rest on; `rng` is the seeded generator that every random choice uses.
#![forbid(unsafe_code)]

pub mod call;
pub mod manual;
pub mod ops;
pub mod patterns;
pub mod pool;
pub mod rng;
pub mod signature;

pub use call::{Arg, Backend, Backends, Cache, CallCtx, MAX_RESULTS, Results};
pub use ops::{all, lookup};
pub use patterns::PatternSet;
pub use pool::Pool;
pub use rng::Rng;
pub use signature::{Extern, ParamKind, Profile, Signature};
