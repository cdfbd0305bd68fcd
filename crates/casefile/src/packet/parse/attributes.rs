//! Parses attributes of layers: `ttl=3`, `SA`, `"payload"`.

use super::values::{Parsed, address, error, hex, link, mac, number};
use super::words::Word;
use crate::packet::layers::{Ext, Icmp, Ip, Layer, Spec, Tcp, TcpOption, Udp};

/// TCP flags by letter, from bit 0 up.
pub(in crate::packet) const FLAGS: &str = "FSRPAUEC";

/// ICMP types by name: (name, ICMP, ICMPv6).
pub(in crate::packet) const ICMP_NAMES: &[(&str, u8, u8)] = &[
    ("echo-request", 8, 128),
    ("echo-reply", 0, 129),
    ("unreachable", 3, 1),
    ("time-exceeded", 11, 3),
    ("param-problem", 12, 4),
];

/// The most layers of a packet. Each payload is one.
const MOST_LAYERS: usize = 64;

/// Applies a word to the innermost layer that accepts it.
pub(super) fn apply(spec: &mut Spec, word: &Word) -> Parsed<()> {
    if spec.layers.len() > MOST_LAYERS {
        return error(format!("a packet has at most {MOST_LAYERS} layers"));
    }
    match word {
        Word::Text(bytes) => payload(spec, bytes.clone()),
        Word::Attribute(name, value) if name == "hex" => payload(spec, hex(value)?),
        Word::Attribute(name, value) if name == "bytes" => {
            payload(spec, pattern(number::<u16>(value)?.into()));
        }
        Word::Attribute(name, value) => attribute(spec, name, value)?,
        Word::Bare(word) => bare(spec, word)?,
    }
    Ok(())
}

fn payload(spec: &mut Spec, bytes: Vec<u8>) {
    spec.layers.push(Layer::Payload(bytes));
}

/// The payload of `bytes=N`: 0, 1, 2, … 255, 0, …
pub(in crate::packet) fn pattern(n: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(n).collect()
}

/// The layers that a word can apply to: the innermost layer, and the IP header in front of it.
fn candidates(spec: &mut Spec) -> impl Iterator<Item = &mut Layer> {
    let payload = matches!(spec.layers.last(), Some(Layer::Payload(_)));
    spec.layers.iter_mut().rev().skip(usize::from(payload)).take(2)
}

fn bare(spec: &mut Spec, word: &str) -> Parsed<()> {
    let flags = !word.is_empty() && word.chars().all(|c| FLAGS.contains(c));
    for layer in candidates(spec) {
        match layer {
            Layer::Tcp(tcp) if flags => {
                tcp.flags = word.chars().filter_map(|c| FLAGS.find(c)).map(|bit| 1 << bit).sum();
                return Ok(());
            }
            Layer::Tcp(tcp) if word == "none" => return set(&mut tcp.flags, 0),
            Layer::Tcp(tcp) if word == "sackok" => return option(tcp, TcpOption::SackOk),
            Layer::Tcp(tcp) if word == "nop" => return option(tcp, TcpOption::Nop),
            Layer::Udp(udp) if word == "nosum" => return set(&mut udp.sum, Some(0)),
            Layer::Icmp(icmp) => {
                if let Some((_, v4, v6)) = ICMP_NAMES.iter().find(|(name, ..)| *name == word) {
                    return set(&mut icmp.kind, if icmp.v6 { *v6 } else { *v4 });
                }
            }
            Layer::Ip(ip) if word == "df" => return set(&mut ip.df, true),
            Layer::Ip(ip) if word == "mf" => return set(&mut ip.mf, true),
            Layer::Ip(ip) if word == "fraghdr" => return set(&mut ip.frag_header, true),
            Layer::Vlan(vlan) if word == "dei" => return set(&mut vlan.dei, true),
            _ => {}
        }
    }
    error(format!("no layer here knows the word `{word}`"))
}

/// Assigns a value, in the form that the tables below need.
#[allow(clippy::unnecessary_wraps, reason = "it ends arms that may fail")]
fn set<T>(place: &mut T, value: T) -> Parsed<()> {
    *place = value;
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "it ends arms that may fail")]
fn option(tcp: &mut Tcp, option: TcpOption) -> Parsed<()> {
    tcp.options.push(option);
    Ok(())
}

fn attribute(spec: &mut Spec, name: &str, value: &str) -> Parsed<()> {
    match name {
        "snap" => return set(&mut spec.snap, Some(number(value)?)),
        "pad" => return set(&mut spec.trailer, vec![0; number::<u16>(value)?.into()]),
        "trailer" => return set(&mut spec.trailer, hex(value)?),
        "link" => return set(&mut spec.raw_link, Some(link(value)?)),
        _ => {}
    }
    for layer in candidates(spec) {
        if of_layer(layer, name, value)? {
            return Ok(());
        }
    }
    error(format!("no layer here knows the attribute `{name}=`"))
}

