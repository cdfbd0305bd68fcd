//! Braid's Unix sockets, and the servers that have connected to them.
//!
//! A live run opens the sockets of its chain before it gives up its rights ([`open`]). They belong
//! to the process, so they outlive reloads, and all workers share them.

use braid_handover::{ENDS, Ends, LISTENS, Listens};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, connect, listen, recv, sendmsg, socket_with,
};
use rustix::process::{PidfdFlags, geteuid, pidfd_open};
use std::collections::BTreeMap;
use std::fs::remove_file;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most servers that wait to be accepted by Braid, and the most that have not said where they
/// listen.
const BACKLOG: usize = 128;

/// The sockets of this process, by their paths.
static OPEN: Mutex<BTreeMap<PathBuf, Arc<Listener>>> = Mutex::new(BTreeMap::new());

/// One of Braid's sockets.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    servers: Mutex<Servers>,
}

/// The servers that have connected to a socket.
#[derive(Debug, Default)]
struct Servers {
    /// Servers that have not said where they listen.
    new: Vec<Channel>,
    listening: Vec<(Listens, Arc<Channel>)>,
    /// The number of the next choice among several servers.
    turn: usize,
}

/// A server's connection to Braid.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    /// The process that has connected; `None` if this process cannot see it, such as from another
    /// namespace.
    process: Option<OwnedFd>,
}

/// What became of a connection.
#[derive(Debug)]
pub enum Gave {
    /// A server has it.
    To(Arc<Channel>),
    /// The servers have as many as may wait for them.
    Busy,
    /// No server listens.
    ToNobody,
}

/// Opens a socket for the servers, unless this process has opened it before. Only the user of this
/// process and root may use it. A socket that a dead process has left there is replaced.
///
/// # Errors
/// The reason why it cannot be opened.
pub fn open(path: &Path) -> Result<(), String> {
    let mut all = locked(&OPEN);
    if all.contains_key(path) {
        return Ok(());
    }
    let listener = Listener::new(path).map_err(|why| format!("{}: {why}", path.display()))?;
    all.insert(path.to_owned(), Arc::new(listener));
    Ok(())
}

/// Closes the sockets of this process and removes their files, as far as it may.
pub fn close_all() {
    for path in std::mem::take(&mut *locked(&OPEN)).into_keys() {
        // Another user's folder, or a confined run: the next run replaces the file.
        let _ = remove_file(path);
    }
}

/// The socket that this process has opened at a path.
pub fn at(path: &Path) -> Option<Arc<Listener>> {
    locked(&OPEN).get(path).cloned()
}

impl Listener {
    fn new(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        if let Ok(metadata) = path.symlink_metadata() {
            if !metadata.file_type().is_socket() {
                return Err(io::Error::other("something else than a socket is there"));
            }
            if connect(socket()?, &address) != Err(Errno::CONNREFUSED) {
                return Err(io::Error::other("another process uses it"));
            }
            remove_file(path)?;
        }
        let socket = socket()?;
        bind(&socket, &address)?;
        // Each server's user is checked, too, so it does not matter that the file is older than its
        // permissions.
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        listen(&socket, i32::try_from(BACKLOG).unwrap_or(i32::MAX))?;
        Ok(Self { socket, servers: Mutex::default() })
    }

    /// Whether a server listens at an address and port, and the number of processes that have died
    /// since the last call.
    pub fn listens(&self, at: SocketAddr) -> (bool, u64) {
        let mut servers = locked(&self.servers);
        let died = servers.renew(&self.socket);
        (servers.listening.iter().any(|(listens, _)| listens.takes(at)), died)
    }

    /// Gives a connection to one of the servers that listen there; several take turns.
    pub fn give(&self, ends: Ends, connection: BorrowedFd<'_>) -> Gave {
        let mut servers = locked(&self.servers);
        let takes = |(listens, _): &&(Listens, Arc<Channel>)| listens.takes(ends.local);
        let mut able: Vec<Arc<Channel>> =
            servers.listening.iter().filter(takes).map(|(_, one)| Arc::clone(one)).collect();
        let count = able.len().max(1);
        able.rotate_left(servers.turn % count);
        servers.turn = servers.turn.wrapping_add(1);
        drop(servers);
        let mut gave = Gave::ToNobody;
        for channel in able {
            match channel.send(ends, connection) {
                Ok(()) => return Gave::To(channel),
                Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS) => gave = Gave::Busy,
                Err(_) => {}
            }
        }
        gave
    }
}

impl Servers {
    /// Accepts servers, hears where they listen, and forgets servers that have gone. Returns the
    /// number of processes that have died.
    fn renew(&mut self, socket: &OwnedFd) -> u64 {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while self.new.len() < BACKLOG
            && let Ok(socket) = accept_with(socket, flags)
        {
            let Ok(credentials) = socket_peercred(&socket) else { continue };
            if credentials.uid == geteuid() || credentials.uid.is_root() {
                let process = pidfd_open(credentials.pid, PidfdFlags::empty()).ok();
                self.new.push(Channel { socket, process });
            }
        }
        for channel in std::mem::take(&mut self.new) {
            let mut bytes = [0; LISTENS];
            match recv(&channel.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => self.new.push(channel),
                Ok((count, _)) if count > 0 => {
                    let listens = Listens::of(bytes.get(..count).unwrap_or_default());
                    self.listening.extend(listens.map(|listens| (listens, Arc::new(channel))));
                }
                _ => {}
            }
        }
        let mut died = 0;
        self.listening.retain(|(_, channel)| {
            let is_open = channel.is_open();
            died += u64::from(!is_open && channel.is_dead());
            is_open
        });
        died
    }
}

impl Channel {
    /// Whether the server still listens.
    pub fn is_open(&self) -> bool {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let heard = recv(&self.socket, &mut [0; 1], flags);
        // A server says nothing more.
        !matches!(heard, Ok((0, _))) && !matches!(heard, Err(Errno::CONNRESET))
    }

    /// Whether the process that has connected is known to be over.
    pub fn is_dead(&self) -> bool {
        self.process.as_ref().is_some_and(|process| events(process.as_fd()).contains(PollFlags::IN))
    }

    fn send(&self, ends: Ends, connection: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [connection];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes: [u8; ENDS] = ends.bytes();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, flags).map(drop)
    }
}

/// What has happened at a descriptor.
pub fn events(of: BorrowedFd<'_>) -> PollFlags {
    let mut one = [PollFd::from_borrowed_fd(of, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut one, Some(&at_once)) {
        Ok(_) => one[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// What a lock protects is whole, whoever held it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
