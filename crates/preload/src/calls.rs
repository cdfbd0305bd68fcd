//! The functions of the C library that this library replaces. What does not concern Braid goes to
//! the kernel unchanged.

use crate::settings::Settings;
use crate::sys::{self, Came};
use crate::table::{self, Kind};
use braid_handover::{ENDS, Ends, Listens};
use libc::{c_int, c_long, c_void, sockaddr, socklen_t};
use std::net::SocketAddr;

/// The bytes of the structure of TCP_INFO that say how a connection stands: it is established.
const INFO: [u8; 104] = {
    let mut info = [0; 104];
    info[0] = 1;
    info
};

/// The result of a system call, whose error is set already.
fn code(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// What a descriptor is, if it is Braid's.
fn kind(descriptor: c_int) -> Option<Kind> {
    if table::is_empty() {
        return None;
    }
    table::find(descriptor, sys::inode(descriptor)?)
}

/// Whether a socket is one of TCP.
fn is_tcp(descriptor: c_int) -> bool {
    let is = |name, value| sys::option(descriptor, libc::SOL_SOCKET, name) == Some(value);
    is(libc::SO_TYPE, libc::SOCK_STREAM) && is(libc::SO_PROTOCOL, libc::IPPROTO_TCP)
}

/// Notes the address of a socket that is to listen at a port of Braid's. The kernel is not asked:
/// the address need not be one of this machine.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(
    descriptor: c_int,
    address: *const sockaddr,
    room: socklen_t,
) -> c_int {
    // SAFETY: the caller's word.
    let at = unsafe { sys::read_address(address, room) };
    let is_ours = |at: &SocketAddr| {
        Settings::of_process().is_some_and(|settings| settings.has(at.port())) && is_tcp(descriptor)
    };
    if let Some((at, inode)) = at.filter(is_ours).zip(sys::inode(descriptor)) {
        table::note(descriptor, inode, Kind::Bound(at));
        return 0;
    }
    // SAFETY: the caller's word.
    code(unsafe { libc::syscall(libc::SYS_bind, descriptor, address, room) })
}

/// Lets a descriptor be a connection to Braid if it was bound to a port of Braid's.
#[unsafe(no_mangle)]
pub extern "C" fn listen(descriptor: c_int, backlog: c_int) -> c_int {
    match kind(descriptor) {
        Some(Kind::Bound(at)) => listen_at(descriptor, at),
        Some(Kind::Listening(_)) => 0,
        // SAFETY: a call without pointers.
        _ => code(unsafe { libc::syscall(libc::SYS_listen, descriptor, backlog) }),
    }
}

fn listen_at(descriptor: c_int, at: SocketAddr) -> c_int {
    let Some(settings) = Settings::of_process() else { return sys::fail(libc::EADDRNOTAVAIL) };
    let before = sys::inode(descriptor);
    let Some(socket) = sys::connect(&settings.socket) else { return -1 };
    if !sys::send(socket, &Listens(at).bytes()) {
        sys::close(socket);
        return sys::fail(libc::EADDRNOTAVAIL);
    }
    if !sys::replace(descriptor, socket) {
        return -1;
    }
    before.iter().for_each(|inode| table::forget(*inode));
    if let Some(inode) = sys::inode(descriptor) {
        table::note(descriptor, inode, Kind::Listening(at));
    }
    0
}

/// As [`accept4`] without flags.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    descriptor: c_int,
    address: *mut sockaddr,
    room: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { accept4(descriptor, address, room, 0) }
}

/// Takes a connection from Braid, if the descriptor is a connection to it.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    descriptor: c_int,
    address: *mut sockaddr,
    room: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let Some(Kind::Listening(at)) = kind(descriptor) else {
        // SAFETY: the caller's word.
        return code(unsafe { libc::syscall(libc::SYS_accept4, descriptor, address, room, flags) });
    };
    loop {
        let (bytes, count, open) =
            match sys::receive::<ENDS>(descriptor, flags & libc::SOCK_CLOEXEC != 0) {
                Came::Message(bytes, count, open) => (bytes, count, open),
                Came::Nothing => return -1,
                Came::End if leave(descriptor, at) => continue,
                Came::End => return sys::fail(libc::ECONNABORTED),
            };
        // Without a descriptor, this process has too many.
        let Some(open) = open else { return sys::fail(libc::EMFILE) };
        let ends = bytes.get(..count).and_then(Ends::of);
        let Some((ends, inode)) = ends.zip(sys::inode(open)) else {
            sys::close(open);
            return sys::fail(libc::ECONNABORTED);
        };
        if flags & libc::SOCK_NONBLOCK != 0 {
            sys::never_wait(open);
        }
        let ends = if at.is_ipv6() { mapped(ends) } else { ends };
        table::note(open, inode, Kind::Open(ends));
        // SAFETY: the caller's word.
        unsafe { sys::write_address(ends.peer, at.is_ipv6(), address, room) };
        return open;
    }
}

