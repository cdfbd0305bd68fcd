//! The C interface in Rust: the same structures as in `include/braid_nf.h`, in the same order.

use crate::stream::Data;
use braid_packet::FlowKey;
use std::ffi::{c_char, c_void};

/// `BRAID_NF_ABI`.
pub const ABI: u32 = 1;

/// `braid_wide`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct RawWide {
    /// Low 64 bits.
    pub low: u64,
    /// High 64 bits.
    pub high: u64,
}

impl RawWide {
    /// The value as one number.
    #[must_use]
    pub fn value(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    /// The two halves of a number.
    #[must_use]
    pub fn of(value: u128) -> Self {
        let low = u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0);
        Self { low, high: u64::try_from(value >> 64).unwrap_or(0) }
    }
}

/// `braid_operator`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawOperator {
    /// `BRAID_NF_ABI`.
    pub abi: u32,
    /// Bytes of this structure.
    pub size: u32,
    /// Whether it reads the payload.
    pub reads_payload: u32,
    /// The code: arguments and their number, the payload and its length, where the result goes.
    pub run:
        Option<unsafe extern "C" fn(*const RawWide, usize, *const u8, usize, result: *mut RawWide)>,
}

/// `braid_host`.
#[repr(C)]
pub struct RawHost {
    pub(crate) api: *const RawApi,
    /// Private to Braid.
    pub(crate) state: *mut crate::host::State,
    /// Private to Braid.
    pub(crate) gate: super::gate::Gate,
}

/// `braid_packet`.
#[repr(C)]
pub struct RawPacket {
    pub(crate) api: *const RawApi,
    pub(crate) host: *mut RawHost,
    /// Private to Braid. Null outside of calls.
    pub(crate) subject: *mut crate::subject::Subject,
}

/// `braid_dump`.
#[repr(C)]
pub struct RawDump {
    pub(crate) api: *const RawApi,
    /// Private to Braid.
    pub(crate) into: *mut Vec<crate::dump::Entry>,
}

/// `braid_saved`.
#[repr(C)]
pub struct RawSaved {
    pub(crate) api: *const RawApi,
    /// Private to Braid.
    pub(crate) into: *mut Vec<u8>,
}

/// `braid_state_function`.
pub type StateFunctionFn = unsafe extern "C" fn(*mut c_void, *mut RawPacket, *mut c_void);
/// `braid_condition`.
pub type ConditionFn = unsafe extern "C" fn(*mut c_void, u64, *mut c_void) -> i32;
/// `braid_update`.
pub type UpdateFn = unsafe extern "C" fn(*mut c_void, *mut RawHost, u64, *mut c_void);
/// `braid_timer`.
pub type TimerFn = unsafe extern "C" fn(*mut c_void, *mut RawHost, *mut c_void);

/// `braid_action`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawAction {
    pub(crate) kind: u32,
    pub(crate) number: i32,
    pub(crate) value: RawWide,
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) bytes: *const u8,
}

/// `braid_guard`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawGuard {
    pub(crate) condition: Option<ConditionFn>,
    pub(crate) arg: *mut c_void,
    pub(crate) action: *const RawAction,
    pub(crate) update: Option<UpdateFn>,
}

/// `braid_item`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawItem {
    pub(crate) name: *const c_char,
    pub(crate) kind: u32,
    pub(crate) reserved: u32,
    pub(crate) value: RawWide,
}

/// `braid_value`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawValue {
    pub(crate) number: RawWide,
    pub(crate) text: *const c_char,
    pub(crate) length: usize,
}

/// `braid_connection`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawConnection {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) flow: u64,
    pub(crate) client: RawWide,
    pub(crate) server: RawWide,
    pub(crate) client_port: u16,
    pub(crate) server_port: u16,
    pub(crate) reserved: u32,
}

/// `braid_data`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawData {
    pub(crate) size: u32,
    pub(crate) from_client: u32,
    pub(crate) bytes: *const u8,
    pub(crate) length: usize,
    pub(crate) offset: u64,
    pub(crate) missing: u64,
}

impl RawConnection {
    /// The connection of a flow with this number.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the structure has less than a hundred bytes"
    )]
    pub(crate) fn new(flow: u64, client: FlowKey) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            version: client.version.into(),
            flow,
            client: RawWide::of(client.src),
            server: RawWide::of(client.dst),
            client_port: client.sport,
            server_port: client.dport,
            reserved: 0,
        }
    }
}

impl RawData {
    /// These bytes, which live longer.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the structure has less than a hundred bytes"
    )]
    pub(crate) fn new(data: Data<'_>) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            from_client: data.from_client.into(),
            bytes: data.bytes.as_ptr(),
            length: data.bytes.len(),
            offset: data.offset,
            missing: data.missing,
        }
    }
}

