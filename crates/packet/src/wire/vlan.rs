//! 802.1Q and 802.1ad tags.

use super::{Stop, Window, be16};
use crate::malformed::Malformed;

/// Offset of the tag protocol identifier.
pub(crate) const TPID: usize = 0;
/// Offset of priority, drop eligibility and identifier.
pub(crate) const TCI: usize = 2;
/// Length of a tag.
pub(crate) const LEN: usize = 4;
/// Most tags that are walked.
pub(crate) const MAX: usize = 8;

/// Tag protocol identifier of 802.1Q.
pub(crate) const TPID_8021Q: u16 = 0x8100;

/// Whether an EtherType announces a tag (802.1Q, 802.1ad, pre-standard QinQ).
pub(crate) fn is_tag(kind: u16) -> bool {
    matches!(kind, TPID_8021Q | 0x88a8 | 0x9100)
}

/// The type behind a tag whose TPID was just read, and what is behind that.
pub(crate) fn check(window: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    let tail = window.fixed::<4>(Malformed::VlanShort)?;
    Ok((be16(tail[2], tail[3]), window.skip(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_without_room_is_malformed() {
        let stop = check(Window::new(&[0, 1, 8], 3)).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::VlanShort));
    }

    #[test]
    fn tag_gives_the_type_behind_it() {
        let (kind, rest) = check(Window::new(&[0, 1, 8, 6, 9], 5)).unwrap();
        assert_eq!((kind, rest.bytes()), (0x0806, &[9u8][..]));
    }
}
