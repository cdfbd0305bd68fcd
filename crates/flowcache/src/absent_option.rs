//! Makes a record depend on a TCP header that lacks an option.

use crate::guard::{Guard, Guards, Number};
use crate::headers::{Headers, Place};
use braid_packet::{Bits, Field, Header};

/// The kind of the option with time stamps, and the first word of the options if it is alone, as
/// most systems send it (RFC 7323, appendix A): two bytes without an option, the kind, and the
/// length.
const TS_KIND: u8 = 8;
const TS_ALONE: u32 = 0x0101_080a;

/// Adds guards for a header that lacks options of this kind: it has no options, or time stamps
/// alone. `None` if the header has others, or if a record cannot depend on it.
pub(crate) fn require(headers: &Headers<'_>, guards: &mut Guards, kind: u8) -> Option<()> {
    if headers.stale || headers.has(Header::Tcp) != Some(true) {
        return None;
    }
    let Place::Came(flags) = headers.place(Field::TcpFlags)? else { return None };
    // The header's length is in the byte before the flags (RFC 9293, section 3.1).
    let length = Bits { at: flags.at.checked_sub(1)?, len: 1, shift: 4, width: 4 };
    match length.get(&headers.head) {
        5 => depend_on(headers, guards, length, 5),
        8 if kind != TS_KIND => {
            let options = Bits { at: flags.at + 7, len: 4, shift: 0, width: 32 };
            depend_on(headers, guards, options, TS_ALONE)?;
            depend_on(headers, guards, length, 8)
        }
        _ => None,
    }
}

/// Adds a guard for a value in the packet as it came.
fn depend_on(headers: &Headers<'_>, guards: &mut Guards, bits: Bits, value: u32) -> Option<()> {
    let is_there = bits.at + bits.len <= headers.head.len();
    if !is_there || bits.are_in(&headers.written).0 || bits.get(&headers.head) != value.into() {
        return None;
    }
    let (number, value) = (Number::of_bits(bits)?, value << bits.shift);
    guards.add(Guard { number, least: value, most: value });
    Some(())
}
