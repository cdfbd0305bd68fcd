//! Servers in other processes (Microboxes, §5: legacy applications): each connection goes to a
//! process that has connected to Braid's Unix socket. With the library of `crates/preload` in front
//! of the C library, a program does so without knowing it.
//!
//! The process gets one end of a pair of stream sockets, which it reads, writes and polls as it
//! would a TCP socket. Braid has the other end, and carries bytes and ends between it and the
//! client. It never blocks: what does not fit waits in the endpoint, whose window then closes. When
//! the worker has nothing to do, a descriptor of epoll wakes it ([`braid_io::wake_for`]).
//!
//! Only a live run opens the socket ([`open`]). In all others, nobody listens.

mod listener;
mod outside;

pub use listener::{close_all, open};

use crate::server::{Server, Socket};
use braid_handover::Ends;
use braid_native::{Flow, Host};
use braid_tcp::{Reader, Stored as _};
use listener::{Gave, Listener, events};
use outside::Outside;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFlags, Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};
use std::ffi::{CStr, OsStr};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the function in its set.
pub const NAME: &str = "sockets";

/// A millisecond (ns).
const MS: u64 = 1_000_000;
/// How often a connection asks again for a server that has room, or whether a process is dead.
const RETRY: u64 = 2 * MS;
/// How long it asks for a server that has room.
const PATIENCE: u64 = 5_000 * MS;
/// How long a process may take to die: it closes its sockets first.
const DYING: u64 = 100 * MS;
/// The most bytes that are read at a time.
const MOST: usize = 64 << 10;
/// The most events that are taken at a time.
const MOST_EVENTS: usize = 256;

/// A connection that another process serves.
#[derive(Debug)]
pub struct Handed {
    flow: Flow,
    place: Place,
}

/// Where a connection is.
#[derive(Debug)]
enum Place {
    /// No server has it, and until this time one may take it (ns).
    Waits { until: Option<u64>, again: Option<u64> },
    /// A server has it.
    Outside(Given),
    /// The server of an earlier process had it.
    Lost,
}

/// A connection that a server has.
#[derive(Debug)]
struct Given {
    outside: Arc<Outside>,
    /// Where its events arrive.
    watch: Arc<OwnedFd>,
    /// Whether the server knows that the client has ended.
    has_told_end: bool,
    /// Whether the server has ended its direction.
    has_ended: bool,
    /// When the server's socket was found closed (ns).
    gone_at: Option<u64>,
    /// Whether events tell that there is room for bytes.
    waits_for_room: bool,
}

/// What all connections share.
#[derive(Debug)]
pub struct Shared {
    path: PathBuf,
    listener: Option<Arc<Listener>>,
    /// Where the events of all sockets arrive.
    watch: Arc<OwnedFd>,
    /// Connections that servers got, connections that no server took, and processes that died.
    counts: [u64; 3],
    bytes: Vec<u8>,
}

impl Shared {
    fn listener(&mut self) -> Option<Arc<Listener>> {
        if self.listener.is_none() {
            self.listener = listener::at(&self.path);
        }
        self.listener.clone()
    }

    /// Gives a connection to a server.
    fn give(&mut self, flow: Flow, ends: Ends) -> Result<Given, Gave> {
        let listener = self.listener().ok_or(Gave::ToNobody)?;
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (own, other) = pair.map_err(|_| Gave::Busy)?;
        match listener.give(ends, other.as_fd()) {
            Gave::To(server) => self.watched(flow, Outside::new(own, server)).ok_or(Gave::ToNobody),
            gave => Err(gave),
        }
    }

    /// A connection whose events arrive from now on.
    fn watched(&self, flow: Flow, outside: Arc<Outside>) -> Option<Given> {
        let data = epoll::EventData::new_u64(flow.0);
        epoll::add(&self.watch, &outside.socket, data, interest(false)).ok()?;
        Some(Given {
            outside,
            watch: Arc::clone(&self.watch),
            has_told_end: false,
            has_ended: false,
            gone_at: None,
            waits_for_room: false,
        })
    }
}

