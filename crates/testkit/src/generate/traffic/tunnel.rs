//! Puts packets into a tunnel that ends in the chain.

use crate::generate::Rng;
use crate::packet::packet;
use braid_ir::chain::Chain;
use braid_packet::{Link, Packet};
use std::fmt::Write as _;

/// Whether a tunnel ends in a chain that begins elsewhere.
pub(super) fn ends_in(chain: &Chain) -> bool {
    let has = |name: &str| chain.nodes.iter().any(|node| *node.name == *name);
    has("ends") && !has("begins")
}

/// The packet in a tunnel. Many flows share outer headers. A packet that was cut stays as it is.
pub(super) fn around(rng: &mut Rng, inner: Packet) -> Packet {
    if inner.link != Link::Ethernet || inner.wire_len as usize != inner.data().len() {
        return inner;
    }
    let (end, port) = (2 + rng.below(2), 50_000 + rng.below(2));
    let mut text = format!("udp 192.0.2.{end}:{port} > 192.0.2.1:4789 hex=0800000000000900");
    inner.data().iter().for_each(|byte| write!(text, "{byte:02x}").expect("writing to a string"));
    packet(&text).at(inner.time_ns)
}
