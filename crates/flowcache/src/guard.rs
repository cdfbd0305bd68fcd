//! Guards: the assumptions of a record about bits of the packet that are not in its key.

use braid_packet::Bits;
use braid_packet::rewrite::{Outline, words};

/// The offset that stands for the packet's length on the wire instead of bytes of the packet.
pub const WIRE: u8 = u8::MAX;

/// A number in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    /// The offset of the number's first byte, or [`WIRE`].
    pub at: u8,
    /// The number of bytes: 1, 2 or 4.
    pub len: u8,
    /// The bits that matter.
    pub mask: u32,
}

/// The condition that a number is in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    /// The number.
    pub number: Number,
    /// The least value.
    pub least: u32,
    /// The largest value.
    pub most: u32,
}

impl Number {
    /// Bits as a number, if guards can test it.
    #[must_use]
    pub fn of_bits(bits: Bits) -> Option<Self> {
        let mask = ((1_u64 << bits.width.min(32)) - 1) << bits.shift;
        let (at, len) = (u8::try_from(bits.at).ok()?, u8::try_from(bits.len).ok()?);
        matches!(len, 1 | 2 | 4).then_some(Self { at, len, mask: u32::try_from(mask).ok()? })
    }

    /// Whether this is all of 2 or 4 bytes of the packet.
    pub(crate) fn is_whole(self) -> bool {
        let bits = 8 * u32::from(self.len);
        self.at != WIRE && matches!(self.len, 2 | 4) && self.mask == u32::MAX >> (32 - bits)
    }

    /// The number's value in a packet with these first bytes.
    pub(crate) fn of(self, head: &[u8], wire_len: u32) -> u32 {
        if self.at == WIRE {
            return wire_len & self.mask;
        }
        let number = match head.get(usize::from(self.at)..).and_then(|bytes| bytes.first_chunk()) {
            Some(bytes) => u32::from_be_bytes(*bytes) >> (32 - 8 * u32::from(self.len)),
            None => self.at_end(head),
        };
        number & self.mask
    }

    /// The number's value if some of its bytes are past the packet's end. Missing bytes are 0.
    #[cold]
    fn at_end(self, head: &[u8]) -> u32 {
        let byte = |at: u8| u32::from(head.get(usize::from(at)).copied().unwrap_or(0));
        (self.at..self.at + self.len).fold(0, |number, at| number << 8 | byte(at))
    }
}

impl Guard {
    /// A guard that no packet passes.
    pub(crate) const NEVER: Guard =
        Guard { number: Number { at: WIRE, len: 4, mask: u32::MAX }, least: 1, most: 0 };

    /// The least TTL, if this guard tests nothing else in packets with [`Outline::PLAIN`].
    pub(crate) fn least_ttl(&self) -> Option<u8> {
        let at = u8::try_from(Outline::PLAIN.ttl()).ok()?;
        let is_it = self.number == Number { at, len: 1, mask: 0xff } && self.most >= 0xff;
        u8::try_from(self.least).ok().filter(|_| is_it)
    }

    /// Whether the guard holds for a packet with these first bytes.
    #[inline(always)]
    pub(crate) fn holds(&self, head: &[u8], wire_len: u32) -> bool {
        let value = self.number.of(head, wire_len);
        self.least <= value && value <= self.most
    }
}

/// The condition that bits of one byte are in an interval. If a packet has no such byte, its bits
/// are 0.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ByteGuard {
    at: u8,
    mask: u8,
    least: u8,
    /// The largest value minus the least one.
    more: u8,
}

impl ByteGuard {
    /// The condition of a guard, if the guard tests bits of one byte only.
    pub(crate) fn of(guard: &Guard) -> Option<Self> {
        let Guard { number: Number { at, len, mask }, least, most } = *guard;
        let behind = u8::try_from(mask.trailing_zeros() / 8).ok()?;
        if at == WIRE || behind >= len {
            return None;
        }
        let (shift, most) = (8 * u32::from(behind), most.min(mask));
        let byte = |value: u32| u8::try_from(value >> shift).ok();
        let least = byte(least.checked_next_multiple_of(1 << shift)?)?;
        let more = byte(most)?.checked_sub(least)?;
        Some(Self { at: at + len - 1 - behind, mask: byte(mask)?, least, more })
    }

    /// Whether the condition holds for a packet with these bytes.
    #[inline(always)]
    pub(crate) fn holds(self, data: &[u8]) -> bool {
        let value = data.get(usize::from(self.at)).copied().unwrap_or(0) & self.mask;
        value.wrapping_sub(self.least) <= self.more
    }
}

/// The condition that bits of a packet's first two words have these values. These words hold the
/// link addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Link {
    pub(crate) mask: [u64; 2],
    pub(crate) is: [u64; 2],
}

impl Link {
    /// Whether the condition holds for a packet with these first bytes.
    #[inline(always)]
    pub(crate) fn holds(&self, head: &[u8]) -> bool {
        let [one, two] = words(head);
        (one & self.mask[0]) ^ self.is[0] | (two & self.mask[1]) ^ self.is[1] == 0
    }
}

/// Guards that all must hold.
#[derive(Debug, Default)]
pub(crate) struct Guards(pub(crate) Vec<Guard>);

impl Guards {
    /// Adds a guard. Guards on the same number are combined.
    pub(crate) fn add(&mut self, guard: Guard) {
        match self.0.iter_mut().find(|one| one.number == guard.number) {
            Some(one) => {
                one.least = one.least.max(guard.least);
                one.most = one.most.min(guard.most);
            }
            None => self.0.push(guard),
        }
    }

    /// Adds a guard that fixes the bits of a number to `value << shift`. `None` if the number has
    /// more than 8 bits.
    pub(crate) fn fix(&mut self, number: Number, value: u32, shift: u32) -> Option<()> {
        if number.mask.count_ones() > 8 {
            return None;
        }
        let value = value.checked_shl(shift)?;
        self.add(Guard { number, least: value, most: value });
        Some(())
    }

    /// Adds the guards that do not follow from other guards to `needed`. A guard that fixes bits
    /// implies the guards on a part of these bits.
    pub(crate) fn needed(&self, needed: &mut Vec<Guard>) {
        let all = &self.0;
        let follows = |one: &Guard| {
            all.iter().any(|other| {
                let (a, b) = (one.number, other.number);
                let is_part = (a.at, a.len) == (b.at, b.len) && a.mask & !b.mask == 0;
                is_part && a.mask != b.mask && other.least == other.most
            })
        };
        needed.extend(all.iter().filter(|guard| !follows(guard)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_of_a_byte_holds_where_the_guard_does() {
        let values = [0, 1, 5, 0x0f, 0x10, 0x80, 0xff, 0x0100, 0x0f00, 0x1000, 0xff00, 0x1_0000];
        let bytes: [&[u8]; 5] =
            [&[0; 6], &[0xff; 6], &[0x10, 0x05, 0x8f, 0x01, 0, 0x10], &[0x10, 0x05], &[]];
        let mut found = 0;
        for len in [1, 2, 4] {
            for mask in [0x01, 0xf0, 0xff, 0x0100, 0x3f00, 0x01ff, 0xff00_0000] {
                for (least, most) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
                    let number = Number { at: 1, len, mask };
                    let guard = Guard { number, least, most };
                    let Some(byte) = ByteGuard::of(&guard) else { continue };
                    found += 1;
                    for bytes in bytes {
                        assert_eq!(byte.holds(bytes), guard.holds(bytes, 0), "{guard:?} {bytes:?}");
                    }
                }
            }
        }
        assert!(found > 500, "{found}");
    }
}
