//! Declares interfaces: the prefixes behind them, and what they are on their links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_ir::chain::{self as ir, OwnAddress, TooLong};
use braid_ir::model::Word;
use braid_ir::value::IntervalSet;
use rustc_hash::FxHashMap;

use super::draft::{Draft, End, Interface, MAX_ADDRESSES, MAX_INTERFACES, name_it};
use crate::ast::{Expr, ExprKind, Ident, InterfacePart, Span};
use crate::diag::{Diagnostic, Diagnostics, codes, did_you_mean_help};

/// Adds an interface to the chain.
pub(super) fn declare<'a>(
    draft: &mut Draft<'a>,
    name: &'a Ident,
    parts: &[InterfacePart],
    diags: &mut Diagnostics,
) {
    if draft.interfaces.len() >= MAX_INTERFACES {
        let message = format!("a chain has at most {MAX_INTERFACES} interfaces");
        diags.push(Diagnostic::new(codes::CHAIN_TOO_LARGE, message, name.span, "one too many"));
        return;
    }
    let mut made = ir::Interface { name: name.text.clone(), ..ir::Interface::default() };
    let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
    for part in parts {
        let (InterfacePart::Values { name, .. } | InterfacePart::TooLong { name, .. }) = part;
        if let Some(before) = seen.insert(&name.text, name.span) {
            let message = format!("`{}` is given twice", name.text);
            let found = wrong(message, name.span, "again").label(before, "first here");
            diags.push(found.help("keep one of them; several values stand between commas"));
        }
        match part {
            InterfacePart::TooLong { what, .. } => made.too_long = too_long(what, diags),
            InterfacePart::Values { name, values } => match name.text.as_str() {
                "address" => made.addresses = own_addresses(values, diags),
                // Gateways need the addresses.
                "gateway" => {}
                "mac" => made.mac = mac(values, diags),
                _ => (made.behind4, made.behind6) = behind(values, diags),
            },
        }
    }
    for part in parts {
        match part {
            InterfacePart::Values { name, values } if name.text == "gateway" => {
                made.gateways = gateways(&made, values, diags);
            }
            InterfacePart::TooLong { what, .. }
                if what.text == "icmp" && made.addresses.is_empty() =>
            {
                let message = "the interface has no address from which to send ICMP errors";
                let found = wrong(message, what.span, "needs an address");
                diags.push(found.help("add one, such as `address 10.0.0.1/24;`"));
            }
            _ => {}
        }
    }
    let at = u16::try_from(draft.interfaces.len()).unwrap_or(u16::MAX);
    draft.interfaces.push(Interface { ir: made, span: Some(name.span) });
    name_it(draft, name, End::Interface(at), diags);
}

fn wrong(message: impl Into<String>, span: Span, label: &str) -> Diagnostic {
    Diagnostic::new(codes::BAD_INTERFACE, message, span, label)
}

/// Reports a value of another kind than expected, unless it is reported already.
fn expected(what: &str, like: &str, value: &Expr, diags: &mut Diagnostics) {
    if value.kind != ExprKind::Error {
        let found = wrong(format!("expected {what}"), value.span, "not one");
        diags.push(found.help(format!("write it like {like}")));
    }
}

fn behind(prefixes: &[Expr], diags: &mut Diagnostics) -> (IntervalSet, IntervalSet) {
    let mut intervals4 = Vec::new();
    let mut intervals6 = Vec::new();
    for prefix in prefixes {
        match interval(prefix) {
            Some((false, interval)) => intervals4.push(interval),
            Some((true, interval)) => intervals6.push(interval),
            None if prefix.kind == ExprKind::Error => {}
            None => {
                let message = "expected a prefix or an address";
                diags.push(
                    Diagnostic::new(codes::NOT_A_PREFIX, message, prefix.span, "not one")
                        .help("write it like `10.0.0.0/8` or `fd00::/8`"),
                );
            }
        }
    }
    (IntervalSet::new(intervals4), IntervalSet::new(intervals6))
}

