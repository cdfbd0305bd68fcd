//! Numbers in a packet's payload, in network byte order.

use crate::checksum::{self, Delta};
use crate::field::Header;
use crate::layout::Layout;
use crate::packet::Packet;

/// The capture lacks bytes of the payload that were on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut;

/// The number in `len` bytes (at most 16) of the payload, from byte `offset` of the payload on.
/// `None` if the payload ends before.
///
/// # Errors
/// The capture lacks some of these bytes.
pub fn load(
    packet: &Packet,
    layout: &Layout,
    offset: u128,
    len: usize,
) -> Result<Option<u128>, Cut> {
    let Some(at) = place(layout, offset, len) else { return Ok(None) };
    let bytes = packet.data().get(at..at + len).ok_or(Cut)?;
    Ok(Some(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))))
}

/// Writes a number into `len` bytes (at most 16) of the payload, from byte `offset` of the payload
/// on. Updates the checksum of TCP or UDP. Returns false, and changes nothing, if the payload ends
/// before, or if the packet has neither header.
///
/// The bytes may now be a header that the parser recognises, so earlier layouts become invalid.
///
/// # Errors
/// The capture lacks some of these bytes. Nothing has changed.
pub fn store(
    packet: &mut Packet,
    layout: &Layout,
    offset: u128,
    len: usize,
    value: u128,
) -> Result<bool, Cut> {
    let place = place(layout, offset, len).filter(|_| layout.has(Header::L4));
    let Some(at) = place else { return Ok(false) };
    let bytes = packet.data_mut().get_mut(at..at + len).ok_or(Cut)?;
    let mut old = 0;
    for (nth, byte) in bytes.iter_mut().enumerate() {
        old = old << 8 | u128::from(*byte);
        let [.., last] = (value >> (8 * (len - 1 - nth))).to_be_bytes();
        *byte = last;
    }
    if let Some(sum) = layout.sum() {
        let delta = Delta::between(old, value, len).at(at.abs_diff(layout.l4()));
        checksum::update(packet.data_mut(), sum.at, delta, sum.is_udp());
    }
    Ok(true)
}

/// The place in the packet of `len` bytes of the payload. `None` if the payload ends before.
fn place(layout: &Layout, offset: u128, len: usize) -> Option<usize> {
    let offset = usize::try_from(offset).ok()?;
    let end = offset.checked_add(len)?;
    (end <= layout.payload_len()).then(|| layout.payload_offset() + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;

    /// A UDP datagram with six bytes of payload and four bytes of padding. The capture may lack the
    /// padding and the payload's last byte.
    fn datagram(lacks: usize) -> (Packet, Layout) {
        let mut bytes = vec![0x45, 0, 0, 34, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend([0, 1, 0, 2, 0, 14, 0, 0]);
        bytes.extend([0x11, 0x22, 0x33, 0x44, 0x55, 0x66]);
        let wire = bytes.len();
        bytes.truncate(wire - lacks);
        if lacks == 0 {
            bytes.extend([0xee; 4]);
        }
        let packet = Packet::snapped(Link::RawIp, 0, bytes, u32::try_from(wire).unwrap_or(0));
        let layout = packet.parse();
        (packet, layout)
    }

    #[test]
    fn numbers_are_read_in_network_byte_order_up_to_the_end_of_the_payload() {
        let (packet, layout) = datagram(0);
        let read = |offset, len| load(&packet, &layout, offset, len);
        assert_eq!(read(0, 1), Ok(Some(0x11)));
        assert_eq!(read(1, 2), Ok(Some(0x2233)));
        assert_eq!(read(2, 4), Ok(Some(0x3344_5566)));
        assert_eq!(read(0, 6), Ok(Some(0x1122_3344_5566)));
        // The padding behind the datagram is not payload.
        assert_eq!(read(3, 4), Ok(None));
        assert_eq!(read(6, 1), Ok(None));
        assert_eq!(read(u128::MAX, 1), Ok(None));
        assert_eq!(read(u64::MAX.into(), 16), Ok(None));
    }

    #[test]
    fn written_numbers_are_read_again_and_checksums_follow() {
        for (offset, len) in [(0, 1), (1, 1), (1, 2), (2, 4), (0, 6)] {
            let (mut packet, layout) = datagram(0);
            checksum::fill(&mut packet);
            let value = 0xa1b2_c3d4_e5f6_u128 & ((1 << (8 * len)) - 1);
            assert_eq!(store(&mut packet, &layout, offset, len, value), Ok(true));
            assert_eq!(load(&packet, &layout, offset, len), Ok(Some(value)));
            assert_eq!(checksum::verify(&packet, &packet.parse()).transport, Some(true));
        }
    }

    #[test]
    fn nothing_is_written_behind_the_payload_or_without_tcp_and_udp() {
        let (before, layout) = datagram(0);
        let mut packet = before.clone();
        assert_eq!(store(&mut packet, &layout, 3, 4, 0), Ok(false));
        assert_eq!(packet.data(), before.data());
        let mut bytes = before.data().to_vec();
        // Protocol 99 instead of UDP: all of it is payload.
        bytes[9] = 99;
        let mut other = Packet::new(Link::RawIp, 0, &bytes);
        let layout = other.parse();
        assert_eq!(store(&mut other, &layout, 0, 2, 7), Ok(false));
        assert_eq!(other.data(), bytes);
        let (mut cut, layout) = datagram(1);
        let before = cut.data().to_vec();
        assert_eq!(store(&mut cut, &layout, 2, 4, 7), Err(Cut));
        assert_eq!(cut.data(), before);
    }

    #[test]
    fn bytes_that_the_capture_lacks_are_cut() {
        let (packet, layout) = datagram(1);
        let read = |offset, len| load(&packet, &layout, offset, len);
        assert_eq!(read(1, 4), Ok(Some(0x2233_4455)));
        assert_eq!(read(2, 4), Err(Cut));
        assert_eq!(read(5, 1), Err(Cut));
        assert_eq!(read(6, 1), Ok(None));
    }
}
