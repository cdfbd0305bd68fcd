//! The kinds of ports, one file each.

mod capture;
mod faults;
mod lasting;
mod packet;
mod share;
mod tap;
mod xdp;

pub use capture::{MemoryPort, ReplayPort};
pub use faults::{Faults, Faulty};
pub use lasting::Lasting;
pub use packet::PacketPort;
pub use share::{Share, Steer};
pub use tap::TapPort;
pub(crate) use xdp::needs as xdp_needs;
pub use xdp::{XdpFacts, XdpPort};
