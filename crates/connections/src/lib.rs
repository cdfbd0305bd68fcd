//! Native functions that end TCP connections (Microboxes, Liu et al., SIGCOMM 2018, §5): what split
//! proxies and servers share.
//!
//! [`Connections`] is a native function over a table of connections. It finds the connection of a
//! segment, lets connections act when their time has come, keeps to limits, and carries connections
//! over a reload. What a connection is, a [`Connection`] says: one endpoint for a server, two for a
//! proxy. [`Peer`] is an endpoint with the headers of its frames.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod connection;
mod function;
mod peer;
mod secret;
mod wanted;
pub mod wire;

pub use connection::{Connection, First, Opening, Side};
pub use function::{Connections, Kept, settings};
pub use peer::Peer;
pub use secret::Secret;
pub use wire::answer;
