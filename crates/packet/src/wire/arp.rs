//! ARP for IPv4 over Ethernet (RFC 826).

use crate::declare::{Behind, Declaration, Own, Parse, Show, bytes, rw};
use crate::layout::Layout;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

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

/// ARP for IPv4 over Ethernet.
pub(crate) const ARP: Declaration = Declaration {
    follows: &[(Field::EthType, &[0x0806])],
    at: (Base::Network, 0),
    parse: Parse::Own(Own(parse)),
    fields: &[
        rw(Field::ArpOp, "arp.op", 16, bytes(OP, 2), "Operation: 1 request, 2 reply."),
        rw(Field::ArpSha, "arp.sha", 48, bytes(SHA, 6), "Sender hardware address.")
            .shown(Show::Mac),
        rw(Field::ArpSpa, "arp.spa", 32, bytes(SPA, 4), "Sender protocol address.")
            .shown(Show::Ip4),
        rw(Field::ArpTha, "arp.tha", 48, bytes(THA, 6), "Target hardware address.")
            .shown(Show::Mac),
        rw(Field::ArpTpa, "arp.tpa", 32, bytes(TPA, 4), "Target protocol address.")
            .shown(Show::Ip4),
    ],
    ..Declaration::new(Header::Arp, "arp", &[Header::Eth])
};

/// Parses ARP behind Ethernet only.
fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    if !layout.has(Header::Eth) {
        return Ok(None);
    }
    let rest = check(window)?;
    layout.add(Header::Arp);
    layout.begin(Base::Network, window);
    // Bytes behind an ARP message can only be padding.
    layout.behind(rest.limit(0));
    Ok(None)
}

/// The bytes behind an ARP message. Other kinds of ARP are unknown.
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
