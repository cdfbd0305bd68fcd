//! A fragment of an IP packet, and the headers of the whole packet (RFC 791 §3.2, RFC 8200 §4.5).

use braid_packet::checksum::rfc1071;
use braid_packet::{Field, Header, Layout, Link, Packet, fragment_header};
use std::ops::Range;

/// The bytes of an IPv6 header without extension headers.
const IP6_HEADER: usize = 40;
/// The bytes of a fragment header.
const FRAGMENT_HEADER: usize = 8;
/// The bits for congestion that was met on the way (RFC 3168 §5).
const CE: u8 = 3;
/// The most bytes of a packet.
pub(crate) const MOST: usize = 65_535;

/// What the fragments of a datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    /// Whether they come from the right.
    is_backward: bool,
    vlan: Option<u128>,
    pub(crate) version: u8,
    pub(crate) src: u128,
    pub(crate) dst: u128,
    /// The protocol of IPv4. The identification of IPv6 stands for all protocols.
    proto: Option<u128>,
    pub(crate) id: u32,
}

/// A fragment.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) link: Link,
    pub(crate) is_backward: bool,
    /// All its bytes, from the link header on.
    pub(crate) bytes: Vec<u8>,
    /// The place of its IP header.
    ip: usize,
    /// The place of its part of the datagram.
    part: Range<usize>,
    /// Where this part begins in the datagram.
    pub(crate) offset: usize,
    /// Whether parts follow.
    pub(crate) has_more: bool,
}

impl Fragment {
    /// The fragment that a packet is. `None` if the packet lacks some of its bytes.
    pub(crate) fn of(packet: &Packet, layout: &Layout) -> Option<(Key, Self)> {
        let get = |field| packet.get(layout, field);
        let size = |field| usize::try_from(get(field)?).ok();
        let (ip, data) = (layout.ip(), packet.data());
        let is_v4 = layout.has(Header::Ip4);
        let (version, proto, id, part, offset, has_more) = if is_v4 {
            let part = ip + size(Field::IpHlen)?..ip + size(Field::IpLen)?;
            let id = u32::try_from(get(Field::IpId)?).ok()?;
            let (offset, more) = (size(Field::IpFrag)? * 8, get(Field::IpMf)? == 1);
            (4, Some(get(Field::IpProto)?), id, part, offset, more)
        } else {
            let at = ip + fragment_header(data.get(ip..)?)?;
            let header: &[u8; FRAGMENT_HEADER] = data.get(at..)?.first_chunk()?;
            let &[_, _, high, low, id @ ..] = header;
            let part = at + FRAGMENT_HEADER..ip + IP6_HEADER + size(Field::Ip6Len)?;
            let word = u16::from_be_bytes([high, low]);
            let (offset, more) = (usize::from(word & !7), word & 1 == 1);
            (6, None, u32::from_be_bytes(id), part, offset, more)
        };
        let key = Key {
            is_backward: packet.backward,
            vlan: get(Field::VlanId),
            version,
            src: get(Field::InetSrc)?,
            dst: get(Field::InetDst)?,
            proto,
            id,
        };
        let (link, is_backward) = (packet.link, packet.backward);
        let bytes = data.get(..part.end).filter(|_| part.start <= part.end)?.to_vec();
        Some((key, Self { link, is_backward, bytes, ip, part, offset, has_more }))
    }

    /// Its part of the datagram.
    pub(crate) fn part(&self) -> &[u8] {
        self.bytes.get(self.part.clone()).unwrap_or_default()
    }

    /// Where its part ends in the datagram.
    pub(crate) fn end(&self) -> usize {
        self.offset + self.part.len()
    }

    /// Whether a sender may make such a fragment: all but the last one have a multiple of 8 bytes,
    /// none is empty, and the datagram is not too long.
    pub(crate) fn is_sound(&self) -> bool {
        let len = self.part.len();
        len > 0 && self.end() <= MOST && (!self.has_more || len.is_multiple_of(8))
    }

    /// Whether a router has marked it because of congestion.
    pub(crate) fn is_marked(&self) -> bool {
        self.traffic_class() & CE == CE
    }

    /// The byte with the bits for congestion.
    fn traffic_class(&self) -> u8 {
        match self.bytes.get(self.ip..) {
            Some(&[first, second, ..]) if first >> 4 == 6 => first << 4 | second >> 4,
            Some(&[_, second, ..]) => second,
            _ => 0,
        }
    }

    /// The headers of the whole datagram, by those of this fragment, its first one. An IPv6 packet
    /// keeps a fragment header that says that it is whole (RFC 6946), so it may be fragmented again
    /// on its way. `None` if the datagram is too long.
    pub(crate) fn whole(&self, len: usize, is_marked: bool) -> Option<Vec<u8>> {
        let mut head = self.bytes.get(..self.part.start)?.to_vec();
        let ip = head.get_mut(self.ip..)?;
        let with_header = u16::try_from(ip.len() + len).ok()?;
        if let [first, tos, l0, l1, _, _, f0, f1, _, _, c0, c1, ..] = ip
            && *first >> 4 == 4
        {
            if is_marked {
                *tos |= CE;
            }
            [*l0, *l1] = with_header.to_be_bytes();
            // Neither "don't fragment" nor "more fragments", and no offset.
            [*f0, *f1, *c0, *c1] = [0; 4];
            let sum = rfc1071(ip).to_be_bytes();
            ip.get_mut(10..12)?.copy_from_slice(&sum);
        } else {
            let behind = usize::from(with_header).checked_sub(IP6_HEADER)?;
            ip.get_mut(4..6)?.copy_from_slice(&u16::try_from(behind).ok()?.to_be_bytes());
            if is_marked {
                *ip.get_mut(1)? |= CE << 4;
            }
            let fragment = ip.len().checked_sub(FRAGMENT_HEADER)?;
            ip.get_mut(fragment + 2..fragment + 4)?.fill(0);
        }
        Some(head)
    }
}
