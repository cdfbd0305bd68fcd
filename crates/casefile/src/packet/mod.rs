//! Packets in tests: layers with attributes, their bytes, and their text form of one line.
//!
//! This code is independent of the crate `packet`, so the two check each other. `docs/testing.md`
//! describes the text form.

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
    Arp, Cooked, DEFAULT_DST_MAC, DEFAULT_SRC_MAC, Eth, Ext, Frame, Icmp, Ip, Layer, LinkKind,
    Spec, Tcp, TcpOption, Udp, Vlan,
};
pub use parse::{ParseError, parse};
