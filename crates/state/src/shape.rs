//! The layout of keys and slots in words.

use braid_ir::model::{Granularity, Kind, StateDecl, Ty, Word};
use braid_ir::show::{field_kind, max_of};
use braid_packet::{Field, FlowKey};

/// The layout of a table's key in 64-bit words. The parts follow each other from bit 0 up, without
/// gaps, each with its declared width. Unused bits of the last word are 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyShape {
    parts: Vec<Part>,
    words: usize,
    /// Whether the key is a flow's. The first part is then the IP version, which determines the
    /// kind of the addresses.
    flow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    bit: usize,
    ty: Ty,
}

impl KeyShape {
    /// The shape of a key in a declared table.
    #[must_use]
    pub fn new(decl: &StateDecl) -> Self {
        let types: Vec<Ty> = match &decl.granularity {
            Granularity::Global => Vec::new(),
            Granularity::Key(types) => types.clone(),
            Granularity::Fields(fields) => {
                let ty = |field: &Field| Ty { width: field.info().width, kind: field_kind(*field) };
                fields.iter().map(ty).collect()
            }
            Granularity::Flow | Granularity::Biflow => {
                let kinds = [Kind::Uint, Kind::Ip6, Kind::Ip6, Kind::Uint, Kind::Port, Kind::Port];
                let parts = FlowKey::WIDTHS.into_iter().zip(kinds);
                parts.map(|(width, kind)| Ty { width, kind }).collect()
            }
        };
        let flow = matches!(decl.granularity, Granularity::Flow | Granularity::Biflow);
        let mut bit = 0;
        let place = |ty: Ty| {
            let part = Part { bit, ty };
            bit += usize::from(ty.width);
            part
        };
        let parts = types.into_iter().map(place).collect();
        Self { parts, words: bit.div_ceil(64), flow }
    }

    /// The number of words; 0 for global state.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The first bit of a part, and its width.
    #[must_use]
    pub fn place(&self, part: usize) -> Option<(usize, u16)> {
        self.parts.get(part).map(|part| (part.bit, part.ty.width))
    }

    /// Whether the key is a flow's. All such keys have the same shape.
    #[must_use]
    pub fn is_flow(&self) -> bool {
        self.flow
    }

    /// Packs the parts of a key into `out`, which has [`KeyShape::words`] words.
    pub fn pack(&self, parts: &[Word], out: &mut [u64]) {
        self.pack_each(parts.iter().copied(), out);
    }

    /// As [`KeyShape::pack`], for parts that come one by one.
    #[inline]
    pub fn pack_each(&self, parts: impl Iterator<Item = Word>, out: &mut [u64]) {
        let mut words = out.iter_mut();
        let mut put = |word: Word| {
            if let Some(next) = words.next() {
                *next = low(word);
            }
        };
        // The bits that fill no word yet, fewer than 64.
        let (mut bits, mut filled) = (0, 0);
        for (part, value) in self.parts.iter().zip(parts) {
            let value = value & max_of(part.ty.width);
            let lowest = bits | value << filled;
            let end = filled + u32::from(part.ty.width);
            (bits, filled) = match end {
                ..64 => (lowest, end),
                64..128 => {
                    put(lowest);
                    (lowest >> 64, end - 64)
                }
                _ => {
                    put(lowest);
                    put(lowest >> 64);
                    (value.checked_shr(128 - filled).unwrap_or(0), end - 128)
                }
            };
        }
        put(bits);
        words.for_each(|word| *word = 0);
    }

    /// The parts of a packed key.
    pub fn unpack<'a>(&'a self, key: &'a [u64]) -> impl Iterator<Item = Word> + 'a {
        self.parts.iter().map(|part| get_bits(key, part.bit, part.ty.width))
    }

    /// The parts of a packed key, with their kinds.
    #[must_use]
    pub fn describe(&self, key: &[u64]) -> Vec<(Kind, Word)> {
        let ip4 = self.flow && self.unpack(key).next() == Some(4);
        let kind = |kind| if ip4 && kind == Kind::Ip6 { Kind::Ip4 } else { kind };
        self.parts.iter().map(|part| kind(part.ty.kind)).zip(self.unpack(key)).collect()
    }
}

/// The layout of a table's slots in 64-bit words. Slots follow each other in order, with one word
/// each. Slots wider than 64 bits have two words, the low one first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotShape {
    slots: Vec<(usize, Ty)>,
    words: usize,
}

