//! Fragments of IPv4 packets that are longer than a device allows (RFC 791).

use braid_packet::checksum::rfc1071;
use braid_packet::{Field, Header, Link, Packet};

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

/// Whether a packet is IPv4 and may be fragmented.
pub(super) fn may_fragment(packet: &Packet) -> bool {
    let layout = packet.parse();
    layout.has(Header::Ip4) && packet.get(&layout, Field::IpDf) == Some(0)
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
    let get = |field| packet.get(&layout, field).and_then(|value| usize::try_from(value).ok());
    let (Some(header_len), Some(total)) = (get(Field::IpHlen), get(Field::IpLen)) else { return };
    let data = packet.data().to_vec();
    let Some((start, ip)) = data.get(..ETHERNET + total).and_then(|d| d.split_at_checked(ETHERNET))
    else {
        return;
    };
    let Some((header, mut body)) = ip.split_at_checked(header_len) else { return };
    let mut header = header.to_vec();
    let (Some(room), true) = (room(mtu, header_len), header_len >= HEADER) else { return };
    if total <= mtu {
        return;
    }
    #[expect(clippy::indexing_slicing, reason = "the header has at least `HEADER` bytes")]
    let field = u16::from_be_bytes([header[FRAGMENT], header[FRAGMENT + 1]]);
    let (rest, mut offset) = (field & MF, usize::from(field & OFFSET) * 8);
    if get(Field::IpId) == Some(0) && field & (MF | OFFSET) == 0 {
        *last_id = last_id.checked_add(1).unwrap_or(1);
        header.splice(ID..ID + 2, last_id.to_be_bytes());
    }
    let later = later_header(&header);
    let mut frames = Vec::new();
    while !body.is_empty() {
        let header = if frames.is_empty() { &header } else { &later };
        let room = if frames.is_empty() { room } else { mtu.saturating_sub(header.len()) & !7 };
        let (now, then) = body.split_at(room.min(body.len()));
        let more = if then.is_empty() { rest } else { MF };
        frames.push([start, &fragment_header(header, now.len(), offset, more), now].concat());
        (body, offset) = (then, offset + now.len());
    }
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

/// A header with a fragment's lengths, offset and checksum.
#[expect(clippy::indexing_slicing, reason = "the caller's header has at least `HEADER` bytes")]
fn fragment_header(header: &[u8], body: usize, offset: usize, more: u16) -> Vec<u8> {
    let mut header = header.to_vec();
    let number = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
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