/// The ends as a socket of IPv6 shows them.
fn mapped(ends: Ends) -> Ends {
    let map = |at: SocketAddr| match at {
        SocketAddr::V4(v4) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        v6 => v6,
    };
    Ends { peer: map(ends.peer), local: map(ends.local) }
}

/// Braid has gone. From now on, no connection comes: the other end of the descriptor stays open,
/// and nobody has it. Whether that was possible.
fn leave(descriptor: c_int, at: SocketAddr) -> bool {
    let before = sys::inode(descriptor);
    let Some([own, _kept]) = sys::pair() else { return false };
    if !sys::replace(descriptor, own) {
        return false;
    }
    before.iter().for_each(|inode| table::forget(*inode));
    if let Some(inode) = sys::inode(descriptor) {
        table::note(descriptor, inode, Kind::Listening(at));
    }
    true
}

/// The address and port of this end.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    descriptor: c_int,
    address: *mut sockaddr,
    room: *mut socklen_t,
) -> c_int {
    let at = match kind(descriptor) {
        Some(Kind::Bound(at) | Kind::Listening(at)) => at,
        Some(Kind::Open(ends)) => ends.local,
        None => {
            // SAFETY: the caller's word.
            return code(unsafe {
                libc::syscall(libc::SYS_getsockname, descriptor, address, room)
            });
        }
    };
    // SAFETY: the caller's word.
    unsafe { sys::write_address(at, at.is_ipv6(), address, room) };
    0
}

/// The address and port of the client.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    descriptor: c_int,
    address: *mut sockaddr,
    room: *mut socklen_t,
) -> c_int {
    match kind(descriptor) {
        Some(Kind::Bound(_) | Kind::Listening(_)) => sys::fail(libc::ENOTCONN),
        Some(Kind::Open(Ends { peer, .. })) => {
            // SAFETY: the caller's word.
            unsafe { sys::write_address(peer, peer.is_ipv6(), address, room) };
            0
        }
        None => {
            // SAFETY: the caller's word.
            code(unsafe { libc::syscall(libc::SYS_getpeername, descriptor, address, room) })
        }
    }
}

/// Options of TCP and IP have no effect on Braid's descriptors.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let is_ours = || matches!(kind(descriptor), Some(Kind::Listening(_) | Kind::Open(_)));
    if is_of_ip(level) && is_ours() {
        return 0;
    }
    // SAFETY: the caller's word.
    code(unsafe { libc::syscall(libc::SYS_setsockopt, descriptor, level, name, value, length) })
}

/// Whether options of a level are those of TCP or IP.
fn is_of_ip(level: c_int) -> bool {
    [libc::IPPROTO_TCP, libc::IPPROTO_IP, libc::IPPROTO_IPV6].contains(&level)
}

/// The options of Braid's descriptors are those of an established connection of TCP.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    place: *mut c_void,
    room: *mut socklen_t,
) -> c_int {
    let number = match kind(descriptor) {
        Some(Kind::Listening(at)) => option(level, name, at, true),
        Some(Kind::Open(ends)) => option(level, name, ends.local, false),
        _ => None,
    };
    match number {
        // SAFETY: the caller's word.
        Some(Value::Number(number)) => unsafe {
            sys::write_option(&number.to_ne_bytes(), place, room)
        },
        // SAFETY: the caller's word.
        Some(Value::Info) => unsafe { sys::write_option(&INFO, place, room) },
        None => {
            // SAFETY: the caller's word.
            code(unsafe {
                libc::syscall(libc::SYS_getsockopt, descriptor, level, name, place, room)
            })
        }
    }
}

/// The value of an option.
enum Value {
    Number(c_int),
    Info,
}

/// The value of an option of a socket of Braid's. `None` if the kernel has it.
fn option(level: c_int, name: c_int, at: SocketAddr, is_listening: bool) -> Option<Value> {
    let family = if at.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    Some(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => Value::Number(family),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => Value::Number(libc::IPPROTO_TCP),
        (libc::SOL_SOCKET, libc::SO_TYPE) => Value::Number(libc::SOCK_STREAM),
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => Value::Number(is_listening.into()),
        (libc::IPPROTO_TCP, libc::TCP_INFO) => Value::Info,
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => Value::Number(1),
        (level, _) if is_of_ip(level) => Value::Number(0),
        _ => return None,
    })
}
