//! Numbers in a buffer: where they are, how they are written, and what rules make of them.

use crate::limits::MAX_VARIABLES;

/// The numbers that a rule has found, by the places of their names.
pub type Found = [u64; MAX_VARIABLES];

/// A number that the rule gives, or one that it has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    Fixed(i128),
    Found(usize),
}

/// A number in the buffer, by its place: from the start, or from the end of the match before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberAt {
    pub format: Format,
    pub at: Value,
}

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// The bytes that it takes.
    pub len: usize,
    pub encoding: Encoding,
    /// The bits of it that count, shifted to the right until the lowest one counts.
    pub mask: u64,
}

/// How bytes are a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Big,
    Little,
    /// Digits to this base.
    Digits(u32),
}

/// A comparison of a number with another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    pub operator: Operator,
    pub is_negated: bool,
}

/// How numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    /// They have a bit in common.
    And,
    /// They differ.
    Xor,
}

/// Where a jump leads, before its number is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Behind the number.
    Number,
    Start,
    End,
}

/// What a jump makes of its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    pub origin: Origin,
    pub scale: Scale,
    pub post_offset: i32,
}

/// What is made of a number before it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    pub multiplier: u16,
    /// The number is rounded up to a multiple of it.
    pub align: u8,
}

impl Value {
    pub fn get(self, found: &Found) -> i128 {
        match self {
            Self::Fixed(value) => value,
            Self::Found(at) => found.get(at).copied().unwrap_or_default().into(),
        }
    }
}

impl NumberAt {
    /// The number behind this place, and its end.
    pub fn read(&self, buffer: &[u8], from: usize, found: &Found) -> Option<(u64, i128)> {
        let at = i128::try_from(from).ok()?.checked_add(self.at.get(found))?;
        let number = self.format.read(buffer, at)?;
        Some((number, at + i128::try_from(self.format.len).ok()?))
    }
}

impl Format {
    /// The number that begins at this place. `None` if the buffer does not have all of its bytes,
    /// or if they are no digits.
    pub fn read(&self, buffer: &[u8], at: i128) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = buffer.get(at..at.saturating_add(self.len))?;
        let shift = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number = match self.encoding {
            Encoding::Big => bytes.iter().fold(0, shift),
            Encoding::Little => bytes.iter().rev().fold(0, shift),
            Encoding::Digits(base) => digits(bytes, base)?,
        };
        Some((number & self.mask) >> self.mask.trailing_zeros().min(63))
    }
}

/// The number that the first digits behind spaces make.
fn digits(bytes: &[u8], base: u32) -> Option<u64> {
    let text = bytes.trim_ascii_start();
    let text = match text {
        [b'0', b'x' | b'X', rest @ ..] if base == 16 => rest,
        text => text,
    };
    let mut digits = text.iter().map_while(|byte| char::from(*byte).to_digit(base)).peekable();
    digits.peek()?;
    digits
        .try_fold(0_u64, |number, digit| number.checked_mul(base.into())?.checked_add(digit.into()))
}

impl Comparison {
    pub fn holds(self, number: u64, value: u64) -> bool {
        let holds = match self.operator {
            Operator::Less => number < value,
            Operator::LessOrEqual => number <= value,
            Operator::Equal => number == value,
            Operator::GreaterOrEqual => number >= value,
            Operator::Greater => number > value,
            Operator::And => number & value != 0,
            Operator::Xor => number != value,
        };
        holds != self.is_negated
    }
}

impl Scale {
    pub fn apply(self, number: u64) -> u64 {
        let number = number.saturating_mul(self.multiplier.into());
        let align = u64::from(self.align.max(1));
        number.div_ceil(align).saturating_mul(align)
    }
}

impl Jump {
    /// The place to which a number leads that ends at `end`. `None` if it does not lie in the
    /// buffer.
    pub fn target(&self, buffer: &[u8], end: i128, number: u64) -> Option<usize> {
        let origin = match self.origin {
            Origin::Number => end,
            Origin::Start => 0,
            Origin::End => i128::try_from(buffer.len()).ok()?,
        };
        let by = i128::from(self.scale.apply(number)) + i128::from(self.post_offset);
        usize::try_from(origin + by).ok().filter(|at| *at < buffer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Format};

    fn read(bytes: &[u8], encoding: Encoding, mask: u64) -> Option<u64> {
        Format { len: bytes.len(), encoding, mask }.read(bytes, 0)
    }

    #[test]
    fn numbers_are_read_in_every_encoding() {
        assert_eq!(read(&[1, 2, 3], Encoding::Big, u64::MAX), Some(0x01_02_03));
        assert_eq!(read(&[1, 2, 3], Encoding::Little, u64::MAX), Some(0x03_02_01));
        assert_eq!(read(&[0xff; 8], Encoding::Big, u64::MAX), Some(u64::MAX));
        assert_eq!(read(&[0x12, 0x34], Encoding::Big, 0x0ff0), Some(0x23));
        for (text, base, wanted) in [
            ("123", 10, Some(123)),
            (" 12a", 10, Some(12)),
            ("ff", 16, Some(255)),
            ("0x1F", 16, Some(31)),
            ("178", 8, Some(15)),
            ("abc", 10, None),
            ("   ", 10, None),
            ("-12", 10, None),
            ("18446744073709551616", 10, None),
        ] {
            assert_eq!(read(text.as_bytes(), Encoding::Digits(base), u64::MAX), wanted, "{text}");
        }
    }

    #[test]
    fn numbers_lie_in_the_buffer() {
        let format = Format { len: 2, encoding: Encoding::Big, mask: u64::MAX };
        let at = [-1, 0, 1, 2, i128::MAX].map(|at| format.read(&[0, 1, 2], at));
        assert_eq!(at, [None, Some(1), Some(0x0102), None, None]);
    }
}
