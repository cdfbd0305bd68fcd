//! The bits of fields in the first bytes of packets with an outline.
#![expect(clippy::indexing_slicing, reason = "the headers of an outline lie in the wide words")]

use crate::field::{Base, Field, Header};
use crate::place::Spot;
use crate::rewrite::{Outline, WIDE_BYTES};

/// A field's bits in a packet's first [`WIDE_BYTES`] bytes: `width` bits, from bit `shift` upward,
/// of the big-endian number in the `len` bytes at offset `at`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bits {
    /// Offset of the number's first byte.
    pub at: usize,
    /// Bytes of the number, 1 to 16.
    pub len: usize,
    /// How many bits lie below the field, at the low end of the number.
    pub shift: u32,
    /// Number of bits of the field.
    pub width: u32,
}

impl Bits {
    /// The place of a field in packets with an outline and these headers, if it is in their first
    /// bytes. `has` is as in [`Spot::of`].
    #[expect(clippy::cast_possible_truncation, reason = "a field has at most 16 bytes")]
    pub fn of(
        field: Field,
        outline: Outline,
        has: &dyn Fn(Header) -> Option<bool>,
    ) -> Option<Self> {
        let whole = |at, len| Self { at, len, shift: 0, width: 8 * len as u32 };
        match field {
            Field::EthType => return Some(whole(outline.ip - 2, 2)),
            Field::InetProto => return Some(whole(outline.proto(), 1)),
            Field::IpProto if !outline.is_ip6 => return Some(whole(outline.proto(), 1)),
            Field::Ip6Proto if outline.is_ip6 => return Some(whole(outline.proto(), 1)),
            _ => {}
        }
        let spot = Spot::of(field, has)?;
        let base = match spot.base {
            Base::Packet => 0,
            Base::Ip => outline.ip,
            Base::L4 => outline.l4(),
            _ => return None,
        };
        let (at, len) = (base + usize::from(spot.offset), usize::from(spot.len));
        let bits = Self { at, len, shift: spot.shift.into(), width: spot.width.into() };
        (at + len <= WIDE_BYTES).then_some(bits)
    }

    /// Assigns a value to the bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the number has as many bytes")]
    pub fn set(self, bytes: &mut [u8], value: u128) {
        let bytes = &mut bytes[self.at..self.at + self.len];
        let is_whole = self.is_whole();
        match bytes {
            [one] if is_whole => *one = value as u8,
            [a, b] if is_whole => [*a, *b] = (value as u16).to_be_bytes(),
            [a, b, c, d] if is_whole => [*a, *b, *c, *d] = (value as u32).to_be_bytes(),
            _ => self.set_some(bytes, value),
        }
    }

    /// As [`Bits::set`], for a number with any length, which is in these bytes.
    fn set_some(self, bytes: &mut [u8], value: u128) {
        let mask = self.most();
        let old = bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
        let new = old & !(mask << self.shift) | (value & mask) << self.shift;
        bytes.copy_from_slice(&new.to_be_bytes()[16 - self.len..]);
    }

    /// The value of the bits.
    #[inline]
    #[must_use]
    pub fn get(self, bytes: &[u8]) -> u128 {
        let number = self.number_in(bytes);
        if self.is_whole() { number } else { number >> self.shift & self.most() }
    }

    /// The number that contains the bits.
    #[inline]
    #[must_use]
    pub fn number_in(self, bytes: &[u8]) -> u128 {
        match bytes[self.at..self.at + self.len] {
            [one] => one.into(),
            [a, b] => u16::from_be_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
            ref bytes => bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)),
        }
    }

    /// Whether a mask has some of the bits, and whether it has all of them.
    #[inline]
    #[must_use]
    pub fn are_in(self, mask: &[u8]) -> (bool, bool) {
        let set = self.get(mask);
        (set != 0, set == self.most())
    }

    /// Whether the bits are all bits of their bytes.
    #[inline]
    fn is_whole(self) -> bool {
        self.width as usize == 8 * self.len
    }

    /// The largest value of the bits.
    #[inline]
    fn most(self) -> u128 {
        u128::MAX.checked_shr(128 - self.width).unwrap_or(0)
    }
}
