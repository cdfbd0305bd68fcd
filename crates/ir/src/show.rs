//! Scalars and types as text: the notation in the text form, events, state and traces.

use crate::chain::Chain;
use crate::model::{FIRST_IP6, Kind, ParamId, Ty, Word};
use crate::steering::{By, Of, Part, Side};
use braid_packet::Field;
use braid_packet::field::Show;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

impl Ty {
    /// An unsigned integer of this width.
    #[must_use]
    pub const fn uint(width: u16) -> Self {
        Self { width, kind: Kind::Uint }
    }

    /// The type of a kind that has one width. `Uint` has no width of its own and gets 64 bits.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        let width = match kind.width() {
            Some(width) => width,
            None => 64,
        };
        Self { width, kind }
    }

    /// Whether the width is allowed for the kind.
    #[must_use]
    pub fn is_valid(self) -> bool {
        match self.kind.width() {
            Some(width) => self.width == width,
            None => (1..=128).contains(&self.width),
        }
    }

    /// The largest value.
    #[must_use]
    pub fn max(self) -> Word {
        max_of(self.width)
    }
}

/// The largest value of this width (1 to 128 bits).
#[must_use]
pub fn max_of(width: u16) -> Word {
    if width == 0 { 0 } else { Word::MAX >> (128 - u32::from(width.min(128))) }
}

/// `bool`, `u16`, `ip4`, …. A kind at a wrong width prints as `ip4/8`.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.width() {
            None => write!(f, "u{}", self.width),
            Some(width) if width == self.width => f.write_str(self.kind.name()),
            Some(_) => write!(f, "{}/{}", self.kind.name(), self.width),
        }
    }
}

/// Kinds with a fixed width, by name.
pub(crate) const NAMED_KINDS: &[(Kind, &str, u16)] = &[
    (Kind::Bool, "bool", 1),
    (Kind::Ip4, "ip4", 32),
    (Kind::Ip6, "ip6", 128),
    (Kind::Addr, "addr", 128),
    (Kind::Mac, "mac", 48),
    (Kind::Port, "port", 16),
    (Kind::Duration, "duration", 64),
    (Kind::Time, "time", 64),
    (Kind::Size, "size", 64),
    (Kind::Bitrate, "bitrate", 64),
    (Kind::Length, "length", 8),
    (Kind::Bytes, "bytes", 128),
];

impl Kind {
    /// The width that all values of this kind have. `None` for plain integers.
    #[must_use]
    pub const fn width(self) -> Option<u16> {
        match self {
            Kind::Uint => None,
            Kind::Bool => Some(1),
            Kind::Port => Some(16),
            Kind::Ip4 => Some(32),
            Kind::Mac => Some(48),
            Kind::Duration | Kind::Time | Kind::Size | Kind::Bitrate => Some(64),
            Kind::Ip6 | Kind::Addr | Kind::Bytes => Some(128),
            Kind::Length => Some(8),
        }
    }

    /// Its name in the language (`uint` for plain integers).
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMED_KINDS.iter().find(|(kind, ..)| *kind == self).map_or("uint", |(_, name, _)| name)
    }

    /// A value as text: addresses in their usual notation, booleans as words, other values in
    /// decimal.
    #[must_use]
    pub fn show(self, value: Word) -> String {
        match self {
            Kind::Bool if value <= 1 => (value == 1).to_string(),
            Kind::Ip4 => match u32::try_from(value) {
                Ok(bits) => Ipv4Addr::from(bits).to_string(),
                Err(_) => value.to_string(),
            },
            Kind::Addr if value < FIRST_IP6 => Kind::Ip4.show(value),
            Kind::Ip6 | Kind::Addr => Ipv6Addr::from(value).to_string(),
            Kind::Mac if value <= max_of(48) => mac(value),
            Kind::Bytes => text(value),
            _ => value.to_string(),
        }
    }

    /// A value as the text form of programs writes it, so that [`parse_word`] reads it again:
    /// bytes as a hexadecimal number, other kinds as they are shown.
    pub(crate) fn literal(self, value: Word) -> String {
        match self {
            Kind::Bytes => format!("{value:#x}"),
            _ => self.show(value),
        }
    }
}

/// Values in groups: a string is its length and its words, every other value stands alone.
pub fn groups(values: &[(Kind, Word)]) -> impl Iterator<Item = &[(Kind, Word)]> {
    values.chunk_by(|_, (next, _)| *next == Kind::Bytes)
}

/// The text of a string, with escapes where it is not printable. `None` for any other group of
/// values.
#[must_use]
pub fn string(group: &[(Kind, Word)]) -> Option<String> {
    let [(Kind::Length, len), words @ ..] = group else { return None };
    Some(text_of(*len, words.iter().map(|(_, word)| *word)))
}

