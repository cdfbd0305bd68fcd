//! The kinds of ports, one file each.

mod capture;
#[cfg(feature = "dpdk")]
mod dpdk;
mod faults;
mod lasting;
mod limit;
mod packet;
mod share;
mod tap;
mod timer;
mod xdp;

pub use capture::CapturePort;
#[cfg(feature = "dpdk")]
pub use dpdk::DpdkPort;
#[cfg(feature = "dpdk")]
pub(crate) use dpdk::{NEEDS as DPDK_NEEDS, pool as dpdk_pool};
pub use faults::{Faults, Faulty};
pub use lasting::Lasting;
pub use packet::PacketPort;
pub use share::{Share, Steer};
pub use tap::TapPort;
pub(crate) use xdp::needs as xdp_needs;
pub use xdp::{XdpFacts, XdpPort};
