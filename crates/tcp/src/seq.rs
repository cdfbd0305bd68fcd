//! Sequence numbers: arithmetic modulo 2^32 (RFC 9293 §3.4).

/// A sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The number that is `count` later.
    #[must_use]
    pub fn plus(self, count: u32) -> Seq {
        Seq(self.0.wrapping_add(count))
    }

    /// The distance from `other` to this number, in −2^31 to 2^31 − 1.
    #[must_use]
    pub fn from(self, other: Seq) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// The number of an offset in a stream whose first byte has this number.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    pub fn at(self, offset: u64) -> Seq {
        self.plus(offset as u32)
    }

    /// The offset of `seq` in a stream whose first byte has this number: of all offsets with that
    /// sequence number, the one nearest to `near`. It is negative in front of the stream.
    #[must_use]
    pub fn offset_of(self, seq: Seq, near: u64) -> i64 {
        let distance = i64::from(seq.from(self.at(near)));
        i64::try_from(near).unwrap_or(i64::MAX).saturating_add(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::Seq;

    #[test]
    fn distance_wraps() {
        assert_eq!(Seq(3).from(Seq(u32::MAX)), 4);
        assert_eq!(Seq(u32::MAX).from(Seq(3)), -4);
        assert_eq!(Seq(1 << 31).from(Seq(0)), i32::MIN);
    }

    #[test]
    fn offset_is_the_one_near_the_frontier() {
        let base = Seq(0xffff_fff0);
        assert_eq!(base.offset_of(Seq(0xffff_ffef), 0), -1);
        assert_eq!(base.offset_of(Seq(0x10), 0), 0x20);
        let wrapped = (3 << 32) + 5;
        assert_eq!(base.at(wrapped), Seq(0xffff_fff5));
        assert_eq!(base.offset_of(Seq(0xffff_fff5), wrapped), wrapped.cast_signed());
        assert_eq!(base.offset_of(Seq(0xffff_ffef), wrapped), wrapped.cast_signed() - 6);
    }
}
