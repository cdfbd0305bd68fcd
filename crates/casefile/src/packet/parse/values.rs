//! Parses values: addresses, numbers, bytes and link types.

use crate::packet::layers::LinkKind;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

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
pub(super) type Parsed<T> = Result<T, ParseError>;

pub(super) fn error<T>(message: impl Into<String>) -> Parsed<T> {
    Err(ParseError(message.into()))
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

pub(super) fn address4(text: &str) -> Parsed<u32> {
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
