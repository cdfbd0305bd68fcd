//! The state of a running chain as data. An engine gives it ([`crate::engine::Engine::export`]),
//! and another engine goes on from it, with the same chain or a changed one
//! ([`crate::engine::Engine::import`]).
//!
//! A snapshot names functions, tables and all other parts. It never gives their positions, so it
//! fits a chain whose functions have changed places. [`Plan`] says beforehand what of a snapshot a
//! chain can take.

mod bytes;
mod check;
mod counted;
mod data;
mod fresh;
mod plan;
mod schema;
mod staying;
mod transfer;
mod united;

pub use bytes::BytesError;
pub use counted::begin;
pub use data::{
    EntryState, FunctionState, HeldState, ImportError, ParamState, PoolState, QueueState, RowState,
    ShardState, Snapshot, TableState, TimerState, Totals,
};
pub use plan::{Fate, FunctionPlan, Part, Plan, What};
pub use schema::root_of;
pub use staying::staying;
pub use transfer::{Transfer, transfer};
pub use united::{part, unite};
