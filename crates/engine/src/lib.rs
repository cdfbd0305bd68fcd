//! Compiled engines: a chain run by residual programs over tables built for speed.
//!
//! [`Compiled`] is two engines in one. With `Extent::Function`, each function has programs of its
//! own (`sequential`). With `Extent::Chain`, a program covers as many functions as can be combined
//! (`synth`). The model interpreter runs the remaining work over the same state: timers, endings of
//! entries, functions under `Priority`, and packets near the hop limit.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod address_groups;
mod ahead;
mod branches;
mod chain_counters;
mod compiled;
mod control;
mod deliver;
mod drive;
mod due;
mod event_programs;
mod event_run;
mod exec;
mod exec_context;
mod executor;
mod flow_cache;
mod held;
mod hot;
mod instance;
mod machine_code;
mod merge;
mod model_interpreter;
mod moving;
mod mutants;
mod native_functions;
mod ops;
mod options;
mod passing;
mod prefetch;
mod program;
mod programs;
mod releases;
mod report;
mod scratch;
mod snapshot;
mod stacks;
mod state;
mod streams;
mod walk;
mod work;
mod workshop;

pub use braid_flowcache::{
    Basis, Change, Dependency, FlowRecord, FlowTable, FlowTemplate, Flows, Guard, Missing, Native,
    NoRecording, Number, Obstacle, OuterHeaders, PacketPath, Part, Path, Reason, RecordCounters,
    SharedBytes, Splice, Stopped, Subpath, Taken, Update, Varying, WIRE,
};
#[cfg(feature = "mutants")]
pub use braid_flowcache::{RECORD_MUTANTS, RecordMutant};
pub use braid_ir::walk::Reached;
#[cfg(feature = "mutants")]
pub use braid_state::{MOVE_MUTANTS, MoveMutant};
pub use compiled::Compiled;
#[cfg(feature = "mutants")]
pub use mutants::{DELIVERY_MUTANTS, DeliveryMutant};
pub use options::{Hashing, Jit, Options};
