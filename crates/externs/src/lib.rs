//! Operators with declared action profiles: hashes, consistent hashing, patterns, pools, checksums,
//! and operators that libraries bring.
//!
//! `signature` describes an operator for its callers, `call` is the calling convention, and `ops`
//! has one file per operator and the registry. `patterns` and `pool` implement the IR's own
//! operations on patterns and pools. `rng` is the seeded generator for every random choice.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod backends;
pub mod call;
pub mod maglev;
pub mod manual;
mod mix;
pub mod ops;
pub mod patterns;
pub mod pool;
pub mod rng;
pub mod signature;

pub use backends::{Backend, Backends};
pub use call::{Arg, Cache, CallCtx, MAX_RESULTS, Results};
pub use ops::{all, lookup};
pub use patterns::PatternSet;
pub use pool::Pool;
pub use rng::Rng;
pub use signature::{Extern, ParamKind, Profile, Signature};
