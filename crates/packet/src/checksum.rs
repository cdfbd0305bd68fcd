//! Internet checksums, computed from scratch (RFC 1071) or updated by difference (RFC 1624).
//!
//! 0x0000 and 0xffff denote the same sum. Braid writes the canonical form, which is 0x0000. For UDP
//! it is 0xffff, because 0 means "none" there. Receivers tell the two forms apart only in an ICMPv4
//! message that consists of zeros. Updates write the canonical form there too.

use crate::field::{Field, Header};
use crate::layout::{Layout, Sum, SumKind};
use crate::packet::Packet;
use crate::wire::{ipv4, ipv6, proto};

/// A one's complement sum of 16-bit words, not yet folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sum16(u64);

impl Sum16 {
    /// Adds bytes. The first byte is the high byte of a word, and a missing last byte counts as 0.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Sum16 {
        // Words of the machine's byte order, and twice as long, have the same sum but for the order
        // of its two bytes (RFC 1071, §2).
        let (words, rest) = bytes.as_chunks::<4>();
        // No packet has enough words for an overflow, and sums without a check take vectors.
        let add = |sum: u64, word: &[u8; 4]| sum.wrapping_add(u32::from_ne_bytes(*word).into());
        let sum = words.iter().fold(0, add);
        let mut last = [0; 4];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let sum = Sum16(sum + u64::from(u32::from_ne_bytes(last))).folded();
        Sum16(self.0 + u64::from(u16::from_be(sum)))
    }

    /// Adds a number.
    #[must_use]
    pub fn with_word(self, word: u32) -> Sum16 {
        Sum16(self.0 + u64::from(word))
    }

    /// The sum of a pseudo header without its addresses (RFC 9293 §3.1, RFC 8200 §8.1), in front of
    /// `len` bytes of this protocol.
    #[must_use]
    pub fn pseudo_header(protocol: u8, len: usize) -> Self {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Sum16::default().with_word(protocol.into()).with_word(len)
    }

    /// A sum of numbers of at most 32 bits. Each number stands for the sum of its two halves.
    #[must_use]
    pub(crate) fn of_numbers(sum: u64) -> Self {
        Sum16(sum)
    }

    /// The sum folded to 16 bits. It is 0 only if all words were 0.
    #[must_use]
    pub fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        u16::try_from(sum).unwrap_or(u16::MAX)
    }
}

/// The checksum of these bytes (RFC 1071): the complement of their one's complement sum.
#[must_use]
pub fn rfc1071(bytes: &[u8]) -> u16 {
    !Sum16::default().with(bytes).folded()
}

/// A difference of one's complement sums, for words that start at even offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delta(u16);

impl Delta {
    /// The difference when `len` bytes (at most 16) change from `old` to `new`.
    pub(crate) fn between(old: u128, new: u128, len: usize) -> Delta {
        let shift = u32::try_from(len.clamp(1, 16)).map_or(0, |len| 128 - 8 * len);
        let sum = Sum16::default().with(&(new << shift).to_be_bytes());
        Delta(sum.with(&(!(old << shift)).to_be_bytes()).folded())
    }

    /// A difference from a sum. The sum adds the new value of each changed word and the complement
    /// of its old value.
    #[inline(always)]
    pub(crate) fn of(sum: u16) -> Delta {
        Delta(sum)
    }

    /// The difference that an updated checksum makes for an outer checksum that covers it.
    pub(crate) fn around(update: Option<(u16, u16)>) -> Delta {
        update.map_or(Delta::default(), |(old, new)| Delta::between(old.into(), new.into(), 2))
    }

    /// The same change of bytes when they start at this offset in the covered bytes. At an odd
    /// offset the bytes are swapped (RFC 1071 §2 (B)).
    pub(crate) fn at(self, offset_in_sum: usize) -> Delta {
        if offset_in_sum % 2 == 1 { Delta(self.0.swap_bytes()) } else { self }
    }

    /// The sum of both changes.
    pub(crate) fn and(self, other: Delta) -> Delta {
        Delta(Sum16::default().with_word(u32::from(self.0)).with_word(u32::from(other.0)).folded())
    }

    /// The checksum after the change, in canonical form (RFC 1624, equation 3).
    #[inline]
    fn apply(self, checksum: u16, udp: bool) -> u16 {
        let (sum, carry) = (!checksum).overflowing_add(self.0);
        canonical(!sum.wrapping_add(u16::from(carry)), udp)
    }
}

