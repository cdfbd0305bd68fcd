//! The interface for functions in Rust: safe names for everything in the header. The module `shims`
//! translates.

use super::abi::{RawAction, RawDump, RawGuard, RawHost, RawItem, RawPacket, RawWide};
use super::info::Info;
use super::shims;
use crate::dump::Kind;
use crate::host::SOON;
use crate::record::Payload;
use crate::stream::{Data, Decision};
use crate::verdict::Verdict;
use braid_packet::{Field, FlowKey, Header};
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;

/// A flow's number; see [`PacketRef::flow`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Flow(pub u64);

/// A TCP connection, as a function sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Its number; `None` if there is no room for another one.
    pub flow: Option<Flow>,
    /// Its ends: the client, which has opened it, is the source.
    pub client: FlowKey,
}

/// The number of a tag; see [`Host::tag`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(pub(super) i32);

/// A network function in Rust. Panics are caught: the packet is dropped, and the report names the
/// function.
///
/// ```
/// use braid_native::{Action, Function, Host, Info, PacketRef, Payload, RawNf, Verdict};
///
/// /// Lets the first hundred packets of each flow pass.
/// struct FirstHundred;
///
/// impl Function for FirstHundred {
///     const INFO: Info = Info { reasons: c"enough", ..Info::new(c"lets a hundred packets pass") };
///     type Flow = u64;
///
///     fn new(_host: &mut Host<'_>) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
///         let Some(count) = packet.kept() else { return Verdict::Forward };
///         *count += 1;
///         let (first, over) = (*count == 1, *count > 100);
///         if let Some(flow) = packet.flow().filter(|_| first) {
///             let host = packet.host();
///             let _ = host.add_header_action(flow, Action::Forward);
///             let _ = host.add_state_function::<Self>(flow, 0, Payload::Ignore);
///             let _ = host.register_guard::<Self>(flow, 0, Some(Action::Drop(0)), false);
///         }
///         if over { Verdict::Drop(0) } else { Verdict::Forward }
///     }
///
///     fn state_function(&mut self, _number: u32, packet: &mut PacketRef<'_, Self>) {
///         if let Some(count) = packet.kept() {
///             *count += 1;
///         }
///     }
///
///     fn condition(&mut self, _number: u32, flow: braid_native::Flow, host: &mut Host<'_>) -> bool {
///         host.flow::<Self>(flow).is_some_and(|count| *count >= 100)
///     }
/// }
///
/// // In a program. A shared library has `export!(braid_nf_first_hundred, FirstHundred);`.
/// static DEFINITION: RawNf = RawNf::of::<FirstHundred>();
/// braid_native::register("mine", "first_hundred", &DEFINITION);
/// # let wanted = braid_native::Reference {
/// #     library: "mine".into(), function: "first_hundred".into(),
/// #     checks: braid_native::Checks { records: true, observe: false }, isolated: None,
/// # };
/// # let mut it = braid_native::Instance::new(&wanted, "it", Vec::new()).unwrap();
/// # use braid_packet::{Field, Link, Shape, build_fresh};
/// # let passed = (0..150).filter(|_| {
/// #     let fields = [(Field::L4Sport, 5)];
/// #     let mut packet = build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, b"x").unwrap();
/// #     it.packet(&mut packet, 0) == Ok(Verdict::Forward)
/// # });
/// # assert_eq!(passed.count(), 100);
/// # assert_eq!(it.problems(), []);
/// ```
pub trait Function: Sized + Send + 'static {
    /// The function's description of itself.
    const INFO: Info;

    /// The function's data for each flow. It is made when the flow's first packet asks for it.
    type Flow: Default + Send;

    /// Makes an instance from its configuration.
    ///
    /// # Errors
    /// The reason why the instance cannot be made.
    fn new(host: &mut Host<'_>) -> Result<Self, String>;

    /// Processes a packet. Functions have this, unless they are stream functions
    /// ([`Info::stream`]).
    fn packet(&mut self, _packet: &mut PacketRef<'_, Self>) -> Verdict {
        Verdict::Forward
    }

    /// A stream function learns of a TCP connection: both ends have agreed on it, or its first
    /// bytes come.
    fn open(&mut self, _connection: &Connection, _host: &mut Host<'_>) -> Decision {
        Decision::Forward
    }

    /// The next bytes of an end of a connection have come, in order and without repetitions.
    fn data(
        &mut self,
        _connection: &Connection,
        _data: &Data<'_>,
        _host: &mut Host<'_>,
    ) -> Decision {
        Decision::Forward
    }

    /// A connection is over, and the function has neither reset nor left it. The flow ends after
    /// this.
    fn close(&mut self, _connection: &Connection, _host: &mut Host<'_>) {}

    /// Runs a recorded state function, by its number.
    fn state_function(&mut self, _number: u32, _packet: &mut PacketRef<'_, Self>) {}

    /// Whether a guard's condition holds, by its number.
    fn condition(&mut self, _number: u32, _flow: Flow, _host: &mut Host<'_>) -> bool {
        false
    }

    /// Runs a guard's update, by its number, which records again.
    fn update(&mut self, _number: u32, _flow: Flow, _host: &mut Host<'_>) {}

    /// Tells the function that a flow has ended.
    fn flow_end(&mut self, _flow: Flow, _kept: Self::Flow, _host: &mut Host<'_>) {}

    /// Runs a timer, by its number.
    fn timer(&mut self, _number: u32, _host: &mut Host<'_>) {}

    /// Tells the function that a parameter has changed.
    ///
    /// # Errors
    /// The reason for a refusal.
    fn change(&mut self, parameter: &str, _host: &mut Host<'_>) -> Result<(), String> {
        Err(format!("the function cannot change `{parameter}` while it runs"))
    }

    /// Shows its state.
    fn dump(&self, _into: &mut Dump<'_>) {}

    /// Its memory as bytes, from which another instance can go on. It includes the data of flows,
    /// but no records. `None`: the function cannot save its memory, so a new instance begins anew.
    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Goes on from bytes that [`Function::save`] of an earlier instance gave. The instance is new.
    /// The host has the flows, counters and periodic timers of the earlier instance already.
    ///
    /// # Errors
    /// The reason why it cannot go on from these bytes.
    fn restore(&mut self, _bytes: &[u8], _host: &mut Host<'_>) -> Result<(), String> {
        Err("the function cannot go on from its memory".to_owned())
    }
}

/// The data for a flow: null until the function asks for it.
#[repr(transparent)]
pub struct FlowMemory<T>(pub(super) Option<Box<T>>);

/// Exports a function of a shared library: `export!(braid_nf_monitor, Monitor);`
#[macro_export]
macro_rules! export {
    ($symbol:ident, $function:ty) => {
        /// The library's symbol with this name.
        #[allow(non_upper_case_globals, reason = "the header's names")]
        #[unsafe(no_mangle)]
        pub static $symbol: $crate::RawNf = $crate::RawNf::of::<$function>();
    };
}

/// Braid's interface to the instance.
pub struct Host<'a> {
    pub(super) raw: *mut RawHost,
    life: PhantomData<&'a mut ()>,
}

/// The packet of a function's call.
pub struct PacketRef<'a, T> {
    pub(super) raw: *mut RawPacket,
    pub(super) host: Host<'a>,
    function: PhantomData<T>,
}

/// Collects the state that a function shows.
pub struct Dump<'a> {
    pub(super) raw: *mut RawDump,
    pub(super) life: PhantomData<&'a mut ()>,
}

/// A header action to be recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action<'a> {
    /// The packet goes on unchanged.
    Forward,
    /// The packet is dropped for this reason.
    Drop(u32),
    /// A field gets a value.
    Modify(Field, u128),
    /// Bytes are inserted at an offset.
    Encap(usize, &'a [u8]),
    /// This many bytes are removed at an offset.
    Decap(usize, usize),
    /// The packet leaves by this port.
    Output(u32),
    /// A tag gets a value.
    Tag(Tag, u128),
}

/// A part of a key, or a named value.
pub type Item<'a> = (&'a CStr, Kind, u128);

/// The result of a call that the host may refuse. The report says what was wrong.
pub type Told = Result<(), i32>;

pub(super) fn told(code: i32) -> Told {
    if code < 0 { Err(code) } else { Ok(()) }
}

/// A text without zeros, and a zero at its end.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Calls a function of the host through its handle.
macro_rules! call {
    ($handle:expr, $name:ident $(, $arg:expr)*) => {{
        let handle = $handle;
        // SAFETY: the handle belongs to the current call of the function and lives as long. The
        // other arguments live as long as the call to the host.
        unsafe { ((*(*handle).api).$name)(handle $(, $arg)*) }
    }};
}
pub(super) use call;

impl Host<'_> {
    pub(super) fn new(raw: *mut RawHost) -> Self {
        Self { raw, life: PhantomData }
    }

    /// The time (ns).
    #[must_use]
    pub fn now(&self) -> u64 {
        call!(self.raw, now)
    }

    /// The value of a parameter that is one number.
    ///
    /// # Errors
    /// The parameter does not exist or has no number.
    pub fn config(&self, name: &str) -> Result<u128, String> {
        self.config_at(name, 0, 0).ok_or_else(|| format!("it needs a parameter `{name}`"))
    }

    /// One number of a parameter that has rows.
    #[must_use]
    pub fn config_at(&self, name: &str, row: usize, column: usize) -> Option<u128> {
        let (name, mut value) = (c_text(name), RawWide::default());
        let code = call!(self.raw, config, name.as_ptr(), row, column, &raw mut value);
        (code == 0).then(|| value.value())
    }

    /// The rows of a parameter, each with `columns` columns.
    #[must_use]
    pub fn config_rows<const N: usize>(&self, name: &str) -> Vec<[u128; N]> {
        let c_name = c_text(name);
        let rows = usize::try_from(call!(self.raw, config_rows, c_name.as_ptr())).unwrap_or(0);
        let row = |row| std::array::from_fn(|at| self.config_at(name, row, at).unwrap_or(0));
        (0..rows).map(row).collect()
    }

    /// The text of a parameter, or of its row.
    #[must_use]
    pub fn config_text(&self, name: &str, row: usize) -> Option<Vec<u8>> {
        let (name, mut length) = (c_text(name), 0);
        let text = call!(self.raw, config_text, name.as_ptr(), row, &raw mut length);
        if text.is_null() {
            return None;
        }
        // SAFETY: the host gives the number of bytes; they are copied at once.
        Some(unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }.to_vec())
    }

    /// This instance's share of a limit. If a chain has several workers, each has an instance of
    /// the function ([`Info::keeps`]), and their shares together are the limit.
    #[must_use]
    pub fn share(&self, total: u64) -> u64 {
        call!(self.raw, share, total)
    }

    /// The counter with this name. The function's state shows it.
    #[must_use]
    pub fn counter(&mut self, name: &str) -> i32 {
        call!(self.raw, counter, c_text(name).as_ptr())
    }

    /// Adds to a counter.
    pub fn count(&mut self, counter: i32, n: u64) {
        call!(self.raw, count, counter, n);
    }

    /// Publishes a message.
    pub fn log(&mut self, level: &str, text: &str) {
        call!(self.raw, log, c_text(level).as_ptr(), c_text(text).as_ptr());
    }

    /// Calls [`Function::timer`] with this number periodically, beginning with the first packet.
    ///
    /// # Errors
    /// The period is 0, or there are too many timers.
    pub fn every<T: Function>(&mut self, ns: u64, number: u32) -> Told {
        told(call!(self.raw, timer, ns, ns, Some(shims::timer::<T>), arg(number)))
    }

    /// Calls [`Function::timer`] with this number once, after this time.
    ///
    /// # Errors
    /// As for [`Self::every`].
    pub fn after<T: Function>(&mut self, ns: u64, number: u32) -> Told {
        told(call!(self.raw, timer, ns, 0, Some(shims::timer::<T>), arg(number)))
    }

    /// Calls [`Function::timer`] with this number once, as soon as the time goes on, behind all
    /// other work that is due by then. In a live run, that is before the next burst, and when a
    /// worker that waited looks around, such as after a descriptor woke it (`braid_io::wake_for`).
    ///
    /// # Errors
    /// There are too many timers.
    pub fn soon<T: Function>(&mut self, number: u32) -> Told {
        let (after, period) = SOON;
        told(call!(self.raw, timer, after, period, Some(shims::timer::<T>), arg(number)))
    }

    /// The data for a flow; `None` when the flow has ended.
    pub fn flow<T: Function>(&mut self, flow: Flow) -> Option<&mut T::Flow> {
        kept::<T>(call!(self.raw, flow_memory, flow.0))
    }

    /// All flows in the order of their numbers.
    #[must_use]
    pub fn flows(&mut self) -> Vec<Flow> {
        let next = |flow: &Flow| {
            let next = call!(self.raw, next_flow, flow.0);
            (next != 0).then_some(Flow(next))
        };
        std::iter::successors(next(&Flow(0)), next).collect()
    }

    /// Ends a flow now.
    pub fn end_flow(&mut self, flow: Flow) {
        call!(self.raw, end_flow, flow.0);
    }

    /// Records an action on each packet of a flow.
    ///
    /// # Errors
    /// The use was wrong. The report has the details.
    pub fn add_header_action(&mut self, flow: Flow, action: Action<'_>) -> Told {
        let raw = raw_action(action);
        told(call!(self.raw, add_header_action, flow.0, &raw const raw))
    }

    /// Records that [`Function::state_function`] runs with this number for each packet of a flow.
    ///
    /// # Errors
    /// As for [`Self::add_header_action`].
    pub fn add_state_function<T: Function>(
        &mut self,
        flow: Flow,
        number: u32,
        payload: Payload,
    ) -> Told {
        let run = Some(shims::state_function::<T> as super::abi::StateFunctionFn);
        let payload = payload as i32;
        told(call!(self.raw, add_state_function, flow.0, run, payload, arg(number)))
    }

    /// Registers a guard. When [`Function::condition`] returns true for this number, `action`
    /// replaces the flow's header actions, and if `update` is set, [`Function::update`] records the
    /// other changes.
    ///
    /// # Errors
    /// As for [`Self::add_header_action`].
    pub fn register_guard<T: Function>(
        &mut self,
        flow: Flow,
        number: u32,
        action: Option<Action<'_>>,
        update: bool,
    ) -> Told {
        let action = action.map(raw_action);
        let guard = RawGuard {
            condition: Some(shims::condition::<T>),
            arg: arg(number),
            action: action.as_ref().map_or(ptr::null(), ptr::from_ref),
            update: update.then_some(shims::update::<T> as super::abi::UpdateFn),
        };
        told(call!(self.raw, register_guard, flow.0, &raw const guard))
    }

    /// Reports a change of the function's state that the flow's own state functions did not make.
    /// The flow's guards are checked. Flow 0 stands for all flows here.
    ///
    /// # Errors
    /// The flow has no record.
    pub fn notify(&mut self, flow: Flow) -> Told {
        told(call!(self.raw, notify, flow.0))
    }

    /// Ends the flow's record.
    ///
    /// # Errors
    /// The flow has no record.
    pub fn forget(&mut self, flow: Flow) -> Told {
        told(call!(self.raw, forget, flow.0))
    }

    pub(super) fn fail(&mut self, why: &str) -> i32 {
        call!(self.raw, fail, c_text(why).as_ptr())
    }
}

