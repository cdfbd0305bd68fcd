//! Converts bytes to layers that encode to exactly these bytes.

use super::layers::{
    Arp, Cooked, Eth, Ext, Frame, Icmp, Ip, Layer, LinkKind, Spec, Tcp, TcpOption, Udp, Vlan,
};

/// Layers with the bytes of a frame. A frame without a readable form becomes one payload.
#[must_use]
pub fn describe(frame: &Frame) -> Spec {
    let mut whole = frame.data.clone();
    let wire_len = frame.wire_len as usize;
    let snap = (wire_len > whole.len()).then_some(whole.len());
    // Bytes that were not captured are taken as zeros. They are cut off again when the frame is
    // built.
    if wire_len <= 1 << 18 {
        whole.resize(whole.len().max(wire_len), 0);
    }
    let mut spec = Spec { snap, ..Spec::default() };
    link(&mut spec, frame.link, &whole);
    if spec.frame() == *frame {
        simplify(&mut spec, frame);
        return spec;
    }
    let raw_link = (frame.link != LinkKind::Ethernet).then_some(frame.link);
    Spec { layers: vec![Layer::Payload(whole)], trailer: Vec::new(), snap, raw_link }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(be16(bytes, at)?) << 16 | u32::from(be16(bytes, at + 2)?))
}

fn be48(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(be16(bytes, at)?) << 32 | u64::from(be32(bytes, at + 2)?))
}

fn be128(bytes: &[u8], at: usize) -> Option<u128> {
    bytes.get(at..at + 16)?.try_into().ok().map(u128::from_be_bytes)
}

fn link(spec: &mut Spec, kind: LinkKind, bytes: &[u8]) {
    let read = match kind {
        LinkKind::Ethernet => eth(bytes).map(|(eth, ethertype)| (Layer::Eth(eth), ethertype, 14)),
        LinkKind::RawIp => {
            spec.layers.push(Layer::RawIp);
            let v6 = bytes.first().is_some_and(|byte| byte >> 4 == 6);
            return network(spec, if v6 { 0x86dd } else { 0x0800 }, bytes);
        }
        LinkKind::Cooked => be16(bytes, 14).map(|ethertype| {
            (Layer::Cooked(Cooked { v2: false, ethertype: Some(ethertype) }), ethertype, 16)
        }),
        LinkKind::Cooked2 => be16(bytes, 0).map(|ethertype| {
            (Layer::Cooked(Cooked { v2: true, ethertype: Some(ethertype) }), ethertype, 20)
        }),
    };
    match read.and_then(|(layer, ethertype, len)| Some((layer, ethertype, bytes.get(len..)?))) {
        Some((layer, ethertype, rest)) => {
            spec.layers.push(layer);
            network(spec, ethertype, rest);
        }
        None => payload(spec, bytes),
    }
}

fn payload(spec: &mut Spec, bytes: &[u8]) {
    if !bytes.is_empty() {
        spec.layers.push(Layer::Payload(bytes.to_vec()));
    }
}

fn eth(bytes: &[u8]) -> Option<(Eth, u16)> {
    let ethertype = be16(bytes, 12)?;
    let (dst, src) = (be48(bytes, 0)?, be48(bytes, 6)?);
    Some((Eth { src, dst, ethertype: Some(ethertype) }, ethertype))
}

/// Reads the header that an EtherType announces.
fn network(spec: &mut Spec, ethertype: u16, bytes: &[u8]) {
    let read = match ethertype {
        0x8100 | 0x88a8 | 0x9100 => return vlan(spec, ethertype, bytes),
        0x0806 => arp(bytes).map(|arp| (Layer::Arp(arp), 28)),
        0x0800 => return ip4(spec, bytes),
        0x86dd => return ip6(spec, bytes),
        0x8847 => return mpls(spec, bytes),
        _ => None,
    };
    match read {
        Some((layer, len)) => {
            spec.layers.push(layer);
            spec.trailer = bytes.get(len..).unwrap_or_default().to_vec();
        }
        None => payload(spec, bytes),
    }
}