impl SlotShape {
    /// The shape of a slot list in a declared table.
    #[must_use]
    pub fn new(decl: &StateDecl) -> Self {
        let mut words = 0;
        let place = |(_, ty): &(String, Ty)| {
            let slot = (words, *ty);
            words += 1 + usize::from(ty.width > 64);
            slot
        };
        let slots = decl.slots.iter().map(place).collect();
        Self { slots, words }
    }

    /// The number of words.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The first word of a slot, and whether the slot has two words.
    #[must_use]
    pub fn place(&self, slot: usize) -> Option<(usize, bool)> {
        self.slots.get(slot).map(|(word, ty)| (*word, ty.width > 64))
    }

    /// The largest value of a slot.
    #[must_use]
    pub fn most(&self, slot: usize) -> Word {
        self.slots.get(slot).map_or(0, |(_, ty)| ty.max())
    }

    /// The width of a slot in bits.
    #[must_use]
    pub fn width(&self, slot: usize) -> u16 {
        self.slots.get(slot).map_or(0, |(_, ty)| ty.width)
    }

    /// Packs the values of all slots into `out`, which has [`SlotShape::words`] words.
    pub fn pack(&self, values: &[Word], out: &mut [u64]) {
        for (slot, value) in values.iter().enumerate() {
            self.put(out, slot, *value);
        }
    }

    /// Assigns one slot in packed words.
    pub fn put(&self, words: &mut [u64], slot: usize, value: Word) {
        let Some((at, wide)) = self.place(slot) else { return };
        if let Some(word) = words.get_mut(at) {
            *word = low(value);
        }
        if let (true, Some(word)) = (wide, words.get_mut(at + 1)) {
            *word = low(value >> 64);
        }
    }

    /// The value of one slot in packed words.
    #[must_use]
    pub fn get(&self, words: &[u64], slot: usize) -> Word {
        slot_at(self.place(slot), words)
    }

    /// The values of all slots in packed words.
    pub fn unpack<'a>(&'a self, words: &'a [u64]) -> impl Iterator<Item = Word> + 'a {
        (0..self.slots.len()).map(|slot| self.get(words, slot))
    }
}

/// The content of a slot in packed words, by its place ([`SlotShape::place`]). A slot without a
/// place is 0.
#[must_use]
#[inline(always)]
pub fn slot_at(place: Option<(usize, bool)>, words: &[u64]) -> Word {
    let Some((at, is_wide)) = place else { return 0 };
    let word = |at: usize| Word::from(words.get(at).copied().unwrap_or(0));
    word(at) | if is_wide { word(at + 1) << 64 } else { 0 }
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "callers pack the upper half separately")]
fn low(value: Word) -> u64 {
    (value & Word::from(u64::MAX)) as u64
}

fn get_bits(words: &[u64], bit: usize, width: u16) -> Word {
    let (first, shift) = (bit / 64, bit % 64);
    let word = |at: usize| Word::from(words.get(at).copied().unwrap_or(0));
    let mut value = (word(first) | word(first + 1) << 64) >> shift;
    if shift > 0 {
        value |= word(first + 2) << (128 - shift);
    }
    value & max_of(width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_externs::Rng;

    #[test]
    fn parts_of_any_widths_are_packed_bit_by_bit_and_found_again() {
        let mut rng = Rng::new(1);
        for _ in 0..braid_cases::at_least(2_000) {
            let widths: Vec<u16> = (0..rng.next_u64() % 7)
                .map(|_| 1 + u16::try_from(rng.next_u64() % 128).unwrap())
                .collect();
            let types = widths.iter().map(|width| Ty { width: *width, kind: Kind::Uint });
            let granularity = Granularity::Key(types.collect());
            let shape = KeyShape::new(&StateDecl::new("s", granularity, Vec::new()));
            let word = |_: &u16| Word::from(rng.next_u64()) << 64 | Word::from(rng.next_u64());
            let values: Vec<Word> = widths.iter().map(word).collect();
            // Bits of before go.
            let mut packed = vec![u64::MAX; shape.words()];
            shape.pack(&values, &mut packed);
            let is_set = |bit: usize| packed[bit / 64] >> (bit % 64) & 1 == 1;
            let mut at = 0;
            for (width, value) in widths.iter().zip(&values) {
                for bit in 0..usize::from(*width) {
                    assert_eq!(is_set(at + bit), value >> bit & 1 == 1, "{widths:?}");
                }
                at += usize::from(*width);
            }
            assert!((at..64 * packed.len()).all(|bit| !is_set(bit)), "{widths:?}");
            let masked = widths.iter().zip(&values).map(|(width, value)| value & max_of(*width));
            assert!(shape.unpack(&packed).eq(masked), "{widths:?}");
        }
    }
}
