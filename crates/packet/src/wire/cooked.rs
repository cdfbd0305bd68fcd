//! Linux cooked captures, versions 1 (SLL) and 2 (SLL2).

use crate::malformed::Malformed;
use crate::window::{Stop, Window, be16};

/// Header length of SLL.
pub(crate) const LEN: usize = 16;
/// Offset of the protocol in SLL.
pub(crate) const PROTOCOL: usize = 14;
/// Offset of the packet type's low byte in SLL.
pub(crate) const TYPE: usize = 1;
/// Header length of SLL2.
pub(crate) const LEN2: usize = 20;
/// Offset of the protocol in SLL2.
pub(crate) const PROTOCOL2: usize = 0;
/// Offset of the packet type in SLL2.
pub(crate) const TYPE2: usize = 10;

/// Packet type: sent to this host.
pub(crate) const TO_US: u8 = 0;
/// Packet type: sent by this host.
pub(crate) const BY_US: u8 = 4;

/// ARPHRD_NETLINK: the protocol is a netlink family, not an EtherType.
const NETLINK: u16 = 824;

/// Protocol and payload of SLL.
pub(crate) fn check(window: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(Malformed::CookedShort)?;
    let protocol = known(be16(header[2], header[3]), be16(header[PROTOCOL], header[PROTOCOL + 1]));
    Ok((protocol, window.skip(LEN)))
}

/// Protocol and payload of SLL2.
pub(crate) fn check2(window: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    let header = window.fixed::<LEN2>(Malformed::CookedShort)?;
    let protocol =
        known(be16(header[8], header[9]), be16(header[PROTOCOL2], header[PROTOCOL2 + 1]));
    Ok((protocol, window.skip(LEN2)))
}

/// The protocol as an EtherType. It is 0, which is no EtherType, if the protocol is something else.
fn known(device: u16, protocol: u16) -> u16 {
    if device == NETLINK { 0 } else { protocol }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sll_protocol_is_read_at_14() {
        let mut data = [0u8; 17];
        data[3] = 1;
        data[14..16].copy_from_slice(&[0x86, 0xdd]);
        let (protocol, rest) = check(Window::new(&data, 17)).unwrap();
        assert_eq!((protocol, rest.at()), (0x86dd, 16));
    }

    #[test]
    fn sll2_protocol_is_read_at_0() {
        let mut data = [0u8; 20];
        data[..2].copy_from_slice(&[8, 0]);
        let (protocol, rest) = check2(Window::new(&data, 20)).unwrap();
        assert_eq!((protocol, rest.at()), (0x0800, 20));
    }

    #[test]
    fn netlink_has_no_ether_type() {
        let mut data = [0u8; 16];
        data[2..4].copy_from_slice(&824u16.to_be_bytes());
        data[14..16].copy_from_slice(&[8, 0]);
        assert_eq!(check(Window::new(&data, 16)).unwrap().0, 0);
    }

    #[test]
    fn cooked_below_its_header_is_malformed() {
        let short = Stop::Bad(Malformed::CookedShort);
        assert_eq!(check(Window::new(&[0; 15], 15)).unwrap_err(), short);
        assert_eq!(check2(Window::new(&[0; 19], 19)).unwrap_err(), short);
    }
}
