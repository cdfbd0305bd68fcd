//! What is behind the handles and pointers of native code.
//!
//! A null handle, or a handle used outside of its call, is reported as wrong use. An invalid
//! pointer cannot be told from a valid one.

use super::abi::{RawHost, RawPacket};
use crate::host::{Refused, State};
use crate::subject::Subject;
use std::ffi::{CStr, c_char};

pub(super) const MISUSE: i32 = Refused::Misuse as i32;

/// Braid's data behind an instance's handle. `None` outside of the instance's calls, and in another
/// thread than the call's.
///
/// # Safety
/// `host` is null or the handle of a live instance. Nobody else uses the data behind it
/// while the result lives: each call below takes it once.
pub(super) unsafe fn state<'a>(host: *mut RawHost) -> Option<&'a mut State> {
    // SAFETY: the caller guarantees that the handle is null or valid. What is read here does not
    // change, or is atomic.
    let host = unsafe { host.as_ref()? };
    if !host.gate.lets_in() {
        return None;
    }
    // SAFETY: the state lives as long as the handle, and only this thread uses it during the call.
    unsafe { host.state.as_mut() }
}

/// The packet behind a handle, and the state. Outside of a call this is wrong use.
///
/// # Safety
/// As for [`state`].
pub(super) unsafe fn subject<'a>(
    packet: *mut RawPacket,
) -> Option<(&'a mut Subject, &'a mut State)> {
    if packet.is_null() {
        return None;
    }
    // SAFETY: the handle belongs to an instance, which keeps it as long as it lives. Its host does
    // not change.
    let state = unsafe { state((*packet).host)? };
    // SAFETY: this thread runs the call, so nobody changes the handle. Its subject is null, or set
    // for this call only, by the caller that waits for its end.
    match unsafe { (*packet).subject.as_mut() } {
        Some(subject) => Some((subject, state)),
        None => {
            state.misuse("uses a packet when there is none".to_owned());
            None
        }
    }
}

/// A text from native code. Invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is null or ends with a 0.
pub(super) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and it ends with a 0.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

pub(super) fn code(done: Result<(), Refused>) -> i32 {
    done.map_or_else(|refused| refused as i32, |()| 0)
}

/// Returns the start of a slice and writes its length.
///
/// # Safety
/// `length` is null or may be written.
pub(super) unsafe fn give(slice: Option<&[u8]>, length: *mut usize) -> *const u8 {
    // SAFETY: null or writable.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = slice.map_or(0, <[u8]>::len);
    }
    slice.map_or(std::ptr::null(), <[u8]>::as_ptr)
}

/// The same for a slice that the caller may change.
///
/// # Safety
/// As for [`give`].
pub(super) unsafe fn lend(slice: Option<&mut [u8]>, length: *mut usize) -> *mut u8 {
    // SAFETY: null or writable.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = slice.as_ref().map_or(0, |slice| slice.len());
    }
    slice.map_or(std::ptr::null_mut(), <[u8]>::as_mut_ptr)
}

/// A slice that native code passes as a pointer and a length.
///
/// # Safety
/// `first` is null or points to `length` elements.
pub(super) unsafe fn slice<'a, T>(first: *const T, length: usize) -> Option<&'a [T]> {
    match (first.is_null(), length) {
        (_, 0) => Some(&[]),
        (true, _) => None,
        // SAFETY: the caller guarantees this number of elements, and that nobody changes them
        // meanwhile.
        (false, _) => Some(unsafe { std::slice::from_raw_parts(first, length) }),
    }
}

pub(super) fn unknown(state: Option<&mut State>, what: &str, name: &str) -> i32 {
    if let Some(state) = state {
        state.misuse(format!("asks for {what} `{name}`, which there is none"));
    }
    Refused::Absent as i32
}
