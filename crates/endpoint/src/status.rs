//! What an endpoint says of itself.

use braid_tcp::State;

/// Why a connection ended before both sides closed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The peer answered the SYN with a RST.
    Refused,
    /// The peer sent a RST.
    Reset,
    /// The peer did not answer repeated segments.
    TimedOut,
    /// [`abort`](crate::Endpoint::abort) was called.
    Aborted,
}

/// How an endpoint stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The state (RFC 9293 §3.3.2).
    pub state: State,
    /// Whether both sides have agreed on the connection, now or earlier.
    pub is_established: bool,
    /// Whether the peer's FIN has come, and all bytes in front of it.
    pub has_peer_closed: bool,
    /// Whether the peer has acknowledged all bytes that were written, and the FIN if there is one.
    pub is_all_acknowledged: bool,
    /// Why the connection failed, if it did. Bytes that came in order before can still be read.
    pub failure: Option<Failure>,
    /// Whether the connection is over and nothing is left to send.
    pub is_over: bool,
}

/// What both SYNs agreed on. Before the peer's SYN has come, these are the least values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The most bytes of a segment to the peer, options included.
    pub mss: u16,
    /// The scales of own windows and of the peer's, if windows are scaled.
    pub wscale: Option<(u8, u8)>,
    /// Whether selective acknowledgements are used.
    pub sack: bool,
    /// Whether timestamps are used.
    pub timestamps: bool,
}
