//! Network functions in native code: a trait for Rust, a C header (`include/braid_nf.h`), shared
//! libraries.
//!
//! A native function runs for each packet. A stream function runs for what TCP connections bring
//! instead ([`Info::stream`]). A function may also record how to process later packets of a
//! flow (SpeedyBox's Figure 2): header actions, state functions, guards. Braid keeps the record as
//! plain data ([`Recorded`]), compares it with the function's own actions, and can run packets by
//! it ([`Instance::replay`]).
//!
//! The only interface is the C header. Functions in Rust ([`Function`]) use it too, so that the
//! same checks apply to all functions. Engines use [`Instance`]. It may run in a process of its own
//! ([`isolated`]).
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

pub mod bridge;
mod description;
mod dump;
mod flows;
mod host;
mod instance;
pub mod isolated;
mod library;
mod load_error;
mod local;
mod output;
mod part;
mod publish;
mod record;
mod saved;
mod stream;
mod subject;
#[allow(unsafe_code, reason = "native code is called, and calls back, through pointers")]
mod sys;
mod value;
mod verdict;

pub use braid_ir::engine::Content;
pub use braid_ir::native::{
    Checks, FieldSet, Noted, OnFailure, Problem, Profile, Reference, UnknownName, may,
};
pub use description::Description;
pub use dump::{Entry, Kind};
pub use instance::{Instance, describe};
pub use library::{find, is_path, operator, register};
pub use load_error::LoadError;
pub use output::{Log, Output, Publication, Sent};
pub use part::Part;
pub use record::{Guard, Handler, HeaderAction, Payload, Recorded, StateFunction};
pub use stream::{Data, Decision, News, What};
pub use sys::guest::{
    Action, Connection, Dump, Flow, FlowMemory, Function, Host, Item, PacketRef, Tag,
};
pub use sys::guest_outputs::Event;
pub use sys::info::{Full, Info, Keeps, ProfileInfo, Scope};
pub use sys::{Definition, MAX_ARGS, RawNf};
pub use value::{Config, FLOWS, IDLE, Value};
pub use verdict::{Failed, Verdict};
