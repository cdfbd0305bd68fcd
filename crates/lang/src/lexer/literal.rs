//! Computes the values of literals and finds errors in them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::token::Tok;
use crate::diag::{Code, codes};

/// An error in a literal. `at` counts from its first byte.
pub(super) struct Wrong {
    pub code: Code,
    pub message: String,
    pub at: Range<usize>,
    pub label: String,
    pub help: Option<String>,
}

impl Wrong {
    fn new(code: Code, text: &str, message: String) -> Self {
        Self { code, message, at: 0..text.len(), label: String::new(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A written address or prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// `10.0.0.1`
    Ip4(u32),
    /// `2001:db8::1`
    Ip6(u128),
    /// `02:00:00:00:00:01`
    Mac(u64),
    /// `10.0.0.0/8`
    Prefix4(u32, u8),
    /// `2001:db8::/32`
    Prefix6(u128, u8),
}

/// The value of an integer literal. `None` if it has no digits, a wrong digit, or more than 128
/// bits.
#[must_use]
pub fn int_value(text: &str) -> Option<u128> {
    let (digits, radix) = radix_of(text);
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    u128::from_str_radix(&digits, radix).ok()
}

fn radix_of(text: &str) -> (&str, u32) {
    let prefixed = |low, high| text.strip_prefix(low).or_else(|| text.strip_prefix(high));
    match (prefixed("0x", "0X"), prefixed("0b", "0B")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => (text, 10),
    }
}

pub(super) fn check_int(text: &str) -> Result<(), Wrong> {
    if int_value(text).is_some() {
        return Ok(());
    }
    let (digits, radix) = radix_of(text);
    let is_digit = |c: char| c == '_' || c.is_digit(radix);
    if digits.chars().all(is_digit) && digits.contains(|c: char| c.is_digit(radix)) {
        let message = "this number needs more than 128 bits".to_owned();
        let help = format!("the largest number is {}", u128::MAX);
        return Err(Wrong::new(codes::NUMBER_TOO_WIDE, text, message).help(help));
    }
    let kind = if radix == 16 { "hexadecimal" } else { "binary" };
    let message = match digits.chars().find(|c| !is_digit(*c)) {
        Some(wrong) => format!("`{wrong}` is no {kind} digit"),
        None => format!("a {kind} number needs digits after `{text}`"),
    };
    Err(Wrong::new(codes::BAD_NUMBER, text, message))
}

/// The address of a token. `None` for text that is not an address.
#[must_use]
pub fn address(text: &str) -> Option<Address> {
    if let Some((addr, len)) = text.split_once('/') {
        return prefix(addr, len.parse().ok()?);
    }
    if let Ok(addr) = text.parse::<Ipv4Addr>() {
        return Some(Address::Ip4(addr.to_bits()));
    }
    if let Ok(addr) = text.parse::<Ipv6Addr>() {
        return Some(Address::Ip6(addr.to_bits()));
    }
    mac(text).map(Address::Mac)
}

fn prefix(addr: &str, len: u8) -> Option<Address> {
    if let Ok(addr) = addr.parse::<Ipv4Addr>() {
        return (len <= 32).then_some(Address::Prefix4(addr.to_bits(), len));
    }
    let addr = addr.parse::<Ipv6Addr>().ok()?;
    (len <= 128).then_some(Address::Prefix6(addr.to_bits(), len))
}

fn mac(text: &str) -> Option<u64> {
    let groups: Vec<&str> = text.split(':').collect();
    if groups.len() != 6 || groups.iter().any(|group| group.len() != 2) {
        return None;
    }
    groups.iter().try_fold(0, |all, group| {
        u8::from_str_radix(group, 16).ok().map(|byte| all << 8 | u64::from(byte))
    })
}

/// The kind of address of a token.
pub(super) fn classify(text: &str) -> Result<Tok, Wrong> {
    match address(text) {
        Some(Address::Ip4(_)) => Ok(Tok::Ip4),
        Some(Address::Ip6(_)) => Ok(Tok::Ip6),
        Some(Address::Mac(_)) => Ok(Tok::Mac),
        Some(Address::Prefix4(..)) => Ok(Tok::Prefix4),
        Some(Address::Prefix6(..)) => Ok(Tok::Prefix6),
        None => Err(bad_address(text)),
    }
}

/// The prefix of an address in the notation of a prefix, if the address has bits beyond it.
pub(crate) fn without_host_bits(address: Address) -> Option<String> {
    match address {
        Address::Prefix4(addr, len) => {
            let kept = addr & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            (kept != addr).then(|| format!("{}/{len}", Ipv4Addr::from_bits(kept)))
        }
        Address::Prefix6(addr, len) => {
            let kept = addr & u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            (kept != addr).then(|| format!("{}/{len}", Ipv6Addr::from_bits(kept)))
        }
        _ => None,
    }
}

fn bad_address(text: &str) -> Wrong {
    if let Some((addr, _)) = text.split_once('/').filter(|(addr, _)| address(addr).is_some()) {
        let max = if addr.contains(':') { 128 } else { 32 };
        let message = format!("`{text}` is not a prefix: its length goes from 0 to {max}");
        return Wrong::new(codes::BAD_PREFIX, text, message);
    }
    if !text.contains([':', '/']) && text.matches('.').count() == 1 {
        let message = "numbers are whole; this one has a decimal point".to_owned();
        let help = "use a smaller unit, such as `1500 ms` for one and a half seconds";
        return Wrong::new(codes::BAD_NUMBER, text, message).help(help);
    }
    let (kind, help) = if text.contains(':') {
        (
            "IPv6 address nor a MAC address",
            "an IPv6 address is like `2001:db8::1`, a MAC address like `02:00:00:00:00:01`; \
             put a space after the `:` that follows a name",
        )
    } else {
        ("IPv4 address", "an IPv4 address is four numbers from 0 to 255, without leading zeros")
    };
    let neither = if text.contains(':') { "neither an" } else { "no" };
    let message = format!("`{text}` is {neither} {kind}");
    Wrong::new(codes::BAD_ADDRESS, text, message).help(help)
}

/// The text of a string literal, which includes its quotes. `None` if an escape is wrong.
#[must_use]
pub fn string_value(literal: &str) -> Option<String> {
    unescape(literal).ok()
}

pub(super) fn check_string(literal: &str) -> Result<(), Wrong> {
    let Err(at) = unescape(literal) else { return Ok(()) };
    let shown: String = literal[at.clone()].chars().take(12).collect();
    let message = format!("`{shown}` is not an escape sequence");
    let help =
        r#"the escapes are \" \\ \n \r \t \0, \x00 to \x7f, and \u{…} with hexadecimal digits"#;
    Err(Wrong { at, ..Wrong::new(codes::BAD_ESCAPE, literal, message) }.help(help))
}

/// The value, or the bytes of the first wrong escape.
fn unescape(literal: &str) -> Result<String, Range<usize>> {
    let body = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or("");
    let mut value = String::with_capacity(body.len());
    let mut at = 0;
    while let Some(c) = body[at..].chars().next() {
        if c == '\\' {
            // One more byte for the quote before the body.
            let (escaped, len) = escape(&body[at..]).map_err(|len| at + 1..at + 1 + len)?;
            value.push(escaped);
            at += len;
        } else {
            value.push(c);
            at += c.len_utf8();
        }
    }
    Ok(value)
}

/// The character of the escape at the start of `text`, and its length. `Err` holds the length of a
/// wrong escape.
fn escape(text: &str) -> Result<(char, usize), usize> {
    let kind = text[1..].chars().next().ok_or(1_usize)?;
    let simple = match kind {
        '"' | '\\' => kind,
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'x' => return hex_escape(text),
        'u' => return unicode_escape(text),
        _ => return Err(1 + kind.len_utf8()),
    };
    Ok((simple, 2))
}

fn hex_escape(text: &str) -> Result<(char, usize), usize> {
    let digits =
        text.get(2..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).ok_or(2_usize)?;
    let value = u8::from_str_radix(digits, 16).map_err(|_| 4_usize)?;
    if value.is_ascii() { Ok((char::from(value), 4)) } else { Err(4) }
}

fn unicode_escape(text: &str) -> Result<(char, usize), usize> {
    let digits =
        text[2..].strip_prefix('{').and_then(|rest| rest.split_once('}')).ok_or(2_usize)?.0;
    let len = digits.len() + 4;
    let hex = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let value = u32::from_str_radix(digits, 16).ok().filter(|_| hex).ok_or(len)?;
    char::from_u32(value).map(|c| (c, len)).ok_or(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int_value_reads_every_radix() {
        assert_eq!(int_value("1_000"), Some(1000));
        assert_eq!(int_value("0x1f"), Some(31));
        assert_eq!(int_value("0b101"), Some(5));
        assert_eq!(int_value("340282366920938463463374607431768211455"), Some(u128::MAX));
        assert_eq!(int_value("0x"), None);
    }

    #[test]
    fn address_reads_each_kind() {
        assert_eq!(address("10.0.0.1"), Some(Address::Ip4(0x0a00_0001)));
        assert_eq!(address("::1"), Some(Address::Ip6(1)));
        assert_eq!(address("02:00:00:00:00:0a"), Some(Address::Mac(0x0200_0000_000a)));
        assert_eq!(address("10.0.0.0/8"), Some(Address::Prefix4(0x0a00_0000, 8)));
        assert_eq!(address("::/0"), Some(Address::Prefix6(0, 0)));
        assert_eq!(address("0.0.0.0/0"), Some(Address::Prefix4(0, 0)));
    }

    #[test]
    fn string_value_resolves_escapes() {
        assert_eq!(string_value(r#""a\"\\\n\x41\u{e9}é""#).as_deref(), Some("a\"\\\nA\u{e9}é"));
        for wrong in [r#""\q""#, r#""\x8f""#, r#""\x4""#, r#""\u{110000}""#, r#""\u{}""#, r#""\é""#]
        {
            assert_eq!(string_value(wrong), None, "{wrong}");
        }
    }
}