/// `open` of `braid_nf`.
pub type OpenFn = unsafe extern "C" fn(*mut c_void, *mut RawHost, *const RawConnection) -> i32;
/// `data` of `braid_nf`.
pub type DataFn =
    unsafe extern "C" fn(*mut c_void, *mut RawHost, *const RawConnection, *const RawData) -> i32;
/// `close` of `braid_nf`.
pub type CloseFn = unsafe extern "C" fn(*mut c_void, *mut RawHost, *const RawConnection);

/// `braid_api`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "the header says what each does")]
pub struct RawApi {
    pub abi: u32,
    pub size: u32,
    pub flow: unsafe extern "C" fn(*mut RawPacket) -> u64,
    pub flow_state: unsafe extern "C" fn(*mut RawPacket) -> *mut c_void,
    pub get: unsafe extern "C" fn(*mut RawPacket, i32, *mut RawWide) -> i32,
    pub set: unsafe extern "C" fn(*mut RawPacket, i32, *const RawWide) -> i32,
    pub has: unsafe extern "C" fn(*mut RawPacket, i32) -> i32,
    pub bytes: unsafe extern "C" fn(*mut RawPacket, *mut usize) -> *const u8,
    pub change_bytes: unsafe extern "C" fn(*mut RawPacket, *mut usize) -> *mut u8,
    pub payload: unsafe extern "C" fn(*mut RawPacket, *mut usize) -> *const u8,
    pub change_payload: unsafe extern "C" fn(*mut RawPacket, *mut usize) -> *mut u8,
    pub insert: unsafe extern "C" fn(*mut RawPacket, usize, *const u8, usize) -> i32,
    pub remove: unsafe extern "C" fn(*mut RawPacket, usize, usize) -> i32,
    pub field_named: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub header_named: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub now: unsafe extern "C" fn(*mut RawHost) -> u64,
    pub config:
        unsafe extern "C" fn(*mut RawHost, *const c_char, usize, usize, *mut RawWide) -> i32,
    pub config_rows: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i64,
    pub config_text:
        unsafe extern "C" fn(*mut RawHost, *const c_char, usize, *mut usize) -> *const c_char,
    pub fail: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub counter: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub count: unsafe extern "C" fn(*mut RawHost, i32, u64),
    pub log: unsafe extern "C" fn(*mut RawHost, *const c_char, *const c_char),
    pub timer: unsafe extern "C" fn(*mut RawHost, u64, u64, Option<TimerFn>, *mut c_void) -> i32,
    pub flow_memory: unsafe extern "C" fn(*mut RawHost, u64) -> *mut c_void,
    pub end_flow: unsafe extern "C" fn(*mut RawHost, u64),
    pub add_header_action: unsafe extern "C" fn(*mut RawHost, u64, *const RawAction) -> i32,
    pub add_state_function:
        unsafe extern "C" fn(*mut RawHost, u64, Option<StateFunctionFn>, i32, *mut c_void) -> i32,
    pub register_guard: unsafe extern "C" fn(*mut RawHost, u64, *const RawGuard) -> i32,
    pub notify: unsafe extern "C" fn(*mut RawHost, u64) -> i32,
    pub forget: unsafe extern "C" fn(*mut RawHost, u64) -> i32,
    pub dump_entry: unsafe extern "C" fn(
        *mut RawDump,
        *const c_char,
        *const RawItem,
        usize,
        *const RawItem,
        usize,
    ),
    pub next_flow: unsafe extern "C" fn(*mut RawHost, u64) -> u64,
    pub save_bytes: unsafe extern "C" fn(*mut RawSaved, *const u8, usize),
    pub event_named: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub publish: unsafe extern "C" fn(*mut RawHost, i32, *const RawValue, usize) -> i32,
    pub tag_named: unsafe extern "C" fn(*mut RawHost, *const c_char) -> i32,
    pub get_tag: unsafe extern "C" fn(*mut RawPacket, i32, *mut RawWide) -> i32,
    pub set_tag: unsafe extern "C" fn(*mut RawPacket, i32, *const RawWide) -> i32,
    pub send: unsafe extern "C" fn(*mut RawPacket, *const u8, usize, i32) -> i32,
    pub send_from_timer: unsafe extern "C" fn(*mut RawHost, *const u8, usize, i32) -> i32,
    pub share: unsafe extern "C" fn(*mut RawHost, u64) -> u64,
}

/// `braid_profile`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawProfile {
    pub(crate) reads: *const c_char,
    pub(crate) writes: *const c_char,
    pub(crate) may: u32,
    pub(crate) reserved: u32,
}

// SAFETY: its pointers are to constants, which nobody changes.
unsafe impl Sync for RawProfile {}

