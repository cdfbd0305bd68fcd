//! Calls into an instance's code.

use super::abi::{
    ConditionFn, RawConnection, RawData, RawDump, RawHost, RawPacket, RawSaved, StateFunctionFn,
    TimerFn, UpdateFn,
};
use super::api::API;
use super::crash::{self, Note, Running};
use super::gate::Gate;
use super::load::Definition;
use crate::dump::Entry;
use crate::flows::Flow;
use crate::host::State;
use crate::record::{Handler, Payload, StateFunction};
use crate::stream::{Decision, News, What};
use crate::subject::Subject;
use braid_packet::Packet;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// An instance of a function: its code, its data, and Braid's data for it.
///
/// While the instance's code runs, Braid's data is reached only through the handles: no reference
/// to it lives then.
pub(crate) struct Bound {
    definition: Arc<Definition>,
    /// The function's own pointer, `self`.
    this: *mut c_void,
    host: *mut RawHost,
    packet: *mut RawPacket,
    state: *mut State,
    note: Note,
    /// Whether the function has made an instance.
    exists: bool,
}

// SAFETY: by the interface, any thread may use an instance, one at a time; Braid owns everything
// else.
unsafe impl Send for Bound {}

/// While this value lives, the instance's code runs in this thread. The instance lives longer.
struct Entered {
    /// The thread for which the gate was open before.
    before: usize,
    gate: *const Gate,
    _running: Running,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: the instance, which owns the gate, lives longer than each of its calls.
        unsafe { (*self.gate).close(self.before) };
    }
}

/// The result of a call for a packet: the code of a verdict, and the packet.
pub(crate) struct Called {
    pub(crate) code: i32,
    pub(crate) packet: Packet,
}

impl Bound {
    /// Makes a new instance. The function may refuse.
    pub(crate) fn new(
        definition: Arc<Definition>,
        label: &str,
        state: State,
    ) -> Result<Self, String> {
        let state = Box::into_raw(Box::new(state));
        let host = RawHost { api: &raw const API, state, gate: Gate::default() };
        let host = Box::into_raw(Box::new(host));
        let packet = RawPacket { api: &raw const API, host, subject: ptr::null_mut() };
        let packet = Box::into_raw(Box::new(packet));
        let note = Note::new(label);
        let this = ptr::null_mut();
        let mut bound = Self { definition, this, host, packet, state, note, exists: true };
        let Some(create) = bound.definition.raw.create else { return Ok(bound) };
        let mut this = ptr::null_mut();
        let code = {
            let _running = bound.enter(0);
            // SAFETY: by the interface; the handle is valid, and no reference to the state lives.
            unsafe { create(bound.host, &raw mut this) }
        };
        if code == 0 {
            bound.this = this;
            return Ok(bound);
        }
        let why = bound.state_mut().failure.take();
        // There is nothing to destroy.
        bound.exists = false;
        Err(why.unwrap_or_else(|| format!("it refuses, with code {code}")))
    }

    pub(crate) fn state(&self) -> &State {
        // SAFETY: it lives as long as `self`, and code that changes it runs only while `self` is
        // borrowed exclusively (`dump` writes elsewhere).
        unsafe { &*self.state }
    }

    pub(crate) fn state_mut(&mut self) -> &mut State {
        // SAFETY: as for `state`.
        unsafe { &mut *self.state }
    }

    fn gate(&self) -> &Gate {
        // SAFETY: the handle lives as long as `self`, and the gate can be shared.
        unsafe { &(*self.host).gate }
    }

    /// Records that the instance's code is about to run, for the packet with this number.
    fn enter(&self, packet: u64) -> Entered {
        let gate = self.gate();
        Entered { before: gate.open(), gate, _running: crash::enter(&self.note, packet) }
    }

    /// The number of calls that came when none was allowed.
    pub(crate) fn refused(&self) -> u64 {
        self.gate().refused()
    }

