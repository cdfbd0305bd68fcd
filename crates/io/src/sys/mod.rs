//! Network devices through system calls: the part of this crate that needs unsafe code.

mod batch;
mod bpf;
pub(crate) mod device;
#[cfg(feature = "dpdk")]
pub(crate) mod dpdk;
pub(crate) mod ethtool;
mod fanout;
mod map;
mod request;
mod ring;
mod socket;
mod tap;
mod whole;
mod xsk;

pub(crate) use batch::Batch;
pub(crate) use bpf::Redirect;
pub use bpf::{Filter, XdpMode};
pub(crate) use ring::{Arrived, Ring, sender};
pub(crate) use tap::{ethernet as tap_ethernet, is_attached, open as open_tap};
pub(crate) use xsk::Xsk;
