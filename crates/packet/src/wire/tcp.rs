//! TCP and its options (RFC 9293, RFC 7323, RFC 2018).

use super::{Stop, Window};
use crate::malformed::Malformed;

/// Offset of the sequence number.
pub(crate) const SEQ: usize = 4;
/// Offset of the acknowledgement number.
pub(crate) const ACK: usize = 8;
/// Offset of the data offset.
pub(crate) const DATA_OFFSET: usize = 12;
/// Offset of the flags.
pub(crate) const FLAGS: usize = 13;
/// Offset of the window.
pub(crate) const WINDOW: usize = 14;
/// Offset of the checksum.
pub(crate) const CHECKSUM: usize = 16;
/// Offset of the urgent pointer.
pub(crate) const URGENT: usize = 18;
/// Length of the header without options.
pub(crate) const LEN: usize = 20;

/// Absolute offsets of the options that models can name (the first of each kind).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    pub(crate) mss: Option<usize>,
    pub(crate) wscale: Option<usize>,
    pub(crate) sack_ok: bool,
    pub(crate) ts: Option<usize>,
}

/// The options and what is behind the header.
pub(crate) fn check(window: Window<'_>) -> Result<(Options, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(Malformed::TcpShort)?;
    let len = usize::from(header[DATA_OFFSET] >> 4) * 4;
    if len < LEN {
        return Err(Stop::Bad(Malformed::TcpHeaderLength));
    }
    let whole = window.first(len, Malformed::TcpHeaderLength)?;
    Ok((options(&whole[LEN..], window.at() + LEN)?, window.skip(len)))
}

fn options(bytes: &[u8], start: usize) -> Result<Options, Stop> {
    let mut seen = Options::default();
    let mut at = 0;
    while let Some(&kind) = bytes.get(at) {
        match kind {
            0 => break,
            1 => at += 1,
            _ => {
                let len = bytes.get(at + 1).map_or(0, |len| usize::from(*len));
                if len < 2 || at + len > bytes.len() {
                    return Err(Stop::Bad(Malformed::TcpOptions));
                }
                match (kind, len) {
                    (2, 4) => seen.mss = seen.mss.or(Some(start + at)),
                    (3, 3) => seen.wscale = seen.wscale.or(Some(start + at)),
                    (4, 2) => seen.sack_ok = true,
                    (8, 10) => seen.ts = seen.ts.or(Some(start + at)),
                    _ => {}
                }
                at += len;
            }
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(words: u8, options: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 20];
        data[12] = words << 4;
        data.extend(options);
        data
    }

    #[test]
    fn header_length_out_of_range_is_malformed() {
        for (words, wire) in [(4, 20), (6, 20)] {
            let data = header(words, &[]);
            let stop = check(Window::new(&data, wire)).unwrap_err();
            assert_eq!(stop, Stop::Bad(Malformed::TcpHeaderLength));
        }
        assert_eq!(check(Window::new(&header(6, &[]), 24)).unwrap_err(), Stop::Cut);
    }

    #[test]
    fn options_are_found_at_odd_offsets_and_first_wins() {
        let bytes = [1, 2, 4, 5, 180, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 2, 4, 0, 9];
        let data = header(11, &bytes);
        let (seen, rest) = check(Window::new(&data, data.len())).unwrap();
        let expected = Options { mss: Some(21), wscale: Some(25), sack_ok: true, ts: Some(30) };
        assert_eq!((seen, rest.at()), (expected, 44));
    }

    #[test]
    fn option_over_the_header_end_is_malformed() {
        for options in [[2, 5, 0, 0], [2, 0, 0, 0], [1, 1, 1, 2]] {
            let data = header(6, &options);
            let stop = check(Window::new(&data, 24)).unwrap_err();
            assert_eq!(stop, Stop::Bad(Malformed::TcpOptions));
        }
    }

    #[test]
    fn option_of_unusual_length_is_not_recognised() {
        let data = header(6, &[2, 3, 5, 0]);
        assert_eq!(check(Window::new(&data, 24)).unwrap().0, Options::default());
    }
}
