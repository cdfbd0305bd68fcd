//! Generates malformed and rare packets.

use super::values;
use crate::generate::{Boundaries, Rng};
use crate::packet::{Ext, Frame, Layer, Spec, packet};
use braid_ir::model::Word;
use braid_packet::Field;

/// Changes bytes, or cuts off the packet on the wire.
pub(super) fn bytes(rng: &mut Rng, frame: &mut Frame) {
    if frame.data.is_empty() {
        return;
    }
    if rng.one_in(3) {
        frame.data.truncate(rng.below(frame.data.len()));
        frame.wire_len = u32::try_from(frame.data.len()).unwrap_or(u32::MAX);
        return;
    }
    // Parsers are most sensitive to errors in the first headers.
    let reach = frame.data.len().min(if rng.one_in(2) { 24 } else { 64 });
    for _ in 0..=rng.below(3) {
        let at = rng.below(reach);
        frame.data[at] =
            if rng.one_in(2) { rng.byte() } else { frame.data[at] ^ 1 << rng.below(8) };
    }
}

/// Cuts off the packet in the capture.
pub(super) fn snap(rng: &mut Rng, frame: &mut Frame) {
    let len = rng.below(frame.data.len() + 1);
    frame.data.truncate(len);
}

/// Packets that are not IP, or that carry another packet.
pub(super) fn odd(rng: &mut Rng, boundaries: &Boundaries) -> Spec {
    let a = values::address(rng, boundaries, None, false);
    let a = std::net::Ipv4Addr::from_bits(u32::try_from(a).unwrap_or(1));
    let texts = [
        format!("arp request {a} > 10.0.0.2"),
        format!("arp reply {a} > 10.0.0.2"),
        "eth 02:00:00:00:00:01 > 01:80:c2:00:00:0e type=0x88cc \"lldp\"".to_owned(),
        "hex=".to_owned(),
        "hex=0200000000020200000000010800".to_owned(),
        format!("mpls 16 / udp {a}:1 > 10.0.0.2:2"),
        format!("ip {a} > 10.0.0.2 / gre key=7 / tcp 10.1.1.1:1 > 10.2.2.2:2 S"),
        format!(
            "udp {a}:4789 > 10.0.0.2:4789 / vxlan 9 / eth 02:00:00:00:00:07 > 02:00:00:00:00:08 / udp 1.1.1.1:1 > 2.2.2.2:2"
        ),
        format!("ip {a} > 10.0.0.2 / ah spi=5 seq=6 / udp 7 > 8 \"x\""),
        format!("ip {a} > 10.0.0.2 / esp spi=5 seq=6 hex=00112233"),
        format!("ip {a} > 10.0.0.2 ipopts=07070400000000 proto=17 hex=0001000200080000"),
        format!("sll / udp {a}:5 > 10.0.0.2:6 \"cooked\""),
        format!("sll2 / tcp {a}:5 > 10.0.0.2:6 PA \"cooked\""),
        format!("icmp {a} > 10.0.0.2 type=13 rest=7 hex=000000000000000000000000"),
        "icmp6 fe80::1 > ff02::1 type=135 hex=20010db8000000000000000000000001".to_owned(),
    ];
    let text = rng.pick(&texts);
    // Options fill whole words.
    packet(&text.replace("ipopts=07070400000000", "ipopts=0707040000000000"))
}

/// Adds extension headers to an IPv6 header, or options to an IPv4 header.
pub(super) fn extensions(rng: &mut Rng, spec: &mut Spec) {
    for layer in &mut spec.layers {
        let Layer::Ip(ip) = layer else { continue };
        if ip.v6 {
            let kinds = [0, 43, 60, 60];
            let count = 1 + rng.below(3);
            ip.exts = (0..count)
                .map(|_| Ext { number: *rng.pick(&kinds), body: vec![1, 4, 0, 0, 0, 0] })
                .collect();
            ip.frag_header = rng.one_in(4);
        } else if rng.one_in(3) {
            ip.options = vec![7, 7, 4, 0, 0, 0, 0, 0];
        }
        return;
    }
}

/// Sets a field that the chain depends on to a value at a boundary.
pub(super) fn field(rng: &mut Rng, boundaries: &Boundaries, spec: &mut Spec) {
    let fields: Vec<Field> = boundaries.fields.keys().copied().collect();
    if fields.is_empty() {
        return;
    }
    let field = *rng.pick(&fields);
    let value = values::of_field(rng, boundaries, field);
    for layer in &mut spec.layers {
        set(layer, field, value);
    }
}

/// Sets a field if the layer has it.
fn set(layer: &mut Layer, field: Field, value: Word) {
    let [.., high, low] = value.to_be_bytes();
    let short = u16::from_be_bytes([high, low]);
    let word = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    match layer {
        Layer::Eth(eth) => match field {
            Field::EthSrc => eth.src = u64::try_from(value).unwrap_or(0),
            Field::EthDst => eth.dst = u64::try_from(value).unwrap_or(0),
            _ => {}
        },
        Layer::Vlan(vlan) => match field {
            Field::VlanId | Field::Vlan2Id => vlan.id = short & 0xfff,
            Field::VlanPcp => vlan.pcp = low & 7,
            _ => {}
        },
        Layer::Arp(arp) => match field {
            Field::ArpSpa => arp.spa = word,
            Field::ArpTpa => arp.tpa = word,
            Field::ArpOp => arp.op = short,
            _ => {}
        },
        Layer::Ip(ip) => match field {
            Field::IpSrc if !ip.v6 => ip.src = value,
            Field::IpDst if !ip.v6 => ip.dst = value,
            Field::Ip6Src if ip.v6 => ip.src = value,
            Field::Ip6Dst if ip.v6 => ip.dst = value,
            Field::IpTtl | Field::Ip6Ttl | Field::InetTtl => ip.ttl = low,
            Field::IpTos | Field::Ip6Tc => ip.tos = low,
            Field::IpDscp => ip.tos = low << 2,
            Field::IpId => ip.id = short.into(),
            Field::IpDf => ip.df = low & 1 == 1,
            Field::Ip6Flow => ip.flow = word & 0xf_ffff,
            Field::IpProto | Field::InetProto => ip.proto = Some(low),
            _ => {}
        },
        Layer::Tcp(tcp) => match field {
            Field::TcpFlags => tcp.flags = low,
            Field::TcpSeq => tcp.seq = word,
            Field::TcpAck => tcp.ack = word,
            Field::TcpWindow => tcp.window = short,
            Field::TcpSport | Field::L4Sport | Field::InetSport => tcp.sport = short,
            Field::TcpDport | Field::L4Dport | Field::InetDport => tcp.dport = short,
            _ => {}
        },
        Layer::Udp(udp) => match field {
            Field::UdpSport | Field::L4Sport | Field::InetSport => udp.sport = short,
            Field::UdpDport | Field::L4Dport | Field::InetDport => udp.dport = short,
            _ => {}
        },
        Layer::Icmp(icmp) => match field {
            Field::IcmpType | Field::Icmp6Type => icmp.kind = low,
            Field::IcmpCode | Field::Icmp6Code => icmp.code = low,
            Field::IcmpId | Field::Icmp6Id => icmp.rest = u32::from(short) << 16,
            Field::IcmpRest | Field::Icmp6Rest => icmp.rest = word,
            _ => {}
        },
        _ => {}
    }
}
