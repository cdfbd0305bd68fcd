//! Test support: generators of functions, chains and traffic, cases, packet builder, trace comparison.
#![forbid(unsafe_code)]

pub mod packet;
