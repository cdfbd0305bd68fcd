//! Test support: generators of functions, chains and traffic, cases, a packet builder, trace
//! comparison.
#![forbid(unsafe_code)]

pub mod breaks;
pub mod case;
pub mod compare;
pub mod generate;
pub mod harness;
pub mod hostile;
pub mod pairs;
pub mod record;
pub mod requests;
mod rng;
pub mod saved;
pub mod soundness;
pub mod wrong;

pub use braid_casefile::{convert, packet};
