//! Numbers in the bytes of a packet that are no fields: in its payload or in a TCP option. They are
//! in network byte order.

use crate::checksum::{self, Delta};
use crate::field::Header;
use crate::layout::Layout;
use crate::options;
use crate::packet::Packet;
use crate::window::number;
use crate::wire::{ipv4, ipv6};

/// A part of a packet whose length is up to the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Area {
    /// Everything behind the last header that the parser recognises, without link padding.
    Payload,
    /// The value of the first TCP option of this kind, which is neither 0 nor 1.
    TcpOption(u8),
    /// The value of the first IPv4 option of this kind, which is neither 0 nor 1. It can only be
    /// read.
    IpOption(u8),
    /// The first extension header of IPv6 with this protocol number, behind its first two bytes. It
    /// can only be read.
    Ip6Extension(u8),
}

impl Area {
    /// Whether functions may write to it.
    #[must_use]
    pub fn is_writable(self) -> bool {
        matches!(self, Area::Payload | Area::TcpOption(_))
    }
}

/// The most words of a string. A word has 16 bytes.
pub const MAX_WORDS: usize = 15;

/// The capture lacks bytes of an area that were on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut;

/// The number in `len` bytes (at most 16) of an area, from byte `offset` of the area on. `None` if
/// the area ends before.
///
/// # Errors
/// The capture lacks some of these bytes.
pub fn load(
    packet: &Packet,
    layout: &Layout,
    (area, offset): (Area, u128),
    len: usize,
) -> Result<Option<u128>, Cut> {
    let Some(at) = place(packet, layout, (area, offset), len) else { return Ok(None) };
    let bytes = packet.data().get(at..at + len).ok_or(Cut)?;
    Ok(Some(number(bytes)))
}

/// Reads `len` bytes of an area into words of 16 bytes, from byte `offset` of the area on. The
/// first byte is the highest one of the first word, and bytes behind the last one are 0. Returns
/// false, and zeros, if the area ends before, or if the words cannot hold as many bytes.
///
/// # Errors
/// The capture lacks some of these bytes.
pub fn string(
    packet: &Packet,
    layout: &Layout,
    place: (Area, u128),
    len: u128,
    words: &mut [u128],
) -> Result<bool, Cut> {
    words.fill(0);
    let fits = usize::try_from(len).ok().filter(|len| *len <= 16 * words.len());
    let at = fits.and_then(|len| Some((self::place(packet, layout, place, len)?, len)));
    let Some((at, len)) = at else { return Ok(false) };
    let bytes = packet.data().get(at..at + len).ok_or(Cut)?;
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(16)) {
        *word = number(chunk) << (8 * (16 - chunk.len()));
    }
    Ok(true)
}