/// `braid_nf`. Only a library, or [`RawNf::of`], makes one. Its pointers are trusted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawNf {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) about: *const c_char,
    pub(crate) flow_scope: u32,
    pub(crate) flow_full: u32,
    pub(crate) flow_bytes: u64,
    pub(crate) flow_capacity: u64,
    pub(crate) flow_idle_ns: u64,
    pub(crate) reasons: *const c_char,
    pub(crate) ports: *const c_char,
    pub(crate) profile: *const RawProfile,
    pub(crate) create: Option<unsafe extern "C" fn(*mut RawHost, *mut *mut c_void) -> i32>,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) packet: Option<unsafe extern "C" fn(*mut c_void, *mut RawPacket) -> i32>,
    pub(crate) flow_end: Option<unsafe extern "C" fn(*mut c_void, *mut RawHost, u64, *mut c_void)>,
    pub(crate) change:
        Option<unsafe extern "C" fn(*mut c_void, *mut RawHost, *const c_char) -> i32>,
    pub(crate) dump: Option<unsafe extern "C" fn(*mut c_void, *mut RawDump)>,
    pub(crate) save: Option<unsafe extern "C" fn(*mut c_void, *mut RawHost, *mut RawSaved) -> i32>,
    pub(crate) restore:
        Option<unsafe extern "C" fn(*mut c_void, *mut RawHost, *const u8, usize) -> i32>,
    pub(crate) events: *const c_char,
    pub(crate) tags: *const c_char,
    pub(crate) sends: u32,
    pub(crate) keeps: u32,
    pub(crate) open: Option<OpenFn>,
    pub(crate) data: Option<DataFn>,
    pub(crate) close: Option<CloseFn>,
}

impl RawNf {
    /// Whether it has code for connections.
    pub(crate) fn is_stream(&self) -> bool {
        self.open.is_some() || self.data.is_some() || self.close.is_some()
    }
}

// SAFETY: its pointers are to constants and code, which nobody changes.
unsafe impl Sync for RawNf {}
// SAFETY: as for `Sync`: any thread may read the data behind the pointers.
unsafe impl Send for RawNf {}

#[cfg(test)]
mod tests {
    use super::{
        RawAction, RawApi, RawConnection, RawData, RawGuard, RawItem, RawNf, RawProfile, RawValue,
        RawWide,
    };
    use std::mem::offset_of;

    /// The same numbers as in `tests/c/layout.c`, for 64-bit machines.
    #[test]
    fn layout_is_that_of_the_header() {
        assert_eq!(size_of::<RawWide>(), 16);
        assert_eq!((size_of::<RawAction>(), offset_of!(RawAction, value)), (48, 8));
        assert_eq!(offset_of!(RawAction, bytes), 40);
        assert_eq!((size_of::<RawGuard>(), size_of::<RawItem>()), (32, 32));
        assert_eq!((size_of::<RawProfile>(), size_of::<RawValue>()), (24, 32));
        let nf = [
            offset_of!(RawNf, flow_scope),
            offset_of!(RawNf, reasons),
            offset_of!(RawNf, profile),
            offset_of!(RawNf, packet),
            offset_of!(RawNf, dump),
            offset_of!(RawNf, save),
            offset_of!(RawNf, restore),
            offset_of!(RawNf, events),
            offset_of!(RawNf, tags),
            offset_of!(RawNf, sends),
            offset_of!(RawNf, keeps),
            offset_of!(RawNf, open),
            offset_of!(RawNf, close),
            size_of::<RawNf>(),
        ];
        assert_eq!(nf, [16, 48, 64, 88, 112, 120, 128, 136, 144, 152, 156, 160, 176, 184]);
        let connection = [
            offset_of!(RawConnection, flow),
            offset_of!(RawConnection, server),
            offset_of!(RawConnection, client_port),
            size_of::<RawConnection>(),
        ];
        assert_eq!(connection, [8, 32, 48, 56]);
        let data = [
            offset_of!(RawData, bytes),
            offset_of!(RawData, offset),
            offset_of!(RawData, missing),
            size_of::<RawData>(),
        ];
        assert_eq!(data, [8, 24, 32, 40]);
        let api = [
            offset_of!(RawApi, flow),
            offset_of!(RawApi, config),
            offset_of!(RawApi, add_header_action),
            offset_of!(RawApi, dump_entry),
            offset_of!(RawApi, next_flow),
            offset_of!(RawApi, save_bytes),
            offset_of!(RawApi, event_named),
            offset_of!(RawApi, publish),
            offset_of!(RawApi, set_tag),
            offset_of!(RawApi, send),
            offset_of!(RawApi, send_from_timer),
            offset_of!(RawApi, share),
            size_of::<RawApi>(),
        ];
        assert_eq!(api, [8, 120, 200, 240, 248, 256, 264, 272, 296, 304, 312, 320, 328]);
    }
}
