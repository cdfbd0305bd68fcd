//! The HTTP messages of a TCP connection, as its bytes come: HTTP/1.0 and HTTP/1.1, kept alive and
//! pipelined.
//!
//! An [`Http`] takes the bytes of both ends in order, and gives the parts of their messages: heads,
//! bytes of bodies, ends. What is no HTTP from its first bytes on is left alone. A malformed
//! message ends the HTTP of its direction. CONNECT and upgrades end that of both.
//!
//! Bytes may be hostile, so everything has a limit ([`limits`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod body;
mod bytes;
mod connection;
mod head;
pub mod limits;
mod messages;
pub mod wire;

pub use connection::{Http, Part};
pub use head::{Head, Line, Malformed};