fn vlan(spec: &mut Spec, tpid: u16, bytes: &[u8]) {
    let (Some(tci), Some(ethertype)) = (be16(bytes, 0), be16(bytes, 2)) else {
        return payload(spec, bytes);
    };
    let pcp = u8::try_from(tci >> 13).unwrap_or(0);
    let dei = tci >> 12 & 1 == 1;
    spec.layers.push(Layer::Vlan(Vlan {
        tpid,
        id: tci & 0xfff,
        pcp,
        dei,
        ethertype: Some(ethertype),
    }));
    network(spec, ethertype, &bytes[4..]);
}

fn mpls(spec: &mut Spec, bytes: &[u8]) {
    let Some(entry) = be32(bytes, 0) else { return payload(spec, bytes) };
    let tc = u8::try_from(entry >> 9 & 7).unwrap_or(0);
    let ttl = u8::try_from(entry & 0xff).unwrap_or(0);
    spec.layers.push(Layer::Mpls(entry >> 12, tc, ttl));
    let rest = &bytes[4..];
    match (entry >> 8 & 1, rest.first().map(|byte| byte >> 4)) {
        (0, _) => mpls(spec, rest),
        (_, Some(4)) => ip4(spec, rest),
        (_, Some(6)) => ip6(spec, rest),
        _ => payload(spec, rest),
    }
}

fn arp(bytes: &[u8]) -> Option<Arp> {
    Some(Arp {
        op: be16(bytes, 6)?,
        sha: Some(be48(bytes, 8)?),
        spa: be32(bytes, 14)?,
        tha: Some(be48(bytes, 18)?),
        tpa: be32(bytes, 24)?,
    })
}

fn ip4(spec: &mut Spec, bytes: &[u8]) {
    let Some((ip, header, len)) = ip4_header(bytes) else { return payload(spec, bytes) };
    let (later, proto) = (ip.frag != 0, ip.proto.unwrap_or(0));
    spec.layers.push(Layer::Ip(ip));
    let end = len.clamp(header, bytes.len());
    let quoted = spec.layers.iter().any(|layer| matches!(layer, Layer::Icmp(_)));
    if !quoted {
        spec.trailer = bytes[end..].to_vec();
    }
    transport(spec, if later { 253 } else { proto }, false, &bytes[header..end]);
}

/// Reads the header, its length in bytes, and the total length.
fn ip4_header(bytes: &[u8]) -> Option<(Ip, usize, usize)> {
    let [first, tos, ..] = *bytes else { return None };
    let header = usize::from(first & 15) * 4;
    let len = be16(bytes, 2)?;
    let mut ip = Ip::new(false, be32(bytes, 12)?.into(), be32(bytes, 16)?.into());
    ip.options = bytes.get(20..header)?.to_vec();
    ip.version = Some(first >> 4);
    ip.ihl = Some(first & 15);
    ip.tos = tos;
    ip.len = Some(len);
    ip.id = be16(bytes, 4)?.into();
    let flags = be16(bytes, 6)?;
    (ip.df, ip.mf, ip.frag) = (flags >> 14 & 1 == 1, flags >> 13 & 1 == 1, flags & 0x1fff);
    ip.ttl = bytes[8];
    ip.proto = Some(bytes[9]);
    ip.sum = be16(bytes, 10);
    Some((ip, header, len.into()))
}

fn ip6(spec: &mut Spec, bytes: &[u8]) {
    let Some((mut ip, next)) = ip6_header(bytes) else { return payload(spec, bytes) };
    let len = usize::from(ip.len.unwrap_or(0));
    let end = (40 + len).clamp(40, bytes.len());
    let quoted = spec.layers.iter().any(|layer| matches!(layer, Layer::Icmp(_)));
    if !quoted {
        spec.trailer = bytes[end..].to_vec();
    }
    let (at, next) = extensions(&mut ip, next, &bytes[..end]);
    ip.proto = Some(next);
    let later = ip.frag != 0;
    spec.layers.push(Layer::Ip(ip));
    transport(spec, if later { 253 } else { next }, true, &bytes[at..end]);
}

fn ip6_header(bytes: &[u8]) -> Option<(Ip, u8)> {
    let first = be32(bytes, 0)?;
    let mut ip = Ip::new(true, be128(bytes, 8)?, be128(bytes, 24)?);
    ip.version = u8::try_from(first >> 28).ok();
    ip.tos = u8::try_from(first >> 20 & 0xff).ok()?;
    ip.flow = first & 0xf_ffff;
    ip.len = be16(bytes, 4);
    ip.ttl = bytes[7];
    Some((ip, bytes[6]))
}

