//! Network devices through system calls: the part of this crate that needs unsafe code.

mod packet_socket;
mod tap;

pub(crate) use packet_socket::PacketSocket;
pub(crate) use tap::Tap;
