//! Converts text to layers. `docs/testing.md` describes the form.

use super::layers::{Arp, Cooked, Eth, Icmp, Ip, Layer, LinkKind, Spec, Tcp, Udp, Vlan};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

mod attributes;
mod words;

pub(super) use attributes::{FLAGS, ICMP_NAMES, pattern};
use words::Words;

/// Why a text does not describe a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError(pub String);

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// Result of parsing a part.
type Parsed<T> = Result<T, ParseError>;

fn error<T>(message: impl Into<String>) -> Parsed<T> {
    Err(ParseError(message.into()))
}

/// Reads a packet's text.
///
/// # Errors
/// The expected and the actual text.
pub fn parse(text: &str) -> Result<Spec, ParseError> {
    let mut spec = Spec::default();
    for words in words::split(text)? {
        layer(&mut spec, words)?;
    }
    let has_link = matches!(
        spec.layers.first(),
        Some(Layer::Eth(_) | Layer::RawIp | Layer::Cooked(_) | Layer::Payload(_))
    );
    if spec.layers.is_empty() {
        return error("expected a layer such as `udp 10.0.0.1:1 > 10.0.0.2:2`, found nothing");
    }
    if !has_link && spec.raw_link.is_none() {
        spec.layers.insert(0, Layer::Eth(Eth::default()));
    }
    Ok(spec)
}

/// Reads one layer (or the two layers of `udp A:p > B:q`) with its payload.
fn layer(spec: &mut Spec, mut words: Words) -> Parsed<()> {
    let name = words.peek_name();
    match name.as_str() {
        "eth" => eth(spec, &mut words)?,
        "rawip" => push(spec, &mut words, Layer::RawIp),
        "sll" | "sll2" => {
            let v2 = name == "sll2";
            push(spec, &mut words, Layer::Cooked(Cooked { v2, ethertype: None }));
        }
        "vlan" => vlan(spec, &mut words)?,
        "mpls" => {
            words.skip();
            let label = words.number()?;
            spec.layers.push(Layer::Mpls(label, 0, 64));
        }
        "arp" => arp(spec, &mut words)?,
        "ip" => {
            words.skip();
            let (src, dst) = words.pair()?;
            spec.layers.push(Layer::Ip(ip(&src, &dst)?));
        }
        "tcp" | "udp" => ports(spec, &mut words, name == "tcp")?,
        "icmp" | "icmp6" => icmp(spec, &mut words, name == "icmp6")?,
        "gre" => push(spec, &mut words, Layer::Gre(None, None)),
        "vxlan" => {
            words.skip();
            let vni = words.number()?;
            spec.layers.push(Layer::Vxlan(vni));
        }
        "ah" => push(spec, &mut words, Layer::Ah(0, 0)),
        "esp" => push(spec, &mut words, Layer::Esp(0, 0)),
        // These are attributes of the frame, or a payload without a layer's name.
        _ => {}
    }
    while let Some(word) = words.next() {
        attributes::apply(spec, &word)?;
    }
    Ok(())
}

fn push(spec: &mut Spec, words: &mut Words, layer: Layer) {
    words.skip();
    spec.layers.push(layer);
}

fn eth(spec: &mut Spec, words: &mut Words) -> Parsed<()> {
    words.skip();
    let (src, dst) = words.pair()?;
    spec.layers.push(Layer::Eth(Eth { src: mac(&src)?, dst: mac(&dst)?, ethertype: None }));
    Ok(())
}

fn vlan(spec: &mut Spec, words: &mut Words) -> Parsed<()> {
    words.skip();
    let id = words.number()?;
    let tag = Vlan { tpid: 0x8100, id, pcp: 0, dei: false, ethertype: None };
    if spec.layers.is_empty() {
        spec.layers.push(Layer::Eth(Eth::default()));
    }
    spec.layers.push(Layer::Vlan(tag));
    Ok(())
}

fn arp(spec: &mut Spec, words: &mut Words) -> Parsed<()> {
    words.skip();
    let op = match words.take_bare().as_deref() {
        Some("request") => 1,
        Some("reply") => 2,
        Some(other) => number(other)?,
        None => return error("expected `arp request A > B` or `arp reply A > B`"),
    };
    let (src, dst) = words.pair()?;
    let (spa, tpa) = (address4(&src)?, address4(&dst)?);
    spec.layers.push(Layer::Arp(Arp { op, sha: None, spa, tha: None, tpa }));
    Ok(())
}

