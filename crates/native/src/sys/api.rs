//! The functions that native code calls. They take pointers, leave the checks to `host` and
//! `subject`, and return numbers.

use super::abi::{
    ABI, ConditionFn, RawAction, RawApi, RawDump, RawGuard, RawHost, RawItem, RawPacket, RawSaved,
    RawWide, StateFunctionFn, TimerFn, UpdateFn,
};
use super::handles::{MISUSE, code, give, lend, slice, state, subject, text, unknown};
use super::{outputs, tags};
use crate::dump::{Entry, Kind};
use crate::host::{Refused, State, header};
use crate::record::{Guard, Handler, HeaderAction, Payload, StateFunction};
use braid_ir::model::TagDecl;
use braid_packet::{FIELDS, Field, HEADERS};
use std::ffi::{c_char, c_void};

/// The table of functions for native code.
#[expect(clippy::cast_possible_truncation, reason = "the assertion checks the size")]
pub(crate) static API: RawApi = RawApi {
    abi: ABI,
    size: {
        assert!(size_of::<RawApi>() <= u32::MAX as usize, "a few hundred bytes");
        size_of::<RawApi>() as u32
    },
    flow,
    flow_state,
    get,
    set,
    has,
    bytes,
    change_bytes,
    payload,
    change_payload,
    insert,
    remove,
    field_named,
    header_named,
    now,
    config,
    config_rows,
    config_text,
    fail,
    counter,
    count,
    log,
    timer,
    flow_memory,
    end_flow,
    add_header_action,
    add_state_function,
    register_guard,
    notify,
    forget,
    dump_entry,
    next_flow,
    save_bytes,
    event_named: outputs::event_named,
    publish: outputs::publish,
    tag_named: tags::tag_named,
    get_tag: tags::get_tag,
    set_tag: tags::set_tag,
    send: outputs::send,
    send_from_timer: outputs::send_from_timer,
    share,
};

unsafe extern "C" fn flow(packet: *mut RawPacket) -> u64 {
    // SAFETY: native code passes the handle that it was given.
    unsafe { subject(packet) }.map_or(0, |(subject, state)| subject.flow(state))
}

unsafe extern "C" fn flow_state(packet: *mut RawPacket) -> *mut c_void {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return std::ptr::null_mut() };
    let number = subject.flow(state);
    memory(state, number)
}

/// The memory of a flow. It stays in its place while the flow lives.
fn memory(state: &mut State, number: u64) -> *mut c_void {
    match state.flows.get_mut(number) {
        None => std::ptr::null_mut(),
        Some(flow) if flow.memory.is_empty() => {
            state.misuse("asks for a flow's memory, and has declared no `flow_bytes`".to_owned());
            std::ptr::null_mut()
        }
        Some(flow) => flow.memory.as_mut_ptr().cast(),
    }
}

unsafe extern "C" fn get(packet: *mut RawPacket, field: i32, value: *mut RawWide) -> i32 {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // SAFETY: null, or valid for writes.
    let Some(value) = (unsafe { value.as_mut() }) else {
        return state.misuse("reads a field to nowhere".to_owned()) as i32;
    };
    code(subject.get(state, field).map(|found| *value = RawWide::of(found)))
}

unsafe extern "C" fn set(packet: *mut RawPacket, field: i32, value: *const RawWide) -> i32 {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // SAFETY: null, or valid for reads.
    let Some(value) = (unsafe { value.as_ref() }) else {
        return state.misuse("assigns a field from nowhere".to_owned()) as i32;
    };
    code(subject.set(state, field, value.value()))
}

unsafe extern "C" fn has(packet: *mut RawPacket, number: i32) -> i32 {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    subject.has(state, header(number)).map_or_else(|refused| refused as i32, i32::from)
}

unsafe extern "C" fn bytes(packet: *mut RawPacket, length: *mut usize) -> *const u8 {
    // SAFETY: as for `flow`.
    let found = unsafe { subject(packet) };
    let slice = found.and_then(|(subject, state)| subject.bytes(state).ok());
    // SAFETY: null, or valid for writes.
    unsafe { give(slice, length) }
}

