//! The model IR: models, chains, values and residual programs as data, with their text form and
//! checks.
//!
//! Nothing here runs a packet. The crate `reference` interprets models. The crate `engine` has the
//! compiled engines.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

pub mod arith;
pub mod chain;
mod counters;
pub mod engine;
mod event;
pub mod graph;
mod ids;
pub mod model;
pub mod native;
pub mod residual;
pub mod routes;
pub mod rules;
pub mod service_graph;
pub mod show;
pub mod snapshot;
pub mod steering;
pub mod stream;
pub mod strings;
pub mod subscriptions;
mod table;
mod term;
pub mod text;
mod ty;
pub mod value;
pub mod values;
pub mod verify;
pub mod visit;
pub mod walk;
