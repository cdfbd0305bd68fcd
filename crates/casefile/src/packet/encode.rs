//! Converts layers to bytes.

use super::bytes::{fold, ones_sum};
use super::layers::{
    Arp, Cooked, Eth, Frame, Icmp, Ip, Layer, LinkKind, Spec, Tcp, TcpOption, Udp, Vlan,
};

/// The facts about surrounding layers that a layer needs.
#[derive(Clone, Copy, Default)]
struct Outer<'a> {
    /// The frame's addresses, for ARP.
    macs: (u64, u64),
    /// The nearest IP header, for pseudo headers.
    ip: Option<&'a Ip>,
}

impl Spec {
    /// The packet's bytes.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let mut data = encode(&self.layers, Outer::default());
        data.extend_from_slice(&self.trailer);
        let wire_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        data.truncate(self.snap.unwrap_or(usize::MAX));
        Frame { link: self.link(), data, wire_len }
    }

    /// The link type.
    #[must_use]
    pub fn link(&self) -> LinkKind {
        if let Some(link) = self.raw_link {
            return link;
        }
        match self.layers.first() {
            Some(Layer::RawIp) => LinkKind::RawIp,
            Some(Layer::Cooked(cooked)) if cooked.v2 => LinkKind::Cooked2,
            Some(Layer::Cooked(_)) => LinkKind::Cooked,
            _ => LinkKind::Ethernet,
        }
    }
}

fn encode(layers: &[Layer], outer: Outer<'_>) -> Vec<u8> {
    let Some((first, rest)) = layers.split_first() else { return Vec::new() };
    match first {
        Layer::Eth(eth) => {
            eth_bytes(eth, rest, encode(rest, Outer { macs: (eth.src, eth.dst), ..outer }))
        }
        Layer::RawIp => encode(rest, outer),
        Layer::Cooked(cooked) => cooked_bytes(cooked, rest, encode(rest, outer)),
        Layer::Vlan(vlan) => vlan_bytes(vlan, rest, encode(rest, outer)),
        Layer::Mpls(label, tc, ttl) => {
            let bottom = u32::from(!matches!(rest.first(), Some(Layer::Mpls(..))));
            let entry = label << 12 | u32::from(*tc) << 9 | bottom << 8 | u32::from(*ttl);
            [&entry.to_be_bytes()[..], &encode(rest, outer)].concat()
        }
        Layer::Arp(arp) => arp_bytes(arp, outer.macs),
        Layer::Ip(ip) => ip_bytes(ip, rest, &encode(rest, Outer { ip: Some(ip), ..outer })),
        Layer::Tcp(tcp) => tcp_bytes(tcp, &encode(rest, outer), outer.ip),
        Layer::Udp(udp) => udp_bytes(udp, &encode(rest, outer), outer.ip),
        Layer::Icmp(icmp) => icmp_bytes(icmp, encode(rest, outer), outer.ip),
        Layer::Gre(key, proto) => {
            let flags: u16 = if key.is_some() { 0x2000 } else { 0 };
            let proto = proto.unwrap_or_else(|| ethertype_of(rest));
            let mut out = [flags.to_be_bytes(), proto.to_be_bytes()].concat();
            out.extend(key.iter().flat_map(|key| key.to_be_bytes()));
            out.extend(encode(rest, outer));
            out
        }
        Layer::Vxlan(vni) => {
            let mut out = vec![8, 0, 0, 0];
            out.extend((vni << 8).to_be_bytes());
            out.extend(encode(rest, outer));
            out
        }
        Layer::Ah(spi, seq) => {
            // The integrity check value has 12 bytes: (12 + 12) / 4 - 2 = 4.
            let mut out = vec![proto_of(rest), 4, 0, 0];
            out.extend(spi.to_be_bytes());
            out.extend(seq.to_be_bytes());
            out.extend([0; 12]);
            out.extend(encode(rest, outer));
            out
        }
        Layer::Esp(spi, seq) => {
            [&spi.to_be_bytes()[..], &seq.to_be_bytes(), &encode(rest, outer)].concat()
        }
        Layer::Payload(bytes) => [&bytes[..], &encode(rest, outer)].concat(),
    }
}

/// The EtherType that announces these layers.
fn ethertype_of(layers: &[Layer]) -> u16 {
    match layers.first() {
        Some(Layer::Vlan(vlan)) => vlan.tpid,
        Some(Layer::Mpls(..)) => 0x8847,
        Some(Layer::Arp(_)) => 0x0806,
        Some(Layer::Ip(ip)) if ip.v6 => 0x86dd,
        Some(Layer::Ip(_)) => 0x0800,
        Some(Layer::Eth(_)) => 0x6558,
        // The local experimental EtherType (IEEE 802).
        _ => 0x88b5,
    }
}

