//! Packets as tests write them: layers with attributes, their bytes, and their one-line text form.
//!
//! Everything here is written independently of crate `packet`, so that the two check each other.
//! `docs/testing.md` describes the text form.

mod build;
mod bytes;
mod describe;
mod encode;
mod layers;
mod parse;
mod show;
#[cfg(test)]
mod tests;

pub use build::{arp, eth, icmp, ip, packet, raw_ip, tcp, udp};
pub use bytes::{fold, ones_sum};
pub use describe::describe;
pub use layers::{
    Arp, Cooked, Eth, Ext, Frame, Icmp, Ip, Layer, LinkKind, Spec, Tcp, TcpOption, Udp, Vlan,
};
pub use parse::{ParseError, parse};

/// Source address of frames that say nothing of it.
pub const DEFAULT_SRC_MAC: u64 = 0x02_00_00_00_00_01;
/// Destination address of frames that say nothing of it.
pub const DEFAULT_DST_MAC: u64 = 0x02_00_00_00_00_02;