unsafe extern "C" fn change_bytes(packet: *mut RawPacket, length: *mut usize) -> *mut u8 {
    // SAFETY: as for `flow`.
    let found = unsafe { subject(packet) };
    let slice = found.and_then(|(subject, state)| subject.change_bytes(state).ok());
    // SAFETY: null, or valid for writes.
    unsafe { lend(slice, length) }
}

unsafe extern "C" fn payload(packet: *mut RawPacket, length: *mut usize) -> *const u8 {
    // SAFETY: as for `flow`.
    let found = unsafe { subject(packet) };
    let slice = found.and_then(|(subject, state)| subject.payload(state).ok());
    // SAFETY: null, or valid for writes.
    unsafe { give(slice, length) }
}

unsafe extern "C" fn change_payload(packet: *mut RawPacket, length: *mut usize) -> *mut u8 {
    // SAFETY: as for `flow`.
    let found = unsafe { subject(packet) };
    let slice = found.and_then(|(subject, state)| subject.change_payload(state).ok());
    // SAFETY: null, or valid for writes.
    unsafe { lend(slice, length) }
}

unsafe extern "C" fn insert(
    packet: *mut RawPacket,
    at: usize,
    bytes: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    // SAFETY: the caller guarantees this number of bytes.
    let Some(bytes) = (unsafe { slice(bytes, length) }) else {
        return state.misuse("adds bytes from nowhere".to_owned()) as i32;
    };
    code(subject.insert(state, at, bytes))
}

unsafe extern "C" fn remove(packet: *mut RawPacket, at: usize, length: usize) -> i32 {
    // SAFETY: as for `flow`.
    let Some((subject, state)) = (unsafe { subject(packet) }) else { return MISUSE };
    code(subject.remove(state, at, length))
}

unsafe extern "C" fn field_named(host: *mut RawHost, name: *const c_char) -> i32 {
    // SAFETY: as for `flow`; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let field = Field::by_name(&name).and_then(|field| i32::try_from(field as usize).ok());
    field.unwrap_or_else(|| unknown(state, "a field", &name))
}

unsafe extern "C" fn header_named(host: *mut RawHost, name: *const c_char) -> i32 {
    // SAFETY: as for `flow`; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let at = HEADERS.iter().position(|(_, known)| *known == name);
    at.and_then(|at| i32::try_from(at).ok()).unwrap_or_else(|| unknown(state, "a header", &name))
}

unsafe extern "C" fn now(host: *mut RawHost) -> u64 {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.map_or(0, |state| state.now)
}

unsafe extern "C" fn config(
    host: *mut RawHost,
    name: *const c_char,
    row: usize,
    column: usize,
    value: *mut RawWide,
) -> i32 {
    // SAFETY: as for `flow`; names end with a 0; `value` is null, or valid for writes.
    let (state, name, value) = unsafe { (state(host), text(name), value.as_mut()) };
    let (Some(state), Some(value)) = (state, value) else { return MISUSE };
    code(state.number(&name, row, column).map(|found| *value = RawWide::of(found)))
}

unsafe extern "C" fn config_rows(host: *mut RawHost, name: *const c_char) -> i64 {
    // SAFETY: as for `flow`; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let Some(state) = state else { return i64::from(MISUSE) };
    match state.rows(&name) {
        Ok(rows) => i64::try_from(rows).unwrap_or(i64::MAX),
        Err(refused) => i64::from(refused as i32),
    }
}

unsafe extern "C" fn config_text(
    host: *mut RawHost,
    name: *const c_char,
    row: usize,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: as for `flow`; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let found = state.and_then(|state| state.text(&name, row));
    // SAFETY: null, or valid for writes.
    if let Some(length) = unsafe { length.as_mut() } {
        *length = found.map_or(0, |text| text.len().saturating_sub(1));
    }
    found.map_or(std::ptr::null(), |text| text.as_ptr().cast())
}

unsafe extern "C" fn fail(host: *mut RawHost, why: *const c_char) -> i32 {
    // SAFETY: as for `flow`; texts end with a 0.
    let (state, why) = unsafe { (state(host), text(why)) };
    if let Some(state) = state {
        state.failure = Some(why);
    }
    crate::verdict::FAILED
}