/// The bytes of words as [`string`] fills them. Words past [`MAX_WORDS`] are left out.
#[inline]
pub(crate) fn of_words(words: &[u128]) -> [u8; 16 * MAX_WORDS] {
    let mut bytes = [0; 16 * MAX_WORDS];
    for (chunk, word) in bytes.chunks_mut(16).zip(words) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// The words of bytes, as [`string`] fills them.
#[cfg(test)]
pub(crate) fn words_of(bytes: &[u8]) -> Vec<u128> {
    bytes.chunks(16).map(|chunk| number(chunk) << (128 - 8 * chunk.len())).collect()
}

/// Whether bytes of the payload may change. The checksum of a later fragment is in another packet.
/// A packet that an ICMP error quotes has checksums of its own, so its fields are assigned instead.
pub(crate) fn may_write(layout: &Layout) -> bool {
    !layout.is_later_fragment() && !layout.has(Header::Quoted)
}

/// Writes a number into `len` bytes (at most 16) of an area, from byte `offset` of the area on.
/// Updates the checksum of the header in front. Returns false, and changes nothing, if the area
/// ends before, if it can only be read, for fragments other than the first, and for ICMP errors.
///
/// The bytes may now be a header that the parser recognises, so earlier layouts become invalid.
///
/// # Errors
/// The capture lacks some of these bytes. Nothing has changed.
pub fn store(
    packet: &mut Packet,
    layout: &Layout,
    (area, offset): (Area, u128),
    len: usize,
    value: u128,
) -> Result<bool, Cut> {
    let may = may_write(layout) && area.is_writable();
    let place = place(packet, layout, (area, offset), len).filter(|_| may);
    let Some(at) = place else { return Ok(false) };
    let bytes = packet.data_mut().get_mut(at..at + len).ok_or(Cut)?;
    let mut old = 0;
    for (nth, byte) in bytes.iter_mut().enumerate() {
        old = old << 8 | u128::from(*byte);
        let [.., last] = (value >> (8 * (len - 1 - nth))).to_be_bytes();
        *byte = last;
    }
    let delta = Delta::between(old, value, len).at(at.abs_diff(layout.l4()));
    checksum::follow(packet, layout, (delta, delta));
    Ok(true)
}

/// The place in the packet of `len` bytes of an area. `None` if the area ends before.
pub(crate) fn place(
    packet: &Packet,
    layout: &Layout,
    (area, offset): (Area, u128),
    len: usize,
) -> Option<usize> {
    let offset = usize::try_from(offset).ok()?;
    let end = offset.checked_add(len)?;
    let (start, most) = match area {
        Area::Payload => (layout.payload_offset(), layout.payload_len()),
        Area::TcpOption(kind) => options::value(packet, layout, kind)?,
        Area::IpOption(kind) => {
            let (at, len) = ipv4::option(ip(packet, layout, Header::Ip4)?, kind)?;
            (layout.ip() + at, len)
        }
        Area::Ip6Extension(kind) => {
            let (at, len) = ipv6::extension(ip(packet, layout, Header::Ip6)?, kind)?;
            (layout.ip() + at, len)
        }
    };
    (end <= most).then(|| start + offset)
}

/// The bytes from the IP header on, if it is of this version.
fn ip<'a>(packet: &'a Packet, layout: &Layout, version: Header) -> Option<&'a [u8]> {
    if layout.has(version) { packet.data().get(layout.ip()..) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::link::Link;
    use crate::{Shape, build_fresh};

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
        let read = |offset, len| load(&packet, &layout, (Area::Payload, offset), len);
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
            assert_eq!(store(&mut packet, &layout, (Area::Payload, offset), len, value), Ok(true));
            assert_eq!(load(&packet, &layout, (Area::Payload, offset), len), Ok(Some(value)));
            assert_eq!(checksum::verify(&packet, &packet.parse()).transport, Some(true));
        }
    }

    #[test]
    fn ip_options_and_extension_headers_are_read_and_not_written() {
        // NOP, a timestamp (68), router alert (148).
        let mut bytes = vec![0x48, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend([1, 68, 4, 5, 0x80, 148, 4, 0xab, 0xcd, 1, 0, 0]);
        bytes.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        let mut packet = Packet::new(Link::RawIp, 0, bytes);
        let layout = packet.parse();
        let read = |packet: &Packet, area, offset, len| load(packet, &layout, (area, offset), len);
        assert_eq!(read(&packet, Area::IpOption(148), 0, 2), Ok(Some(0xabcd)));
        assert_eq!(read(&packet, Area::IpOption(68), 1, 1), Ok(Some(0x80)));
        for (area, offset) in [
            (Area::IpOption(148), 1),
            (Area::IpOption(7), 0),
            (Area::Ip6Extension(0), 0),
            (Area::TcpOption(68), 0),
        ] {
            assert_eq!(read(&packet, area, offset, 2), Ok(None), "{area:?}");
        }
        let before = packet.clone();
        assert_eq!(store(&mut packet, &layout, (Area::IpOption(148), 0), 2, 1), Ok(false));
        assert_eq!(packet, before);
        // Hop-by-hop options, destination options of 16 bytes, a later fragment.
        let mut bytes = vec![0x60, 0, 0, 0, 0, 36, 0, 64];
        bytes.extend([7; 32]);
        bytes.extend([60, 0, 5, 2, 0, 0, 1, 0]);
        bytes.extend([44, 1, 0x1e, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        bytes.extend([17, 0, 0, 0x18, 0, 0, 0, 9]);
        bytes.extend([60, 0, 9, 9]);
        let packet = Packet::new(Link::RawIp, 0, bytes);
        let layout = packet.parse();
        let read =
            |kind, offset, len| load(&packet, &layout, (Area::Ip6Extension(kind), offset), len);
        assert_eq!(read(0, 0, 2), Ok(Some(0x0502)));
        assert_eq!((read(0, 5, 1), read(0, 6, 1)), (Ok(Some(0)), Ok(None)));
        assert_eq!(read(60, 13, 1), Ok(Some(12)));
        assert_eq!(read(44, 2, 4), Ok(Some(9)));
        // The fragment's data is no header.
        assert_eq!((read(17, 0, 1), read(43, 0, 1)), (Ok(None), Ok(None)));
    }

    #[test]
    fn nothing_is_written_behind_the_payload() {
        let (before, layout) = datagram(0);
        let mut packet = before.clone();
        assert_eq!(store(&mut packet, &layout, (Area::Payload, 3), 4, 0), Ok(false));
        assert_eq!(packet.data(), before.data());
        let mut bytes = before.data().to_vec();
        // Protocol 99 instead of UDP: all of it is payload, without a checksum.
        bytes[9] = 99;
        let mut other = Packet::new(Link::RawIp, 0, &bytes);
        let layout = other.parse();
        assert_eq!(store(&mut other, &layout, (Area::Payload, 0), 2, 7), Ok(true));
        bytes[20..22].copy_from_slice(&[0, 7]);
        assert_eq!(other.data(), bytes);
        let (mut cut, layout) = datagram(1);
        let before = cut.data().to_vec();
        assert_eq!(store(&mut cut, &layout, (Area::Payload, 2), 4, 7), Err(Cut));
        assert_eq!(cut.data(), before);
    }

    #[test]
    fn bytes_that_the_capture_lacks_are_cut() {
        let (packet, layout) = datagram(1);
        let read = |offset, len| load(&packet, &layout, (Area::Payload, offset), len);
        assert_eq!(read(1, 4), Ok(Some(0x2233_4455)));
        assert_eq!(read(2, 4), Err(Cut));
        assert_eq!(read(5, 1), Err(Cut));
        assert_eq!(read(6, 1), Ok(None));
    }

    #[test]
    fn strings_are_read_into_words_and_filled_with_zeros() {
        let (packet, layout) = datagram(0);
        let read = |offset, len, count: usize| {
            let mut words = vec![7; count];
            let found = string(&packet, &layout, (Area::Payload, offset), len, &mut words);
            (found, words)
        };
        let all = 0x1122_3344_5566 << 80;
        assert_eq!(read(0, 6, 1), (Ok(true), vec![all]));
        assert_eq!(read(1, 2, 2), (Ok(true), vec![0x2233 << 112, 0]));
        assert_eq!(read(6, 0, 1), (Ok(true), vec![0]));
        assert_eq!(read(1, 6, 1), (Ok(false), vec![0]));
        assert_eq!(read(0, 17, 1), (Ok(false), vec![0]));
        assert_eq!(read(0, u128::MAX, 4), (Ok(false), vec![0; 4]));
        let (cut, layout) = datagram(1);
        let place = (Area::Payload, 2);
        assert_eq!(string(&cut, &layout, place, 4, &mut [0]), Err(Cut));
        let long = build_fresh(Link::RawIp, 0, Shape::Udp4, &[], b"0123456789abcdefgh").unwrap();
        let mut words = [0; 2];
        let place = (Area::Payload, 1);
        assert_eq!(string(&long, &long.parse(), place, 17, &mut words), Ok(true));
        assert_eq!(words, [number(b"123456789abcdefg"), u128::from(b'h') << 120]);
    }

    #[test]
    fn values_of_options_are_read_and_written_by_their_kind() {
        let fields = [(Field::TcpSport, 7)];
        let packet = build_fresh(Link::RawIp, 0, Shape::Tcp4, &fields, b"abc").unwrap();
        let mut data = packet.data().to_vec();
        // A NOP, SACK at an odd offset, and a second option of this kind.
        let given = [&[1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 12][..], &[5, 2, 254, 3, 6, 0, 0]].concat();
        data.splice(40..40, given.iter().copied().chain([0; 2]));
        (data[3], data[32]) = (43 + 20, 10 << 4);
        let mut packet = Packet::new(Link::RawIp, 0, data);
        checksum::fill(&mut packet);
        let layout = packet.parse();
        assert!(layout.has(Header::Tcp));
        let sack = Area::TcpOption(5);
        assert_eq!(load(&packet, &layout, (sack, 0), 4), Ok(Some(9)));
        assert_eq!(load(&packet, &layout, (sack, 4), 4), Ok(Some(12)));
        assert_eq!(load(&packet, &layout, (sack, 5), 4), Ok(None));
        assert_eq!(load(&packet, &layout, (Area::TcpOption(254), 0), 1), Ok(Some(6)));
        assert_eq!(load(&packet, &layout, (Area::TcpOption(2), 0), 1), Ok(None));
        assert_eq!(store(&mut packet, &layout, (sack, 3), 3, 0xa_bcde), Ok(true));
        assert_eq!(load(&packet, &layout, (sack, 0), 8), Ok(Some(0x0000_000a_bcde_000c)));
        assert_eq!(store(&mut packet, &layout, (sack, 6), 3, 1), Ok(false));
        assert_eq!(checksum::verify(&packet, &packet.parse()).transport, Some(true));
    }
}
