//! Converts layers to text. Default values are omitted.

use super::layers::{Arp, Eth, Icmp, Ip, Layer, Spec, Tcp, TcpOption, Udp, Vlan};
use super::parse::{FLAGS, ICMP_NAMES, pattern};
use std::fmt::{Display, Formatter, Result, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

impl Display for Spec {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut text = String::new();
        if let Some(link) = self.raw_link {
            write!(text, "link={} ", link.word())?;
        }
        let mut rest = self.layers.as_slice();
        if self.raw_link.is_none() && starts_plainly(rest) {
            rest = &rest[1..];
        }
        while let Some((layer, inner)) = rest.split_first() {
            rest = inner;
            let slash = if text.is_empty() || text.ends_with(' ') { "" } else { " / " };
            match (layer, inner.first()) {
                (Layer::Payload(bytes), _) => {
                    let space = if slash.is_empty() { "" } else { " " };
                    write!(text, "{space}{}", payload(bytes))?;
                }
                (Layer::Ip(ip), Some(next @ (Layer::Tcp(_) | Layer::Udp(_) | Layer::Icmp(_)))) => {
                    text.push_str(slash);
                    with_ip(&mut text, ip, next)?;
                    rest = &inner[1..];
                }
                _ => {
                    text.push_str(slash);
                    alone(&mut text, layer)?;
                }
            }
        }
        if !self.trailer.is_empty() {
            let zeros = self.trailer.iter().all(|&byte| byte == 0);
            match zeros {
                true => write!(text, " pad={}", self.trailer.len())?,
                false => write!(text, " trailer={}", hex(&self.trailer))?,
            }
        }
        if let Some(snap) = self.snap {
            write!(text, " snap={snap}")?;
        }
        f.write_str(text.trim())
    }
}

/// Whether the link layer is the default one, which is not printed.
fn starts_plainly(layers: &[Layer]) -> bool {
    matches!(layers, [Layer::Eth(eth), next, ..]
        if *eth == Eth::default() && !matches!(next, Layer::Payload(_)))
}

/// Prints an IP header together with the transport header behind it.
fn with_ip(text: &mut String, ip: &Ip, next: &Layer) -> Result {
    match next {
        Layer::Tcp(tcp) => {
            write!(text, "tcp {} > {}", end(ip, ip.src, tcp.sport), end(ip, ip.dst, tcp.dport))?;
            tcp_attributes(text, tcp)?;
        }
        Layer::Udp(udp) => {
            write!(text, "udp {} > {}", end(ip, ip.src, udp.sport), end(ip, ip.dst, udp.dport))?;
            udp_attributes(text, udp)?;
        }
        Layer::Icmp(icmp) => {
            write!(text, "{}", if icmp.v6 { "icmp6" } else { "icmp" })?;
            write!(text, " {} > {}", address(ip, ip.src), address(ip, ip.dst))?;
            icmp_attributes(text, icmp)?;
        }
        _ => {}
    }
    ip_attributes(text, ip)
}

fn alone(text: &mut String, layer: &Layer) -> Result {
    match layer {
        Layer::Eth(Eth { src, dst, ethertype }) => {
            write!(text, "eth {} > {}", mac(*src), mac(*dst))?;
            option(text, "type", ethertype)
        }
        Layer::RawIp => write!(text, "rawip"),
        Layer::Cooked(cooked) => {
            write!(text, "{}", if cooked.v2 { "sll2" } else { "sll" })?;
            option(text, "type", &cooked.ethertype)
        }
        Layer::Vlan(vlan) => vlan_text(text, vlan),
        Layer::Mpls(label, tc, ttl) => {
            write!(text, "mpls {label}")?;
            unless(text, "tc", *tc, 0)?;
            unless(text, "ttl", *ttl, 64)
        }
        Layer::Arp(arp) => arp_text(text, arp),
        Layer::Ip(ip) => {
            write!(text, "ip {} > {}", address(ip, ip.src), address(ip, ip.dst))?;
            ip_attributes(text, ip)
        }
        Layer::Tcp(tcp) => {
            write!(text, "tcp {} > {}", tcp.sport, tcp.dport)?;
            tcp_attributes(text, tcp)
        }
        Layer::Udp(udp) => {
            write!(text, "udp {} > {}", udp.sport, udp.dport)?;
            udp_attributes(text, udp)
        }
        Layer::Icmp(icmp) => {
            write!(text, "{}", if icmp.v6 { "icmp6" } else { "icmp" })?;
            icmp_attributes(text, icmp)
        }
        Layer::Gre(key, proto) => {
            write!(text, "gre")?;
            option(text, "key", key)?;
            option(text, "proto", proto)
        }
        Layer::Vxlan(vni) => write!(text, "vxlan {vni}"),
        Layer::Ah(spi, seq) => write!(text, "ah spi={spi} seq={seq}"),
        Layer::Esp(spi, seq) => write!(text, "esp spi={spi} seq={seq}"),
        Layer::Payload(bytes) => write!(text, "{}", payload(bytes)),
    }
}

fn vlan_text(text: &mut String, vlan: &Vlan) -> Result {
    write!(text, "vlan {}", vlan.id)?;
    unless(text, "pcp", vlan.pcp, 0)?;
    if vlan.dei {
        write!(text, " dei")?;
    }
    if vlan.tpid != 0x8100 {
        write!(text, " tpid={:#06x}", vlan.tpid)?;
    }
    option(text, "type", &vlan.ethertype)
}

