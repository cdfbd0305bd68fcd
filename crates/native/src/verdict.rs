//! The verdict of a function on a packet.

use serde::{Deserialize, Serialize};

/// A verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// The packet goes on in its direction.
    Forward,
    /// The packet is dropped, for the function's reason with this number.
    Drop(u32),
    /// The packet goes back to where it came from.
    Back,
    /// The function consumes the packet.
    Consume,
    /// The packet leaves by the declared port with this number, from 0.
    Port(u32),
}

/// The return value of `packet` when the function fails: the packet is dropped as a fault.
pub const FAILED: i32 = -1;

/// The start of a failure's text when it is the panic of a function in Rust.
pub(crate) const PANICKED: &str = "\u{1}panic: ";

/// The function failed for a packet: what becomes of the packet. The report has the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    /// It is dropped, as a fault.
    Drop,
    /// It goes on as it came.
    Bypass,
}

impl Verdict {
    /// The code of the verdict in the C interface: the kind in the low byte, a number above it.
    #[must_use]
    pub fn code(self) -> i32 {
        let with = |kind: i32, number: u32| i32::try_from(number).unwrap_or(0) << 8 | kind;
        match self {
            Self::Forward => 0,
            Self::Drop(reason) => with(1, reason),
            Self::Back => 2,
            Self::Consume => 3,
            Self::Port(port) => with(4, port),
        }
    }

    /// The verdict of a code; `None` if the code is not valid.
    #[must_use]
    pub fn of_code(code: i32) -> Option<Self> {
        let code = u32::try_from(code).ok()?;
        let number = code >> 8;
        match (code & 0xff, number) {
            (0, 0) => Some(Self::Forward),
            (1, _) => Some(Self::Drop(number)),
            (2, 0) => Some(Self::Back),
            (3, 0) => Some(Self::Consume),
            (4, _) => Some(Self::Port(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FAILED, Verdict};

    #[test]
    fn codes_are_read_as_they_are_made() {
        use Verdict::{Back, Consume, Drop, Forward, Port};
        for verdict in [Forward, Drop(0), Drop(7), Back, Consume, Port(0), Port(3)] {
            assert_eq!(Verdict::of_code(verdict.code()), Some(verdict));
        }
        for code in [FAILED, i32::MIN, 5, 0x100, 0x203] {
            assert_eq!(Verdict::of_code(code), None, "{code}");
        }
    }
}
