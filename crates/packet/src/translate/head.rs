//! The network headers of a packet of either version, as far as both versions have the same.

use crate::checksum::rfc1071;
use crate::field::Header;
use crate::wire::{ipv4, ipv6, proto};

/// A version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Version {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// The length of IPv6's fragment header.
const FRAGMENT: usize = 8;
/// The longest IPv4 packet that may be fragmented on its way (RFC 7915 §5.1). As IPv6, it has 1,280
/// bytes, which each link carries.
const MOST_WITHOUT_DF: usize = 1260;
/// Bits of IPv4's fragment field.
const DF: u16 = 0x4000;
const MF: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Options of IPv4 that route the packet: loose and strict source route.
const SOURCE_ROUTES: [u8; 2] = [131, 137];
/// Protocols whose meaning depends on the version of IP. Both versions of ICMP are not among them.
/// IGMP, and what IPv6 has as extension headers.
const OF_VERSION: [u8; 9] = [
    proto::IGMP,
    proto::HOP_BY_HOP,
    proto::ROUTING,
    proto::FRAGMENT,
    proto::AH,
    proto::DESTINATION,
    proto::MOBILITY,
    proto::HIP,
    proto::SHIM6,
];

impl Version {
    /// The other version.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Version::Ip4 => Version::Ip6,
            Version::Ip6 => Version::Ip4,
        }
    }

    /// The network header of this version.
    #[must_use]
    pub fn header(self) -> Header {
        match self {
            Version::Ip4 => Header::Ip4,
            Version::Ip6 => Header::Ip6,
        }
    }

    /// The length of the header without options and extensions.
    pub(super) fn header_len(self) -> usize {
        match self {
            Version::Ip4 => ipv4::LEN,
            Version::Ip6 => ipv6::LEN,
        }
    }

    /// What this version calls a protocol of the other version. `None` if it has no such protocol.
    pub(super) fn protocol(self, other: u8) -> Option<u8> {
        match (self, other) {
            (Version::Ip4, proto::ICMP6) => Some(proto::ICMP),
            (Version::Ip6, proto::ICMP) => Some(proto::ICMP6),
            (_, proto::ICMP | proto::ICMP6) => None,
            _ => (!OF_VERSION.contains(&other)).then_some(other),
        }
    }
}

/// The place of a fragment in its packet.
#[derive(Clone, Copy)]
struct Fragment {
    id: u32,
    /// In units of 8 bytes.
    offset: u16,
    more: bool,
}

/// The network headers of a packet.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) version: Version,
    /// Their length with options and extensions.
    pub(super) len: usize,
    /// The number of bytes that they announce behind them.
    pub(super) body: usize,
    pub(super) proto: u8,
    /// Source and destination.
    pub(super) addresses: [u128; 2],
    tos: u8,
    ttl: u8,
    /// Also of an IPv6 packet that is whole but has a fragment header (RFC 6946).
    fragment: Option<Fragment>,
}

impl Head {
    /// Reads the headers at the start of these bytes. `None` if they are not whole, contradict
    /// themselves, or hold something that cannot be translated.
    pub(super) fn read(bytes: &[u8], version: Version) -> Option<Self> {
        match version {
            Version::Ip4 => Self::read4(bytes),
            Version::Ip6 => Self::read6(bytes),
        }
    }

    fn read4(bytes: &[u8]) -> Option<Self> {
        let len = 4 * usize::from(bytes.first()? & 0xf);
        let options = bytes.get(ipv4::LEN..len)?;
        if is_routed(options) {
            return None;
        }
        let field = number(bytes, ipv4::FRAGMENT)?;
        let fragment = Fragment {
            id: number(bytes, ipv4::ID)?.into(),
            offset: field & OFFSET,
            more: field & MF != 0,
        };
        Some(Self {
            version: Version::Ip4,
            len,
            body: usize::from(number(bytes, ipv4::TOTAL)?).checked_sub(len)?,
            proto: *bytes.get(ipv4::PROTO)?,
            addresses: [address4(bytes, ipv4::SRC)?, address4(bytes, ipv4::DST)?],
            tos: *bytes.get(ipv4::TOS)?,
            ttl: *bytes.get(ipv4::TTL)?,
            fragment: Some(fragment).filter(|fragment| fragment.more || fragment.offset != 0),
        })
    }

    fn read6(bytes: &[u8]) -> Option<Self> {
        let mut head = Self {
            version: Version::Ip6,
            len: ipv6::LEN,
            body: usize::from(number(bytes, ipv6::PAYLOAD)?),
            proto: *bytes.get(ipv6::NEXT)?,
            addresses: [address6(bytes, ipv6::SRC)?, address6(bytes, ipv6::DST)?],
            tos: u8::try_from(number(bytes, 0)? >> 4 & 0xff).ok()?,
            ttl: *bytes.get(ipv6::TTL)?,
            fragment: None,
        };
        while matches!(
            head.proto,
            proto::HOP_BY_HOP | proto::ROUTING | proto::DESTINATION | proto::FRAGMENT
        ) {
            // Behind the header of a fragment, extensions are a part of what is fragmented.
            if head.is_part() {
                return None;
            }
            let extension = bytes.get(head.len..)?.first_chunk::<FRAGMENT>()?;
            let [next, words, _, segments_left, ..] = *extension;
            let mut len = FRAGMENT * (1 + usize::from(words));
            match head.proto {
                proto::FRAGMENT => {
                    len = FRAGMENT;
                    let field = number(extension, 2)?;
                    let id = u32::from_be_bytes(*extension.last_chunk()?);
                    head.fragment = Some(Fragment { id, offset: field >> 3, more: field & 1 != 0 });
                }
                proto::ROUTING if segments_left != 0 => return None,
                _ => {}
            }
            bytes.get(head.len..head.len + len)?;
            (head.proto, head.len, head.body) = (next, head.len + len, head.body.checked_sub(len)?);
        }
        Some(head)
    }