/// Reads `tcp A:p > B:q`, which makes two layers, or `tcp p > q`.
fn ports(spec: &mut Spec, words: &mut Words, tcp: bool) -> Parsed<()> {
    words.skip();
    let (left, right) = words.pair()?;
    let (src, sport) = split_port(&left)?;
    let (dst, dport) = split_port(&right)?;
    match (src, dst) {
        (Some(src), Some(dst)) => spec.layers.push(Layer::Ip(ip(src, dst)?)),
        (None, None) => {}
        _ => return error(format!("{left} > {right}: both sides or neither have addresses")),
    }
    spec.layers.push(if tcp {
        Layer::Tcp(Tcp::new(sport, dport))
    } else {
        Layer::Udp(Udp { sport, dport, len: None, sum: None })
    });
    Ok(())
}

fn icmp(spec: &mut Spec, words: &mut Words, named_v6: bool) -> Parsed<()> {
    words.skip();
    let mut v6 = named_v6;
    if words.has_pair() {
        let (src, dst) = words.pair()?;
        let ip = ip(&src, &dst)?;
        v6 |= ip.v6;
        spec.layers.push(Layer::Ip(ip));
    }
    spec.layers.push(Layer::Icmp(Icmp { v6, kind: 0, code: 0, rest: 0, cut: None, sum: None }));
    Ok(())
}

/// `10.0.0.1:80`, `[::1]:80` or `80`.
fn split_port(text: &str) -> Parsed<(Option<&str>, u16)> {
    if let Some((address, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        return Ok((Some(address), number(port)?));
    }
    match text.rsplit_once(':') {
        Some((address, port)) => Ok((Some(address), number(port)?)),
        None => Ok((None, number(text)?)),
    }
}

fn ip(src: &str, dst: &str) -> Parsed<Ip> {
    let v6 = src.contains(':');
    if v6 != dst.contains(':') {
        return error(format!("{src} > {dst}: addresses of different versions"));
    }
    Ok(Ip::new(v6, address(src)?, address(dst)?))
}

/// An address of either version.
pub(super) fn address(text: &str) -> Parsed<u128> {
    if text.contains(':') {
        let text = text.trim_start_matches('[').trim_end_matches(']');
        return match Ipv6Addr::from_str(text) {
            Ok(address) => Ok(address.to_bits()),
            Err(_) => error(format!("expected an IPv6 address, found `{text}`")),
        };
    }
    address4(text).map(u128::from)
}

fn address4(text: &str) -> Parsed<u32> {
    match Ipv4Addr::from_str(text) {
        Ok(address) => Ok(address.to_bits()),
        Err(_) => error(format!("expected an IPv4 address, found `{text}`")),
    }
}

/// A MAC address.
pub(super) fn mac(text: &str) -> Parsed<u64> {
    let parts: Vec<_> = text.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
    if parts.len() != 6 || parts.iter().any(Result::is_err) {
        return error(format!("expected a MAC address, found `{text}`"));
    }
    Ok(parts.into_iter().flatten().fold(0, |mac, byte| mac << 8 | u64::from(byte)))
}

/// A number in decimal or `0x…` that fits its type.
pub(super) fn number<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    match parsed.ok().and_then(|value| T::try_from(value).ok()) {
        Some(value) => Ok(value),
        None => error(format!("expected a number that fits, found `{text}`")),
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(text: &str) -> Parsed<Vec<u8>> {
    let digits = text.is_ascii() && text.len().is_multiple_of(2);
    let bytes: Option<Vec<u8>> = (0..text.len() / 2)
        .map(|i| text.get(2 * i..2 * i + 2).and_then(|two| u8::from_str_radix(two, 16).ok()))
        .collect();
    match bytes {
        Some(bytes) if digits => Ok(bytes),
        _ => error(format!("expected pairs of hexadecimal digits, found `{text}`")),
    }
}

/// A link type, by its name.
pub(super) fn link(text: &str) -> Parsed<LinkKind> {
    use LinkKind::{Cooked, Cooked2, Ethernet, RawIp};
    match [Ethernet, RawIp, Cooked, Cooked2].into_iter().find(|link| link.word() == text) {
        Some(link) => Ok(link),
        None => error(format!("expected eth, rawip, sll or sll2, found `{text}`")),
    }
}