/// The addresses of a prefix or of an address, and whether they are IPv6.
fn interval(prefix: &Expr) -> Option<(bool, (Word, Word))> {
    match prefix.kind {
        ExprKind::Ip4(addr) => Some((false, (addr.into(), addr.into()))),
        ExprKind::Ip6(addr) => Some((true, (addr, addr))),
        ExprKind::Prefix4(addr, len) => {
            let host = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
            Some((false, ((addr & !host).into(), (addr | host).into())))
        }
        ExprKind::Prefix6(addr, len) => {
            let host = u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
            Some((true, (addr & !host, addr | host)))
        }
        _ => None,
    }
}

fn own_addresses(values: &[Expr], diags: &mut Diagnostics) -> Vec<OwnAddress> {
    if let Some(value) = values.get(MAX_ADDRESSES) {
        let message = format!("an interface has at most {MAX_ADDRESSES} addresses");
        diags.push(Diagnostic::new(codes::CHAIN_TOO_LARGE, message, value.span, "one too many"));
    }
    values.iter().take(MAX_ADDRESSES).filter_map(|value| own_address(value, diags)).collect()
}

fn own_address(value: &Expr, diags: &mut Diagnostics) -> Option<OwnAddress> {
    let (address, prefix_len) = match value.kind {
        ExprKind::Prefix4(addr, len) => (IpAddr::V4(Ipv4Addr::from_bits(addr)), len),
        ExprKind::Prefix6(addr, len) => (IpAddr::V6(Ipv6Addr::from_bits(addr)), len),
        _ => {
            let what = "an address with the length of its prefix";
            expected(what, "`10.0.0.1/24` or `fd00::1/64`", value, diags);
            return None;
        }
    };
    let own = OwnAddress { address, prefix_len };
    if let Some(why) = not_of_a_host(own) {
        let message = format!("{address} cannot be the address of an interface: {why}");
        diags.push(wrong(message, value.span, "not the address of a host"));
        return None;
    }
    Some(own)
}

/// The reason why an address is not the address of one host.
fn not_of_a_host(own: OwnAddress) -> Option<&'static str> {
    let OwnAddress { address, prefix_len } = own;
    let is_first = match address {
        IpAddr::V4(addr) => {
            prefix_len <= 30 && addr.to_bits().checked_shl(prefix_len.into()).unwrap_or(0) == 0
        }
        IpAddr::V6(addr) => {
            prefix_len <= 126 && addr.to_bits().checked_shl(prefix_len.into()).unwrap_or(0) == 0
        }
    };
    match address {
        _ if address.is_unspecified() => Some("it means no address"),
        _ if address.is_multicast() => Some("it is a multicast address"),
        _ if address.is_loopback() => Some("it is a loopback address"),
        IpAddr::V4(addr) if addr.octets()[0] == 0 || addr.octets()[0] >= 240 => {
            Some("it is reserved")
        }
        _ if own.broadcast() == Some(address) => Some("it is the prefix's broadcast address"),
        _ if is_first => Some("it is the prefix itself"),
        _ => None,
    }
}

/// The gateways: one at most for each IP version, on the interface's link.
fn gateways(made: &ir::Interface, values: &[Expr], diags: &mut Diagnostics) -> Vec<IpAddr> {
    let mut found: Vec<(IpAddr, Span)> = Vec::new();
    for value in values {
        let span = value.span;
        let gateway = match value.kind {
            ExprKind::Ip4(addr) => IpAddr::V4(Ipv4Addr::from_bits(addr)),
            ExprKind::Ip6(addr) => IpAddr::V6(Ipv6Addr::from_bits(addr)),
            _ => {
                expected("an address", "`10.0.0.254` or `fe80::1`", value, diags);
                continue;
            }
        };
        let same = |(other, _): &&(IpAddr, Span)| other.is_ipv6() == gateway.is_ipv6();
        if let Some((_, first)) = found.iter().find(same) {
            let version = if gateway.is_ipv6() { "IPv6" } else { "IPv4" };
            let message = format!("an interface has one gateway for {version}");
            diags.push(wrong(message, span, "a second one").label(*first, "the first one"));
            continue;
        }
        found.push((gateway, span));
        if made.addresses.iter().any(|own| own.address == gateway) {
            let message = format!("{gateway} is the interface's own address");
            diags.push(wrong(message, span, "not another host"));
        } else if !made.is_on_link(gateway) {
            let message = format!("{gateway} is in no prefix of the interface's addresses");
            let far = wrong(message, span, "not on this link");
            diags.push(far.help("a gateway is a neighbour on the interface's own link"));
        }
    }
    found.into_iter().map(|(gateway, _)| gateway).collect()
}

