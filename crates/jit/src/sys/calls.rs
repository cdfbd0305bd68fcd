//! The functions that generated code calls. Each finds its host in the frame and calls it.
#![expect(
    clippy::cast_possible_truncation,
    reason = "code is generated only for machines of 64 bits"
)]

use super::frame::{Calls, Fields, Found, Frame, MISSING, Pair, ZEROS, code, low};
use crate::abi::{Call, Host};
use braid_ir::engine::Fault;
use braid_ir::rules::{RulePacket, RuleWords};

/// The table of calls for one type of host.
pub(super) struct Table<H>(std::marker::PhantomData<H>);

impl<H: Host> Table<H> {
    pub(super) const CALLS: Calls = Calls {
        step: step::<H>,
        reshape: reshape::<H>,
        find: find::<H>,
        find_1: find_1::<H>,
        find_2: find_2::<H>,
        find_5: find_5::<H>,
        read: read::<H>,
        set: set::<H>,
        set_1: set_1::<H>,
        set_new_1: set_new_1::<H>,
        put: put::<H>,
        classify: classify::<H>,
        classify4: classify4::<H>,
        count_rule: count_rule::<H>,
        route: route::<H>,
        address_group: address_group::<H>,
        member: member::<H>,
        take: take::<H>,
        has_room: has_room::<H>,
        prefetch_classify: prefetch_classify::<H>,
        announce: announce::<H>,
        announce_1: announce_1::<H>,
        prefetch: prefetch::<H>,
        wide,
    };
}

/// The host of a frame.
///
/// # Safety
/// The frame must be one that `Runner` made for a host of this type, during its run, and nothing
/// else may hold a reference to the host.
unsafe fn host<'a, H: Host>(frame: *mut Frame) -> &'a mut H {
    // SAFETY: `frame` stored it from an exclusive reference that lives as long as the run. This
    // function belongs to the table of calls for the same type of host.
    unsafe { &mut *(*frame).host.cast::<H>() }
}

/// The words of a key.
///
/// # Safety
/// There must be this many words, which nothing else changes while the result lives.
unsafe fn key_at<'a>(key: *const u64, words: u64) -> &'a [u64] {
    // SAFETY: As above.
    unsafe { std::slice::from_raw_parts(key, words as usize) }
}

/// Calls `Host::step` and returns its result. Afterwards the frame has the current address of the
/// packet's bytes.
///
/// # Safety
/// As for [`host`]. `args` must point to `used` values, followed by room for `defined` values.
unsafe fn call<H: Host>(
    frame: *mut Frame,
    place: (u32, u32),
    args: *mut u128,
    (used, defined): (u64, u64),
) -> u64 {
    let (used, defined) = (used as usize, defined as usize);
    // SAFETY: Generated code calls this with its frame, and with room on its stack that it has
    // sized for the step. It has written the arguments there; the results are written here before
    // they are read. Packet and layout are borrowed for the run and not in use by anything else.
    let (result, packet) = unsafe {
        let outs = args.add(used);
        outs.write_bytes(0, defined);
        let packet = &mut *(*frame).packet;
        let call = Call {
            block: place.0,
            step: place.1,
            args: std::slice::from_raw_parts(args, used),
            outs: std::slice::from_raw_parts_mut(outs, defined),
            packet,
            layout: &mut *(*frame).layout,
        };
        (host::<H>(frame).step(call), &mut *(*frame).packet)
    };
    // SAFETY: The frame belongs to the run alone; `host` and the references in the call are dead.
    unsafe {
        (*frame).captured = packet.data().len() as u64;
        (*frame).data = packet.data_mut().as_mut_ptr();
    }
    result.map_or_else(code, |()| 0)
}

/// A step that must leave the packet's headers as they are. Otherwise the program ends with a
/// fault.
unsafe extern "C" fn step<H: Host>(
    frame: *mut Frame,
    block: u32,
    step: u32,
    args: *mut u128,
    used: u64,
    defined: u64,
) -> u64 {
    // SAFETY: As `call` requires; afterwards nothing else refers to the layout.
    unsafe {
        let result = call::<H>(frame, (block, step), args, (used, defined));
        let layout = &*(*frame).layout;
        let fits = (*frame).shape.fits(layout.presence());
        // The bytes that generated code reads from now on must still exist.
        let whole = layout.captured() as u64 <= (*frame).captured;
        if fits && whole { result } else { code(Fault::Truncated) }
    }
}

/// A step after which generated code leaves all loads and writes of fields to the host.
unsafe extern "C" fn reshape<H: Host>(
    frame: *mut Frame,
    block: u32,
    step: u32,
    args: *mut u128,
    used: u64,
    defined: u64,
) -> u64 {
    // SAFETY: As `call` requires.
    unsafe { call::<H>(frame, (block, step), args, (used, defined)) }
}

unsafe extern "C" fn find<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    words: u64,
    wanted: u64,
) -> Found {
    // SAFETY: Generated code has written this many words of the key to its stack; the host is as
    // `host` requires.
    let found = unsafe { host::<H>(frame).find(number, key_at(key, words)) };
    result(found, wanted)
}