/// The canonical form of a checksum: one of the two forms of a sum of zero.
fn canonical(checksum: u16, udp: bool) -> u16 {
    match checksum {
        0xffff if !udp => 0,
        0 if udp => 0xffff,
        other => other,
    }
}

/// Updates the checksum at `at` and returns its old and new value. A UDP checksum of "none" stays.
#[inline]
pub(crate) fn update(data: &mut [u8], at: usize, delta: Delta, udp: bool) -> Option<(u16, u16)> {
    let field = data.get_mut(at..)?.first_chunk_mut::<2>()?;
    // The byte order of the words does not change a one's complement sum (RFC 1071 §2 (B)).
    let old = u16::from_ne_bytes(*field);
    if udp && old == 0 {
        return None;
    }
    let new = Delta(delta.0.to_be()).apply(old, udp);
    *field = new.to_ne_bytes();
    Some((u16::from_be(old), u16::from_be(new)))
}

/// Updates the checksum of the header in front of a payload that has changed: that of a transport
/// header by the first difference, or that of GRE, which covers no lengths, by the second.
pub(crate) fn follow(packet: &mut Packet, layout: &Layout, (transport, gre): (Delta, Delta)) {
    if let Some(sum) = layout.sum() {
        update(packet.data_mut(), sum.at, transport, sum.is_udp());
    }
    if let Some(at) = layout.gre_sum() {
        update(packet.data_mut(), at, gre, false);
    }
}

/// Whether the checksums of a packet are right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Validity {
    /// Whether the IPv4 header checksum is right. `None` without one.
    pub ip: Option<bool>,
    /// Whether the checksum of TCP, UDP, ICMP or ICMPv6 is right. `None` without a checksum (a UDP
    /// checksum of 0 included), in fragments, and when covered bytes were not captured.
    pub transport: Option<bool>,
}

impl Validity {
    /// Whether no checksum is wrong.
    #[must_use]
    pub fn all_right(self) -> bool {
        self.ip != Some(false) && self.transport != Some(false)
    }
}

/// Checks a packet's checksums from scratch.
#[must_use]
pub fn verify(packet: &Packet, layout: &Layout) -> Validity {
    let is_zero = |sum: Sum16| matches!(sum.folded(), 0 | 0xffff);
    let ip = ip_header(packet, layout).map(|header| is_zero(Sum16::default().with(header)));
    let transport = layout.sum().and_then(|sum| {
        let covered = transport_sum(packet, layout, sum)?;
        let field = packet.data().get(sum.at..)?.first_chunk::<2>()?;
        let absent = sum.is_udp() && *field == [0, 0];
        (!absent).then(|| is_zero(covered))
    });
    Validity { ip, transport }
}

/// Computes a packet's checksums from scratch and writes them. A checksum that cannot be computed
/// stays: that of a fragment, or one over bytes that were not captured.
pub fn fill(packet: &mut Packet) {
    let layout = packet.parse();
    if layout.has(Header::Ip4) {
        write(packet, layout.ip() + ipv4::CHECKSUM, 0);
        if let Some(header) = ip_header(packet, &layout) {
            let checksum = rfc1071(header);
            write(packet, layout.ip() + ipv4::CHECKSUM, checksum);
        }
    }
    if let Some(sum) = layout.sum()
        && transport_sum(packet, &layout, sum).is_some()
    {
        write(packet, sum.at, 0);
        if let Some(covered) = transport_sum(packet, &layout, sum) {
            let checksum = !covered.folded();
            write(packet, sum.at, if sum.is_udp() && checksum == 0 { 0xffff } else { checksum });
        }
    }
}

/// By how much a packet's transport checksum is wrong. `None` if it is right, absent, or over bytes
/// that were not captured.
pub(crate) fn error(packet: &Packet, layout: &Layout) -> Option<Delta> {
    let sum = layout.sum().filter(|_| verify(packet, layout).transport == Some(false))?;
    transport_sum(packet, layout, sum).map(|covered| Delta(!covered.folded()))
}

/// Makes a packet's transport checksum wrong by an amount.
pub(crate) fn spoil(packet: &mut Packet, error: Delta) {
    if let Some(sum) = packet.parse().sum() {
        update(packet.data_mut(), sum.at, error, sum.is_udp());
    }
}

