//! TCP options: the ones that an endpoint knows, from bytes and to bytes.

use arrayvec::ArrayVec;
use braid_tcp::Seq;

use crate::segment::OptionBytes;

const END: u8 = 0;
const PAD: u8 = 1;
const MSS: u8 = 2;
const WSCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The length of the timestamps option with its padding (bytes).
pub(crate) const TIMESTAMPS_LEN: u16 = 12;

/// The value of the timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timestamps {
    /// The sender's clock (TSval).
    pub value: u32,
    /// The receiver's clock, as the sender last saw it (TSecr).
    pub echo: u32,
}

/// The options of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// The most bytes of a segment.
    pub mss: Option<u16>,
    /// The scale of windows.
    pub wscale: Option<u8>,
    /// Whether selective acknowledgements may be sent.
    pub sack_permitted: bool,
    /// The timestamps.
    pub timestamps: Option<Timestamps>,
    /// Blocks that have come out of order: each begins at the first number and ends before the
    /// second one.
    pub sack: ArrayVec<(Seq, Seq), 4>,
}

impl Options {
    /// Reads options up to the first malformed one. Unknown ones are passed over.
    pub fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        loop {
            match *bytes {
                [] | [END, ..] => return options,
                [PAD, ref rest @ ..] => bytes = rest,
                [kind, len, ..] => {
                    let Some((option, rest)) = bytes.split_at_checked(len.into()) else {
                        return options;
                    };
                    // The length counts kind and length, so each step moves on.
                    let [_, _, body @ ..] = option else { return options };
                    options.take(kind, body);
                    bytes = rest;
                }
                [_] => return options,
            }
        }
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WSCALE, &[scale]) => self.wscale = Some(scale),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, body) => {
                if let ([value, echo], []) = numbers(body) {
                    self.timestamps = Some(Timestamps { value, echo });
                }
            }
            (SACK, body) if body.len().is_multiple_of(8) => {
                let (blocks, _) = body.as_chunks::<8>();
                let blocks = blocks.iter().map(|block| {
                    let ([start, end], _) = numbers(block);
                    (Seq(start), Seq(end))
                });
                self.sack = blocks.take(4).collect();
            }
            _ => {}
        }
    }

    /// The bytes, padded to a multiple of four. SACK blocks that find no room are left out.
    pub fn bytes(&self) -> OptionBytes {
        let mut out = OptionBytes::new();
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            put(&mut out, &[MSS, 4, a, b]);
        }
        if let Some(scale) = self.wscale {
            put(&mut out, &[PAD, WSCALE, 3, scale]);
        }
        if self.sack_permitted {
            put(&mut out, &[PAD, PAD, SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            put(&mut out, &[PAD, PAD, TIMESTAMPS, 10]);
            put(&mut out, &value.to_be_bytes());
            put(&mut out, &echo.to_be_bytes());
        }
        let room = out.remaining_capacity().saturating_sub(4) / 8;
        let count = self.sack.len().min(room);
        if count > 0 {
            let len = u8::try_from(2 + 8 * count).unwrap_or(0);
            put(&mut out, &[PAD, PAD, SACK, len]);
        }
        for (start, end) in self.sack.iter().take(count) {
            put(&mut out, &start.0.to_be_bytes());
            put(&mut out, &end.0.to_be_bytes());
        }
        out
    }
}

/// The two first numbers of 32 bits, and what is behind them. Zeros stand for missing bytes, and
/// the rest then is not empty.
fn numbers(body: &[u8]) -> ([u32; 2], &[u8]) {
    match *body {
        [a, b, c, d, e, f, g, h, ref rest @ ..] => {
            ([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])], rest)
        }
        _ => ([0, 0], &[0]),
    }
}

/// Appends bytes. All options but SACK together have 24 bytes, and SACK takes what is left.
fn put(out: &mut OptionBytes, bytes: &[u8]) {
    let has_room = out.try_extend_from_slice(bytes).is_ok();
    debug_assert!(has_room, "options have 40 bytes at most");
}

#[cfg(test)]
mod tests {
    use braid_tcp::Seq;

    use super::{Options, Timestamps};

    #[test]
    fn options_survive_the_way_to_bytes_and_back() {
        let options = Options {
            mss: Some(1460),
            wscale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: u32::MAX }),
            sack: [(Seq(1), Seq(9))].into_iter().collect(),
        };
        let bytes = options.bytes();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(Options::parse(&bytes), options);
    }

    #[test]
    fn blocks_without_room_are_left_out() {
        let options = Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            sack: [(Seq(1), Seq(2)); 4].into_iter().collect(),
            ..Options::default()
        };
        assert_eq!(Options::parse(&options.bytes()).sack.len(), 3);
    }

    #[test]
    fn malformed_options_end_the_list() {
        for bytes in [&[2, 4, 1][..], &[2, 0], &[2, 1], &[3], &[0, 2, 4, 1, 1], &[8, 9, 0, 0]] {
            assert_eq!(Options::parse(bytes), Options::default(), "{bytes:?}");
        }
        assert_eq!(Options::parse(&[99, 3, 0, 1, 2, 4, 2, 0]).mss, Some(512));
    }
}
