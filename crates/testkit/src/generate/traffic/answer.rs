//! Generates answers to packets that left the chain: replies, and ICMP errors about them.

use super::values;
use crate::convert::frame_of;
use crate::generate::{Boundaries, Rng};
use crate::packet::{Eth, Icmp, Ip, Layer, Spec, describe};
use braid_packet::Packet;
use std::collections::VecDeque;

/// A packet that left, as layers.
fn left(rng: &mut Rng, left: &VecDeque<(u16, Packet)>) -> Option<(u16, Spec)> {
    let (interface, packet) = left.get(rng.below(left.len()))?;
    Some((*interface, describe(&frame_of(packet))))
}

/// A reply. It enters where the packet left.
pub(super) fn reply(rng: &mut Rng, from: &VecDeque<(u16, Packet)>) -> Option<(u16, Spec)> {
    let (interface, mut spec) = left(rng, from)?;
    spec.snap = None;
    let mut answered = false;
    for layer in &mut spec.layers {
        match layer {
            Layer::Eth(eth) => std::mem::swap(&mut eth.src, &mut eth.dst),
            Layer::Ip(ip) => {
                std::mem::swap(&mut ip.src, &mut ip.dst);
                (ip.ttl, ip.sum, ip.len) = (64, None, None);
                answered = true;
            }
            Layer::Tcp(tcp) => {
                std::mem::swap(&mut tcp.sport, &mut tcp.dport);
                tcp.flags = match tcp.flags & 0x17 {
                    0x02 => *rng.pick(&[0x12, 0x12, 0x12, 0x14]),
                    0x12 => 0x10,
                    flags if flags & 0x04 != 0 => flags,
                    flags if flags & 0x01 != 0 => *rng.pick(&[0x11, 0x10]),
                    _ => *rng.pick(&[0x10, 0x18, 0x11, 0x14, 0x04]),
                };
                (tcp.seq, tcp.ack) = (tcp.ack, tcp.seq.wrapping_add(1));
                tcp.sum = None;
                break;
            }
            Layer::Udp(udp) => {
                std::mem::swap(&mut udp.sport, &mut udp.dport);
                (udp.sum, udp.len) = (None, None);
                break;
            }
            Layer::Icmp(icmp) => {
                icmp.kind = match icmp.kind {
                    8 => 0,
                    128 => 129,
                    other => other,
                };
                icmp.sum = None;
                break;
            }
            _ => {}
        }
    }
    answered.then_some((interface, spec))
}

/// An ICMP error about a packet that left. It comes from the packet's destination or from a router
/// on the path.
pub(super) fn error(
    rng: &mut Rng,
    from: &VecDeque<(u16, Packet)>,
    boundaries: &Boundaries,
) -> Option<(u16, Spec)> {
    let (interface, mut spec) = left(rng, from)?;
    let at = spec.layers.iter().position(|layer| matches!(layer, Layer::Ip(_)))?;
    let Layer::Ip(about) = spec.layers[at].clone() else { return None };
    let router = match rng.one_in(2) {
        true => about.dst,
        false => values::address(rng, boundaries, None, about.v6),
    };
    let ip = Ip::new(about.v6, router, about.src);
    let (kinds, codes): (&[u8], &[u8]) =
        if about.v6 { (&[1, 2, 3, 4], &[0, 4]) } else { (&[3, 11, 12, 5], &[0, 1, 3, 4]) };
    let cut = match rng.below(4) {
        0 => None,
        1 => Some(rng.below(64)),
        _ => Some(if about.v6 { 48 } else { 28 }),
    };
    let (kind, code) = (*rng.pick(kinds), *rng.pick(codes));
    let rest = if rng.one_in(2) { 0 } else { 1400 };
    let icmp = Icmp { v6: about.v6, kind, code, rest, cut, sum: None };
    let quoted: Vec<Layer> = spec.layers.drain(at..).collect();
    Some((interface, quoting(icmp, ip, &quoted)))
}

/// Puts the layers behind a packet's link layer into an ICMP error.
fn quoting(icmp: Icmp, ip: Ip, quoted: &[Layer]) -> Spec {
    let mut layers = vec![Layer::Eth(Eth::default()), Layer::Ip(ip), Layer::Icmp(icmp)];
    layers.extend_from_slice(quoted);
    Spec { layers, ..Spec::default() }
}
