//! The kinds of ports, one file each.

mod faults;
mod lasting;
mod packet;
mod share;
mod tap;
mod xdp;

pub use faults::{Faults, Faulty};
pub use lasting::Lasting;
pub use packet::PacketPort;
pub use share::Share;
pub use tap::TapPort;
pub(crate) use xdp::needs as xdp_needs;
pub use xdp::{XdpFacts, XdpPort};