    /// Runs code that uses the packet.
    fn with_packet(
        &mut self,
        mut subject: Subject,
        run: impl FnOnce(*mut c_void, *mut RawPacket) -> i32,
    ) -> Called {
        let number = self.state().packets;
        // SAFETY: the handle lives as long as `self`, and no code runs now. The subject stays in
        // its place and is reached only through the handle, until the handle is cleared below.
        unsafe { (*self.packet).subject = &raw mut subject };
        let code = {
            let _running = self.enter(number);
            run(self.this, self.packet)
        };
        // SAFETY: as above: the code has returned.
        unsafe { (*self.packet).subject = ptr::null_mut() };
        let packet = subject.finish(self.state_mut());
        Called { code, packet }
    }

    /// Calls the function for a packet.
    pub(crate) fn packet(&mut self, packet: Packet) -> Called {
        let code = self.definition.raw.packet;
        self.with_packet(Subject::new(packet, Payload::Write), |this, handle| match code {
            // SAFETY: by the interface; the handles are valid, and no reference to the data behind
            // them lives.
            Some(code) => unsafe { code(this, handle) },
            None => crate::verdict::FAILED,
        })
    }

    /// Calls the function for what a connection brings, whose flow has this number.
    pub(crate) fn connection(&mut self, flow: u64, News { client, what }: News<'_>) -> i32 {
        let connection = RawConnection::new(flow, client);
        let (raw, connection) = (self.definition.raw, &raw const connection);
        let _running = self.enter(self.state().packets);
        match (what, raw.open, raw.data, raw.close) {
            (What::Open, Some(code), ..) => {
                // SAFETY: as for `packet`; the structure lives until the call is over.
                unsafe { code(self.this, self.host, connection) }
            }
            (What::Data(data), _, Some(code), _) => {
                let data = RawData::new(data);
                // SAFETY: as above.
                unsafe { code(self.this, self.host, connection, &raw const data) }
            }
            (What::Close, .., Some(code)) => {
                // SAFETY: as above.
                unsafe { code(self.this, self.host, connection) };
                Decision::Forward.code()
            }
            _ => Decision::Forward.code(),
        }
    }

    /// Runs a recorded state function for a packet of a flow.
    pub(crate) fn state_function(
        &mut self,
        StateFunction { handler, payload }: StateFunction,
        packet: Packet,
        flow: u64,
    ) -> Packet {
        let subject = match self.state().flows.has(flow) && !self.state().is_observed() {
            true => Subject::of_flow(packet, payload, flow),
            false => Subject::new(packet, payload),
        };
        // SAFETY: this instance made the handler from such a function.
        let code = unsafe { std::mem::transmute::<usize, StateFunctionFn>(handler.code) };
        let called = self.with_packet(subject, |this, handle| {
            // SAFETY: as for `packet`.
            unsafe { code(this, handle, handler.arg as *mut c_void) };
            0
        });
        called.packet
    }

    /// Whether a guard's condition holds.
    pub(crate) fn condition(&mut self, handler: Handler, flow: u64) -> bool {
        // SAFETY: this instance made the handler from such a function.
        let code = unsafe { std::mem::transmute::<usize, ConditionFn>(handler.code) };
        let _running = self.enter(self.state().packets);
        // SAFETY: as for `packet`.
        unsafe { code(self.this, flow, handler.arg as *mut c_void) != 0 }
    }

    /// Runs a guard's update, which records again.
    pub(crate) fn update(&mut self, handler: Handler, flow: u64) {
        // SAFETY: this instance made the handler from such a function.
        let code = unsafe { std::mem::transmute::<usize, UpdateFn>(handler.code) };
        let _running = self.enter(self.state().packets);
        // SAFETY: as for `packet`.
        unsafe { code(self.this, self.host, flow, handler.arg as *mut c_void) };
    }