unsafe extern "C" fn share(host: *mut RawHost, total: u64) -> u64 {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.map_or(total, |state| state.part.share(total))
}

unsafe extern "C" fn counter(host: *mut RawHost, name: *const c_char) -> i32 {
    // SAFETY: as for `flow`; names end with a 0.
    let (state, name) = unsafe { (state(host), text(name)) };
    let Some(state) = state else { return MISUSE };
    match state.counter(&name) {
        Ok(at) => i32::try_from(at).unwrap_or(Refused::Full as i32),
        Err(refused) => refused as i32,
    }
}

unsafe extern "C" fn count(host: *mut RawHost, counter: i32, n: u64) {
    // SAFETY: as for `flow`.
    if let Some(state) = unsafe { state(host) } {
        state.count(counter, n);
    }
}

unsafe extern "C" fn log(host: *mut RawHost, level: *const c_char, message: *const c_char) {
    // SAFETY: as for `flow`; texts end with a 0.
    let (state, level, message) = unsafe { (state(host), text(level), text(message)) };
    if let Some(state) = state {
        state.log(&level, &message);
    }
}

unsafe extern "C" fn timer(
    host: *mut RawHost,
    after_ns: u64,
    period_ns: u64,
    run: Option<TimerFn>,
    arg: *mut c_void,
) -> i32 {
    // SAFETY: as for `flow`.
    let Some(state) = (unsafe { state(host) }) else { return MISUSE };
    let Some(run) = run else { return state.misuse("sets a timer without code".into()) as i32 };
    code(state.timer(after_ns, period_ns, Handler { code: run as usize, arg: arg as usize }))
}

unsafe extern "C" fn flow_memory(host: *mut RawHost, flow: u64) -> *mut c_void {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.map_or(std::ptr::null_mut(), |state| memory(state, flow))
}

unsafe extern "C" fn end_flow(host: *mut RawHost, flow: u64) {
    // SAFETY: as for `flow`.
    if let Some(state) = unsafe { state(host) } {
        state.end_flow(flow);
    }
}

/// The header action that native code passes.
///
/// # Safety
/// The pointer to its bytes is valid.
unsafe fn action(state: &State, raw: &RawAction) -> Option<HeaderAction> {
    let number = u32::try_from(raw.number).ok();
    Some(match raw.kind {
        0 => HeaderAction::Forward,
        1 => HeaderAction::Drop(number?),
        2 => {
            let field = FIELDS.get(usize::try_from(raw.number).ok()?)?;
            let value = raw.value.value();
            (value >> (field.width - 1) <= 1).then_some(())?;
            HeaderAction::Modify(field.field, value)
        }
        3 => {
            // SAFETY: the caller guarantees this number of bytes.
            let bytes = unsafe { slice(raw.bytes, raw.length) }?.to_vec();
            HeaderAction::Encap { at: raw.at, bytes }
        }
        4 => HeaderAction::Decap { at: raw.at, len: raw.length },
        5 => HeaderAction::Output(number?),
        6 => {
            let TagDecl { name, ty } = state.tags.get(number? as usize)?;
            let value = raw.value.value();
            (value <= ty.max()).then_some(())?;
            HeaderAction::Tag(name.as_str().into(), value)
        }
        _ => return None,
    })
}

unsafe extern "C" fn add_header_action(
    host: *mut RawHost,
    flow: u64,
    raw: *const RawAction,
) -> i32 {
    // SAFETY: as for `flow`; `raw` is null, or valid for reads.
    let (Some(state), raw) = (unsafe { (state(host), raw.as_ref()) }) else { return MISUSE };
    // SAFETY: the pointer to an action's bytes is valid.
    let Some(action) = raw.and_then(|raw| unsafe { action(state, raw) }) else {
        return state.misuse("records a header action that does not exist".to_owned()) as i32;
    };
    code(state.add_header_action(flow, action))
}

