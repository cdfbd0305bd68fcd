//! What is between the two connections of a proxy.

use crate::queue::Queue;
use braid_connections::Side;
use braid_native::{Host, Keeps};
use std::ffi::CStr;
use std::net::IpAddr;

/// The bytes for both sides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queues {
    /// Those for the client.
    pub to_client: Queue,
    /// Those for the server.
    pub to_server: Queue,
}

impl Queues {
    /// Whether as much waits for a side as should.
    #[must_use]
    pub fn is_full(&self, side: Side) -> bool {
        match side {
            Side::Client => self.to_client.is_full(),
            Side::Server => self.to_server.is_full(),
        }
    }

    /// The bytes for a side.
    pub fn to(&mut self, side: Side) -> &mut Queue {
        match side {
            Side::Client => &mut self.to_client,
            Side::Server => &mut self.to_server,
        }
    }
}

/// When something comes, and for which server.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The time (ns).
    pub now: u64,
    /// The server's address and port.
    pub server: (IpAddr, u16),
}

/// What a proxy does with the bytes of a connection: it takes those of both sides, and gives bytes
/// for them. [`crate::Relay`] makes a native function of it.
pub trait Application: Sized + Send + 'static {
    /// What the function says of itself.
    const ABOUT: &CStr;
    /// The names of its counters. None by default.
    const COUNTERS: &[&str] = &[];
    /// What its function keeps. By default, the connections of a chain are divided among its
    /// workers, and each worker has a [`Self::Shared`] of its own. With [`Keeps::Anything`], there
    /// is one, and the chain runs on one worker.
    const KEEPS: Keeps = Keeps::Connections;
    /// What all connections of an instance share.
    type Shared: Send;

    /// What all connections share, by the configuration.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn shared(host: &Host<'_>) -> Result<Self::Shared, String>;

    /// What has been counted, in the order of the counters' names. The proxy sets it back to 0.
    fn counts(_shared: &mut Self::Shared) -> &mut [u64] {
        &mut []
    }

    /// For a new connection.
    fn new(shared: &Self::Shared) -> Self;

    /// The next bytes of a side. Returns how many are taken: at least one, and all of them unless
    /// what they have brought is as much as should wait for a side.
    fn data(
        &mut self,
        from: Side,
        bytes: &[u8],
        to: &mut Queues,
        at: At,
        shared: &mut Self::Shared,
    ) -> usize;

    /// Whether it should get no bytes of a side now. A direction does not wait for the other one:
    /// who sends much may read nothing meanwhile.
    fn waits(&self, from: Side, to: &Queues) -> bool {
        to.is_full(from.other())
    }

    /// A side sends no more bytes. The proxy ends the other direction behind the bytes that wait.
    fn end(&mut self, _from: Side, _to: &mut Queues, _shared: &mut Self::Shared) {}

    /// Whether a connection to the server begins only when there are bytes for it.
    fn is_lazy(_shared: &Self::Shared) -> bool {
        false
    }

    /// Whether it gives no more bytes, although the server has not ended.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether it cannot go on. Both sides then get a RST.
    fn is_broken(&self) -> bool {
        false
    }

    /// The memory that it takes for the connection besides its own size (bytes).
    fn memory(&self) -> usize {
        0
    }

    /// Writes what it needs to go on in another instance, for a reload or a state file. It may give
    /// the sides bytes for that.
    fn put(&mut self, to: &mut Queues, out: &mut Vec<u8>);

    /// Reads what [`Self::put`] has written, and takes it from the front of the bytes. `None` if
    /// the bytes are damaged.
    fn read(from: &mut &[u8], shared: &Self::Shared) -> Option<Self>;
}

/// Gives the bytes of each side to the other one as they are.
#[derive(Debug)]
pub struct Unchanged;

impl Application for Unchanged {
    const ABOUT: &CStr = c"ends TCP connections, and opens connections to their servers";
    type Shared = ();

    fn shared(_host: &Host<'_>) -> Result<(), String> {
        Ok(())
    }

    fn new((): &()) -> Self {
        Self
    }

    fn data(&mut self, from: Side, bytes: &[u8], to: &mut Queues, _at: At, (): &mut ()) -> usize {
        to.to(from.other()).extend(bytes);
        bytes.len()
    }

    fn put(&mut self, _to: &mut Queues, _out: &mut Vec<u8>) {}

    fn read(_from: &mut &[u8], (): &()) -> Option<Self> {
        Some(Self)
    }
}