/// Applies an attribute to a layer, if the layer accepts it.
fn of_layer(layer: &mut Layer, name: &str, value: &str) -> Parsed<bool> {
    match (layer, name) {
        (Layer::Ip(ip), _) => return of_ip(ip, name, value),
        (Layer::Tcp(tcp), _) => return of_tcp(tcp, name, value),
        (Layer::Udp(udp), _) => return of_udp(udp, name, value),
        (Layer::Icmp(icmp), _) => return of_icmp(icmp, name, value),
        (Layer::Eth(eth), "type") => eth.ethertype = Some(number(value)?),
        (Layer::Cooked(cooked), "type") => cooked.ethertype = Some(number(value)?),
        (Layer::Vlan(vlan), "type") => vlan.ethertype = Some(number(value)?),
        (Layer::Vlan(vlan), "pcp") => vlan.pcp = number(value)?,
        (Layer::Vlan(vlan), "tpid") => vlan.tpid = number(value)?,
        (Layer::Mpls(_, tc, _), "tc") => *tc = number(value)?,
        (Layer::Mpls(_, _, ttl), "ttl") => *ttl = number(value)?,
        (Layer::Arp(arp), "sha") => arp.sha = Some(mac(value)?),
        (Layer::Arp(arp), "tha") => arp.tha = Some(mac(value)?),
        (Layer::Gre(key, _), "key") => *key = Some(number(value)?),
        (Layer::Gre(_, proto), "proto") => *proto = Some(number(value)?),
        (Layer::Ah(spi, _) | Layer::Esp(spi, _), "spi") => *spi = number(value)?,
        (Layer::Ah(_, seq) | Layer::Esp(_, seq), "seq") => *seq = number(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_ip(ip: &mut Ip, name: &str, value: &str) -> Parsed<bool> {
    match name {
        "ttl" => ip.ttl = number(value)?,
        "tos" => ip.tos = number(value)?,
        "ipid" => ip.id = number(value)?,
        "frag" => ip.frag = number(value)?,
        "flow" => ip.flow = number(value)?,
        "proto" => ip.proto = Some(number(value)?),
        "version" => ip.version = Some(number(value)?),
        "ihl" => ip.ihl = Some(number(value)?),
        "iplen" => ip.len = Some(number(value)?),
        "ipsum" => ip.sum = Some(number(value)?),
        "ipopts" => ip.options = hex(value)?,
        "ext" => ip.exts = value.split(',').map(ext).collect::<Parsed<_>>()?,
        "src" => ip.src = address(value)?,
        "dst" => ip.dst = address(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `hop`, `route`, `dst` (8 bytes each) or `NUMBER:HEX`.
fn ext(text: &str) -> Parsed<Ext> {
    // PadN options fill a header to 8 bytes. A routing header has no segments left.
    let padding = vec![1, 4, 0, 0, 0, 0];
    Ok(match text {
        "hop" => Ext { number: 0, body: padding },
        "dst" => Ext { number: 60, body: padding },
        "route" => Ext { number: 43, body: vec![0; 6] },
        _ => match text.split_once(':') {
            Some((kind, body)) => Ext { number: number(kind)?, body: hex(body)? },
            None => return error(format!("expected hop, route, dst or N:HEX, found `{text}`")),
        },
    })
}

fn of_tcp(tcp: &mut Tcp, name: &str, value: &str) -> Parsed<bool> {
    match name {
        "seq" => tcp.seq = number(value)?,
        "ack" => tcp.ack = number(value)?,
        "win" => tcp.window = number(value)?,
        "urg" => tcp.urgent = number(value)?,
        "off" => tcp.offset = Some(number(value)?),
        "sum" => tcp.sum = Some(number(value)?),
        "flags" => tcp.flags = number(value)?,
        "mss" => tcp.options.push(TcpOption::Mss(number(value)?)),
        "wscale" => tcp.options.push(TcpOption::Wscale(number(value)?)),
        "opt" => tcp.options.push(TcpOption::Raw(hex(value)?)),
        "ts" => match value.split_once(',') {
            Some((val, echo)) => tcp.options.push(TcpOption::Ts(number(val)?, number(echo)?)),
            None => return error(format!("expected ts=VALUE,ECHO, found `{value}`")),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_udp(udp: &mut Udp, name: &str, value: &str) -> Parsed<bool> {
    match name {
        "udplen" => udp.len = Some(number(value)?),
        "sum" => udp.sum = Some(number(value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn of_icmp(icmp: &mut Icmp, name: &str, value: &str) -> Parsed<bool> {
    match name {
        "type" => icmp.kind = number(value)?,
        "code" => icmp.code = number(value)?,
        "rest" | "mtu" => icmp.rest = number(value)?,
        "id" => icmp.rest = u32::from(number::<u16>(value)?) << 16 | icmp.rest & 0xffff,
        "seq" => icmp.rest = icmp.rest & 0xffff_0000 | u32::from(number::<u16>(value)?),
        "cut" => icmp.cut = Some(number(value)?),
        "sum" => icmp.sum = Some(number(value)?),
        _ => return Ok(false),
    }
    Ok(true)
}
