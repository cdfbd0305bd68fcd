//! Translates packets between IPv4 and IPv6 (RFC 7915, "IP/ICMP Translation Algorithm").
//!
//! The network header is replaced by one of the other version. Checksums of TCP and UDP follow, and
//! ICMP becomes ICMPv6 or the other way round, with the packet that an error quotes. The time to
//! live is not counted down.

use crate::bytes::Cut;
use crate::checksum::{self, Delta, Sum16, rfc1071};
use crate::field::Header;
use crate::layout::Layout;
use crate::lengths::{direct_type, write};
use crate::link::Link;
use crate::packet::{MOST, Packet};
use crate::wire::{ether_type, icmp, proto, tcp, udp};

mod head;
mod messages;

pub use head::Version;
use head::{Head, number};

/// The addresses that a translated packet gets. An IPv4 address lies in the low 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Addresses {
    /// Source and destination.
    pub own: [u128; 2],
    /// Source and destination of the packet that an ICMP error quotes.
    pub quoted: Option<[u128; 2]>,
}

/// Translates a packet of the other version to this version. Earlier layouts become invalid.
/// Padding behind the packet is removed.
///
/// Returns false, and changes nothing, if the packet
/// - is not of the other version, has no IP right behind its link header, or is a jumbogram;
/// - has an IPv4 header with a wrong checksum;
/// - has an unexpired source route or a routing header with segments left, an authentication
///   header, or extension headers behind a fragment header;
/// - is a fragment of ICMP, or a first fragment of UDP over IPv4 without a checksum;
/// - has a protocol whose meaning depends on the version (IGMP, extension headers);
/// - is an ICMP message without a counterpart, or an ICMP error with a wrong checksum;
/// - is an ICMP error, and there are no `quoted` addresses;
/// - would get too long.
///
/// # Errors
/// The capture lacks bytes that the translation needs. Nothing has changed.
pub fn translate(
    packet: &mut Packet,
    layout: &Layout,
    to: Version,
    addresses: Addresses,
) -> Result<bool, Cut> {
    let Some(type_at) = announcing(packet, layout, to) else { return Ok(false) };
    let (at, l4, end) = (layout.ip(), layout.l4(), layout.ip_end());
    let data = packet.data();
    let Some(old) = data.get(at..l4).and_then(|bytes| Head::read(bytes, to.other())) else {
        return Ok(false);
    };
    // A wrong checksum of the header would be gone with the header.
    if to == Version::Ip6 && data.get(at..l4).is_some_and(|bytes| rfc1071(bytes) != 0) {
        return Ok(false);
    }
    let Some(proto) = to.protocol(old.proto) else { return Ok(false) };
    let header = Target { to, own: addresses.own };
    let captured = data.get(l4..end.min(data.len())).unwrap_or_default();
    let message = Message { bytes: captured, len: end - l4 };
    let change = match message.change(&old, header, addresses.quoted)? {
        Some(change) => change,
        None => return Ok(false),
    };
    let body = if let Change::Replace(bytes) = &change { bytes.len() } else { old.body };
    let Some((new, len)) = old.around(proto, body).bytes(to, addresses.own) else {
        return Ok(false);
    };
    if packet.wire_len as usize + len > MOST as usize {
        return Ok(false);
    }
    packet.truncate(end);
    match change {
        Change::None => {}
        Change::Sum(at, delta, udp) => {
            checksum::update(packet.data_mut(), l4 + at, delta, udp);
        }
        Change::Put(at, sum) => write(packet, l4 + at, &sum.to_be_bytes()),
        Change::Kind(kind, delta) => {
            write(packet, l4 + icmp::TYPE, &[kind]);
            checksum::update(packet.data_mut(), l4 + icmp::CHECKSUM, delta, false);
        }
        Change::Replace(bytes) => {
            packet.truncate(l4);
            packet.insert(l4, &bytes);
        }
    }
    let more = len.saturating_sub(l4 - at);
    packet.insert(at, new.get(..more).unwrap_or_default());
    packet.remove(at, (l4 - at).saturating_sub(len));
    write(packet, at, new.get(..len).unwrap_or_default());
    if let Some(type_at) = type_at {
        let kind = if to == Version::Ip4 { ether_type::IPV4 } else { ether_type::IPV6 };
        write(packet, type_at, &kind.to_be_bytes());
    }
    Ok(true)
}