// These functions stay small: they call `find_again` and, as a last step, the function for the
// general case.

unsafe extern "C" fn find_1<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: u64,
    wanted: u64,
) -> Found {
    // SAFETY: The host is as `host` requires.
    if let Some((entry, slots)) = unsafe { host::<H>(frame) }.find_again(number, &[key]) {
        return Found { entry, slots: slots_or_zeros(slots, wanted) };
    }
    // SAFETY: As this function; no reference to the host is left.
    unsafe { find_1_slow::<H>(frame, number, key, wanted) }
}

#[inline(never)]
unsafe extern "C" fn find_1_slow<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: u64,
    wanted: u64,
) -> Found {
    // SAFETY: The host is as `host` requires.
    result(unsafe { host::<H>(frame) }.find_words(number, &[key]), wanted)
}

unsafe extern "C" fn find_2<H: Host>(
    frame: *mut Frame,
    number: u32,
    first: u64,
    second: u64,
    wanted: u64,
) -> Found {
    // SAFETY: The host is as `host` requires.
    if let Some((entry, slots)) = unsafe { host::<H>(frame) }.find_again(number, &[first, second]) {
        return Found { entry, slots: slots_or_zeros(slots, wanted) };
    }
    // SAFETY: As this function; no reference to the host is left.
    unsafe { find_2_slow::<H>(frame, number, first, second, wanted) }
}

#[inline(never)]
unsafe extern "C" fn find_2_slow<H: Host>(
    frame: *mut Frame,
    number: u32,
    first: u64,
    second: u64,
    wanted: u64,
) -> Found {
    // SAFETY: The host is as `host` requires.
    result(unsafe { host::<H>(frame) }.find_words(number, &[first, second]), wanted)
}

unsafe extern "C" fn find_5<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    wanted: u64,
) -> Found {
    // SAFETY: Generated code has written five words of the key to its stack; the host is as `host`
    // requires.
    let found = unsafe { host::<H>(frame).find_words(number, &*key.cast::<[u64; 5]>()) };
    result(found, wanted)
}

#[inline]
fn result(found: Option<(u64, &[u64])>, wanted: u64) -> Found {
    match found {
        None => Found { entry: 0, slots: MISSING.as_ptr() },
        Some((entry, slots)) => Found { entry, slots: slots_or_zeros(slots, wanted) },
    }
}

unsafe extern "C" fn read<H: Host>(
    frame: *mut Frame,
    number: u32,
    entry: u64,
    wanted: u64,
) -> *const u64 {
    // SAFETY: The host is as `host` requires.
    slots_or_zeros(unsafe { host::<H>(frame) }.read(number, entry), wanted)
}

unsafe extern "C" fn set<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    words: u64,
    slots: u64,
) -> u64 {
    // SAFETY: Generated code has written this many words of both to its stack; the host is as
    // `host` requires.
    let done = unsafe {
        let all = std::slice::from_raw_parts(key, (words + slots) as usize);
        let (key, slots) = all.split_at(words as usize);
        host::<H>(frame).set(number, key, slots)
    };
    u64::from(done)
}

unsafe extern "C" fn set_1<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: u64,
    slots: *const u64,
    words: u64,
) -> u64 {
    // SAFETY: Generated code has written this many words of slots to its stack; the host is as
    // `host` requires.
    u64::from(unsafe { host::<H>(frame).set_word(number, key, key_at(slots, words)) })
}

unsafe extern "C" fn set_new_1<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: u64,
    slots: *const u64,
    words: u64,
) -> u64 {
    // SAFETY: As in `set_1`.
    u64::from(unsafe { host::<H>(frame).set_new_word(number, key, key_at(slots, words)) })
}

#[expect(clippy::indexing_slicing, reason = "`all` has the words of the key and two more")]
unsafe extern "C" fn put<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    words: u64,
    slot: u32,
) -> u64 {
    // SAFETY: Generated code has written this many words and two more to its stack; the host is as
    // `host` requires.
    let done = unsafe {
        let words = words as usize;
        let all = std::slice::from_raw_parts(key, words + 2);
        let value = u128::from(all[words + 1]) << 64 | u128::from(all[words]);
        host::<H>(frame).put(number, &all[..words], slot, value)
    };
    done.map_or_else(|fault| code(fault) << 1, u64::from)
}

/// The address of the slots, or of zeros if there are too few slots. `wanted` is at most `SLOTS`.
#[inline(always)]
fn slots_or_zeros(slots: &[u64], wanted: u64) -> *const u64 {
    if slots.len() as u64 >= wanted { slots.as_ptr() } else { ZEROS.as_ptr() }
}