/// The text of a string with this length and these words.
#[must_use]
pub fn text_of(len: Word, words: impl IntoIterator<Item = Word>) -> String {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let bytes = words.into_iter().flat_map(Word::to_be_bytes).take(len);
    bytes.flat_map(|byte| byte.escape_ascii()).map(char::from).collect()
}

/// Values as text, strings in quotes.
#[must_use]
pub fn show_all(values: &[(Kind, Word)]) -> Vec<String> {
    let show = |group: &[(Kind, Word)]| match string(group) {
        Some(text) => format!("\"{text}\""),
        None => group.iter().map(|(kind, word)| kind.show(*word)).collect(),
    };
    groups(values).map(show).collect()
}

/// The bytes of a word up to the last one that is not 0, with escapes where they are not printable.
fn text(value: Word) -> String {
    let bytes = value.to_be_bytes();
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.iter().take(len).flat_map(|byte| byte.escape_ascii()).map(char::from).collect()
}

fn mac(value: Word) -> String {
    let bytes = value.to_be_bytes();
    let hex: Vec<_> = bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(":")
}

/// Reads a value as [`Kind::show`] prints it: an address, a boolean, a decimal or `0x` number.
#[must_use]
pub fn parse_word(text: &str) -> Option<Word> {
    match text {
        "true" => return Some(1),
        "false" => return Some(0),
        _ => {}
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return Word::from_str_radix(hex, 16).ok();
    }
    if !text.contains([':', '.']) {
        return text.parse().ok();
    }
    if let Ok(addr) = text.parse::<Ipv4Addr>() {
        return Some(Word::from(u32::from(addr)));
    }
    text.parse::<Ipv6Addr>().map(u128::from).ok().or_else(|| parse_mac(text))
}

fn parse_mac(text: &str) -> Option<Word> {
    let parts: Vec<_> = text.split(':').collect();
    let bytes = parts.iter().all(|part| part.len() == 2) && parts.len() == 6;
    bytes.then(|| Word::from_str_radix(&parts.concat(), 16).ok()).flatten()
}

/// The kind of a field's values.
#[must_use]
pub fn field_kind(field: Field) -> Kind {
    let info = field.info();
    match info.show {
        Show::Mac => Kind::Mac,
        Show::Ip4 => Kind::Ip4,
        Show::Ip6 => Kind::Ip6,
        Show::Inet => Kind::Addr,
        Show::Port => Kind::Port,
        Show::Size => Kind::Size,
        Show::Time => Kind::Time,
        Show::Decimal | Show::Hex(_) | Show::Flags if info.width == 1 => Kind::Bool,
        Show::Decimal | Show::Hex(_) | Show::Flags => Kind::Uint,
    }
}

/// A rule of steering in words.
#[must_use]
pub fn steering_rule(chain: &Chain, by: &By) -> String {
    match by {
        By::Connection => "hash of the connection (both ends, symmetric)".to_owned(),
        By::Part(of) => format!("hash of the {}", part(*of)),
        By::Field(field) => format!("hash of {}", field.info().name),
        By::Pool(of, pool) => {
            let pool = pool_name(chain, pool.node, pool.param);
            format!("the worker whose share of {pool} holds the {}", part(*of))
        }
    }
}

fn part(part: Part) -> String {
    let end = match part.end {
        Side::Source => "source",
        Side::Destination => "destination",
    };
    match part.what {
        Of::Both => format!("{end} address and port"),
        Of::Address => format!("{end} address"),
        Of::Port => format!("{end} port"),
    }
}

/// A pool, by function and parameter.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "the caller names a parameter of the chain")]
pub fn pool_name(chain: &Chain, node: u16, param: ParamId) -> String {
    let node = &chain.nodes[usize::from(node)];
    format!("{}.{}", node.name, node.model.params[param.index()].name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_field_is_what_its_name_and_width_say() {
        for info in braid_packet::FIELDS {
            let ends = |ends: &[&str]| ends.iter().any(|end| info.name.ends_with(end));
            let expected = match info.width {
                _ if info.name == "pkt.time" => Kind::Time,
                _ if ends(&["pkt.len", "pkt.payload_len"]) => Kind::Size,
                1 => Kind::Bool,
                16 if ends(&["port"]) => Kind::Port,
                32 if ends(&[".src", ".dst", ".spa", ".tpa"]) => Kind::Ip4,
                48 => Kind::Mac,
                128 if info.name.contains("inet") => Kind::Addr,
                128 => Kind::Ip6,
                _ => Kind::Uint,
            };
            assert_eq!(field_kind(info.field), expected, "{}", info.name);
        }
    }
}