fn arp_text(text: &mut String, arp: &Arp) -> Result {
    let (spa, tpa) = (Ipv4Addr::from_bits(arp.spa), Ipv4Addr::from_bits(arp.tpa));
    match arp.op {
        1 => write!(text, "arp request {spa} > {tpa}")?,
        2 => write!(text, "arp reply {spa} > {tpa}")?,
        op => write!(text, "arp {op} {spa} > {tpa}")?,
    }
    option(text, "sha", &arp.sha.map(mac))?;
    option(text, "tha", &arp.tha.map(mac))
}

fn ip_attributes(text: &mut String, ip: &Ip) -> Result {
    unless(text, "ttl", ip.ttl, 64)?;
    unless(text, "tos", ip.tos, 0)?;
    unless(text, "ipid", ip.id, 0)?;
    for (set, word) in [(ip.df, " df"), (ip.mf, " mf"), (ip.frag_header, " fraghdr")] {
        text.push_str(if set { word } else { "" });
    }
    unless(text, "frag", ip.frag, 0)?;
    unless(text, "flow", ip.flow, 0)?;
    if !ip.exts.is_empty() {
        let exts: Vec<_> =
            ip.exts.iter().map(|ext| format!("{}:{}", ext.number, hex(&ext.body))).collect();
        write!(text, " ext={}", exts.join(","))?;
    }
    if !ip.options.is_empty() {
        write!(text, " ipopts={}", hex(&ip.options))?;
    }
    option(text, "proto", &ip.proto)?;
    option(text, "version", &ip.version)?;
    option(text, "ihl", &ip.ihl)?;
    option(text, "iplen", &ip.len)?;
    option(text, "ipsum", &ip.sum.map(hex16))
}

fn tcp_attributes(text: &mut String, tcp: &Tcp) -> Result {
    let letters: String = FLAGS
        .chars()
        .enumerate()
        .filter_map(|(bit, c)| (tcp.flags >> bit & 1 == 1).then_some(c))
        .collect();
    write!(text, " {}", if letters.is_empty() { "none" } else { &letters })?;
    unless(text, "seq", tcp.seq, 0)?;
    unless(text, "ack", tcp.ack, 0)?;
    unless(text, "win", tcp.window, 0xffff)?;
    unless(text, "urg", tcp.urgent, 0)?;
    for option in &tcp.options {
        match option {
            TcpOption::Nop => write!(text, " nop")?,
            TcpOption::Mss(mss) => write!(text, " mss={mss}")?,
            TcpOption::Wscale(shift) => write!(text, " wscale={shift}")?,
            TcpOption::SackOk => write!(text, " sackok")?,
            TcpOption::Ts(value, echo) => write!(text, " ts={value},{echo}")?,
            TcpOption::Raw(bytes) => write!(text, " opt={}", hex(bytes))?,
        }
    }
    option(text, "off", &tcp.offset)?;
    option(text, "sum", &tcp.sum.map(hex16))
}

fn udp_attributes(text: &mut String, udp: &Udp) -> Result {
    option(text, "udplen", &udp.len)?;
    match udp.sum {
        Some(0) => write!(text, " nosum"),
        sum => option(text, "sum", &sum.map(hex16)),
    }
}

fn icmp_attributes(text: &mut String, icmp: &Icmp) -> Result {
    let named = ICMP_NAMES.iter().find(|(_, v4, v6)| icmp.kind == if icmp.v6 { *v6 } else { *v4 });
    match named {
        Some((name, ..)) => write!(text, " {name}")?,
        None => write!(text, " type={}", icmp.kind)?,
    }
    unless(text, "code", icmp.code, 0)?;
    if matches!(named, Some((name, ..)) if name.starts_with("echo")) {
        write!(text, " id={} seq={}", icmp.rest >> 16, icmp.rest & 0xffff)?;
    } else {
        unless(text, "rest", icmp.rest, 0)?;
    }
    option(text, "cut", &icmp.cut)?;
    option(text, "sum", &icmp.sum.map(hex16))
}

/// Prints ` name=value`, unless the value is the usual one.
fn unless<T: Display + PartialEq>(text: &mut String, name: &str, value: T, usual: T) -> Result {
    if value == usual { Ok(()) } else { write!(text, " {name}={value}") }
}

/// Prints ` name=value`, if there is a value.
fn option<T: Display>(text: &mut String, name: &str, value: &Option<T>) -> Result {
    match value {
        Some(value) => write!(text, " {name}={value}"),
        None => Ok(()),
    }
}

fn hex16(value: u16) -> String {
    format!("{value:#06x}")
}

fn address(ip: &Ip, address: u128) -> String {
    match u32::try_from(address) {
        Ok(address) if !ip.v6 => Ipv4Addr::from_bits(address).to_string(),
        _ => Ipv6Addr::from_bits(address).to_string(),
    }
}

fn end(ip: &Ip, host: u128, port: u16) -> String {
    match ip.v6 {
        true => format!("[{}]:{port}", address(ip, host)),
        false => format!("{}:{port}", address(ip, host)),
    }
}

fn mac(address: u64) -> String {
    let bytes = address.to_be_bytes();
    bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The shortest readable form of a payload, out of three.
fn payload(bytes: &[u8]) -> String {
    if bytes.len() > 3 && bytes == pattern(bytes.len()) {
        return format!("bytes={}", bytes.len());
    }
    let plain = bytes.iter().filter(|byte| (0x20..0x7f).contains(*byte)).count();
    if plain * 4 < bytes.len() * 3 {
        return format!("hex={}", hex(bytes));
    }
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x20..0x7f => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}
