//! Packet input and output: the traits for sources and sinks, capture files, packets in memory,
//! ports to network devices.
//!
//! A [`PacketSource`] returns packets one at a time, and a [`PacketSink`] takes them. A
//! [`Port`] is a device of the machine that receives and sends packets. [`CaptureReader`]
//! reads capture files and [`CaptureWriter`] writes them, both in memory that doesn't depend on the
//! file's size.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

pub mod bpf;
pub mod capture;
mod device;
mod error;
mod facts;
mod link;
mod memory;
mod netlink;
mod offload;
mod port;
mod ports;
mod source;
#[allow(unsafe_code, reason = "system calls that have no safe wrapper")]
mod sys;
mod wakers;

pub use capture::{CaptureReader, CaptureWriter, Format, Precision, read_all};
pub use device::{Device, HOW_TO_GET_DPDK, dpdk_version, pool_for};
pub use error::{ReadError, Warning, WriteError};
pub use facts::{DeviceFacts, device_facts, has_xdp};
pub use link::{link_name, link_of_number, number_of_link};
pub use memory::{MemorySink, MemorySource};
pub use netlink::XdpSupport;
pub use port::{Ethernet, OpenError, Port, State, Unreceived, Unsent, wait};
#[cfg(feature = "dpdk")]
pub use ports::DpdkPort;
pub use ports::{
    CapturePort, Faults, Faulty, Lasting, PacketPort, Share, Steer, TapPort, XdpFacts, XdpPort,
};
pub use source::{PacketSink, PacketSource, Progress};
pub use sys::{Filter, XdpMode};
pub use wakers::{wake_for, wakers};
