//! The functions that native code calls to read and set tags.

use super::abi::{RawHost, RawPacket, RawWide};
use super::handles::{MISUSE, code, state, subject, text, unknown};
use std::ffi::c_char;

pub(super) unsafe extern "C" fn tag_named(host: *mut RawHost, name: *const c_char) -> i32 {
    // SAFETY: native code passes the handle that it was given; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let tags = state.as_ref().map_or(&[][..], |state| &state.tags);
    let number = tags.iter().position(|tag| tag.name == name);
    let number = number.and_then(|number| i32::try_from(number).ok());
    number.unwrap_or_else(|| unknown(state, "a tag", &name))
}

pub(super) unsafe extern "C" fn get_tag(
    packet: *mut RawPacket,
    tag: i32,
    value: *mut RawWide,
) -> i32 {
    // SAFETY: as for `tag_named`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // SAFETY: null, or valid for writes.
    let Some(value) = (unsafe { value.as_mut() }) else {
        return state.misuse("reads a tag to nowhere".to_owned()) as i32;
    };
    code(subject.tag(state, tag).map(|found| *value = RawWide::of(found)))
}

pub(super) unsafe extern "C" fn set_tag(
    packet: *mut RawPacket,
    tag: i32,
    value: *const RawWide,
) -> i32 {
    // SAFETY: as for `tag_named`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // SAFETY: null, or valid for reads.
    let Some(value) = (unsafe { value.as_ref() }) else {
        return state.misuse("sets a tag from nowhere".to_owned()) as i32;
    };
    code(subject.set_tag(state, tag, value.value()))
}
