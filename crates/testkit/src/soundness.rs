//! Computes the errors in a packet's checksums and lengths, without the crate `packet`. A leaving
//! packet must have exactly the errors that it arrived with.

use crate::convert::frame_of;
use crate::packet::{Ip, Layer, Spec, describe};
use braid_ir::chain::Chain;
use braid_ir::model::Op;
use braid_packet::Packet;

/// The errors in the checksums of a packet's outermost IP packet, where 0 is right. The numbers are
/// differences in one's complement, which incremental updates (RFC 1624) do not change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Wrongness {
    /// The error of the IPv4 header checksum.
    pub ip: Option<u16>,
    /// The error of the checksum of TCP, UDP or ICMP. `None` if there is none, or if it cannot be
    /// computed (later fragments, packets that the capture cut).
    pub transport: Option<u16>,
    /// Whether lengths contradict each other.
    pub lengths: bool,
    /// Whether it is UDP without a checksum.
    pub no_sum: bool,
}

/// The errors of a packet. `None` for a packet without a readable IP header.
#[must_use]
pub fn wrongness(packet: &Packet) -> Option<Wrongness> {
    let spec = describe(&frame_of(packet));
    (0..spec.layers.len()).find_map(|at| wrongness_at(&spec, at))
}

/// The errors of a packet, and of the packets in its tunnels.
#[must_use]
pub fn wrongness_inside(packet: &Packet) -> Vec<Wrongness> {
    let spec = describe(&frame_of(packet));
    (0..spec.layers.len()).filter_map(|at| wrongness_at(&spec, at)).collect()
}

/// What the tunnels of a chain may do to packets: outer headers over IPv4 have no UDP checksum
/// (RFC 7348, §5).
#[must_use]
pub fn wrongness_of_tunnels(chain: &Chain) -> Option<Wrongness> {
    let mut programs = chain.nodes.iter().map(|node| &node.model.packet);
    let adds = |op: &Op| matches!(op, Op::Encapsulate { .. });
    let has = programs.any(|program| program.blocks.iter().any(|block| block.ops.iter().any(adds)));
    has.then(|| Wrongness { no_sum: true, ..Wrongness::default() })
}

/// Whether a packet inside of this one has a length that contradicts its place. A function may have
/// written it. Then the layers do not tell which bytes belong to which packet.
fn contradicts_inside(spec: &Spec, at: usize) -> bool {
    spec.layers.iter().skip(at + 1).any(|layer| match layer {
        Layer::Ip(ip) => ip.len.is_some() || ip.ihl.is_some() || ip.version.is_some(),
        _ => false,
    })
}

/// The errors of the IP packet that begins with a layer. `None` if this is no IP header.
fn wrongness_at(spec: &Spec, at: usize) -> Option<Wrongness> {
    let Layer::Ip(ip) = &spec.layers[at] else { return None };
    if ip.frag != 0 || spec.snap.is_some() || contradicts_inside(spec, at) {
        let ip = if spec.snap.is_some() { None } else { Some(ip_wrongness(spec, at, ip)) };
        return Some(Wrongness { ip, ..Wrongness::default() });
    }
    let mut found = Wrongness {
        ip: Some(if ip.v6 { 0 } else { ip_wrongness(spec, at, ip) }),
        transport: None,
        lengths: ip.len.is_some() || ip.ihl.is_some() || ip.version.is_some(),
        no_sum: false,
    };
    let sum = match spec.layers.get(at + 1) {
        Some(Layer::Tcp(tcp)) => {
            found.lengths |= tcp.offset.is_some();
            Some(tcp.sum)
        }
        Some(Layer::Udp(udp)) => {
            found.lengths |= udp.len.is_some();
            found.no_sum = udp.sum == Some(0);
            Some(udp.sum)
        }
        Some(Layer::Icmp(icmp)) => Some(icmp.sum),
        _ => None,
    };
    if let Some(sum) = sum.filter(|_| !found.no_sum) {
        found.transport = Some(difference(sum, || right_sum(spec, at + 1)));
    }
    Some(found)
}

fn ip_wrongness(spec: &Spec, at: usize, ip: &Ip) -> u16 {
    difference(ip.sum, || right_sum(spec, at))
}

/// The actual checksum minus the right one, in one's complement. It is 0 when the actual one is not
/// given.
fn difference(there: Option<u16>, right: impl Fn() -> Option<u16>) -> u16 {
    let (Some(there), Some(right)) = (there, right()) else { return 0 };
    let sum = u32::from(there) + u32::from(!right);
    let folded = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or(0xffff);
    // Both forms mean zero.
    if folded == 0xffff { 0 } else { folded }
}