fn mac(values: &[Expr], diags: &mut Diagnostics) -> Option<[u8; 6]> {
    let [Expr { kind: ExprKind::Mac(mac), span }] = values else {
        if let [value, ..] = values {
            expected("one MAC address", "`02:00:00:00:00:01`", value, diags);
        }
        return None;
    };
    let [_, _, bytes @ ..] = mac.to_be_bytes();
    if bytes[0] & 1 == 1 || *mac == 0 {
        let message = "the MAC address of an interface is that of one host";
        diags.push(wrong(message, *span, "not the address of a host"));
        return None;
    }
    Some(bytes)
}

fn too_long(what: &Ident, diags: &mut Diagnostics) -> TooLong {
    match what.text.as_str() {
        "icmp" => TooLong::Icmp,
        "fragment" => TooLong::Fragment,
        "drop" => TooLong::Drop,
        other => {
            let message = format!("expected `icmp`, `fragment` or `drop`, found `{other}`");
            let help = did_you_mean_help(other, ["icmp", "fragment", "drop"]);
            diags.push(wrong(message, what.span, "unknown").help_if(help));
            TooLong::default()
        }
    }
}

/// Reports addresses that two interfaces have, or that are behind two interfaces.
pub(super) fn compare(draft: &Draft<'_>, diags: &mut Diagnostics) {
    for (at, second) in draft.interfaces.iter().enumerate() {
        let Some(span) = second.span else { continue };
        for first in &draft.interfaces[..at] {
            let names = || format!("both `{}` and `{}`", first.ir.name, second.ir.name);
            if let Some(common) = behind_both(&first.ir, &second.ir) {
                let message = format!("{common} is behind {}", names());
                let mut found =
                    Diagnostic::new(codes::PREFIX_OVERLAP, message, span, "behind this one");
                if let Some(span) = first.span {
                    found = found.label(span, "and behind this one");
                }
                diags.push(found.help("make the prefixes behind interfaces disjoint"));
            }
            if let Some(common) = address_of_both(&first.ir, &second.ir) {
                let message = format!("{common} is the address of {}", names());
                let mut found = wrong(message, span, "of this one");
                if let Some(span) = first.span {
                    found = found.label(span, "and of this one");
                }
                diags.push(found.help("give each interface addresses of its own"));
            }
        }
    }
}

/// An address that two interfaces have. Link-local addresses belong to their link only.
fn address_of_both(first: &ir::Interface, second: &ir::Interface) -> Option<IpAddr> {
    let is_local = |address: IpAddr| matches!(address, IpAddr::V6(a) if a.is_unicast_link_local());
    let has = |address| first.addresses.iter().any(|own| own.address == address);
    second.addresses.iter().map(|own| own.address).find(|a| !is_local(*a) && has(*a))
}

/// The lowest address that is behind two interfaces.
fn behind_both(first: &ir::Interface, second: &ir::Interface) -> Option<IpAddr> {
    let ip4 = shared(&first.behind4, &second.behind4)
        .map(|addr| IpAddr::from(Ipv4Addr::from(u32::try_from(addr).unwrap_or(u32::MAX))));
    ip4.or_else(|| {
        shared(&first.behind6, &second.behind6).map(|addr| IpAddr::from(Ipv6Addr::from(addr)))
    })
}

/// The lowest common member of two sets, found in one pass over both.
fn shared(a: &IntervalSet, b: &IntervalSet) -> Option<Word> {
    let (mut left, mut right) = (a.intervals().iter().peekable(), b.intervals().iter().peekable());
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        let low = x.0.max(y.0);
        if low <= x.1.min(y.1) {
            return Some(low);
        }
        if x.1 < y.1 {
            left.next()
        } else {
            right.next()
        };
    }
    None
}