unsafe extern "C" fn add_state_function(
    host: *mut RawHost,
    flow: u64,
    run: Option<StateFunctionFn>,
    payload: i32,
    arg: *mut c_void,
) -> i32 {
    // SAFETY: as for `flow`.
    let Some(state) = (unsafe { state(host) }) else { return MISUSE };
    let payload = match payload {
        0 => Payload::Ignore,
        1 => Payload::Read,
        2 => Payload::Write,
        other => {
            let why = format!("records a state function with the unknown payload access {other}");
            return state.misuse(why) as i32;
        }
    };
    let Some(run) = run else {
        return state.misuse("records a state function without code".to_owned()) as i32;
    };
    let handler = Handler { code: run as usize, arg: arg as usize };
    code(state.add_state_function(flow, StateFunction { handler, payload }))
}

unsafe extern "C" fn register_guard(host: *mut RawHost, flow: u64, raw: *const RawGuard) -> i32 {
    // SAFETY: as for `flow`; `raw` is null, or valid for reads.
    let (Some(state), raw) = (unsafe { (state(host), raw.as_ref()) }) else { return MISUSE };
    let Some((raw, condition)) = raw.and_then(|raw| Some((raw, raw.condition?))) else {
        return state.misuse("registers a guard without a condition".to_owned()) as i32;
    };
    let arg = raw.arg as usize;
    // SAFETY: null, or valid for reads, with a valid pointer to its bytes.
    let given = unsafe { raw.action.as_ref().map(|raw| action(state, raw)) };
    let action = match given {
        None => None,
        Some(Some(action)) => Some(action),
        Some(None) => {
            let why = "registers a guard with an action that does not exist";
            return state.misuse(why.to_owned()) as i32;
        }
    };
    let condition: ConditionFn = condition;
    let update = raw.update.map(|update: UpdateFn| Handler { code: update as usize, arg });
    let condition = Handler { code: condition as usize, arg };
    code(state.register_guard(flow, Guard { condition, action, update }))
}

unsafe extern "C" fn notify(host: *mut RawHost, flow: u64) -> i32 {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.map_or(MISUSE, |state| code(state.notify(flow)))
}

unsafe extern "C" fn forget(host: *mut RawHost, flow: u64) -> i32 {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.map_or(MISUSE, |state| code(state.forget(flow)))
}

unsafe extern "C" fn dump_entry(
    dump: *mut RawDump,
    table: *const c_char,
    key: *const RawItem,
    keys: usize,
    values: *const RawItem,
    count: usize,
) {
    // SAFETY: null, or the value that the call of `dump` was given, which lives as long as the
    // call.
    let into = unsafe { dump.as_mut().and_then(|dump| dump.into.as_mut()) };
    // SAFETY: texts end with a 0, and the arrays have this number of items.
    let (table, key, values) = unsafe { (text(table), slice(key, keys), slice(values, count)) };
    let (Some(into), Some(key), Some(values)) = (into, key, values) else { return };
    let named = |item: &RawItem| {
        // SAFETY: names are null or end with a 0.
        (unsafe { text(item.name) }, kind(item.kind), item.value.value())
    };
    into.push(Entry {
        table,
        key: key.iter().map(|item| (kind(item.kind), item.value.value())).collect(),
        values: values.iter().map(named).collect(),
        created_ns: 0,
        last_seen_ns: 0,
        expires_ns: None,
    });
}

unsafe extern "C" fn next_flow(host: *mut RawHost, flow: u64) -> u64 {
    // SAFETY: as for `flow`.
    unsafe { state(host) }.and_then(|state| state.flows.after(flow)).unwrap_or(0)
}

unsafe extern "C" fn save_bytes(saved: *mut RawSaved, first: *const u8, length: usize) {
    // SAFETY: null, or the value that the call of `save` was given, which lives as long as the
    // call.
    let into = unsafe { saved.as_mut().and_then(|saved| saved.into.as_mut()) };
    // SAFETY: there are this number of bytes.
    let bytes = unsafe { slice(first, length) };
    if let (Some(into), Some(bytes)) = (into, bytes) {
        into.extend_from_slice(bytes);
    }
}

fn kind(number: u32) -> Kind {
    match number {
        1 => Kind::Ip4,
        2 => Kind::Ip6,
        3 => Kind::Port,
        _ => Kind::Uint,
    }
}
