//! The argument of requests about a device (`netdevice(7)`).

use std::mem::zeroed;

/// An `ifreq` with the name of a device and otherwise zeros.
pub(super) fn named(name: &str) -> libc::ifreq {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request
}