unsafe extern "C" fn classify<H: Host>(
    frame: *mut Frame,
    number: u32,
    fields: *const Fields,
) -> u64 {
    let wide = |[low, high]: [u64; 2]| u128::from(high) << 64 | u128::from(low);
    let byte = |word: u64| (word & 0xff) as u8;
    // SAFETY: Generated code has written the fields to its stack; the host is as `host` requires.
    let (pass, rule) = unsafe {
        let fields = &*fields;
        let ports = ((fields.ports & 0xffff) as u16, (fields.ports >> 16 & 0xffff) as u16);
        let packet = RulePacket {
            version: byte(fields.version),
            src: wide(fields.src),
            dst: wide(fields.dst),
            proto: byte(fields.proto),
            ports: (fields.ports >> 32 != 0).then_some(ports),
            tcp_flags: (fields.tcp_flags >> 8 != 0).then_some(byte(fields.tcp_flags)),
            icmp: (fields.icmp >> 16 != 0).then_some((byte(fields.icmp), byte(fields.icmp >> 8))),
        };
        host::<H>(frame).classify(number, &packet)
    };
    u64::from(pass) << 32 | u64::from(rule)
}

unsafe extern "C" fn classify4<H: Host>(
    frame: *mut Frame,
    number: u32,
    addrs: u64,
    ports: u64,
    bits: u64,
    count: u64,
) -> u64 {
    let words = RuleWords { addrs, ports, bits };
    // SAFETY: The host is as `host` requires.
    let (pass, rule) = unsafe { host::<H>(frame) }.classify4(number, &words, count != 0);
    u64::from(pass) << 32 | u64::from(rule)
}

unsafe extern "C" fn count_rule<H: Host>(frame: *mut Frame, number: u32, rule: u64) {
    // SAFETY: The host is as `host` requires.
    unsafe { host::<H>(frame) }.count_rule(number, low(rule));
}

unsafe extern "C" fn route<H: Host>(
    frame: *mut Frame,
    number: u32,
    low: u64,
    high: u64,
    wide: u64,
) -> u64 {
    let addr = u128::from(high) << 64 | u128::from(low);
    // SAFETY: The host is as `host` requires.
    let hop = unsafe { host::<H>(frame) }.route(number, addr, wide != 0);
    hop.map_or(0, |hop| 1 << 32 | u64::from(hop))
}

unsafe extern "C" fn address_group<H: Host>(
    frame: *mut Frame,
    number: u32,
    low: u64,
    high: u64,
) -> u64 {
    let addr = u128::from(high) << 64 | u128::from(low);
    // SAFETY: The host is as `host` requires.
    u64::from(unsafe { host::<H>(frame) }.address_group(number, addr))
}

unsafe extern "C" fn member<H: Host>(
    frame: *mut Frame,
    number: u32,
    index: u64,
    column: u32,
) -> Pair {
    // SAFETY: The host is as `host` requires.
    low_half(unsafe { host::<H>(frame) }.member(number, index, column))
}

unsafe extern "C" fn take<H: Host>(frame: *mut Frame, number: u32) -> Pair {
    // SAFETY: The host is as `host` requires.
    low_half(unsafe { host::<H>(frame) }.take(number))
}

/// The low half of a value, and whether there is a value.
#[inline(always)]
fn low_half(value: Option<u128>) -> Pair {
    value.map_or(Pair { low: 0, high: 0 }, |value| Pair { low: halves(value).low, high: 1 })
}

unsafe extern "C" fn has_room<H: Host>(frame: *mut Frame, number: u32) -> u64 {
    // SAFETY: The host is as `host` requires.
    u64::from(unsafe { host::<H>(frame) }.has_room(number))
}

unsafe extern "C" fn prefetch_classify<H: Host>(
    frame: *mut Frame,
    number: u32,
    addrs: u64,
    ports: u64,
    bits: u64,
) {
    // SAFETY: The host is as `host` requires.
    unsafe { host::<H>(frame) }.prefetch_classify(number, &RuleWords { addrs, ports, bits });
}

unsafe extern "C" fn announce<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    words: u64,
) {
    // SAFETY: As in `find`.
    unsafe { host::<H>(frame).announce(number, key_at(key, words)) }
}

unsafe extern "C" fn announce_1<H: Host>(frame: *mut Frame, number: u32, key: u64) {
    // SAFETY: The host is as `host` requires.
    unsafe { host::<H>(frame) }.announce(number, &[key]);
}

unsafe extern "C" fn prefetch<H: Host>(
    frame: *mut Frame,
    number: u32,
    key: *const u64,
    words: u64,
) {
    // SAFETY: As in `find`.
    unsafe { host::<H>(frame).prefetch(number, key_at(key, words)) }
}

unsafe extern "C" fn wide(op: u32, a_low: u64, a_high: u64, b_low: u64, b_high: u64) -> Pair {
    let a = u128::from(a_high) << 64 | u128::from(a_low);
    let b = u128::from(b_high) << 64 | u128::from(b_low);
    halves(match op {
        0 => a.saturating_mul(b),
        1 => a.checked_div(b).unwrap_or(0),
        _ => a.checked_rem(b).unwrap_or(0),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast keeps the low half, and the high half is the second word"
)]
#[inline(always)]
fn halves(value: u128) -> Pair {
    Pair { low: (value & u128::from(u64::MAX)) as u64, high: (value >> 64) as u64 }
}
