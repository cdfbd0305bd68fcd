//! Fragments of packets that are longer than a device allows (RFC 791, RFC 8200 §4.5).

use braid_packet::checksum::rfc1071;
use braid_packet::{Field, Header, Layout, Link, Packet, fragment_header};

/// The length of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// Offsets in an IPv4 header.
const TOTAL: usize = 2;
const ID: usize = 4;
const FRAGMENT: usize = 6;
const CHECKSUM: usize = 10;
/// The length of an IPv4 header without options.
const HEADER: usize = 20;

/// Flags beside an IPv4 fragment's offset.
const DF: u16 = 0x4000;
const MF: u16 = 0x2000;
/// The bits of the offset, in units of 8 bytes.
const OFFSET: u16 = 0x1fff;

/// The length of an IPv6 header without extension headers, and the place of its length.
const HEADER6: usize = 40;
const LENGTH6: usize = 4;
/// The length of a fragment header, and the place of its offset.
const EXTENSION: usize = 8;
const OFFSET6: usize = 2;

/// Whether a packet may be fragmented: IPv4 without DF, and IPv6 that its sender has sent in
/// fragments. Such a packet has a fragment header, although it is whole (RFC 6946).
pub(super) fn may_fragment(packet: &Packet) -> bool {
    let layout = packet.parse();
    match layout.has(Header::Ip4) {
        true => packet.get(&layout, Field::IpDf) == Some(0),
        false => atomic(packet, &layout).is_some(),
    }
}

/// The place of the fragment header of a whole IPv6 packet, from the IP header on.
fn atomic(packet: &Packet, layout: &Layout) -> Option<usize> {
    let is_whole = layout.has(Header::Ip6) && !layout.is_fragment();
    fragment_header(packet.data().get(layout.ip()..).filter(|_| is_whole)?)
}

/// Shortens a packet, which may be fragmented, to its first fragment. Gives each other fragment to
/// `more`. Does nothing if the MTU leaves no room.
///
/// Outer headers that functions add have the identification 0 if they give none. By it, no receiver
/// could tell the fragments of two packets apart (RFC 6864 §4.1), so a whole packet with 0 gets the
/// number behind `last_id`.
pub(super) fn fragment(
    packet: &mut Packet,
    mtu: usize,
    last_id: &mut u16,
    more: impl FnMut(Packet),
) {
    let layout = packet.parse();
    let Some(frames) = frames(packet, &layout, mtu, last_id) else { return };
    let (time_ns, ingress) = (packet.time_ns, packet.ingress);
    let mut fragments = frames.into_iter().map(|frame| {
        let mut fragment = Packet::new(Link::Ethernet, time_ns, frame);
        fragment.ingress = ingress;
        fragment
    });
    if let Some(first) = fragments.next() {
        *packet = first;
    }
    fragments.for_each(more);
}

/// The fragments of a packet. `None` if it is short enough, or if the MTU leaves no room.
fn frames(packet: &Packet, layout: &Layout, mtu: usize, last_id: &mut u16) -> Option<Vec<Vec<u8>>> {
    let size = |field| packet.get(layout, field).and_then(|value| usize::try_from(value).ok());
    let (header_len, total) = match atomic(packet, layout) {
        Some(at) => (at + EXTENSION, HEADER6 + size(Field::Ip6Len)?),
        None => (size(Field::IpHlen)?, size(Field::IpLen)?),
    };
    let (start, ip) = packet.data().get(..ETHERNET + total)?.split_at_checked(ETHERNET)?;
    let (header, mut body) = ip.split_at_checked(header_len)?;
    let is_v4 = layout.has(Header::Ip4);
    if total <= mtu || is_v4 && header_len < HEADER {
        return None;
    }
    let mut first = header.to_vec();
    let (rest, mut offset) = if is_v4 { identified(&mut first, last_id) } else { (0, 0) };
    let later = if is_v4 { later_header(&first) } else { first.clone() };
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while !body.is_empty() {
        let header = if frames.is_empty() { &first } else { &later };
        let (now, then) = body.split_at(room(mtu, header.len())?.min(body.len()));
        let more = if then.is_empty() { rest } else { MF };
        let header = match is_v4 {
            true => header4(header, now.len(), offset, more),
            false => header6(header, now.len(), offset, more),
        };
        frames.push([start, &header, now].concat());
        (body, offset) = (then, offset + now.len());
    }
    Some(frames)
}

/// Gives the header of a whole IPv4 packet an identification, if it has none. Returns the bit that
/// says that other fragments follow, and the offset: a fragment may be cut again.
#[expect(clippy::indexing_slicing, reason = "the header has at least `HEADER` bytes")]
fn identified(header: &mut [u8], last_id: &mut u16) -> (u16, usize) {
    let field = u16::from_be_bytes([header[FRAGMENT], header[FRAGMENT + 1]]);
    if header[ID..ID + 2] == [0, 0] && field & (MF | OFFSET) == 0 {
        *last_id = last_id.checked_add(1).unwrap_or(1);
        header[ID..ID + 2].copy_from_slice(&last_id.to_be_bytes());
    }
    (field & MF, usize::from(field & OFFSET) * 8)
}

/// The room for data in a fragment behind a header. Fragments but the last one have a multiple of 8
/// bytes.
fn room(mtu: usize, header_len: usize) -> Option<usize> {
    Some(mtu.checked_sub(header_len)? & !7).filter(|room| *room > 0)
}

/// The header of later fragments: only some options are copied to it.
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at(HEADER.min(header.len()));
    let mut later = fixed.to_vec();
    while let [kind, rest @ ..] = options {
        let len = match (kind, rest) {
            (0, _) => break,
            (1, _) => 1,
            (_, [len, ..]) => usize::from(*len).max(2),
            (_, []) => break,
        };
        let Some((option, behind)) = options.split_at_checked(len) else { break };
        if kind & 0x80 != 0 {
            later.extend(option);
        }
        options = behind;
    }
    later.resize(later.len().next_multiple_of(4), 0);
    later
}

fn number(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// An IPv6 header with a fragment's length and offset.
#[expect(clippy::indexing_slicing, reason = "the header has a fragment header at its end")]
fn header6(header: &[u8], body: usize, offset: usize, more: u16) -> Vec<u8> {
    let mut header = header.to_vec();
    let len = number(header.len() - HEADER6 + body);
    header[LENGTH6..LENGTH6 + 2].copy_from_slice(&len.to_be_bytes());
    let at = header.len() - EXTENSION + OFFSET6;
    let field = number(offset) & !7 | u16::from(more != 0);
    header[at..at + 2].copy_from_slice(&field.to_be_bytes());
    header
}

/// An IPv4 header with a fragment's lengths, offset and checksum.
#[expect(clippy::indexing_slicing, reason = "the caller's header has at least `HEADER` bytes")]
fn header4(header: &[u8], body: usize, offset: usize, more: u16) -> Vec<u8> {
    let mut header = header.to_vec();
    let words = u8::try_from(header.len() / 4).unwrap_or(15);
    header[0] = 0x40 | words;
    let field = number(offset / 8) & OFFSET & !DF | more;
    let total = number(header.len() + body);
    for (at, value) in [(TOTAL, total), (FRAGMENT, field), (CHECKSUM, 0)] {
        header[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    let checksum = rfc1071(&header);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    header
}
