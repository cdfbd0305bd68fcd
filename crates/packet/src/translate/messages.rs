//! Which ICMP message stands for which ICMPv6 message (RFC 7915 §4.2, §5.2).

use super::head::{Head, Version, number};
use crate::wire::icmp;

/// The least MTU of an IPv6 link.
const LEAST_MTU6: u32 = 1280;
/// The least MTU that a router may tell of.
const LEAST_MTU4: usize = 68;
/// By how much an IPv6 header is longer than an IPv4 header.
const LONGER: u32 = 20;
/// The MTUs that are tried one after the other, where a router does not say its own (RFC 1191 §7).
const PLATEAUS: [usize; 11] =
    [65535, 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, LEAST_MTU4];

/// The type that an echo request or reply gets in this version. `None` for other messages.
pub(super) fn echo(kind: u8, to: Version) -> Option<u8> {
    match (to, kind) {
        (Version::Ip6, 8) => Some(128),
        (Version::Ip6, 0) => Some(129),
        (Version::Ip4, 128) => Some(8),
        (Version::Ip4, 129) => Some(0),
        _ => None,
    }
}

/// The packet that an error quotes. Extensions behind it (RFC 4884) are left out.
pub(super) fn quote(message: &[u8], version: Version) -> &[u8] {
    let quote = message.get(icmp::LEN..).unwrap_or_default();
    let word = |at: usize| message.get(at).copied().map_or(0, usize::from);
    // The length of the quoted part, in words.
    let len = match (version, message.first()) {
        (Version::Ip4, Some(3 | 11 | 12)) => 4 * word(icmp::REST + 1),
        (Version::Ip6, Some(1 | 3)) => 8 * word(icmp::REST),
        _ => 0,
    };
    if len == 0 { quote } else { quote.get(..len).unwrap_or(quote) }
}

/// The type, the code and the rest of the header that an error about the packet `quoted` gets in
/// this version. `None` if the version has no such error.
pub(super) fn error(
    (kind, code): (u8, u8),
    message: &[u8],
    quoted: &Head,
    to: Version,
) -> Option<(u8, u8, u32)> {
    match to {
        Version::Ip6 => to_icmp6((kind, code), message, quoted.total()),
        Version::Ip4 => to_icmp4((kind, code), message, quoted.excess()),
    }
}

fn to_icmp6((kind, code): (u8, u8), message: &[u8], total: usize) -> Option<(u8, u8, u32)> {
    Some(match (kind, code) {
        (3, 2) => (4, 1, 6),
        (3, 3) => (1, 4, 0),
        (3, 4) => {
            let mtu = match number(message, icmp::REST + 2)? {
                0 => *PLATEAUS.iter().find(|plateau| **plateau < total).unwrap_or(&LEAST_MTU4),
                mtu => mtu.into(),
            };
            (2, 0, (u32::try_from(mtu).ok()? + LONGER).max(LEAST_MTU6))
        }
        (3, 0 | 1 | 5..=8 | 11 | 12) => (1, 0, 0),
        (3, 9 | 10 | 13 | 15) => (1, 1, 0),
        (11, _) => (3, code, 0),
        (12, 0 | 2) => {
            let pointer = match message.get(icmp::REST)? {
                0 => 0,
                1 => 1,
                2 | 3 => 4,
                8 => 7,
                9 => 6,
                12..=15 => 8,
                16..=19 => 24,
                _ => return None,
            };
            (4, 0, pointer)
        }
        _ => return None,
    })
}

fn to_icmp4((kind, code): (u8, u8), message: &[u8], excess: u32) -> Option<(u8, u8, u32)> {
    let rest = message.get(icmp::REST..)?.first_chunk::<4>()?;
    let rest = u32::from_be_bytes(*rest);
    Some(match (kind, code) {
        (1, 0 | 2 | 3) => (3, 1, 0),
        (1, 1) => (3, 10, 0),
        (1, 4) => (3, 3, 0),
        (2, _) => (3, 4, rest.saturating_sub(excess).min(u16::MAX.into())),
        (3, _) => (11, code, 0),
        (4, 0) => {
            let pointer = match rest {
                0 => 0,
                1 => 1,
                4 | 5 => 2,
                6 => 9,
                7 => 8,
                8..=23 => 12,
                24..=39 => 16,
                _ => return None,
            };
            (12, 0, pointer << 24)
        }
        (4, 1) => (3, 2, 0),
        _ => return None,
    })
}
