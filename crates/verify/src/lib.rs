//! Shows that residual programs do what the chain does, by a bit-vector solver.
#![forbid(unsafe_code)]
