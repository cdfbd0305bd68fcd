//! The lengths in a packet's headers that say how many bytes follow. They change when bytes are
//! added to a header or to the payload, or removed.

use crate::checksum::{self, Delta};
use crate::field::{Cover, Header, LENGTHS};
use crate::layout::{Layout, Sum};
use crate::packet::{MOST, Packet};
use crate::place::place;
use crate::wire::ether_type::MOST_LENGTH;
use crate::wire::ipv4;

/// A 16-bit length.
#[derive(Clone, Copy)]
struct Length {
    /// Its place in the packet.
    at: usize,
    /// Its largest value.
    most: usize,
    /// The checksums that cover it.
    sum: Cover,
}

/// The lengths that count the payload: those of the headers, and that of 802.3.
fn all(packet: &Packet, layout: &Layout) -> impl Iterator<Item = Length> {
    let at = layout.ether_type_at();
    let most = usize::from(MOST_LENGTH);
    let is_length = layout.has(Header::Eth) && number16(packet, at) <= most;
    let of_link = is_length.then_some(Length { at, most, sum: Cover::None });
    // Attributes of the packet have no place.
    let of_headers = LENGTHS.iter().filter_map(|field| {
        let at = place(layout, *field)?.offset;
        let sum = field.info().header.info().sum;
        Some(Length { at, most: usize::from(u16::MAX), sum })
    });
    of_headers.chain(of_link)
}

/// Whether a packet with IP can have this number of bytes more behind its IP header. False for
/// fragments and jumbograms.
pub(crate) fn can_grow(packet: &Packet, layout: &Layout, more: usize) -> bool {
    let fits = |length: Length| number16(packet, length.at) + more <= length.most;
    !layout.is_fragment()
        && !layout.jumbo
        && all(packet, layout).all(fits)
        && packet.wire_len as usize + more <= MOST as usize
}

/// Changes the lengths of a packet that has `more` and then `less` bytes behind its IP header.
/// Updates the checksum of IPv4. The difference is what the transport checksum must follow: the
/// length of the pseudo header, and the lengths in headers behind it.
pub(crate) fn change(packet: &mut Packet, layout: &Layout, more: usize, less: usize) -> Delta {
    let mut behind = Delta::default();
    let has_pseudo = layout.sum().is_some_and(Sum::has_pseudo);
    let mut left = [None; LENGTHS.len() + 1];
    left.iter_mut().zip(all(packet, layout)).for_each(|(place, length)| *place = Some(length));
    for Length { at, sum, .. } in left.into_iter().flatten() {
        let old = number16(packet, at);
        let new = (old + more).saturating_sub(less);
        write(packet, at, &u16::try_from(new).unwrap_or(u16::MAX).to_be_bytes());
        let delta = Delta::between(old as u128, new as u128, 2);
        match sum {
            Cover::Ip4 => {
                checksum::update(packet.data_mut(), layout.ip() + ipv4::CHECKSUM, delta, false);
                behind = if has_pseudo { behind.and(delta) } else { behind };
            }
            Cover::Ip6 => behind = if has_pseudo { behind.and(delta) } else { behind },
            Cover::Transport => behind = behind.and(delta.at(at.abs_diff(layout.l4()))),
            Cover::None | Cover::Inet | Cover::Gre | Cover::Quoted => {}
        }
    }
    behind
}

/// The place of the EtherType behind the VLAN tags. `None` if a length is there instead.
pub(crate) fn direct_type(packet: &Packet, layout: &Layout) -> Option<usize> {
    let at = layout.ether_type_at();
    let is_type = number16(packet, at) > usize::from(MOST_LENGTH);
    (layout.has(Header::Eth) && is_type).then_some(at)
}

/// The 16-bit number at an offset of the packet.
pub(crate) fn number16(packet: &Packet, at: usize) -> usize {
    let bytes = packet.data().get(at..).and_then(|tail| tail.first_chunk::<2>());
    bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes).into())
}

/// Overwrites bytes of the packet.
pub(crate) fn write(packet: &mut Packet, at: usize, bytes: &[u8]) {
    if let Some(place) = packet.data_mut().get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
