//! The lengths in a packet's headers that say how many bytes follow. They change when bytes are added
//! to a header or to the payload, or removed.

use crate::checksum::{self, Delta};
use crate::field::{Base, Header};
use crate::layout::Layout;
use crate::packet::{MOST, Packet};
use crate::wire::ethernet::MAX_LENGTH;
use crate::wire::{ipv4, ipv6, pppoe, udp};

/// A 16-bit length: its place in the packet, and its largest value.
type Length = (usize, usize);

/// The lengths that count the bytes behind the IP header: those of IP, of UDP, of an 802.3 header and
/// of PPPoE.
fn all(packet: &Packet, layout: &Layout) -> [Option<Length>; 4] {
    let own = if layout.has(Header::Ip4) { ipv4::TOTAL } else { ipv6::PAYLOAD };
    let link = usize::from(layout.ether_type_at);
    let most_of_link = usize::from(MAX_LENGTH);
    let is_length = layout.has(Header::Eth) && number16(packet, link) <= most_of_link;
    let pppoe = layout.base(Base::Network) + pppoe::LENGTH;
    let most = usize::from(u16::MAX);
    [
        Some((layout.ip() + own, most)),
        layout.has(Header::Udp).then_some((layout.l4() + udp::LENGTH, most)),
        is_length.then_some((link, most_of_link)),
        layout.has(Header::Pppoe).then_some((pppoe, most)),
    ]
}

/// Whether a packet with IP can have this number of bytes more behind its IP header. False for
/// fragments and jumbograms.
pub(crate) fn can_grow(packet: &Packet, layout: &Layout, more: usize) -> bool {
    let fits = |(at, most): Length| number16(packet, at) + more <= most;
    !layout.is_fragment()
        && !layout.jumbo
        && all(packet, layout).into_iter().flatten().all(fits)
        && packet.wire_len as usize + more <= MOST as usize
}

/// Changes the lengths of a packet that has `more` and then `less` bytes behind its IP header.
/// Updates the checksum of IPv4. The difference is what the transport checksum must follow: the
/// length of the pseudo header, and the length of UDP.
pub(crate) fn change(packet: &mut Packet, layout: &Layout, more: usize, less: usize) -> Delta {
    let mut behind = Delta::default();
    for (place, length) in all(packet, layout).into_iter().enumerate() {
        let Some((at, _)) = length else { continue };
        let old = number16(packet, at);
        let new = (old + more).saturating_sub(less);
        write(packet, at, &u16::try_from(new).unwrap_or(u16::MAX).to_be_bytes());
        let delta = Delta::between(old as u128, new as u128, 2);
        match place {
            0 => {
                if layout.has(Header::Ip4) {
                    checksum::update(packet.data_mut(), layout.ip() + ipv4::CHECKSUM, delta, false);
                }
                behind = behind.and(delta);
            }
            1 => behind = behind.and(delta),
            _ => {}
        }
    }
    behind
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
