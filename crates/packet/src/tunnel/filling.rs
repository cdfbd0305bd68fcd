//! Outer headers: their lengths, checksums and the fields that announce what follows, as they
//! depend on the part of a packet that a tunnel carries.

use crate::checksum::rfc1071;
use crate::field::{Base, Field, Header, Where};
use crate::layout::Layout;
use crate::lengths::direct_type;
use crate::link::Link;
use crate::packet::{MOST, Packet};
use crate::wire::{ether_type, ethernet, ipv4, ipv6, mpls, pppoe, proto, udp};

/// What a tunnel carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inner {
    /// The whole frame, from the Ethernet header on.
    Frame,
    /// The packet behind the Ethernet header and its VLAN tags.
    Packet,
}

/// The length of a header that [`super::encapsulate`] can add. `None` for other headers. A GRE key
/// is a header of its own.
#[must_use]
pub fn added_len(header: Header) -> Option<usize> {
    header.info().outer.as_ref().map(|outer| outer.len)
}

/// The number of a field's first bit in its header, where bit 0 is the highest one of the first
/// byte. `None` if its place depends on the packet.
#[must_use]
pub fn first_bit(field: Field) -> Option<usize> {
    let info = field.info();
    match info.place {
        Where::Bits(bits) => {
            let behind = 8 * (bits.offset + usize::from(bits.len)) - usize::from(bits.shift);
            behind.checked_sub(usize::from(bits.width))
        }
        Where::Part(of, shift) => {
            let behind = first_bit(of)? + usize::from(of.info().width) - usize::from(shift);
            behind.checked_sub(usize::from(info.width))
        }
        _ => None,
    }
}

/// The part of a packet that a tunnel carries.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    /// Its place in the packet.
    pub(super) at: usize,
    /// Its length on the wire, without padding behind an IP packet.
    pub(super) len: usize,
    /// Its EtherType.
    pub(super) kind: u16,
    /// The place of the EtherType that announces it, if there is one.
    pub(super) type_at: Option<usize>,
}

/// The part of a packet that a tunnel would carry. `None` if it lacks that part.
pub(super) fn carried(packet: &Packet, layout: &Layout, inner: Inner) -> Option<Carried> {
    let wire = packet.wire_len as usize;
    if inner == Inner::Frame {
        let is_frame = layout.has(Header::Eth);
        return is_frame.then_some(Carried {
            at: 0,
            len: wire,
            kind: ether_type::BRIDGED,
            type_at: None,
        });
    }
    let type_at = match packet.link {
        Link::Ethernet => Some(direct_type(packet, layout)?),
        Link::RawIp => None,
        Link::Cooked | Link::Cooked2 => return None,
    };
    let (at, end, kind) = if layout.has(Header::Mpls) {
        (layout.base(Base::Network), wire, ether_type::MPLS)
    } else if layout.has(Header::Inet) && !layout.is_encapsulated() && !layout.is_jumbo() {
        let kind = if layout.has(Header::Ip4) { ether_type::IPV4 } else { ether_type::IPV6 };
        (layout.ip(), layout.ip_end(), kind)
    } else {
        return None;
    };
    Some(Carried { at, len: end.checked_sub(at)?, kind, type_at })
}

/// Whether lengths fit if this number of bytes come in front of the part that a tunnel carries, or
/// into it. The part has `clear` bytes.
pub(super) fn fits(packet: &Packet, inner: Inner, clear: usize, more: usize) -> bool {
    let link = if inner == Inner::Frame { ethernet::LEN } else { 0 };
    let behind_link = (clear + more).saturating_sub(link);
    behind_link <= usize::from(u16::MAX) && packet.wire_len as usize + more <= MOST as usize
}

/// The start of outer headers that are filled in.
pub(super) struct Start {
    /// The EtherType that announces the outermost header. `None` if it is Ethernet.
    pub(super) kind: Option<u16>,
    /// The offsets of an IPv6 header and a UDP header behind it, whose checksum is missing.
    pub(super) summed: Option<(usize, usize)>,
}

impl Start {
    /// Whether the headers can stand where this part of a packet begins. A link without EtherTypes
    /// holds nothing but IP.
    pub(super) fn can_stand(&self, carried: &Carried) -> bool {
        self.kind != Some(ether_type::MPLS) || carried.type_at.is_some()
    }
}

/// What announces a header or the packet inside.
#[derive(Clone, Copy, Default)]
struct Announced {
    ether_type: Option<u16>,
    proto: Option<u8>,
}

impl Announced {
    fn of_type(kind: u16) -> Self {
        let proto = match kind {
            ether_type::IPV4 => Some(proto::IP4),
            ether_type::IPV6 => Some(proto::IP6),
            ether_type::MPLS => Some(proto::MPLS),
            _ => None,
        };
        Self { ether_type: Some(kind), proto }
    }

