//! The functions of `shim.c`.

use std::ffi::{c_char, c_int, c_void};

/// A `struct rte_mbuf`.
#[repr(C)]
pub(super) struct Mbuf {
    _private: [u8; 0],
}

/// A `struct rte_mempool`.
#[repr(C)]
pub(super) struct Mempool {
    _private: [u8; 0],
}

/// A frame on its way.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Moved {
    pub(super) mbuf: *mut Mbuf,
    /// The start of the frame's memory.
    pub(super) memory: *mut u8,
    /// Where in the memory the bytes start.
    pub(super) start: u32,
    pub(super) length: u32,
    /// The number of mbufs that hold the frame.
    pub(super) parts: u32,
}

/// Facts about a device from its driver.
#[repr(C)]
pub(super) struct Facts {
    pub(super) driver: *const c_char,
    /// The number of the kernel's device behind the device, or 0.
    pub(super) index: u32,
}

/// Frames that a driver lost since its device was opened.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Counters {
    /// They were not read in time, or there was no memory for them.
    pub(crate) missed: u64,
    /// The driver accepted them, and could not send them.
    pub(crate) unsent: u64,
}

unsafe extern "C" {
    pub(super) fn braid_dpdk_messages(to: *mut u8, room: usize) -> usize;
    pub(super) fn braid_dpdk_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub(super) fn braid_dpdk_is_physical() -> c_int;
    pub(super) fn braid_dpdk_version() -> *const c_char;
    pub(super) fn braid_dpdk_allocate(bytes: usize) -> *mut c_void;
    pub(super) fn braid_dpdk_free(memory: *mut c_void);
    pub(super) fn braid_dpdk_pool(
        name: *const c_char,
        memory: *mut u8,
        count: u32,
        size: u32,
    ) -> *mut Mempool;
    pub(super) fn braid_dpdk_pool_end(pool: *mut Mempool);
    pub(super) fn braid_dpdk_give(pool: *mut Mempool, mbuf: *mut Mbuf);
    pub(super) fn braid_dpdk_take(pool: *mut Mempool, memory: *mut *mut u8) -> *mut Mbuf;
    pub(super) fn braid_dpdk_attach(device: *const c_char, port: *mut u16) -> c_int;
    pub(super) fn braid_dpdk_detach(port: u16);
    pub(super) fn braid_dpdk_begin(port: u16, pool: *mut Mempool, facts: *mut Facts) -> c_int;
    pub(super) fn braid_dpdk_ethernet(port: u16, mac: *mut u8, mtu: *mut u16) -> c_int;
    pub(super) fn braid_dpdk_link(port: u16) -> c_int;
    pub(super) fn braid_dpdk_count(port: u16, counters: *mut Counters);
    pub(super) fn braid_dpdk_receive(port: u16, frames: *mut Moved, most: u16) -> u16;
    pub(super) fn braid_dpdk_join(mbuf: *mut Mbuf, to: *mut u8);
    pub(super) fn braid_dpdk_drop(mbuf: *mut Mbuf);
    pub(super) fn braid_dpdk_send(port: u16, frames: *const Moved, count: u16) -> u16;
    pub(super) fn braid_dpdk_enter();
    pub(super) fn braid_dpdk_leave();
}

/// The most frames that one call moves, `BURST` of `shim.c`: a burst.
pub(super) const MOST: u16 = 64;