/// Reads extension headers. Returns the offset behind them, and the protocol there.
fn extensions(ip: &mut Ip, mut next: u8, bytes: &[u8]) -> (usize, u8) {
    let mut at = 40;
    while let (0 | 43 | 60, Some(head)) = (next, bytes.get(at..at + 2)) {
        let len = (usize::from(head[1]) + 1) * 8;
        let Some(body) = bytes.get(at + 2..at + len) else { break };
        ip.exts.push(Ext { number: next, body: body.to_vec() });
        next = head[0];
        at += len;
    }
    if let (44, Some(head), Some(id)) = (next, be16(bytes, at + 2), be32(bytes, at + 4)) {
        next = bytes[at];
        at += 8;
        (ip.frag_header, ip.frag, ip.mf, ip.id) = (true, head >> 3, head & 1 == 1, id);
    }
    (at, next)
}

/// Reads the header that an IP protocol announces.
fn transport(spec: &mut Spec, proto: u8, v6: bool, bytes: &[u8]) {
    let read = match proto {
        1 if !v6 => icmp(bytes, false).map(|icmp| (Layer::Icmp(icmp), 8)),
        58 if v6 => icmp(bytes, true).map(|icmp| (Layer::Icmp(icmp), 8)),
        6 => tcp(bytes).map(|(tcp, len)| (Layer::Tcp(tcp), len)),
        17 => udp(bytes).map(|udp| (Layer::Udp(udp), 8)),
        47 => return gre(spec, bytes),
        4 => return ip4(spec, bytes),
        41 => return ip6(spec, bytes),
        _ => None,
    };
    let Some((layer, len)) = read else { return payload(spec, bytes) };
    let quotes = match &layer {
        Layer::Icmp(icmp) if v6 => matches!(icmp.kind, 1..=4),
        Layer::Icmp(icmp) => matches!(icmp.kind, 3 | 4 | 5 | 11 | 12),
        _ => false,
    };
    spec.layers.push(layer);
    match quotes {
        true => quote(spec, v6, &bytes[len..]),
        false => payload(spec, &bytes[len..]),
    }
}

/// Reads the packet that an ICMP error quotes. Missing bytes are taken as zeros.
fn quote(spec: &mut Spec, v6: bool, bytes: &[u8]) {
    let header = if v6 { ip6_header(bytes).is_some() } else { ip4_header(bytes).is_some() };
    let total = if v6 {
        be16(bytes, 4).map(|len| 40 + usize::from(len))
    } else {
        be16(bytes, 2).map(usize::from)
    };
    let (true, Some(total)) = (header, total) else { return payload(spec, bytes) };
    let mut whole = bytes.to_vec();
    if total > whole.len() {
        whole.resize(total, 0);
        if let Some(Layer::Icmp(icmp)) = spec.layers.last_mut() {
            icmp.cut = Some(bytes.len());
        }
    } else if total < whole.len() {
        return payload(spec, bytes);
    }
    if v6 { ip6(spec, &whole) } else { ip4(spec, &whole) }
}

fn icmp(bytes: &[u8], v6: bool) -> Option<Icmp> {
    let rest = be32(bytes, 4)?;
    Some(Icmp { v6, kind: bytes[0], code: bytes[1], rest, cut: None, sum: be16(bytes, 2) })
}

fn udp(bytes: &[u8]) -> Option<Udp> {
    let sum = be16(bytes, 6);
    sum?;
    Some(Udp { sport: be16(bytes, 0)?, dport: be16(bytes, 2)?, len: be16(bytes, 4), sum })
}

fn tcp(bytes: &[u8]) -> Option<(Tcp, usize)> {
    let mut tcp = Tcp::new(be16(bytes, 0)?, be16(bytes, 2)?);
    let header = usize::from(*bytes.get(12)? >> 4) * 4;
    let options = bytes.get(20..header)?;
    tcp.seq = be32(bytes, 4)?;
    tcp.ack = be32(bytes, 8)?;
    tcp.offset = Some(bytes[12] >> 4);
    tcp.flags = bytes[13];
    tcp.window = be16(bytes, 14)?;
    tcp.sum = be16(bytes, 16);
    tcp.urgent = be16(bytes, 18)?;
    tcp.options = tcp_options(options);
    Some((tcp, header))
}

