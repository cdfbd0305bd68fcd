//! Translation validation: a bit-vector solver proves that residual programs do what the chain
//! does.
#![forbid(unsafe_code)]

mod bits;
pub mod chain;
pub mod check;
mod ends;
pub mod example;
mod handlers;
pub mod headers;
mod join;
mod logic;
mod meet;
mod ops;
mod original;
mod packet;
mod parallel;
pub mod replay;
mod residual;
mod smt;
pub mod solver;
mod state;
mod sums;
pub mod term;
mod values;
mod world;
