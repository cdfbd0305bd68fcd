//! Tunnels: puts outer headers in front of a packet or of a whole frame, and removes them.
//!
//! The headers' lengths, their checksums and the fields that announce the next header are filled
//! in. The bytes of the packet inside stay as they are.

use crate::bytes::{self, Cut};
use crate::checksum::Sum16;
use crate::field::{Base, Field, Header};
use crate::layout::Layout;
use crate::lengths::{direct_type, write};
use crate::link::Link;
use crate::packet::Packet;
use crate::translate::{self, Addresses, Version};
use crate::wire::{ether_type, ethernet, ipsec, ipv6, mpls, pppoe, proto, udp};

mod ah;
mod association;
mod envelope;
mod esp;
mod filling;

pub use association::Association;
pub use envelope::Envelope;
pub use filling::{Inner, added_len, first_bit};
use filling::{carried, fill, fits};

/// The names of headers, separated by commas.
#[must_use]
pub fn names(parts: &[Header]) -> String {
    parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ")
}

/// Whether [`decapsulate`] can remove everything up to the end of this header. [`Header::Pkt`]
/// stands for all headers that the parser recognises.
#[must_use]
pub fn can_end(header: Header) -> bool {
    match header {
        Header::Pkt => true,
        Header::Eth | Header::GreKey | Header::Pppoe => false,
        _ => added_len(header).is_some(),
    }
}

/// The field with the number of the key that this header needs. `None` for headers without a key.
#[must_use]
pub fn key_number(header: Header) -> Option<Field> {
    match header {
        Header::Ah => Some(Field::AhSpi),
        Header::Esp => Some(Field::EspSpi),
        _ => None,
    }
}

/// A change of a packet's outermost headers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// [`encapsulate`] with these arguments.
    Push((Inner, Vec<Header>), (usize, Vec<u128>), Option<(Association, u64)>),
    /// [`decapsulate`] with these arguments.
    Pop((Inner, Header), u128, Option<Association>),
    /// [`translate::translate`] with these arguments.
    Translate(Version, Addresses),
}

impl Change {
    /// Makes the change, as the function that it names. Earlier layouts become invalid.
    ///
    /// # Errors
    /// As for that function.
    pub fn apply(&self, packet: &mut Packet, layout: &Layout) -> Result<bool, Cut> {
        match self {
            Change::Push((inner, parts), (len, words), seal) => {
                let seal = seal.as_ref().map(|(association, number)| (association, *number));
                encapsulate(packet, layout, (*inner, parts), (*len, words), seal)
            }
            Change::Pop(outer, offset, association) => {
                decapsulate(packet, layout, *outer, *offset, association.as_ref())
            }
            Change::Translate(to, addresses) => {
                translate::translate(packet, layout, *to, *addresses)
            }
        }
    }
}

