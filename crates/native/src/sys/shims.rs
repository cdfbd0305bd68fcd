//! Functions in Rust behind the C interface: one C function for each entry of the header, which
//! catches panics.

use super::abi::{ABI, RawConnection, RawData, RawDump, RawHost, RawNf, RawPacket, RawSaved};
use super::guest::{Connection, Dump, Flow, FlowMemory, Function, Host, PacketRef};
use crate::stream::Data;
use crate::verdict::{FAILED, PANICKED};
use braid_packet::{FlowKey, proto};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The header's structure for a function, to be exported as `braid_nf_NAME` or registered.
impl RawNf {
    /// The structure for a function in Rust.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the structure has a few hundred bytes")]
    pub const fn of<T: Function>() -> Self {
        let info = T::INFO;
        let profile = match info.profile {
            Some(profile) => &raw const profile.0,
            None => ptr::null(),
        };
        Self {
            abi: ABI,
            size: size_of::<RawNf>() as u32,
            about: info.about.as_ptr(),
            flow_scope: info.scope as u32,
            flow_full: info.full as u32,
            flow_bytes: size_of::<FlowMemory<T::Flow>>() as u64,
            flow_capacity: 0,
            flow_idle_ns: info.idle_ns,
            reasons: info.reasons.as_ptr(),
            ports: info.ports.as_ptr(),
            profile,
            create: Some(create::<T>),
            destroy: Some(destroy::<T>),
            packet: if info.stream { None } else { Some(packet::<T>) },
            flow_end: Some(flow_end::<T>),
            change: Some(change::<T>),
            dump: Some(dump::<T>),
            save: Some(save::<T>),
            restore: Some(restore::<T>),
            events: info.events.as_ptr(),
            tags: info.tags.as_ptr(),
            sends: info.sends,
            keeps: info.keeps as u32,
            open: if info.stream { Some(open::<T>) } else { None },
            data: if info.stream { Some(data::<T>) } else { None },
            close: if info.stream { Some(close::<T>) } else { None },
        }
    }
}

fn number(arg: *mut c_void) -> u32 {
    u32::try_from(arg.addr()).unwrap_or(u32::MAX)
}

/// Runs a function's code. A panic is reported to the host, and the result is then `otherwise`.
fn caught<R>(host: *mut RawHost, otherwise: R, run: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "with something that is no text".to_owned());
        if !host.is_null() {
            Host::new(host).fail(&format!("{PANICKED}{text}"));
        }
        otherwise
    })
}

/// The data of an instance: the function, and the handle for reporting panics to Braid.
struct Own<T> {
    function: T,
    host: *mut RawHost,
}

/// The function in an instance.
///
/// # Safety
/// [`create`] has made `this` from `T`, and nobody else uses it while the result lives.
unsafe fn own<'a, T>(this: *mut c_void) -> &'a mut T {
    // SAFETY: the caller guarantees it.
    unsafe { &mut (*this.cast::<Own<T>>()).function }
}

unsafe extern "C" fn create<T: Function>(host: *mut RawHost, this: *mut *mut c_void) -> i32 {
    let made = caught(host, None, || Some(T::new(&mut Host::new(host))));
    match made {
        Some(Ok(function)) => {
            // SAFETY: the host passes a valid pointer for it.
            unsafe { *this = Box::into_raw(Box::new(Own { function, host })).cast() };
            0
        }
        Some(Err(why)) => Host::new(host).fail(&why),
        None => FAILED,
    }
}

unsafe extern "C" fn destroy<T: Function>(this: *mut c_void) {
    // SAFETY: made by `create`, and nobody uses it any more.
    caught(ptr::null_mut(), (), || drop(unsafe { Box::from_raw(this.cast::<Own<T>>()) }));
}

unsafe extern "C" fn packet<T: Function>(this: *mut c_void, packet: *mut RawPacket) -> i32 {
    let mut packet = PacketRef::<T>::new(packet);
    let host = packet.host.raw;
    caught(host, FAILED, || {
        // SAFETY: the host calls an instance for one thing at a time.
        unsafe { own::<T>(this) }.packet(&mut packet).code()
    })
}

/// The connection of a call.
///
/// # Safety
/// The host passes it for this call.
unsafe fn connection(raw: *const RawConnection) -> Connection {
    // SAFETY: the caller guarantees it.
    let raw = unsafe { &*raw };
    let client = FlowKey {
        version: u8::try_from(raw.version).unwrap_or(0),
        src: raw.client.value(),
        dst: raw.server.value(),
        proto: proto::TCP,
        sport: raw.client_port,
        dport: raw.server_port,
    };
    Connection { flow: (raw.flow != 0).then_some(Flow(raw.flow)), client }
}

