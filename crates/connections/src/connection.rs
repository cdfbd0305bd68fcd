//! What a connection is, for the table of connections.

use crate::secret::Secret;
use crate::wire::{Ends, Frame, TooLong};
use braid_endpoint::Settings;
use braid_native::{Dump, Flow, Host, Keeps};
use braid_tcp::Reader;
use std::ffi::CStr;

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host that has opened the connection.
    Client,
    /// The host that the client names.
    Server,
}

impl Side {
    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How to begin a connection.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The settings of endpoints.
    pub settings: Settings,
    /// On what initial sequence numbers depend.
    pub secret: &'a Secret,
    /// Whether the client is on the left.
    pub client_is_left: bool,
    /// The number that the connection would have.
    pub flow: Flow,
    /// The time (ns).
    pub now: u64,
    /// Whether the segment is a SYN to a wanted port.
    pub begins: bool,
}

/// What becomes of a segment for which there is no connection.
#[derive(Debug)]
pub enum First<C> {
    /// It begins a connection.
    Begin(C),
    /// It goes on.
    Pass,
    /// It ends here, and this frame answers it, if there is one.
    Answer(Option<Vec<u8>>),
}

/// A connection that ends in Braid, on one side or on both. [`crate::Connections`] makes a native
/// function of it.
pub trait Connection: Sized + Send + 'static {
    /// What the function says of itself.
    const ABOUT: &CStr;
    /// What its function keeps.
    const KEEPS: Keeps = Keeps::Connections;
    /// Whether the addresses and ports of servers are the function's own: it then needs a parameter
    /// `addresses`, takes the packets to these alone, and nothing that is to them goes on.
    const IS_END: bool = false;
    /// Whether connections open further ones, to other hosts.
    const OPENS: bool = false;
    /// What all connections of an instance share.
    type Shared: Send;

    /// What all connections share, by the configuration.
    ///
    /// # Errors
    /// The configuration cannot be used.
    fn shared(host: &Host<'_>) -> Result<Self::Shared, String>;

    /// The names of its counters.
    fn counters() -> impl Iterator<Item = &'static str>;

    /// What has been counted, in the order of the counters' names. The function sets it back to 0.
    fn counts(shared: &mut Self::Shared) -> impl Iterator<Item = &mut u64>;

    /// A right segment has come for which there is no connection.
    fn first(frame: &Frame<'_>, opening: &Opening<'_>, shared: &mut Self::Shared) -> First<Self>;

    /// The connection that has opened another one in which segments with these ends come.
    fn opener(_shared: &Self::Shared, _ends: Ends) -> Option<Flow> {
        None
    }

    /// Whether segments with these ends are those of a connection that belongs to no client: the
    /// function has opened it of its own accord. They end here.
    fn is_own(_shared: &Self::Shared, _ends: Ends) -> bool {
        false
    }

    /// A right segment of such a connection has come.
    fn own_segment(_frame: &Frame<'_>, _now: u64, _shared: &mut Self::Shared) {}

    /// When [`Self::run_own`] has something to do (ns).
    fn own_deadline(_shared: &Self::Shared) -> Option<u64> {
        None
    }

    /// Does what is to be done for such connections, and gives the frames, at most as many, and
    /// whether they leave to the left. Returns how many they are.
    fn run_own(
        _at: (u64, usize),
        _shared: &mut Self::Shared,
        _out: &mut dyn FnMut(bool, &[u8]),
    ) -> usize {
        0
    }

    /// Shows what all connections share.
    fn dump(_shared: &Self::Shared, _into: &mut Dump<'_>) {}

    /// The ends, from the client to the server.
    fn ends(&self) -> Ends;

    /// Whether the client is on the left.
    fn client_is_left(&self) -> bool;

    /// A right segment has come.
    fn segment(&mut self, frame: &Frame<'_>, now: u64);

    /// A segment was too long for a link. Whether that was believed: shorter ones leave then.
    fn too_long(&mut self, message: &TooLong) -> bool;

    /// Does what is to be done now, and gives the frames for the sides, but at most `most`. Returns
    /// how many they are.
    fn run(
        &mut self,
        at: (u64, usize),
        shared: &mut Self::Shared,
        out: &mut dyn FnMut(Side, &[u8]),
    ) -> usize;

    /// When [`Self::run`] has something to do although no segment has come.
    fn deadline(&self) -> Option<u64>;

    /// Whether it has ended, and nothing is left to send.
    fn is_over(&self) -> bool;

    /// Whether it only waits for late segments.
    fn waits(&self) -> bool;

    /// Whether the client may begin a new connection with this SYN: the old one only waits.
    fn may_begin_anew(&self, frame: &Frame<'_>) -> bool;

    /// It is over.
    fn end(&self, _shared: &mut Self::Shared) {}

    /// The memory that it takes (bytes).
    fn memory(&self) -> usize;

    /// Gives it up: each side gets a RST.
    fn abort(&mut self);

    /// Writes what it needs to go on in another instance.
    fn put(&mut self, shared: &Self::Shared, out: &mut Vec<u8>);

    /// Reads what [`Self::put`] has written, for the connection with this number. `None` if the
    /// bytes are damaged.
    fn read(from: &mut Reader<'_>, flow: Flow, shared: &mut Self::Shared) -> Option<Self>;

    /// Writes what all connections share and need in another instance.
    fn put_shared(_shared: &Self::Shared, _out: &mut Vec<u8>) {}

    /// Reads what [`Self::put_shared`] has written. `None` if the bytes are damaged.
    fn read_shared(_from: &mut Reader<'_>, _shared: &mut Self::Shared) -> Option<()> {
        Some(())
    }

    /// Whether something outside of Braid may give connections work. Then the function asks
    /// [`Self::woken`] each time that time goes on.
    fn watches(_shared: &Self::Shared) -> bool {
        false
    }

    /// The connections that something outside has given work since the last call.
    fn woken(_shared: &mut Self::Shared, _now: u64) -> Vec<Flow> {
        Vec::new()
    }
}
