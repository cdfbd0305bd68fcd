//! The kinds of live interfaces, one file each.

mod lasting;
mod packet;
mod tap;

pub use lasting::Lasting;
pub use packet::{PacketOptions, PacketPort};
pub use tap::TapPort;