    /// What announces a header in front of a header or packet that `next` announces.
    fn of(header: Header, next: Self) -> Self {
        let first = |field| header.announced_by(field).first();
        match header {
            Header::Eth => Self::of_type(ether_type::BRIDGED),
            // A key passes on what the GRE header in front of it announces.
            Header::GreKey => next,
            Header::Pppoe => Self::of_type(pppoe::SESSION),
            _ => match first(Field::EthType) {
                Some(kind) => Self::of_type(*kind),
                None => {
                    let proto = first(Field::IpProto).and_then(|proto| u8::try_from(*proto).ok());
                    Self { ether_type: None, proto }
                }
            },
        }
    }
}

/// Fills in the lengths, the fields that announce the next header, and the checksum of IPv4.
pub(super) fn fill(bytes: &mut [u8], parts: &[Header], carried: &Carried) -> Start {
    let known: usize = parts.iter().filter_map(|part| added_len(*part)).sum();
    // Headers that the table does not know are announced by fields that their program assigns.
    let mut next = match known == bytes.len() {
        true => Announced::of_type(carried.kind),
        false => Announced::default(),
    };
    let mut at = known;
    let mut udp = None;
    let mut summed = None;
    for part in parts.iter().rev() {
        at -= added_len(*part).unwrap_or(0);
        let (_, header) = bytes.split_at_mut(at);
        let len = header.len() + carried.len;
        match part {
            Header::Ip6 => summed = udp.map(|udp| (at, udp)),
            Header::Udp => udp = Some(at),
            _ => {}
        }
        fill_one(header, *part, len, next);
        next = Announced::of(*part, next);
    }
    Start { kind: next.ether_type.filter(|kind| *kind != ether_type::BRIDGED), summed }
}

/// The offset of the length in a header, and the number of the header's bytes that it does not
/// count. `None` if the header has no length.
pub(super) fn length(part: Header) -> Option<(usize, usize)> {
    match part {
        Header::Ip4 => Some((ipv4::TOTAL, 0)),
        Header::Ip6 => Some((ipv6::PAYLOAD, ipv6::LEN)),
        Header::Udp => Some((udp::LENGTH, 0)),
        Header::Pppoe => Some((pppoe::LENGTH, pppoe::LEN)),
        _ => None,
    }
}

/// Fills in one header at the start of `bytes`, where `len` bytes begin with it.
fn fill_one(bytes: &mut [u8], part: Header, len: usize, next: Announced) {
    let mut put = |at: usize, new: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + new.len()) {
            place.copy_from_slice(new);
        }
    };
    if let Some((at, uncounted)) = length(part) {
        // No length is over 65,535.
        let [.., high, low] = len.saturating_sub(uncounted).to_be_bytes();
        put(at, &[high, low]);
    }
    let kind = next.ether_type.map(u16::to_be_bytes);
    match part {
        Header::Eth => {
            kind.inspect(|kind| put(ethernet::TYPE, kind));
        }
        Header::Mpls => {
            let bottom = next.ether_type != Some(ether_type::MPLS);
            if let Some(byte) = bytes.get_mut(mpls::BOTTOM) {
                *byte = *byte & !1 | u8::from(bottom);
            }
        }
        Header::Pppoe => {
            put(0, &[pppoe::VERSION_AND_TYPE, 0]);
        }
        Header::Ppp => {
            let protocol = next.ether_type.and_then(pppoe::protocol);
            protocol.inspect(|protocol| put(0, &protocol.to_be_bytes()));
        }
        Header::Ip4 => {
            put(0, &[0x45]);
            next.proto.inspect(|proto| put(ipv4::PROTO, &[*proto]));
            put(ipv4::CHECKSUM, &[0, 0]);
            let checksum = rfc1071(bytes.get(..ipv4::LEN).unwrap_or_default()).to_be_bytes();
            if let Some(place) = bytes.get_mut(ipv4::CHECKSUM..ipv4::CHECKSUM + 2) {
                place.copy_from_slice(&checksum);
            }
        }
        Header::Ip6 => {
            next.proto.inspect(|proto| put(ipv6::NEXT, &[*proto]));
            if let Some(first) = bytes.first_mut() {
                *first = 0x60 | *first & 0x0f;
            }
        }
        Header::Ah => {
            next.proto.inspect(|proto| put(0, &[*proto]));
        }
        Header::Udp => {
            put(udp::CHECKSUM, &[0, 0]);
        }
        // Other headers announce what they hold by an EtherType, or not at all.
        _ => {
            let at = part.info().outer.as_ref().and_then(|outer| first_bit(outer.announces?));
            if let (Some(at), Some(kind)) = (at, kind) {
                put(at / 8, &kind);
            }
        }
    }
}
