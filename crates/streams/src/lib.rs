//! TCP stacks for chains: what a packet brings for the connections of stream functions, and which
//! of their programs run. Alerts of signatures about packets run programs, too.
//!
//! A [`Stack`] follows the connections of one function, or once for several functions that see the
//! same packets (Microboxes, Liu et al., SIGCOMM 2018, §3.2 and §4). Packets pass through it
//! unchanged. What a packet brings ([`braid_ir::model::StreamEvent`]) is published to each function
//! before the packet leaves the function. A function may reset a connection, or give up its events.
//!
//! A stack needs no engine: the engine runs the programs, and tells the stack how they ended.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod datagrams;
mod events;
mod follower;
mod function;
mod http;
mod inspections;
mod keys;
mod missed;
mod orders;
mod packets;
mod program;
mod saved;
mod stack;

pub use program::{Alert, End, Message, Request, View};
pub use stack::{Answer, Stack};
