//! The functions that native code calls to publish events and to send packets.

use super::abi::{RawHost, RawPacket, RawValue};
use super::handles::{MISUSE, code, slice, state, subject, text, unknown};
use crate::host::State;
use braid_ir::engine::Content;
use std::ffi::c_char;

pub(super) unsafe extern "C" fn event_named(host: *mut RawHost, name: *const c_char) -> i32 {
    // SAFETY: native code passes the handle that it was given; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let number = state.as_ref().and_then(|state| state.event_named(&name));
    number.unwrap_or_else(|| unknown(state, "an event type", &name))
}

pub(super) unsafe extern "C" fn publish(
    host: *mut RawHost,
    event: i32,
    first: *const RawValue,
    count: usize,
) -> i32 {
    // SAFETY: as for `event_named`.
    let Some(state) = (unsafe { state(host) }) else { return MISUSE };
    // The number of values is checked before they are read.
    if let Err(refused) = state.takes_values(event, count) {
        return refused as i32;
    }
    // SAFETY: the caller guarantees this number of values.
    let values = unsafe { slice(first, count) };
    // SAFETY: the caller guarantees that each text has its number of bytes.
    let values = values.map(|values| values.iter().map(|value| unsafe { content(value) }));
    match values.and_then(Iterator::collect) {
        Some(values) => code(state.publish(event, values)),
        None => state.misuse("publishes values from nowhere".to_owned()) as i32,
    }
}

/// A value of an event's field.
///
/// # Safety
/// The text is null or has this number of bytes.
unsafe fn content(value: &RawValue) -> Option<Content> {
    if value.text.is_null() {
        return Some(Content::Word(value.number.value()));
    }
    // SAFETY: the caller guarantees this number of bytes.
    let bytes = unsafe { slice(value.text.cast::<u8>(), value.length) }?;
    Some(Content::Str(String::from_utf8_lossy(bytes).into_owned()))
}

pub(super) unsafe extern "C" fn send(
    packet: *mut RawPacket,
    first: *const u8,
    length: usize,
    to: i32,
) -> i32 {
    // SAFETY: as for `event_named`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // The length is checked before the bytes are read.
    if let Err(refused) = subject.may_send(state, length) {
        return refused as i32;
    }
    // SAFETY: the caller guarantees this number of bytes.
    sent(state, unsafe { slice(first, length) }, to)
}

pub(super) unsafe extern "C" fn send_from_timer(
    host: *mut RawHost,
    first: *const u8,
    length: usize,
    to: i32,
) -> i32 {
    // SAFETY: as for `event_named`.
    let Some(state) = (unsafe { state(host) }) else { return MISUSE };
    if let Err(refused) = state.may_send_from_timer(length) {
        return refused as i32;
    }
    // SAFETY: as for `send`.
    sent(state, unsafe { slice(first, length) }, to)
}

/// Sends the bytes of a packet.
fn sent(state: &mut State, bytes: Option<&[u8]>, to: i32) -> i32 {
    match bytes {
        Some(bytes) => code(state.send(bytes, to)),
        None => state.misuse("sends bytes from nowhere".to_owned()) as i32,
    }
}