/// Writes 0xffff to a packet's checksums, right or not. It is the form of a zero sum that is not
/// canonical. A UDP checksum stays, because UDP has no such form.
pub fn fill_not_canonical(packet: &mut Packet) {
    let layout = packet.parse();
    if layout.has(Header::Ip4) {
        write(packet, layout.ip() + ipv4::CHECKSUM, 0xffff);
    }
    if let Some(sum) = layout.sum().filter(|sum| !sum.is_udp()) {
        write(packet, sum.at, 0xffff);
    }
}

fn write(packet: &mut Packet, at: usize, checksum: u16) {
    if let Some(field) = packet.data_mut().get_mut(at..).and_then(|t| t.first_chunk_mut::<2>()) {
        *field = checksum.to_be_bytes();
    }
}

fn ip_header<'a>(packet: &'a Packet, layout: &Layout) -> Option<&'a [u8]> {
    let len = usize::try_from(packet.get(layout, Field::IpHlen)?).ok()?;
    packet.data().get(layout.ip()..layout.ip() + len)
}

/// The sum over the pseudo header and the message, including the checksum field.
fn transport_sum(packet: &Packet, layout: &Layout, sum: Sum) -> Option<Sum16> {
    if layout.is_fragment() {
        return None;
    }
    let mut end = layout.ip_end();
    if sum.is_udp() {
        // The length in the UDP header counts. Bytes behind it are not covered.
        let len = packet.get(layout, Field::UdpLen)?;
        let jumbo = len == 0;
        end = if jumbo { end } else { layout.l4() + usize::try_from(len).ok()? };
    }
    let message = packet.data().get(layout.l4()..end)?;
    let pseudo = match sum.has_pseudo() {
        true => pseudo_header(packet, layout, sum.kind, message.len())?,
        false => Sum16::default(),
    };
    Some(pseudo.with(message))
}

/// The sum of the packet's pseudo header. `None` if its addresses are cut.
fn pseudo_header(packet: &Packet, layout: &Layout, kind: SumKind, len: usize) -> Option<Sum16> {
    let data = packet.data();
    let (src, address) = match layout.has(Header::Ip4) {
        true => (layout.ip() + ipv4::SRC, 4),
        false => (layout.ip() + ipv6::SRC, 16),
    };
    let dst = layout.pseudo_dst();
    let proto = match kind {
        SumKind::Tcp => proto::TCP,
        SumKind::Udp => proto::UDP,
        SumKind::Icmp | SumKind::Icmp6 => proto::ICMP6,
    };
    let sum = Sum16::pseudo_header(proto, len);
    Some(sum.with(data.get(src..src + address)?).with(data.get(dst..dst + address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_rfc1071_example() {
        // RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(rfc1071(&bytes), !0xddf2);
        assert_eq!(rfc1071(&bytes[..7]), !0xdcfb);
    }

    #[test]
    fn update_of_rfc1624_example() {
        // RFC 1624 §4: HC = dd2f, m = 5555, m' = 3285 gives 0000, where RFC 1141 gave ffff.
        let delta = Delta::between(0x5555, 0x3285, 2);
        assert_eq!(delta.apply(0xdd2f, false), 0x0000);
        assert_eq!(delta.apply(0xdd2f, true), 0xffff);
    }

    #[test]
    fn update_without_change_makes_canonical() {
        let delta = Delta::between(0x1234, 0x1234, 2);
        let after = |checksum: u16, udp: bool| {
            let mut data = checksum.to_be_bytes();
            update(&mut data, 0, delta, udp);
            u16::from_be_bytes(data)
        };
        assert_eq!((after(0xffff, false), after(0x0000, false)), (0, 0));
        assert_eq!((after(0xffff, true), after(0x0000, true)), (0xffff, 0));
        assert_eq!((after(0x1234, false), after(0x1234, true)), (0x1234, 0x1234));
    }

    #[test]
    fn delta_at_odd_offset_swaps_bytes() {
        // 3 bytes at offset 1 of 4: 00|aabb|cc becomes 00|1122|33.
        let delta = Delta::between(0xaa_bbcc, 0x11_2233, 3).at(1);
        let old = rfc1071(&[0, 0xaa, 0xbb, 0xcc]);
        assert_eq!(delta.apply(old, false), rfc1071(&[0, 0x11, 0x22, 0x33]));
    }

    #[test]
    fn update_outside_the_data_does_nothing() {
        let mut data = [1, 2, 3];
        assert_eq!(update(&mut data, 2, Delta(7), false), None);
        assert_eq!(data, [1, 2, 3]);
    }
}
