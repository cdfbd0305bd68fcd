//! ICMP (RFC 792) and ICMPv6 (RFC 4443): 8 bytes of header, then data or a quoted packet.

use super::{Stop, Window};
use crate::malformed::Malformed;

/// Offset of the type.
pub(crate) const TYPE: usize = 0;
/// Offset of the code.
pub(crate) const CODE: usize = 1;
/// Offset of the checksum.
pub(crate) const CHECKSUM: usize = 2;
/// Offset of the identifier of an echo, and of the rest of the header of other types.
pub(crate) const REST: usize = 4;
/// Offset of the sequence number of an echo.
pub(crate) const SEQ: usize = 6;
/// Length of the header.
pub(crate) const LEN: usize = 8;

/// The type and what is behind the header; `short` is wrong when there are fewer than 8 bytes.
pub(crate) fn check(window: Window<'_>, short: Malformed) -> Result<(u8, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(short)?;
    Ok((header[TYPE], window.skip(LEN)))
}

/// Whether a type is an ICMP echo request or reply.
pub(crate) fn is_echo(kind: u8) -> bool {
    matches!(kind, 0 | 8)
}

/// Whether a type is an ICMPv6 echo request or reply.
pub(crate) fn is_echo6(kind: u8) -> bool {
    matches!(kind, 128 | 129)
}

/// Whether an ICMP message of this type quotes a packet: unreachable, source quench, redirect,
/// time exceeded, parameter problem.
pub(crate) fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// Whether an ICMPv6 message of this type quotes a packet: unreachable, packet too big, time
/// exceeded, parameter problem.
pub(crate) fn is_error6(kind: u8) -> bool {
    matches!(kind, 1..=4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_below_8_bytes_is_malformed() {
        let stop = check(Window::new(&[0; 7], 7), Malformed::IcmpShort).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::IcmpShort));
        assert_eq!(check(Window::new(&[0; 7], 8), Malformed::IcmpShort).unwrap_err(), Stop::Cut);
    }
}