unsafe extern "C" fn open<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    raw: *const RawConnection,
) -> i32 {
    // SAFETY: the host passes the connection of this call.
    let connection = unsafe { connection(raw) };
    caught(host, FAILED, || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.open(&connection, &mut Host::new(host)).code()
    })
}

unsafe extern "C" fn data<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    raw: *const RawConnection,
    raw_data: *const RawData,
) -> i32 {
    // SAFETY: the host passes the connection and the data of this call. Its bytes live as long.
    let (connection, raw_data) = unsafe { (connection(raw), &*raw_data) };
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(raw_data.bytes, raw_data.length) };
    let RawData { offset, missing, .. } = *raw_data;
    let data = Data { from_client: raw_data.from_client != 0, bytes, offset, missing };
    caught(host, FAILED, || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.data(&connection, &data, &mut Host::new(host)).code()
    })
}

unsafe extern "C" fn close<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    raw: *const RawConnection,
) {
    // SAFETY: the host passes the connection of this call.
    let connection = unsafe { connection(raw) };
    caught(host, (), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.close(&connection, &mut Host::new(host));
    });
}

pub(super) unsafe extern "C" fn state_function<T: Function>(
    this: *mut c_void,
    packet: *mut RawPacket,
    arg: *mut c_void,
) {
    let mut packet = PacketRef::<T>::new(packet);
    let host = packet.host.raw;
    caught(host, (), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.state_function(number(arg), &mut packet);
    });
}

pub(super) unsafe extern "C" fn condition<T: Function>(
    this: *mut c_void,
    flow: u64,
    arg: *mut c_void,
) -> i32 {
    // SAFETY: as for `packet`; the handle lives as long as the instance.
    let host = unsafe { (*this.cast::<Own<T>>()).host };
    caught(host, 0, || {
        // SAFETY: as for `packet`.
        i32::from(unsafe { own::<T>(this) }.condition(
            number(arg),
            Flow(flow),
            &mut Host::new(host),
        ))
    })
}

pub(super) unsafe extern "C" fn update<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    flow: u64,
    arg: *mut c_void,
) {
    caught(host, (), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.update(number(arg), Flow(flow), &mut Host::new(host));
    });
}

pub(super) unsafe extern "C" fn timer<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    arg: *mut c_void,
) {
    caught(host, (), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.timer(number(arg), &mut Host::new(host));
    });
}

unsafe extern "C" fn flow_end<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    flow: u64,
    memory: *mut c_void,
) {
    // SAFETY: as for `kept`; the memory ends with this call, and nobody reads it any more.
    let memory = unsafe { memory.cast::<FlowMemory<T::Flow>>().as_mut() };
    let Some(kept) = memory.and_then(|memory| memory.0.take()) else { return };
    caught(host, (), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.flow_end(Flow(flow), *kept, &mut Host::new(host));
    });
}

unsafe extern "C" fn change<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    name: *const c_char,
) -> i32 {
    // SAFETY: the host passes a name that ends with a 0.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let mut of_host = Host::new(host);
    let done = caught(host, Err(String::new()), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.change(&name, &mut Host::new(host))
    });
    match done {
        Ok(()) => 0,
        Err(why) if why.is_empty() => FAILED,
        Err(why) => of_host.fail(&why),
    }
}

unsafe extern "C" fn dump<T: Function>(this: *mut c_void, dump: *mut RawDump) {
    caught(ptr::null_mut(), (), || {
        let mut into = Dump { raw: dump, life: PhantomData };
        // SAFETY: the host calls an instance for one thing at a time.
        unsafe { own::<T>(this) }.dump(&mut into);
    });
}

unsafe extern "C" fn save<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    saved: *mut RawSaved,
) -> i32 {
    let bytes = caught(host, None, || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.save(&mut Host::new(host))
    });
    let Some(bytes) = bytes else { return FAILED };
    // SAFETY: the handle belongs to this call, and the bytes live as long as the call to the host.
    unsafe { ((*(*saved).api).save_bytes)(saved, bytes.as_ptr(), bytes.len()) };
    0
}

unsafe extern "C" fn restore<T: Function>(
    this: *mut c_void,
    host: *mut RawHost,
    first: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: the host passes this number of bytes, which live as long as the call.
    let bytes = unsafe { std::slice::from_raw_parts(first, length) };
    let mut of_host = Host::new(host);
    let done = caught(host, Err(String::new()), || {
        // SAFETY: as for `packet`.
        unsafe { own::<T>(this) }.restore(bytes, &mut Host::new(host))
    });
    match done {
        Ok(()) => 0,
        Err(why) if why.is_empty() => FAILED,
        Err(why) => of_host.fail(&why),
    }
}
