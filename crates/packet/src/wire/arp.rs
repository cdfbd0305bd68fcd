//! ARP for IPv4 over Ethernet (RFC 826).

use super::{Stop, Window};
use crate::malformed::Malformed;

/// Offset of the operation.
pub(crate) const OP: usize = 6;
/// Offset of the sender's hardware address.
pub(crate) const SHA: usize = 8;
/// Offset of the sender's protocol address.
pub(crate) const SPA: usize = 14;
/// Offset of the target's hardware address.
pub(crate) const THA: usize = 18;
/// Offset of the target's protocol address.
pub(crate) const TPA: usize = 24;
/// Length of the message.
pub(crate) const LEN: usize = 28;

/// Hardware type Ethernet, protocol type IPv4, address lengths 6 and 4.
pub(crate) const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// What is behind an ARP message; other kinds of ARP are unknown.
pub(crate) fn check(window: Window<'_>) -> Result<Window<'_>, Stop> {
    let start = window.fixed::<8>(Malformed::ArpShort)?;
    let len = 8 + 2 * (usize::from(start[4]) + usize::from(start[5]));
    if len > window.wire() {
        return Err(Stop::Bad(Malformed::ArpShort));
    }
    if !start.starts_with(&ETHERNET_IPV4) {
        return Err(Stop::Unknown);
    }
    window.fixed::<LEN>(Malformed::ArpShort)?;
    Ok(window.skip(LEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arp_of_27_bytes_is_malformed() {
        let mut data = [0u8; 28];
        data[..6].copy_from_slice(&ETHERNET_IPV4);
        assert_eq!(check(Window::new(&data, 28)).unwrap().at(), 28);
        assert_eq!(check(Window::new(&data[..27], 28)).unwrap_err(), Stop::Cut);
        let short = check(Window::new(&data[..27], 27)).unwrap_err();
        assert_eq!(short, Stop::Bad(Malformed::ArpShort));
    }

    #[test]
    fn arp_for_other_protocols_is_unknown() {
        let data = [0, 6, 8, 0, 1, 2, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(check(Window::new(&data, 14)).unwrap_err(), Stop::Unknown);
        let short = check(Window::new(&data, 14).limit(13)).unwrap_err();
        assert_eq!(short, Stop::Bad(Malformed::ArpShort));
    }
}
