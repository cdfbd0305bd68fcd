//! Formats fields and packets as text, for traces and comparisons.

use crate::field::{DECLARATIONS, Field, Header, Show};
use crate::layout::Layout;
use crate::packet::Packet;
use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field's value in its usual notation: addresses in their own notation, type and flag bytes in
/// hexadecimal, all else in decimal.
#[must_use]
pub fn format_field(field: Field, value: u128) -> String {
    match field.info().show {
        Show::Decimal | Show::Port | Show::Size | Show::Time => value.to_string(),
        // The width includes the prefix `0x`.
        Show::Hex(digits) => format!("{value:#0width$x}", width = digits + 2),
        Show::Mac => mac(value),
        Show::Ip4 => ip4(value),
        Show::Inet if value >> 32 == 0 => ip4(value),
        Show::Ip6 | Show::Inet => Ipv6Addr::from(value).to_string(),
        Show::Flags => flags(value),
    }
}

fn ip4(value: u128) -> String {
    let low = u32::try_from(value & u128::from(u32::MAX)).unwrap_or(0);
    Ipv4Addr::from(low).to_string()
}

fn mac(value: u128) -> String {
    let bytes = value.to_be_bytes();
    let parts: Vec<_> = bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

fn flags(value: u128) -> String {
    const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
    let set: Vec<_> = NAMES
        .iter()
        .enumerate()
        .filter(|(bit, _)| value >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() { "none".to_owned() } else { set.join(",") }
}

/// The packet in one line, such as `10.0.0.1:1234 > 8.8.8.8:53 UDP len 60`. `len` is the length on
/// the wire. Errors and missing parts come at the end.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.parse();
        write!(f, "{} len {}", subject(self, &layout), self.wire_len)?;
        if layout.is_fragment() {
            f.write_str(if layout.is_later_fragment() { " later-fragment" } else { " fragment" })?;
        }
        if self.data().len() < usize::try_from(self.wire_len).unwrap_or(usize::MAX) {
            write!(f, " captured {}", self.data().len())?;
        }
        match layout.malformed() {
            Some(reason) => write!(f, " malformed {reason}"),
            None => Ok(()),
        }
    }
}

/// The sender, the receiver and the protocol.
fn subject(packet: &Packet, layout: &Layout) -> String {
    let text = |field: Field| {
        let value = packet.get(layout, field);
        value.map_or_else(|| "?".to_owned(), |value| format_field(field, value))
    };
    let vlan = match layout.has(Header::Vlan) {
        true => format!("vlan {} ", text(Field::VlanId)),
        false => String::new(),
    };
    let rest = if layout.has(Header::Inet) {
        inet_subject(packet, layout)
    } else if layout.has(Header::Arp) {
        let (spa, tpa) = (text(Field::ArpSpa), text(Field::ArpTpa));
        format!("{spa} > {tpa} ARP op {}", text(Field::ArpOp))
    } else if let Some(words) = words(packet, layout) {
        words
    } else if layout.has(Header::Eth) {
        let (src, dst) = (text(Field::EthSrc), text(Field::EthDst));
        format!("{src} > {dst} type {}", text(Field::EthType))
    } else {
        "unrecognised".to_owned()
    };
    vlan + &rest
}

fn inet_subject(packet: &Packet, layout: &Layout) -> String {
    let text = |field: Field| {
        let value = packet.get(layout, field);
        value.map_or_else(|| "?".to_owned(), |value| format_field(field, value))
    };
    let version4 = layout.has(Header::Ip4);
    let (src, dst) = match version4 {
        true => (text(Field::IpSrc), text(Field::IpDst)),
        false => (text(Field::Ip6Src), text(Field::Ip6Dst)),
    };
    if layout.has(Header::L4) {
        let (sport, dport) = (text(Field::L4Sport), text(Field::L4Dport));
        let end = |address: String, port: String| match version4 {
            true => format!("{address}:{port}"),
            false => format!("[{address}]:{port}"),
        };
        let proto = words(packet, layout).unwrap_or_default();
        return format!("{} > {} {proto}", end(src, sport), end(dst, dport));
    }
    let other = || format!("proto {}", text(Field::InetProto));
    let proto = words(packet, layout).unwrap_or_else(other);
    format!("{src} > {dst} {proto}")
}

/// The last header that has a summary of its own, as text.
fn words(packet: &Packet, layout: &Layout) -> Option<String> {
    let mut present = DECLARATIONS.iter().rev().filter(|header| layout.has(header.header));
    let (name, fields) = present.find_map(|header| header.summary)?;
    let mut words = name.to_owned();
    for (label, field) in fields {
        let value = packet.get(layout, *field);
        let text = value.map_or_else(|| "?".to_owned(), |value| format_field(*field, value));
        let _ = write!(words, " {label}{text}");
    }
    Some(words)
}
