//! What a server is, and its socket.

use crate::events::{Events, next_bytes};
use crate::outgoing::{Outgoing, Outgoings};
use crate::own::Own;
use braid_connections::wire::Ends;
use braid_endpoint::Endpoint;
use braid_native::{Dump, Flow, Host, Keeps};
use braid_tcp::Reader;
use std::ffi::CStr;
use std::net::IpAddr;

/// The server's end of a connection.
///
/// Buffers are bounded: [`Self::write`] takes what there is room for, and the client's window opens
/// only as far as the server reads.
#[derive(Debug)]
pub struct Socket<'a> {
    pub(crate) endpoint: &'a mut Endpoint,
    pub(crate) ends: Ends,
    pub(crate) now: u64,
    pub(crate) end: &'a mut End,
    pub(crate) outgoing: &'a mut Outgoings,
}

/// How the server has ended the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    /// It goes on.
    #[default]
    No,
    /// The server neither reads nor writes any more. What was written still leaves.
    Closed,
    /// The client gets a RST.
    Reset,
}

impl Socket<'_> {
    /// The time (ns).
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The client's address and port.
    #[must_use]
    pub fn peer(&self) -> (IpAddr, u16) {
        self.ends.from
    }

    /// The address and port at which the server serves.
    #[must_use]
    pub fn local(&self) -> (IpAddr, u16) {
        self.ends.to
    }

    /// What can be done now.
    #[must_use]
    pub fn events(&self) -> Events {
        Events::of(self.endpoint)
    }

    /// The next bytes of the client; others may follow behind them.
    #[must_use]
    pub fn readable(&self) -> &[u8] {
        next_bytes(self.endpoint)
    }

    /// The first `count` readable bytes have been read. The client may send as many others.
    pub fn consume(&mut self, count: usize) {
        self.endpoint.consume(count);
    }

    /// How many bytes can be written now. None behind [`Self::shut_down`].
    #[must_use]
    pub fn room(&self) -> usize {
        self.endpoint.room()
    }

    /// Writes bytes, as far as there is room. Returns their number.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.endpoint.write(bytes)
    }

    /// Ends the server's direction: a FIN follows what was written. The client may go on to send.
    pub fn shut_down(&mut self) {
        self.endpoint.close();
    }

    /// The server is done: what was written still leaves, and a FIN behind it. What the client goes
    /// on to send is thrown away for some seconds, so that no RST overtakes the last bytes.
    pub fn close(&mut self) {
        self.endpoint.close();
        *self.end = End::Closed;
    }

    /// Opens a connection to another host, from the client's address and port. Bytes may be written
    /// at once. `None` if there is one to this place, or if there are [`crate::MOST_OUTGOING`].
    pub fn connect(&mut self, to: (IpAddr, u16)) -> Option<&mut Outgoing> {
        let ends = Ends { from: self.ends.from, to };
        self.outgoing.open(ends, self.now)
    }

    /// The connection to this place, if there is one.
    pub fn outgoing(&mut self, to: (IpAddr, u16)) -> Option<&mut Outgoing> {
        self.outgoing.find(to)
    }

    /// Gives the connection up: the client gets a RST.
    pub fn reset(&mut self) {
        *self.end = End::Reset;
    }
}

/// A program that serves a connection. [`crate::Serving`] makes a native function of it.
pub trait Server: Sized + Send + 'static {
    /// What the function says of itself.
    const ABOUT: &CStr;
    /// The names of its counters. None by default.
    const COUNTERS: &[&str] = &[];
    /// What its function keeps. By default, the connections of a chain are divided among its
    /// workers, and each worker has a [`Self::Shared`] of its own.
    const KEEPS: Keeps = Keeps::Connections;
    /// Whether it calls [`Socket::connect`]. The segments of these connections come with other ends
    /// than the client's, so a chain with them runs on one worker: [`Self::KEEPS`] must be
    /// [`Keeps::Anything`].
    const CONNECTS: bool = false;
    /// What all connections of an instance share.
    type Shared: Send;

    /// What all connections share, by the configuration.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn shared(host: &Host<'_>) -> Result<Self::Shared, String>;

    /// What has been counted, in the order of the counters' names. It is set back to 0.
    fn counts(_shared: &mut Self::Shared) -> &mut [u64] {
        &mut []
    }

    /// Shows what all connections share.
    fn dump(_shared: &Self::Shared, _into: &mut Dump<'_>) {}

    /// Does what can be done now without a client: opens [`Own`] connections, reads and writes
    /// them. It is called when a client has had a connection, when something has come for one of
    /// its own, and at the time that it has returned last (ns).
    fn tend(_own: &mut Own, _now: u64, _shared: &mut Self::Shared) -> Option<u64> {
        None
    }

    /// Whether somebody listens at this address and port. If not, a client's SYN gets a RST.
    fn listens(_at: (IpAddr, u16), _shared: &mut Self::Shared) -> bool {
        true
    }

    /// A connection is established.
    fn accept(flow: Flow, shared: &mut Self::Shared) -> Self;

    /// Something may have changed: segments have come, [`Self::deadline`] is reached, or something
    /// outside has woken the connection. The server does what can be done now.
    fn ready(&mut self, socket: &mut Socket<'_>, shared: &mut Self::Shared);

    /// When [`Self::ready`] is to run although nothing has come (ns).
    fn deadline(&self) -> Option<u64> {
        None
    }

    /// The memory that it takes besides its own size (bytes).
    fn memory(&self) -> usize {
        0
    }

    /// Writes what it needs to go on in another instance, for a reload or a state file.
    fn put(&mut self, out: &mut Vec<u8>);

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    fn read(from: &mut Reader<'_>, flow: Flow, shared: &mut Self::Shared) -> Option<Self>;

    /// Writes what all connections share and need in another instance.
    fn put_shared(_shared: &Self::Shared, _out: &mut Vec<u8>) {}

    /// Reads what [`Self::put_shared`] has written. `None` if the bytes are damaged.
    fn read_shared(_from: &mut Reader<'_>, _shared: &mut Self::Shared) -> Option<()> {
        Some(())
    }

    /// As [`braid_connections::Connection::watches`].
    fn watches(_shared: &Self::Shared) -> bool {
        false
    }

    /// As [`braid_connections::Connection::woken`].
    fn woken(_shared: &mut Self::Shared, _now: u64) -> Vec<Flow> {
        Vec::new()
    }
}