/// The right checksum of the layer.
fn right_sum(spec: &Spec, at: usize) -> Option<u16> {
    let mut right = spec.clone();
    match right.layers.get_mut(at)? {
        Layer::Ip(ip) => ip.sum = None,
        Layer::Tcp(tcp) => tcp.sum = None,
        Layer::Udp(udp) => udp.sum = None,
        Layer::Icmp(icmp) => icmp.sum = None,
        _ => return None,
    }
    // The same frame with this checksum right. The checksum's offset follows from the kind of
    // layer.
    let before: usize = prefix_len(spec, at);
    let data = right.frame().data;
    let offset = match right.layers.get(at)? {
        Layer::Ip(_) => 10,
        Layer::Tcp(_) => 16,
        Layer::Udp(_) => 6,
        _ => 2,
    };
    let bytes = data.get(before + offset..before + offset + 2)?;
    Some(u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
}

/// Number of bytes before a layer.
fn prefix_len(spec: &Spec, at: usize) -> usize {
    let head = Spec { layers: spec.layers[..at].to_vec(), ..Spec::default() };
    head.frame().data.len()
}

/// The error that a leaving packet has and that none of the possible arriving packets had. Packets
/// that a function built must be right.
#[must_use]
pub fn complaint(leaving: &Packet, arrived: &[Wrongness]) -> Option<String> {
    let found = wrongness(leaving)?;
    let fine = |wrong: Option<u16>, of: fn(&Wrongness) -> Option<u16>| match wrong {
        None | Some(0) => true,
        wrong => arrived.iter().any(|arrival| of(arrival) == wrong),
    };
    let complain = |what: &str| Some(format!("{what}: {}", describe(&frame_of(leaving))));
    if !fine(found.ip, |arrival| arrival.ip) {
        return complain("an IP checksum became wrong, or wrong in another way");
    }
    if !fine(found.transport, |arrival| arrival.transport) {
        return complain("a transport checksum became wrong, or wrong in another way");
    }
    if found.lengths && !arrived.iter().any(|arrival| arrival.lengths) {
        return complain("lengths contradict each other");
    }
    if found.no_sum && !arrived.iter().any(|arrival| arrival.no_sum) {
        return complain("a UDP checksum is gone");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::packet;

    fn of(text: &str) -> Wrongness {
        wrongness(&packet(text).at(0)).expect("an IP packet")
    }

    #[test]
    fn valid_packets_are_not_wrong() {
        for text in [
            "udp 10.0.0.1:1 > 10.0.0.2:2 \"abc\"",
            "tcp [2001:db8::1]:1 > [2001:db8::2]:2 S mss=4",
            "vlan 4 / icmp 10.0.0.1 > 10.0.0.2 echo-request id=1 seq=2",
        ] {
            let found = of(text);
            assert_eq!(
                (found.ip, found.transport, found.lengths),
                (Some(0), Some(0), false),
                "{text}"
            );
        }
    }

    #[test]
    fn equal_errors_are_equal_whatever_the_addresses() {
        // A checksum that is 5 above the right one, before and after an address changed.
        let right = packet("udp 10.0.0.1:1 > 10.0.0.2:2 \"abc\"").frame().data;
        let sum = u16::from_be_bytes([right[40], right[41]]);
        let moved = packet("udp 10.9.0.1:1 > 10.0.0.2:2 \"abc\"").frame().data;
        let moved_sum = u16::from_be_bytes([moved[40], moved[41]]);
        let one = of(&format!("udp 10.0.0.1:1 > 10.0.0.2:2 sum={} \"abc\"", sum + 5));
        let other = of(&format!("udp 10.9.0.1:1 > 10.0.0.2:2 sum={} \"abc\"", moved_sum + 5));
        assert_eq!(one.transport, Some(5));
        assert_eq!(one, other);
    }

    #[test]
    fn new_errors_are_complained_of() {
        let wrong = packet("udp 10.0.0.1:1 > 10.0.0.2:2 sum=0x1234 \"abc\"").at(0);
        assert!(complaint(&wrong, &[]).is_some_and(|text| text.contains("transport")));
        let arrived = [wrongness(&wrong).expect("an IP packet")];
        assert_eq!(complaint(&wrong, &arrived), None);
        let long = packet("udp 10.0.0.1:1 > 10.0.0.2:2 iplen=99").at(0);
        assert!(complaint(&long, &[]).is_some_and(|text| text.contains("lengths")));
        let bare = packet("udp 10.0.0.1:1 > 10.0.0.2:2 nosum").at(0);
        assert!(complaint(&bare, &[]).is_some_and(|text| text.contains("gone")));
    }
}