/// The place of the EtherType that announces the IP header, if there is one. `None` if the packet
/// is not one of the other version that can be translated.
fn announcing(packet: &Packet, layout: &Layout, to: Version) -> Option<Option<usize>> {
    let type_at = match packet.link {
        Link::Ethernet => Some(direct_type(packet, layout)?),
        Link::RawIp => None,
        Link::Cooked | Link::Cooked2 => return None,
    };
    let is_right = layout.has(to.other().header());
    let is_plain = !layout.is_encapsulated() && !layout.is_jumbo() && !layout.has(Header::Ah);
    (is_right && is_plain).then_some(type_at)
}

/// What a packet is translated to.
#[derive(Clone, Copy)]
struct Target {
    to: Version,
    own: [u128; 2],
}

/// How the bytes behind the network header change.
enum Change {
    None,
    /// The checksum at an offset follows a difference; whether it is one of UDP.
    Sum(usize, Delta, bool),
    /// The checksum at an offset, which was missing, is this one.
    Put(usize, u16),
    /// The type of an ICMP message is another one, and its checksum follows.
    Kind(u8, Delta),
    /// They are these.
    Replace(Vec<u8>),
}

/// The bytes behind a network header.
#[derive(Clone, Copy)]
struct Message<'a> {
    /// As far as they are there: not all of them may be captured or quoted.
    bytes: &'a [u8],
    /// Their number in the whole packet.
    len: usize,
}

impl Message<'_> {
    /// How a message behind a header changes. `None` if it cannot be translated.
    fn change(
        self,
        old: &Head,
        new: Target,
        quoted: Option<[u128; 2]>,
    ) -> Result<Option<Change>, Cut> {
        let is_icmp = matches!(old.proto, proto::ICMP | proto::ICMP6);
        if is_icmp && old.is_part() {
            return Ok(None);
        }
        let Some((at, need)) = old.sum() else { return Ok(Some(Change::None)) };
        if self.len < need {
            return Ok(None);
        }
        let Some(checksum) = self.bytes.get(..need).and_then(|bytes| number(bytes, at)) else {
            return Err(Cut);
        };
        if is_icmp {
            return self.icmp(old, new, quoted);
        }
        let is_udp = old.proto == proto::UDP;
        if is_udp && checksum == 0 && new.to == Version::Ip6 {
            return self.missing_sum(old, new.own);
        }
        Ok(Some(Change::Sum(at, old.delta(new), is_udp)))
    }

    /// The checksum of UDP over IPv6, where the IPv4 packet has none (RFC 7915 §4.5).
    fn missing_sum(self, old: &Head, own: [u128; 2]) -> Result<Option<Change>, Cut> {
        let covered = number(self.bytes, udp::LENGTH).map_or(0, usize::from);
        if old.is_part() || !(udp::LEN..=self.len).contains(&covered) {
            return Ok(None);
        }
        let bytes = self.bytes.get(..covered).ok_or(Cut)?;
        let sum = pseudo6(own, covered, proto::UDP).with(bytes).folded();
        Ok(Some(Change::Put(udp::CHECKSUM, if sum == u16::MAX { sum } else { !sum })))
    }

    /// How ICMP becomes ICMPv6, or the other way round.
    fn icmp(
        self,
        old: &Head,
        new: Target,
        quoted: Option<[u128; 2]>,
    ) -> Result<Option<Change>, Cut> {
        let Some(([kind, code, ..], _)) = self.bytes.split_first_chunk::<{ icmp::LEN }>() else {
            return Err(Cut);
        };
        if let Some(echo) = messages::echo(*kind, new.to) {
            return Ok(Some(Change::Kind(echo, self.echo_delta(old, new, (*kind, echo)))));
        }
        let bytes = self.bytes.get(..self.len).ok_or(Cut)?;
        let sum = match old.version {
            Version::Ip4 => Sum16::default(),
            Version::Ip6 => pseudo6(old.addresses, self.len, proto::ICMP6),
        };
        let (Some(quoted), u16::MAX) = (quoted, sum.with(bytes).folded()) else {
            return Ok(None);
        };
        let quote = messages::quote(bytes, old.version);
        let Some(inner) = Head::read(quote, old.version) else { return Ok(None) };
        let Some(error) = messages::error((*kind, *code), bytes, &inner, new.to) else {
            return Ok(None);
        };
        let Some(quote) = inner.quoted_as(quote, Target { own: quoted, ..new }) else {
            return Ok(None);
        };
        Ok(Some(Change::Replace(new.message(error, &quote))))
    }

    /// The difference of the checksum of an echo message.
    fn echo_delta(self, old: &Head, new: Target, (was, is): (u8, u8)) -> Delta {
        let kind = |kind: u8| u32::from(kind) << 8;
        let not = |sum: Sum16| Sum16::default().with_word(u32::from(!sum.folded()));
        let kinds = Sum16::default().with_word(kind(is)).with_word(kind(was) ^ 0xffff);
        // Only ICMPv6 has a pseudo header.
        let sum = match new.to {
            Version::Ip6 => pseudo6(new.own, self.len, proto::ICMP6),
            Version::Ip4 => not(pseudo6(old.addresses, self.len, proto::ICMP6)),
        };
        Delta::of(kinds.with_word(sum.folded().into()).folded())
    }
}