    /// Runs a timer.
    pub(crate) fn timer(&mut self, handler: Handler) {
        // SAFETY: this instance made the handler from such a function.
        let code = unsafe { std::mem::transmute::<usize, TimerFn>(handler.code) };
        let _running = self.enter(self.state().packets);
        // SAFETY: as for `packet`.
        unsafe { code(self.this, self.host, handler.arg as *mut c_void) };
    }

    /// Tells the function that a flow has ended.
    pub(crate) fn flow_end(&mut self, number: u64, mut flow: Flow) {
        let Some(code) = self.definition.raw.flow_end else { return };
        let memory = match flow.memory.is_empty() {
            true => ptr::null_mut(),
            false => flow.memory.as_mut_ptr().cast(),
        };
        let _running = self.enter(self.state().packets);
        // SAFETY: as for `packet`; the memory lives until the call is over.
        unsafe { code(self.this, self.host, number, memory) };
    }

    /// Tells the function that a parameter has changed. The function may refuse.
    pub(crate) fn change(&mut self, name: &str) -> Result<(), String> {
        let refused = || format!("the function cannot change `{name}` while it runs");
        let code = self.definition.raw.change.ok_or_else(refused)?;
        let c_name = CString::new(name).map_err(|_| refused())?;
        let result = {
            let _running = self.enter(self.state().packets);
            // SAFETY: as for `packet`; the name ends with a 0.
            unsafe { code(self.this, self.host, c_name.as_ptr()) }
        };
        if result == 0 {
            return Ok(());
        }
        Err(self.state_mut().failure.take().unwrap_or_else(refused))
    }

    /// The state entries that the function shows.
    pub(crate) fn dump(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if let Some(code) = self.definition.raw.dump {
            let mut dump = RawDump { api: &raw const API, into: &raw mut entries };
            let _running = self.enter(self.state().packets);
            // SAFETY: by the interface, it changes nothing; `entries` is reached only through the
            // handle.
            unsafe { code(self.this, &raw mut dump) };
        }
        entries
    }
}

/// An instance's memory for another instance.
impl Bound {
    /// The bytes that the function has saved of its memory. `None` if it cannot.
    pub(crate) fn save(&mut self) -> Option<Vec<u8>> {
        let code = self.definition.raw.save?;
        let _restores = self.definition.raw.restore?;
        let mut bytes = Vec::new();
        let result = {
            let mut saved = RawSaved { api: &raw const API, into: &raw mut bytes };
            let _running = self.enter(self.state().packets);
            // SAFETY: as for `packet`; `bytes` is reached only through the handle.
            unsafe { code(self.this, self.host, &raw mut saved) }
        };
        (result == 0).then_some(bytes)
    }

    /// Gives the function the bytes that an earlier instance has saved. The function may refuse.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let refused = || "the function cannot go on from its memory".to_owned();
        let code = self.definition.raw.restore.ok_or_else(refused)?;
        let result = {
            let _running = self.enter(self.state().packets);
            // SAFETY: as for `packet`; the bytes live until the call is over.
            unsafe { code(self.this, self.host, bytes.as_ptr(), bytes.len()) }
        };
        if result == 0 {
            return Ok(());
        }
        Err(self.state_mut().failure.take().unwrap_or_else(refused))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let exists = self.exists;
        let flows = self.state().flows.iter().filter(|_| exists);
        let flows: Vec<u64> = flows.map(|(number, _)| number).collect();
        for number in flows {
            if let Some(flow) = self.state_mut().flows.remove(number) {
                self.flow_end(number, flow);
            }
        }
        if let Some(destroy) = self.definition.raw.destroy.filter(|_| self.exists) {
            let _running = self.enter(self.state().packets);
            // SAFETY: by the interface, and nobody uses it any more.
            unsafe { destroy(self.this) };
        }
        // SAFETY: made by `Box::into_raw` in `new`, and nobody uses it any more.
        unsafe {
            drop(Box::from_raw(self.packet));
            drop(Box::from_raw(self.host));
            drop(Box::from_raw(self.state));
        }
    }
}