fn tcp_options(mut bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    while let Some(&kind) = bytes.first() {
        let len = match (kind, bytes.get(1)) {
            (0, _) if bytes.iter().all(|&byte| byte == 0) && bytes.len() < 4 => break,
            (1, _) => 1,
            (_, Some(&len)) if usize::from(len) >= 2 && usize::from(len) <= bytes.len() => {
                len.into()
            }
            _ => bytes.len(),
        };
        let (option, rest) = bytes.split_at(len);
        options.push(match (kind, len) {
            (1, 1) => TcpOption::Nop,
            (2, 4) => TcpOption::Mss(be16(option, 2).unwrap_or(0)),
            (3, 3) => TcpOption::Wscale(option[2]),
            (4, 2) => TcpOption::SackOk,
            (8, 10) => TcpOption::Ts(be32(option, 2).unwrap_or(0), be32(option, 6).unwrap_or(0)),
            _ => TcpOption::Raw(option.to_vec()),
        });
        bytes = rest;
    }
    options
}

fn gre(spec: &mut Spec, bytes: &[u8]) {
    let (Some(flags @ (0 | 0x2000)), Some(proto)) = (be16(bytes, 0), be16(bytes, 2)) else {
        return payload(spec, bytes);
    };
    let key = if flags == 0 { None } else { be32(bytes, 4) };
    let len = if flags == 0 { 4 } else { 8 };
    let Some(rest) = bytes.get(len..) else { return payload(spec, bytes) };
    spec.layers.push(Layer::Gre(key, Some(proto)));
    match proto {
        0x0800 => ip4(spec, rest),
        0x86dd => ip6(spec, rest),
        _ => payload(spec, rest),
    }
}

/// Resets every attribute to its default if the bytes stay the same.
fn simplify(spec: &mut Spec, frame: &Frame) {
    for at in 0..spec.layers.len() {
        let mut i = 0;
        while let Some(layer) = relaxed(&spec.layers[at], i) {
            let mut simpler = spec.clone();
            simpler.layers[at] = layer;
            if simpler.frame() == *frame {
                *spec = simpler;
            }
            i += 1;
        }
    }
}

/// The layer with its i-th attribute reset to the default.
fn relaxed(layer: &Layer, i: usize) -> Option<Layer> {
    match layer {
        Layer::Eth(eth) => one(eth, Layer::Eth, i, &[|eth| eth.ethertype = None]),
        Layer::Cooked(sll) => one(sll, Layer::Cooked, i, &[|sll| sll.ethertype = None]),
        Layer::Vlan(vlan) => one(vlan, Layer::Vlan, i, &[|vlan| vlan.ethertype = None]),
        Layer::Gre(key, Some(_)) if i == 0 => Some(Layer::Gre(*key, None)),
        Layer::Arp(arp) => one(arp, Layer::Arp, i, &[|arp| arp.sha = None, |arp| arp.tha = None]),
        Layer::Ip(ip) => one(
            ip,
            Layer::Ip,
            i,
            &[
                |ip| ip.proto = None,
                |ip| ip.version = None,
                |ip| ip.ihl = None,
                |ip| ip.len = None,
                |ip| ip.sum = None,
                |ip| ip.frag_header = false,
            ],
        ),
        Layer::Tcp(tcp) => {
            one(tcp, Layer::Tcp, i, &[|tcp| tcp.offset = None, |tcp| tcp.sum = None])
        }
        Layer::Udp(udp) => one(udp, Layer::Udp, i, &[|udp| udp.len = None, |udp| udp.sum = None]),
        Layer::Icmp(icmp) => one(icmp, Layer::Icmp, i, &[|icmp| icmp.sum = None]),
        _ => None,
    }
}

/// A copy of a header with the i-th of these changes.
fn one<T: Clone>(header: &T, layer: fn(T) -> Layer, i: usize, by: &[fn(&mut T)]) -> Option<Layer> {
    let change = by.get(i)?;
    let mut header = header.clone();
    change(&mut header);
    Some(layer(header))
}