/// Adds outer headers. `parts` are the headers that the header table knows, the outermost first;
/// the first `len` bytes of `words` are their contents, and further bytes behind them. Lengths,
/// checksums and the fields that announce the next header are filled in. A UDP checksum is 0 behind
/// IPv4, and computed behind IPv6 (RFC 8200 §8.1). Earlier layouts become invalid.
///
/// `seal` encrypts the packet behind a last part ESP (RFC 4303, tunnel mode): with a key, and with
/// a number that this key has not been used with before ([`braid_crypto::Key::iv`]). For a last
/// part AH (RFC 4302, tunnel mode), it computes the check value with the key, and needs no number.
///
/// Returns false, and changes nothing, if the packet has no Ethernet header (for a frame), if it is
/// neither IP nor MPLS right behind the link header (for a packet), if a length would not fit, or
/// if AH gets a key that encrypts.
///
/// # Errors
/// The capture lacks bytes that a checksum covers or that are encrypted. Nothing has changed.
pub fn encapsulate(
    packet: &mut Packet,
    layout: &Layout,
    (inner, parts): (Inner, &[Header]),
    (len, words): (usize, &[u128]),
    seal: Option<(&Association, u64)>,
) -> Result<bool, Cut> {
    let mut bytes = bytes::of_words(words);
    let Some(bytes) = bytes.get_mut(..len) else { return Ok(false) };
    let Some(mut carried) = carried(packet, layout, inner) else { return Ok(false) };
    let clear = carried.len;
    carried.len += match (parts, seal) {
        ([.., ip, Header::Ah], _) => ah::added(*ip),
        (_, Some((association, _))) => esp::added(&association.key, clear),
        (_, None) => 0,
    };
    if !fits(packet, inner, clear, len + carried.len - clear) {
        return Ok(false);
    }
    let start = fill(bytes, parts, &carried);
    if !start.can_stand(&carried) {
        return Ok(false);
    }
    if start.summed.is_some() {
        packet.data().get(carried.at..carried.at + clear).ok_or(Cut)?;
    }
    let done = match (parts, seal) {
        ([.., ip, Header::Ah], Some((association, _))) => {
            ah::seal(packet, (carried.at, clear), (bytes, *ip), association)?
        }
        (_, Some(seal)) => esp::seal(packet, (carried.at, clear, carried.kind), bytes, seal)?,
        (_, None) => packet.insert(carried.at, bytes),
    };
    if let (true, Some(at), Some(kind)) = (done, carried.type_at, start.kind) {
        write(packet, at, &kind.to_be_bytes());
    }
    if let (true, Some((ip, udp))) = (done, start.summed) {
        fill_udp6(packet, carried.at + ip, carried.at + udp);
    }
    Ok(done)
}

/// Computes the checksum of a UDP header behind an IPv6 header (at these offsets).
fn fill_udp6(packet: &mut Packet, ip: usize, udp: usize) {
    let bytes = packet.data().get(ip..).unwrap_or_default();
    let addresses = bytes.get(ipv6::SRC..ipv6::LEN).unwrap_or_default();
    let length = bytes.get(ipv6::PAYLOAD..).and_then(|length| length.first_chunk());
    let Some(end) = length.map(|length| ipv6::LEN + usize::from(u16::from_be_bytes(*length)))
    else {
        return;
    };
    let datagram = bytes.get(udp - ip..end).unwrap_or_default();
    let sum = Sum16::pseudo_header(proto::UDP, datagram.len()).with(addresses).with(datagram);
    let checksum = match !sum.folded() {
        0 => u16::MAX,
        checksum => checksum,
    };
    write(packet, udp + udp::CHECKSUM, &checksum.to_be_bytes());
}