impl Target {
    /// The sum of the addresses.
    fn pseudo(self) -> Sum16 {
        self.own.iter().fold(Sum16::default(), |sum, address| sum.with(&address.to_be_bytes()))
    }

    /// An ICMP error with its checksum: its type, its code and the number behind the checksum, then
    /// as much of the quoted packet as an error may hold.
    fn message(self, (kind, code, rest): (u8, u8, u32), quote: &[u8]) -> Vec<u8> {
        // From the IP header on (RFC 1812 §4.3.2.3, RFC 4443 §2.4).
        let most = match self.to {
            Version::Ip4 => 576,
            Version::Ip6 => 1280,
        };
        let quote = quote.get(..most - self.to.header_len() - icmp::LEN).unwrap_or(quote);
        let mut message = vec![kind, code, 0, 0];
        message.extend(rest.to_be_bytes());
        message.extend(quote);
        let sum = match self.to {
            Version::Ip4 => rfc1071(&message),
            Version::Ip6 => !pseudo6(self.own, message.len(), proto::ICMP6).with(&message).folded(),
        };
        if let Some(place) = message.get_mut(icmp::CHECKSUM..icmp::CHECKSUM + 2) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
        message
    }
}

impl Head {
    /// The place of the checksum in the message, and the number of bytes that its change needs.
    /// `None` if no checksum depends on the addresses.
    fn sum(&self) -> Option<(usize, usize)> {
        match self.proto {
            _ if self.is_later() => None,
            proto::TCP => Some((tcp::CHECKSUM, tcp::CHECKSUM + 2)),
            proto::UDP | proto::DCCP | proto::UDP_LITE => Some((udp::CHECKSUM, udp::LEN)),
            proto::ICMP | proto::ICMP6 => Some((icmp::CHECKSUM, icmp::LEN)),
            _ => None,
        }
    }

    /// The difference of a checksum that covers the addresses.
    fn delta(&self, new: Target) -> Delta {
        Delta::of(new.pseudo().with(&self.complement()).folded())
    }

    /// The packet that an ICMP error quotes, with a header of the other version. `None` if it
    /// cannot be translated.
    fn quoted_as(&self, quote: &[u8], new: Target) -> Option<Vec<u8>> {
        let proto = new.to.protocol(self.proto)?;
        let (header, len) = self.around(proto, self.body).bytes(new.to, new.own)?;
        let behind = quote.get(self.len..)?;
        let mut body = behind.get(..self.body).unwrap_or(behind).to_vec();
        let message = Message { bytes: &body, len: self.body };
        // A quote may end anywhere, so none of its bytes may be needed.
        if matches!(self.proto, proto::ICMP | proto::ICMP6) {
            if self.is_part() || self.body < icmp::LEN {
                return None;
            }
            if let Some(kind) = body.first().copied() {
                let echo = messages::echo(kind, new.to)?;
                let delta = message.echo_delta(self, new, (kind, echo));
                checksum::update(&mut body, icmp::CHECKSUM, delta, false);
                *body.first_mut()? = echo;
            }
        } else if let Some((at, _)) = self.sum() {
            let is_udp = self.proto == proto::UDP;
            checksum::update(&mut body, at, self.delta(new), is_udp);
        }
        Some([header.get(..len)?, &body].concat())
    }
}

/// The sum of the pseudo header of IPv6 (RFC 8200 §8.1).
fn pseudo6(addresses: [u128; 2], len: usize, proto: u8) -> Sum16 {
    let sum = Sum16::pseudo_header(proto, len);
    addresses.iter().fold(sum, |sum, address| sum.with(&address.to_be_bytes()))
}

#[cfg(test)]
mod tests;
