//! The model IR: types, operations, state, events; its text form, verifier and the reference engine.
#![forbid(unsafe_code)]

pub mod arith;
pub mod chain;
pub mod engine;
pub mod graph;
pub mod interp;
pub mod model;
pub mod native;
pub mod residual;
pub mod routes;
pub mod rules;
pub mod show;
pub mod text;
pub mod trace;
pub mod value;
pub mod values;
pub mod verify;
pub mod visit;
pub mod walk;
