//! DPDK: its start, the memory that it shares with frames, and devices.
//!
//! Crates that bind DPDK's whole interface generate it with bindgen, for one release, and so need
//! libclang. They also need a C file for the burst functions, which are inline. Braid needs only a
//! few calls. They are all in `shim.c`, which is compiled against the installed release.

mod calls;
mod device;
mod eal;
mod frames;
mod memory;

pub(crate) use device::{Device, Dpdk, NEEDS, Open};
pub(crate) use eal::{Eal, version};
pub(crate) use memory::pool;
