//! The descriptors that are Braid's.

use braid_handover::Ends;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a descriptor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A socket of the kernel that was bound to a port of Braid's, and does not listen yet.
    Bound(SocketAddr),
    /// A connection to Braid, from which connections come.
    Listening(SocketAddr),
    /// A connection of a client.
    Open(Ends),
}

/// Sockets that are bound or listen, by inode: they may have several descriptors. Connections, by
/// descriptor, with their inodes: the descriptor may have been closed, and be another file now.
#[derive(Debug, Default)]
pub struct Table {
    servers: BTreeMap<u64, Kind>,
    open: BTreeMap<i32, (u64, Ends)>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn locked() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the file with an inode is, which has this descriptor. `None` if it is not Braid's.
pub fn find(descriptor: i32, inode: u64) -> Option<Kind> {
    let mut table = locked();
    let table = table.get_or_insert_default();
    let server = table.servers.get(&inode).copied();
    let open = || table.open.get(&descriptor).filter(|(of, _)| *of == inode);
    server.or_else(|| open().map(|(_, ends)| Kind::Open(*ends)))
}

/// Notes what a descriptor and its file are.
pub fn note(descriptor: i32, inode: u64, kind: Kind) {
    let mut table = locked();
    let table = table.get_or_insert_default();
    match kind {
        Kind::Open(ends) => drop(table.open.insert(descriptor, (inode, ends))),
        kind => drop(table.servers.insert(inode, kind)),
    }
}

/// Forgets a file that was bound or listened.
pub fn forget(inode: u64) {
    locked().get_or_insert_default().servers.remove(&inode);
}

/// Whether any file was noted.
pub fn is_empty() -> bool {
    locked().as_ref().is_none_or(|table| table.servers.is_empty() && table.open.is_empty())
}