/// The IP protocol that announces these layers.
fn proto_of(layers: &[Layer]) -> u8 {
    match layers.first() {
        Some(Layer::Icmp(icmp)) if icmp.v6 => 58,
        Some(Layer::Icmp(_)) => 1,
        Some(Layer::Ip(ip)) if ip.v6 => 41,
        Some(Layer::Ip(_)) => 4,
        Some(Layer::Tcp(_)) => 6,
        Some(Layer::Udp(_)) => 17,
        Some(Layer::Gre(..)) => 47,
        Some(Layer::Esp(..)) => 50,
        Some(Layer::Ah(..)) => 51,
        // The protocol number reserved for experimentation (RFC 3692).
        _ => 253,
    }
}

fn mac(address: u64) -> [u8; 6] {
    let [_, _, rest @ ..] = address.to_be_bytes();
    rest
}

fn eth_bytes(eth: &Eth, rest: &[Layer], payload: Vec<u8>) -> Vec<u8> {
    let ethertype = eth.ethertype.unwrap_or_else(|| ethertype_of(rest));
    [&mac(eth.dst)[..], &mac(eth.src), &ethertype.to_be_bytes(), &payload].concat()
}

fn cooked_bytes(cooked: &Cooked, rest: &[Layer], payload: Vec<u8>) -> Vec<u8> {
    let ethertype = cooked.ethertype.unwrap_or_else(|| ethertype_of(rest)).to_be_bytes();
    let address = [0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    if cooked.v2 {
        // Protocol, reserved, interface 1, ARPHRD_ETHER, to us, address length, address.
        let middle = [0, 0, 0, 0, 0, 1, 0, 1, 0];
        [&ethertype[..], &middle, &address[1..], &payload].concat()
    } else {
        [&[0, 0, 0, 1][..], &address, &ethertype, &payload].concat()
    }
}

fn vlan_bytes(vlan: &Vlan, rest: &[Layer], payload: Vec<u8>) -> Vec<u8> {
    let tci = u16::from(vlan.pcp) << 13 | u16::from(vlan.dei) << 12 | vlan.id & 0xfff;
    let ethertype = vlan.ethertype.unwrap_or_else(|| ethertype_of(rest));
    [&tci.to_be_bytes()[..], &ethertype.to_be_bytes(), &payload].concat()
}

fn arp_bytes(arp: &Arp, (src, dst): (u64, u64)) -> Vec<u8> {
    let tha = arp.tha.unwrap_or(if arp.op == 1 { 0 } else { dst });
    let mut out = vec![0, 1, 8, 0, 6, 4];
    out.extend(arp.op.to_be_bytes());
    out.extend(mac(arp.sha.unwrap_or(src)));
    out.extend(arp.spa.to_be_bytes());
    out.extend(mac(tha));
    out.extend(arp.tpa.to_be_bytes());
    out
}

fn ip_bytes(ip: &Ip, rest: &[Layer], payload: &[u8]) -> Vec<u8> {
    let proto = ip.proto.unwrap_or_else(|| proto_of(rest));
    if ip.v6 { ip6_bytes(ip, proto, payload) } else { ip4_bytes(ip, proto, payload) }
}

/// The low half of a length, for a header field.
fn low16(n: usize) -> u16 {
    u16::try_from(n & 0xffff).unwrap_or(0)
}

/// The low byte of a number.
fn low8(n: usize) -> u8 {
    u8::try_from(n & 0xff).unwrap_or(0)
}

fn ip4_bytes(ip: &Ip, proto: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + ip.options.len();
    let ihl = ip.ihl.unwrap_or(low8(header / 4));
    let flags = u16::from(ip.df) << 14 | u16::from(ip.mf) << 13 | ip.frag & 0x1fff;
    let mut out = vec![ip.version.unwrap_or(4) << 4 | ihl & 15, ip.tos];
    out.extend(ip.len.unwrap_or(low16(header + payload.len())).to_be_bytes());
    out.extend(low16(ip.id as usize).to_be_bytes());
    out.extend(flags.to_be_bytes());
    out.extend([ip.ttl, proto, 0, 0]);
    out.extend(address4(ip.src));
    out.extend(address4(ip.dst));
    out.extend(&ip.options);
    let sum = ip.sum.unwrap_or_else(|| fold(ones_sum(&out)));
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(payload);
    out
}

fn address4(address: u128) -> [u8; 4] {
    let [.., a, b, c, d] = address.to_be_bytes();
    [a, b, c, d]
}

fn ip6_bytes(ip: &Ip, proto: u8, payload: &[u8]) -> Vec<u8> {
    let fragment = ip.frag_header || ip.mf || ip.frag != 0;
    let mut chain: Vec<u8> = ip.exts.iter().map(|ext| ext.number).collect();
    if fragment {
        chain.push(44);
    }
    chain.push(proto);
    let mut body = Vec::new();
    for (i, ext) in ip.exts.iter().enumerate() {
        body.push(chain[i + 1]);
        body.push(low8((ext.body.len() + 2) / 8).saturating_sub(1));
        body.extend(&ext.body);
    }
    if fragment {
        body.extend([proto, 0]);
        body.extend((ip.frag << 3 | u16::from(ip.mf)).to_be_bytes());
        body.extend(ip.id.to_be_bytes());
    }
    body.extend(payload);
    let version = u32::from(ip.version.unwrap_or(6)) << 28;
    let first = version | u32::from(ip.tos) << 20 | ip.flow & 0xf_ffff;
    let mut out = first.to_be_bytes().to_vec();
    out.extend(ip.len.unwrap_or(low16(body.len())).to_be_bytes());
    out.extend([chain[0], ip.ttl]);
    out.extend(ip.src.to_be_bytes());
    out.extend(ip.dst.to_be_bytes());
    out.extend(body);
    out
}

/// Sum over the pseudo header for a transport segment of this length.
fn pseudo(ip: Option<&Ip>, proto: u8, len: usize) -> u32 {
    let Some(ip) = ip else { return 0 };
    let mut header = Vec::with_capacity(40);
    if ip.v6 {
        header.extend(ip.src.to_be_bytes());
        header.extend(ip.dst.to_be_bytes());
        header.extend(u32::try_from(len).unwrap_or(0).to_be_bytes());
        header.extend([0, 0, 0, proto]);
    } else {
        header.extend(address4(ip.src));
        header.extend(address4(ip.dst));
        header.extend([0, proto]);
        header.extend(low16(len).to_be_bytes());
    }
    ones_sum(&header)
}

fn tcp_bytes(tcp: &Tcp, payload: &[u8], ip: Option<&Ip>) -> Vec<u8> {
    let mut options: Vec<u8> = tcp.options.iter().flat_map(option_bytes).collect();
    options.resize(options.len().next_multiple_of(4), 0);
    let offset = tcp.offset.unwrap_or(low8(5 + options.len() / 4));
    let mut out = [tcp.sport.to_be_bytes(), tcp.dport.to_be_bytes()].concat();
    out.extend(tcp.seq.to_be_bytes());
    out.extend(tcp.ack.to_be_bytes());
    out.extend([(offset & 15) << 4, tcp.flags]);
    out.extend(tcp.window.to_be_bytes());
    out.extend([0, 0]);
    out.extend(tcp.urgent.to_be_bytes());
    out.extend(options);
    out.extend(payload);
    let sum = tcp.sum.unwrap_or_else(|| fold(ones_sum(&out) + pseudo(ip, 6, out.len())));
    out[16..18].copy_from_slice(&sum.to_be_bytes());
    out
}

fn option_bytes(option: &TcpOption) -> Vec<u8> {
    match option {
        TcpOption::Nop => vec![1],
        TcpOption::Mss(mss) => [&[2, 4][..], &mss.to_be_bytes()].concat(),
        TcpOption::Wscale(shift) => vec![3, 3, *shift],
        TcpOption::SackOk => vec![4, 2],
        TcpOption::Ts(value, echo) => {
            [&[8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
        }
        TcpOption::Raw(bytes) => bytes.clone(),
    }
}

fn udp_bytes(udp: &Udp, payload: &[u8], ip: Option<&Ip>) -> Vec<u8> {
    let len = udp.len.unwrap_or(low16(8 + payload.len()));
    let mut out = [udp.sport, udp.dport, len, 0].map(u16::to_be_bytes).concat();
    out.extend(payload);
    let sum = udp.sum.unwrap_or_else(|| {
        match fold(ones_sum(&out) + pseudo(ip, 17, usize::from(len))) {
            // A checksum of 0 would mean that there is none.
            0 => 0xffff,
            sum => sum,
        }
    });
    out[6..8].copy_from_slice(&sum.to_be_bytes());
    out
}

fn icmp_bytes(icmp: &Icmp, mut payload: Vec<u8>, ip: Option<&Ip>) -> Vec<u8> {
    payload.truncate(icmp.cut.unwrap_or(usize::MAX));
    let mut out = vec![icmp.kind, icmp.code, 0, 0];
    out.extend(icmp.rest.to_be_bytes());
    out.extend(payload);
    let pseudo = if icmp.v6 { pseudo(ip, 58, out.len()) } else { 0 };
    let sum = icmp.sum.unwrap_or_else(|| fold(ones_sum(&out) + pseudo));
    out[2..4].copy_from_slice(&sum.to_be_bytes());
    out
}

impl LinkKind {
    /// The link type's name in packet text.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LinkKind::Ethernet => "eth",
            LinkKind::RawIp => "rawip",
            LinkKind::Cooked => "sll",
            LinkKind::Cooked2 => "sll2",
        }
    }
}
