//! Converts text to layers. `docs/testing.md` describes the form.

use super::layers::{Arp, Cooked, Eth, Icmp, Ip, Layer, Spec, Tcp, Udp, Vlan};

mod attributes;
mod values;
mod words;

pub(super) use attributes::{FLAGS, ICMP_NAMES, pattern};
pub use values::ParseError;
use values::{Parsed, address, address4, error, mac, number};
use words::Words;

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