/// The data for a flow, in its memory.
fn kept<'a, T: Function>(memory: *mut c_void) -> Option<&'a mut T::Flow> {
    // SAFETY: the host gives memory of the requested size. It is zero (`None`) at first and belongs
    // to this function. The borrow is bound to a handle, and only through that handle can the flow
    // end.
    let memory = unsafe { memory.cast::<FlowMemory<T::Flow>>().as_mut()? };
    Some(memory.0.get_or_insert_default())
}

/// A number as the argument of a handler.
fn arg(number: u32) -> *mut c_void {
    ptr::without_provenance_mut(number as usize)
}

fn raw_action(action: Action<'_>) -> RawAction {
    let signed = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let raw = |kind, number| RawAction {
        kind,
        number,
        value: RawWide::default(),
        at: 0,
        length: 0,
        bytes: ptr::null(),
    };
    match action {
        Action::Forward => raw(0, 0),
        Action::Drop(reason) => raw(1, signed(reason)),
        Action::Modify(field, value) => {
            RawAction { value: RawWide::of(value), ..raw(2, code_of(field)) }
        }
        Action::Encap(at, bytes) => {
            RawAction { at, length: bytes.len(), bytes: bytes.as_ptr(), ..raw(3, 0) }
        }
        Action::Decap(at, length) => RawAction { at, length, ..raw(4, 0) },
        Action::Output(port) => raw(5, signed(port)),
        Action::Tag(tag, value) => RawAction { value: RawWide::of(value), ..raw(6, tag.0) },
    }
}