/// What events are told of. Each is told once.
fn interest(in_room: bool) -> epoll::EventFlags {
    let all = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    if in_room { all | epoll::EventFlags::OUT } else { all }
}

impl Given {
    /// Carries what can be carried in both directions.
    fn carry(&mut self, flow: Flow, socket: &mut Socket<'_>, bytes: &mut Vec<u8>) {
        self.carry_in(socket);
        self.watch_room(flow, self.waits_for_room);
        self.carry_out(socket, bytes);
        if self.gone_at.is_none() && self.has_ended && self.is_closed() {
            self.gone_at = Some(socket.now());
        }
    }

    /// From the client to the server.
    fn carry_in(&mut self, socket: &mut Socket<'_>) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        self.waits_for_room = false;
        while socket.events().is_readable && self.gone_at.is_none() {
            match send(&self.outside.socket, socket.readable(), flags) {
                Ok(count) => socket.consume(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    self.waits_for_room = true;
                    return;
                }
                // The server reads no more.
                Err(_) => {
                    let count = socket.readable().len();
                    socket.consume(count);
                }
            }
        }
        if socket.events().is_at_end && !self.has_told_end {
            self.has_told_end = true;
            // It may be closed already.
            let _ = shutdown(&self.outside.socket, Shutdown::Write);
        }
    }

    /// From the server to the client.
    fn carry_out(&mut self, socket: &mut Socket<'_>, bytes: &mut Vec<u8>) {
        while !self.has_ended && socket.room() > 0 {
            bytes.clear();
            bytes.reserve_exact(MOST);
            let most = socket.room().min(MOST);
            bytes.resize(most, 0);
            match recv(&self.outside.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.has_ended = true;
                    match self.is_closed() && !self.has_told_end {
                        true => self.gone_at = Some(socket.now()),
                        false => socket.shut_down(),
                    }
                }
                Ok((count, _)) => {
                    socket.write(bytes.get(..count).unwrap_or_default());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => (self.has_ended, self.gone_at) = (true, Some(socket.now())),
            }
        }
    }

    /// Whether both directions of the server's socket are closed.
    fn is_closed(&self) -> bool {
        events(self.outside.socket.as_fd()).contains(PollFlags::HUP)
    }

    /// Lets events tell, or not tell, that there is room for bytes.
    fn watch_room(&mut self, flow: Flow, waits: bool) {
        if waits {
            let data = epoll::EventData::new_u64(flow.0);
            // Without the event, the next segment or tick goes on.
            let _ = epoll::modify(&self.watch, &self.outside.socket, data, interest(true));
        }
    }

    /// Ends the connection of a socket that the server has closed. If its process is dead, the
    /// client gets a RST.
    fn end(&self, gone_at: u64, socket: &mut Socket<'_>) {
        let server = &self.outside.server;
        let passed = socket.now().saturating_sub(gone_at);
        if server.is_dead() {
            socket.reset();
        } else if passed >= DYING || passed >= RETRY && server.is_open() {
            socket.close();
        }
    }
}

impl Server for Handed {
    const ABOUT: &CStr = c"hands connections to servers in other processes";
    const COUNTERS: &[&str] = &["handed", "not taken", "processes died"];
    type Shared = Shared;

    fn shared(host: &Host<'_>) -> Result<Shared, String> {
        let path = host.config_text("path", 0).filter(|path| !path.is_empty());
        let path = path.ok_or("it needs a parameter `path`: that of its Unix socket")?;
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(
            |_| "it exchanges bytes with other processes, which an isolated function cannot do",
        )?;
        Ok(Shared {
            path: PathBuf::from(OsStr::from_bytes(&path)),
            listener: None,
            watch: Arc::new(watch),
            counts: [0; 3],
            bytes: Vec::new(),
        })
    }

