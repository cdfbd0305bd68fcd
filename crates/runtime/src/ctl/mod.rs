//! The control socket of a live run: looks into the run and changes it, from outside.
//!
//! Clients write requests to a Unix socket, one JSON object a line, and get an answer for each. A
//! thread for each client reads and checks requests. The driver answers them between two bursts, one
//! at a time, so a flood of requests cannot hold up packets. The number of clients, the length of a
//! request and the size of a page of state are limited.

mod request;
mod serve;
mod socket;

pub(crate) use request::{Job, Request};
pub use request::{Parse, Present};
pub(crate) use serve::{Serving, state};
pub use socket::{Socket, SocketError};