fn code_of(field: Field) -> i32 {
    i32::try_from(field as usize).unwrap_or(-1)
}

impl<'a, T: Function> PacketRef<'a, T> {
    pub(super) fn new(raw: *mut RawPacket) -> Self {
        // SAFETY: the handle is valid during the call; its host was set when it was made.
        let host = Host::new(unsafe { (*raw).host });
        Self { raw, host, function: PhantomData }
    }

    /// Braid's interface to the instance.
    pub fn host(&mut self) -> &mut Host<'a> {
        &mut self.host
    }

    /// The number of the flow that the packet had when it entered; `None` for packets that are not
    /// IP, and if there is no room.
    pub fn flow(&mut self) -> Option<Flow> {
        let flow = call!(self.raw, flow);
        (flow != 0).then_some(Flow(flow))
    }

    /// The data for the packet's flow.
    pub fn kept(&mut self) -> Option<&mut T::Flow> {
        kept::<T>(call!(self.raw, flow_state))
    }

    /// A field's value.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        let mut value = RawWide::default();
        (call!(self.raw, get, code_of(field), &raw mut value) == 0).then(|| value.value())
    }

    /// Assigns a field and updates checksums.
    ///
    /// # Errors
    /// The packet lacks the field, or the use was wrong.
    pub fn set(&mut self, field: Field, value: u128) -> Told {
        let value = RawWide::of(value);
        told(call!(self.raw, set, code_of(field), &raw const value))
    }

    /// Whether the packet has a header.
    #[must_use]
    pub fn has(&self, header: Header) -> bool {
        call!(self.raw, has, i32::from(header as u8)) == 1
    }

    /// The captured bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let mut length = 0;
        let first = call!(self.raw, bytes, &raw mut length);
        // SAFETY: the host gives the number; the bytes stay while nothing changes the packet, which
        // needs `&mut self`.
        if first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, length) } }
    }

    /// The captured bytes, to be changed.
    pub fn change_bytes(&mut self) -> &mut [u8] {
        let mut length = 0;
        let first = call!(self.raw, change_bytes, &raw mut length);
        if first.is_null() {
            return &mut [];
        }
        // SAFETY: as for `bytes`, and only this call may use them.
        unsafe { std::slice::from_raw_parts_mut(first, length) }
    }

    /// The payload; `None` if the capture lacks part of it.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        let mut length = 0;
        let first = call!(self.raw, payload, &raw mut length);
        // SAFETY: as for `bytes`.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, length) })
    }

    /// The payload, to be changed. Checksums are not updated.
    pub fn change_payload(&mut self) -> Option<&mut [u8]> {
        let mut length = 0;
        let first = call!(self.raw, change_payload, &raw mut length);
        // SAFETY: as for `change_bytes`.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(first, length) })
    }

    /// Inserts bytes.
    ///
    /// # Errors
    /// The packet ends before that place.
    pub fn insert(&mut self, at: usize, bytes: &[u8]) -> Told {
        told(call!(self.raw, insert, at, bytes.as_ptr(), bytes.len()))
    }

    /// Removes bytes.
    ///
    /// # Errors
    /// The packet lacks them.
    pub fn remove(&mut self, at: usize, len: usize) -> Told {
        told(call!(self.raw, remove, at, len))
    }
}

impl Dump<'_> {
    /// Shows an entry of a table.
    pub fn entry(&mut self, table: &CStr, key: &[(Kind, u128)], values: &[Item<'_>]) {
        let item = |name: *const c_char, kind: Kind, value| RawItem {
            name,
            kind: kind as u32,
            reserved: 0,
            value: RawWide::of(value),
        };
        let key: Vec<_> = key.iter().map(|(kind, v)| item(ptr::null(), *kind, *v)).collect();
        let values = values.iter().map(|(name, kind, v)| item(name.as_ptr(), *kind, *v));
        let values: Vec<_> = values.collect();
        let (first, table) = (key.as_ptr(), table.as_ptr());
        call!(self.raw, dump_entry, table, first, key.len(), values.as_ptr(), values.len());
    }
}