    fn counts(shared: &mut Shared) -> &mut [u64] {
        &mut shared.counts
    }

    fn listens((address, port): (IpAddr, u16), shared: &mut Shared) -> bool {
        let Some(listener) = shared.listener() else { return false };
        let (listens, died) = listener.listens(SocketAddr::new(address, port));
        shared.counts[2] += died;
        listens
    }

    fn accept(flow: Flow, _shared: &mut Shared) -> Self {
        Self { flow, place: Place::Waits { until: None, again: None } }
    }

    fn ready(&mut self, socket: &mut Socket<'_>, shared: &mut Shared) {
        if socket.events().has_failed {
            return;
        }
        if let Place::Waits { until, .. } = self.place {
            let (peer, local) = (socket.peer().into(), socket.local().into());
            let until = until.unwrap_or(socket.now().saturating_add(PATIENCE));
            self.place = match shared.give(self.flow, Ends { peer, local }) {
                Ok(given) => {
                    shared.counts[0] += 1;
                    Place::Outside(given)
                }
                Err(Gave::Busy) if socket.now() < until => {
                    let again = socket.now().saturating_add(RETRY);
                    Place::Waits { until: Some(until), again: Some(again) }
                }
                Err(_) => {
                    shared.counts[1] += 1;
                    socket.reset();
                    return;
                }
            };
        }
        match &mut self.place {
            Place::Outside(given) => {
                given.carry(self.flow, socket, &mut shared.bytes);
                if let Some(gone_at) = given.gone_at {
                    given.end(gone_at, socket);
                }
            }
            Place::Lost => socket.reset(),
            Place::Waits { .. } => {}
        }
    }

    fn deadline(&self) -> Option<u64> {
        match &self.place {
            Place::Waits { again, .. } => *again,
            Place::Outside(given) => given.gone_at.map(|at| at.saturating_add(RETRY)),
            Place::Lost => None,
        }
    }

    fn put(&mut self, out: &mut Vec<u8>) {
        let given = match &self.place {
            Place::Outside(given) => Some(given),
            Place::Lost => None,
            Place::Waits { until, .. } => {
                false.put(out);
                until.put(out);
                return;
            }
        };
        true.put(out);
        given.map(|given| given.outside.name()).put(out);
        if let Some(Given { has_told_end, has_ended, gone_at, .. }) = given {
            has_told_end.put(out);
            has_ended.put(out);
            gone_at.put(out);
        }
    }

    fn read(from: &mut Reader<'_>, flow: Flow, shared: &mut Shared) -> Option<Self> {
        if !bool::get(from)? {
            let until = Option::get(from)?;
            return Some(Self { flow, place: Place::Waits { until, again: None } });
        }
        let Some(name) = Option::<(u64, u64)>::get(from)? else {
            return Some(Self { flow, place: Place::Lost });
        };
        let (has_told_end, has_ended) = (bool::get(from)?, bool::get(from)?);
        let gone_at = Option::get(from)?;
        let outside = Outside::named(name);
        let given = outside.and_then(|outside| shared.watched(flow, outside));
        let given = given.map(|given| Given { has_told_end, has_ended, gone_at, ..given });
        Some(Self { flow, place: given.map_or(Place::Lost, Place::Outside) })
    }

    /// As long as servers have connections.
    fn watches(shared: &Shared) -> bool {
        Arc::strong_count(&shared.watch) > 1
    }

    fn woken(shared: &mut Shared, _now: u64) -> Vec<Flow> {
        braid_io::wake_for(&shared.watch);
        let mut events = Vec::with_capacity(MOST_EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Those for which there is no room come with the next call.
        match epoll::wait(&shared.watch, spare_capacity(&mut events), Some(&at_once)) {
            Ok(_) => events.iter().map(|event| Flow(event.data.u64())).collect(),
            Err(_) => Vec::new(),
        }
    }
}
