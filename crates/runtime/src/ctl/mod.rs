//! The control socket of a live run: looks into the run and changes it, from outside.
//!
//! Clients write requests to a Unix socket, one JSON object a line, and get an answer for each. A
//! thread for each client reads and checks requests. The control thread of the run answers them,
//! one at a time. Its messages to a worker wait until the worker is between two bursts, and a
//! worker serves at most one message a millisecond. So a flood of requests cannot delay packets.
//! The number of clients, the length of a request and the size of a page of state are limited.

mod feed;
mod request;
mod serve;
mod socket;

pub(crate) use feed::{Feed, Sighting};
pub(crate) use request::{Capture, FlowsWanted, Job, Page, Request, TraceWanted};
pub(crate) use serve::{Listeners, page};
pub(crate) use socket::Served;
pub use socket::{Socket, SocketError};
