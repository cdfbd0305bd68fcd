//! Split proxies as native functions (Microboxes, Liu et al., SIGCOMM 2018, §5, "TCP split proxy"):
//! the connection of a client ends here, and its bytes go on in a connection to the server. What
//! is between them may change the bytes as it likes, and their number.
//!
//! A proxy is transparent: both connections have the addresses and ports of the client and of the
//! server. It has one endpoint for each side ([`braid_endpoint::Endpoint`]); between them, an
//! application takes the bytes of one side and gives bytes for the other.
//!
//! A program that links the crate has the functions as the set "relay" ([`register`]).
//!
//! An application of one's own is a proxy, too. This one puts `> ` in front of each line that comes
//! from the server. Built as a shared library (`crate-type = ["cdylib"]`), it is used with
//! `native nf quote(ports: set<port>) from "libquote.so";`
//!
//! ```
#![doc = include_str!("../examples/quote.rs")]
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

#[cfg(test)]
extern crate self as braid_relay;

mod application;
mod cache;
mod gzip;
mod http;
mod queue;
mod relayed;
#[cfg(test)]
mod tests;

pub use application::{Application, At, Queues, Unchanged};
pub use braid_connections::Side;
pub use queue::Queue;
pub use relayed::Relayed;

use braid_connections::Connections;
use braid_native::RawNf;

/// A proxy with this application, as a native function.
pub type Relay<A> = Connections<Relayed<A>>;
/// A proxy that leaves the bytes as they are.
pub type Tcp = Relay<Unchanged>;
/// A proxy that compresses HTTP responses.
pub type Http = Relay<http::Http>;

/// The name of the set.
pub const SET: &str = "relay";

static HTTP: RawNf = RawNf::of::<Http>();
static TCP: RawNf = RawNf::of::<Tcp>();

/// Registers the set in this program: `native nf tcp(ports: set<port>) from "relay";`
pub fn register() {
    braid_native::register(SET, "http", &HTTP);
    braid_native::register(SET, "tcp", &TCP);
}
