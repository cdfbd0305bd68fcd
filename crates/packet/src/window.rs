//! The rest of a packet from an offset on, and the reasons why parsing ends.
//!
//! A [`Window`] has two ends: the end of the bytes on the wire and the end of the captured bytes. A
//! header that goes beyond the first is malformed. A header that goes only beyond the second is
//! cut.

use crate::malformed::Malformed;

/// Why parsing ends at a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The header is on the wire, but was not wholly captured.
    Cut,
    /// The bytes are not recognised, so they are payload.
    Unknown,
    /// The header contradicts itself or the headers around it.
    Bad(Malformed),
}

/// The number in network byte order in at most 16 bytes.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The rest of a packet from an offset on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    data: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Window<'a> {
    /// A whole packet of `wire` bytes on the wire. A smaller `wire` is raised to the captured
    /// length.
    pub(crate) fn new(data: &'a [u8], wire: usize) -> Self {
        Window { data, at: 0, end: wire.max(data.len()) }
    }

    /// Offset from the start of the packet.
    pub(crate) fn at(self) -> usize {
        self.at
    }

    /// Offset of the end of the bytes on the wire, from the start of the packet.
    pub(crate) fn end(self) -> usize {
        self.end
    }

    /// Number of bytes on the wire.
    pub(crate) fn wire(self) -> usize {
        self.end - self.at
    }

    /// The captured bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        let end = self.end.min(self.data.len());
        self.data.get(self.at..end).unwrap_or(&[])
    }

    /// The window without its first `n` bytes. It is empty when the wire has fewer.
    pub(crate) fn skip(self, n: usize) -> Self {
        Window { at: self.at.saturating_add(n).min(self.end), ..self }
    }

    /// The window's first `n` bytes on the wire. It is the whole window when the wire has fewer.
    pub(crate) fn limit(self, n: usize) -> Self {
        Window { end: self.at.saturating_add(n).min(self.end), ..self }
    }

    /// The first `N` bytes. `short` is the error when the wire has fewer.
    pub(crate) fn fixed<const N: usize>(self, short: Malformed) -> Result<&'a [u8; N], Stop> {
        if self.wire() < N {
            return Err(Stop::Bad(short));
        }
        self.bytes().first_chunk::<N>().ok_or(Stop::Cut)
    }

    /// The first `n` bytes. `short` is the error when the wire has fewer.
    pub(crate) fn first(self, n: usize, short: Malformed) -> Result<&'a [u8], Stop> {
        if self.wire() < n {
            return Err(Stop::Bad(short));
        }
        self.bytes().get(..n).ok_or(Stop::Cut)
    }

    /// The absolute offset of a captured 16-bit field at `offset` in this window, if captured.
    pub(crate) fn captured16(self, offset: usize) -> Option<usize> {
        (self.bytes().len() >= offset + 2).then_some(self.at + offset)
    }
}

/// A 16-bit number in network order.
pub(crate) fn be16(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::{Stop, Window};
    use crate::malformed::Malformed;

    #[test]
    fn window_tells_cut_from_short() {
        let window = Window::new(&[1, 2, 3], 5);
        assert_eq!(window.fixed::<3>(Malformed::IpShort), Ok(&[1, 2, 3]));
        assert_eq!(window.fixed::<5>(Malformed::IpShort), Err(Stop::Cut));
        assert_eq!(window.fixed::<6>(Malformed::IpShort), Err(Stop::Bad(Malformed::IpShort)));
        assert_eq!(window.skip(2).first(1, Malformed::IpShort), Ok(&[3u8][..]));
        assert_eq!(window.skip(9).wire(), 0);
        assert_eq!(window.limit(2).bytes(), &[1, 2]);
        assert_eq!(window.skip(4).bytes(), &[] as &[u8]);
    }

    #[test]
    fn window_wire_length_is_never_below_captured() {
        assert_eq!(Window::new(&[0; 9], 4).wire(), 9);
    }
}