/// Removes outer headers: everything in front of the bytes that begin `offset` bytes behind the end
/// of the header `last`. For [`Header::Pkt`], they begin `offset` bytes behind the payload's start.
/// Earlier layouts become invalid.
///
/// Returns false, and changes nothing, if the packet lacks this header or is a fragment, if a
/// header between announces something else, or if what is left is neither a frame nor an IP packet
/// nor an MPLS stack. Padding behind an IP packet that held a frame is removed.
///
/// Behind ESP, the packet is decrypted with the key of `association`; behind AH, its check value is
/// compared. The result is false without a key, and if the packet is not one that this key
/// encrypted or gave its check value. A last header UDP with a key stands for ESP behind it
/// (RFC 3948), which the parser takes for the payload.
///
/// # Errors
/// The first byte inside was not captured, or a byte that is encrypted. Nothing has changed.
pub fn decapsulate(
    packet: &mut Packet,
    layout: &Layout,
    (inner, last): (Inner, Header),
    offset: u128,
    association: Option<&Association>,
) -> Result<bool, Cut> {
    let Some(outer) = outer(packet, layout, inner, last) else { return Ok(false) };
    let esp = match last {
        Header::Esp => Some(outer.behind),
        Header::Udp if association.is_some() => Some(outer.behind + ipsec::ESP_LEN),
        _ => None,
    };
    if let Some(behind) = esp {
        return match (inner, offset, association) {
            (Inner::Packet, 0, Some(association)) => {
                let Outer { start, end, type_at, .. } = outer;
                esp::open(packet, (start, behind, end), type_at, association)
            }
            _ => Ok(false),
        };
    }
    if last == Header::Ah {
        let covered = ah::Covered {
            ip: layout.ip(),
            ah: layout.base(Base::Ah),
            behind: outer.behind,
            end: outer.end,
        };
        match association {
            Some(association) if covered.is_right(packet, association)? => {}
            _ => return Ok(false),
        }
    }
    let offset = usize::try_from(offset).ok();
    let behind = offset.and_then(|offset| outer.behind.checked_add(offset));
    let least = if inner == Inner::Frame { ethernet::LEN } else { 1 };
    let fits = |at: &usize| at.checked_add(least).is_some_and(|end| end <= outer.end);
    let Some(behind) = behind.filter(fits) else { return Ok(false) };
    let first = *packet.data().get(behind).ok_or(Cut)?;
    let kind = match (inner, outer.kind, first >> 4) {
        (Inner::Frame, None | Some(ether_type::BRIDGED), _) => ether_type::BRIDGED,
        (Inner::Packet, Some(ether_type::MPLS), _) if outer.type_at.is_some() => ether_type::MPLS,
        (Inner::Packet, None | Some(ether_type::IPV4), 4) => ether_type::IPV4,
        (Inner::Packet, None | Some(ether_type::IPV6), 6) => ether_type::IPV6,
        _ => return Ok(false),
    };
    if inner == Inner::Frame {
        packet.truncate(outer.end);
    }
    if let Some(at) = outer.type_at {
        write(packet, at, &kind.to_be_bytes());
    }
    Ok(packet.remove(outer.start, behind - outer.start))
}

/// Finds the headers of an IPv4 packet in a tunnel, and writes them to `inside` as they will be
/// without the outer headers. These end `offset` bytes behind the header `last`. Returns the number
/// of bytes that [`decapsulate`] would remove, and does not remove them. `None` if the packet
/// inside is not IPv4 behind an untagged Ethernet header, or if other bytes follow it. The packet
/// is the same afterwards.
pub fn look_inside(
    packet: &mut Packet,
    layout: &Layout,
    (inner, last): (Inner, Header),
    offset: usize,
    inside: &mut Layout,
) -> Option<usize> {
    if matches!(last, Header::Esp | Header::Ah) {
        return None;
    }
    // Most packets in tunnels have headers about which there is nothing to find out.
    let is_common = last == Header::Vxlan && layout.has(last) && layout.is_plain();
    let outer = match is_common && !layout.is_encapsulated() && packet.link == Link::Ethernet {
        true => {
            let (behind, end) = (layout.payload_offset(), layout.payload_end());
            let type_at = Some(ethernet::TYPE);
            Outer { start: layout.ip(), behind, end, kind: None, type_at }.of(inner)
        }
        false => outer(packet, layout, inner, last)?,
    };
    let behind = outer.behind.checked_add(offset)?;
    let less = behind.checked_sub(outer.start)?;
    let wire_len = packet.wire_len.checked_sub(u32::try_from(less).ok()?)?;
    let is_whole = outer.end == packet.wire_len as usize && packet.link == Link::Ethernet;
    let head = packet.data_mut().get_mut(less..)?;
    let kind = head.get(ethernet::TYPE..ethernet::LEN)?.first_chunk().copied()?;
    let ipv4 = ether_type::IPV4.to_be_bytes();
    let is_such = match inner {
        Inner::Frame => matches!(outer.kind, None | Some(ether_type::BRIDGED)) && kind == ipv4,
        Inner::Packet => {
            matches!(outer.kind, None | Some(ether_type::IPV4))
                && outer.start == ethernet::LEN
                && head.get(ethernet::LEN).is_some_and(|first| first >> 4 == 4)
        }
    };
    if !is_whole || !is_such {
        return None;
    }
    // The link header comes in front of the packet inside when the bytes between them are gone. The
    // parser only looks at its type.
    if let Some(place) = head.get_mut(ethernet::TYPE..ethernet::LEN) {
        place.copy_from_slice(&ipv4);
    }
    inside.parse_here(Link::Ethernet, head, wire_len);
    if let Some(place) = head.get_mut(ethernet::TYPE..ethernet::LEN) {
        place.copy_from_slice(&kind);
    }
    Some(less)
}