    /// The headers of a packet with this protocol and this number of bytes behind them.
    pub(super) fn around(self, proto: u8, body: usize) -> Self {
        Self { proto, body, ..self }
    }

    /// Whether the packet is a fragment.
    pub(super) fn is_part(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.more || fragment.offset != 0)
    }

    /// Whether the packet is a fragment other than the first.
    pub(super) fn is_later(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset != 0)
    }

    /// The number of bytes from the header's start on.
    pub(super) fn total(&self) -> usize {
        self.len + self.body
    }

    /// By how many bytes an IPv6 header is longer than the IPv4 header that stands for it.
    pub(super) fn excess(&self) -> u32 {
        let fragment = if self.fragment.is_some() { FRAGMENT } else { 0 };
        u32::try_from(ipv6::LEN + fragment - ipv4::LEN).unwrap_or(u32::MAX)
    }

    /// The complements of the addresses, one behind the other.
    pub(super) fn complement(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let [src, dst] = self.addresses.map(|address| (!address).to_be_bytes());
        let (front, behind) = bytes.split_at_mut(src.len());
        front.copy_from_slice(&src);
        behind.copy_from_slice(&dst);
        bytes
    }

    /// A header of this version with these addresses, and its length. `None` if the packet would be
    /// too long.
    pub(super) fn bytes(
        &self,
        version: Version,
        addresses: [u128; 2],
    ) -> Option<([u8; 48], usize)> {
        let mut bytes = [0; ipv6::LEN + FRAGMENT];
        let len = match version {
            Version::Ip4 => self.put4(&mut bytes, addresses)?,
            Version::Ip6 => self.put6(&mut bytes, addresses)?,
        };
        Some((bytes, len))
    }

    fn put4(&self, bytes: &mut [u8; 48], [src, dst]: [u128; 2]) -> Option<usize> {
        let total = ipv4::LEN + self.body;
        let (id, field) = match self.fragment {
            Some(Fragment { id, offset, more }) => (id, offset | if more { MF } else { 0 }),
            None if total > MOST_WITHOUT_DF => (0, DF),
            None => (0, 0),
        };
        let mut put = |at: usize, new: &[u8]| put(bytes, at, new);
        put(0, &[0x45, self.tos]);
        put(ipv4::TOTAL, &u16::try_from(total).ok()?.to_be_bytes());
        put(ipv4::ID, &u16::try_from(id & 0xffff).ok()?.to_be_bytes());
        put(ipv4::FRAGMENT, &field.to_be_bytes());
        put(ipv4::TTL, &[self.ttl, self.proto]);
        let low = |address: u128| u32::try_from(address & u128::from(u32::MAX)).ok();
        put(ipv4::SRC, &low(src)?.to_be_bytes());
        put(ipv4::DST, &low(dst)?.to_be_bytes());
        let sum = rfc1071(bytes.get(..ipv4::LEN)?);
        self::put(bytes, ipv4::CHECKSUM, &sum.to_be_bytes());
        Some(ipv4::LEN)
    }

    fn put6(&self, bytes: &mut [u8; 48], [src, dst]: [u128; 2]) -> Option<usize> {
        let more = if self.fragment.is_some() { FRAGMENT } else { 0 };
        let next = if more > 0 { proto::FRAGMENT } else { self.proto };
        let mut put = |at: usize, new: &[u8]| put(bytes, at, new);
        put(0, &[0x60 | self.tos >> 4, self.tos << 4]);
        put(ipv6::PAYLOAD, &u16::try_from(self.body + more).ok()?.to_be_bytes());
        put(ipv6::NEXT, &[next, self.ttl]);
        put(ipv6::SRC, &src.to_be_bytes());
        put(ipv6::DST, &dst.to_be_bytes());
        if let Some(Fragment { id, offset, more }) = self.fragment {
            put(ipv6::LEN, &[self.proto, 0]);
            put(ipv6::LEN + 2, &(offset << 3 | u16::from(more)).to_be_bytes());
            put(ipv6::LEN + 4, &id.to_be_bytes());
        }
        Some(ipv6::LEN + more)
    }
}

/// Whether options of IPv4 have a source route with hops left.
fn is_routed(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        let len = match (kind, rest) {
            (0, _) | (2.., []) => return false,
            (1, _) => 1,
            (_, [len, ..]) => usize::from(*len).max(2),
        };
        // The pointer counts bytes of the option from 1 on.
        let is_left = rest.get(1).is_some_and(|pointer| usize::from(*pointer) <= len);
        if SOURCE_ROUTES.contains(kind) && is_left {
            return true;
        }
        options = options.get(len..).unwrap_or_default();
    }
    false
}

/// The 16-bit number at an offset.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*bytes))
}

fn address4(bytes: &[u8], at: usize) -> Option<u128> {
    let address = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*address).into())
}

fn address6(bytes: &[u8], at: usize) -> Option<u128> {
    let address = bytes.get(at..)?.first_chunk::<16>()?;
    Some(u128::from_be_bytes(*address))
}

fn put(bytes: &mut [u8; 48], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}
