//! What can be done with an end of a connection.

use braid_endpoint::{Endpoint, Status};

/// What can be done with a socket, as epoll tells it (level-triggered).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Events {
    /// Bytes can be read.
    pub is_readable: bool,
    /// Bytes can be written.
    pub is_writable: bool,
    /// The client sends no more bytes, and all of them have been read.
    pub is_at_end: bool,
    /// The connection has failed: the client has reset it, or does not answer. The socket takes
    /// and gives nothing any more, and the server is dropped behind this call.
    pub has_failed: bool,
}

/// The next bytes of the host at the other end; others may follow behind them.
pub(crate) fn next_bytes(endpoint: &Endpoint) -> &[u8] {
    match endpoint.readable() {
        ([], second) => second,
        (first, _) => first,
    }
}

impl Events {
    /// Those of an endpoint.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let Status { has_peer_closed, failure, .. } = endpoint.status();
        let is_readable = !next_bytes(endpoint).is_empty();
        Self {
            is_readable,
            is_writable: endpoint.room() > 0,
            is_at_end: has_peer_closed && !is_readable,
            has_failed: failure.is_some(),
        }
    }
}