/// Removes the `less` bytes of outer headers that [`look_inside`] has found.
pub fn leave(packet: &mut Packet, inner: Inner, less: usize) {
    match inner {
        Inner::Frame => {
            packet.remove(0, less);
        }
        Inner::Packet => {
            write(packet, ethernet::TYPE, &ether_type::IPV4.to_be_bytes());
            packet.remove(ethernet::LEN, less);
        }
    }
}

/// Headers that may be removed.
struct Outer {
    /// Their start.
    start: usize,
    /// Their end.
    behind: usize,
    /// The end of the bytes inside, on the wire.
    end: usize,
    /// The EtherType that they announce, if they do.
    kind: Option<u16>,
    /// The place of the EtherType that announces them, if it stays.
    type_at: Option<usize>,
}

impl Outer {
    /// The link header goes, too, if there is another one inside.
    fn of(self, inner: Inner) -> Self {
        match inner {
            Inner::Frame => Self { start: 0, type_at: None, ..self },
            Inner::Packet => self,
        }
    }
}

/// The headers that may be removed up to the end of a header.
#[inline]
fn outer(packet: &Packet, layout: &Layout, inner: Inner, last: Header) -> Option<Outer> {
    let type_at = match (inner, packet.link) {
        (Inner::Packet, Link::RawIp) => None,
        (_, Link::Ethernet) => Some(direct_type(packet, layout)?),
        _ => return None,
    };
    let is_whole = !layout.is_fragment() && layout.has(last) && can_end(last);
    if last == Header::Mpls {
        let start = layout.base(Base::Network);
        let is_last = packet.data().get(start + mpls::BOTTOM)? & 1 == 1;
        let kind = (!is_last).then_some(ether_type::MPLS);
        let (behind, end) = (start + mpls::LEN, packet.wire_len as usize);
        return is_whole.then_some(Outer { start, behind, end, kind, type_at }.of(inner));
    }
    if last == Header::Ppp {
        let start = layout.base(Base::Network);
        let protocol = packet.get(layout, Field::PppProto)?;
        let kind = pppoe::kind(u16::try_from(protocol).ok()?)?;
        let len = usize::try_from(packet.get(layout, Field::PppoeLen)?).ok()?;
        let (behind, end) = (start + pppoe::LEN + pppoe::PPP_LEN, start + pppoe::LEN + len);
        return Some(Outer { start, behind, end, kind: Some(kind), type_at }.of(inner));
    }
    let is_direct = layout.has(Header::Inet) && !layout.is_encapsulated();
    let is_clear = last == Header::Ah || !layout.has(Header::Ah);
    if !is_whole || !is_direct || layout.is_jumbo() || !is_clear {
        return None;
    }
    let get = |field| packet.get(layout, field).and_then(|kind| u16::try_from(kind).ok());
    let (behind, kind) = match last {
        Header::Ip4 | Header::Ip6 | Header::Ah => match layout.proto() {
            proto::IP4 => (layout.l4(), Some(ether_type::IPV4)),
            proto::IP6 => (layout.l4(), Some(ether_type::IPV6)),
            proto::MPLS => (layout.l4(), Some(ether_type::MPLS)),
            _ => return None,
        },
        Header::Udp => (layout.l4() + udp::LEN, None),
        Header::Esp => (layout.l4() + ipsec::ESP_LEN, None),
        _ => match last.info().outer.as_ref().and_then(|outer| outer.announces) {
            Some(field) => (layout.payload_offset(), Some(get(field)?)),
            None => (layout.payload_offset(), None),
        },
    };
    let (start, end) = (layout.ip(), layout.payload_end());
    Some(Outer { start, behind, end, kind, type_at }.of(inner))
}

#[cfg(test)]
mod envelope_tests;
#[cfg(test)]
mod inside_tests;
#[cfg(test)]
mod tests;
