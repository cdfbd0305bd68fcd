//! Servers as native functions (Microboxes, Liu et al., SIGCOMM 2018, §5): the connections of
//! clients end here, and a program gets their bytes by sockets.
//!
//! A [`Server`] is such a program, for one connection: it learns when its [`Socket`] can be read
//! and written, as with epoll, and reads, writes and closes it. [`Serving`] makes a native function
//! of it, with SYN cookies, limits, back-pressure, and connections that survive reloads.
//!
//! The set "server" ([`register`]) has three functions: `pages` gives the files of a folder by
//! HTTP, `balance` gives each HTTP request to one of other servers, and `sockets` hands connections
//! to another process ([`sockets`]), so that programs serve that do not know of Braid.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod balance;
mod cookies;
mod events;
mod outgoing;
mod own;
mod pages;
mod served;
mod server;
pub mod sockets;
#[cfg(test)]
mod tests;

pub use balance::Balance;
pub use events::Events;
pub use outgoing::{MOST_OUTGOING, Outgoing};
pub use own::{Own, Place};
pub use pages::Pages;
pub use served::Served;
pub use server::{Server, Socket};

use braid_connections::Connections;
use braid_native::RawNf;

/// A server as a native function.
pub type Serving<S> = Connections<Served<S>>;

/// The name of the set.
pub const SET: &str = "server";

static BALANCE: RawNf = RawNf::of::<Serving<Balance>>();
static PAGES: RawNf = RawNf::of::<Serving<Pages>>();
static SOCKETS: RawNf = RawNf::of::<Serving<sockets::Handed>>();

/// Registers the set in this program: `native nf pages(…) from "server";`
pub fn register() {
    braid_native::register(SET, "balance", &BALANCE);
    braid_native::register(SET, "pages", &PAGES);
    braid_native::register(SET, "sockets", &SOCKETS);
}
