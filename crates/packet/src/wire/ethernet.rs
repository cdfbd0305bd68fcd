//! Ethernet II and 802.3 with LLC/SNAP.

use super::ether_type;
use crate::declare::{Declaration, Outer, Parse, Show, Where, bytes, ro, rw};
use crate::malformed::Malformed;
use crate::names::{Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the destination address.
pub(crate) const DST: usize = 0;
/// Offset of the source address.
pub(crate) const SRC: usize = 6;
/// Offset of the EtherType, length or TPID.
pub(crate) const TYPE: usize = 12;
/// Header length.
pub(crate) const LEN: usize = 14;

/// The LLC header that announces SNAP, then the SNAP organisation code for EtherTypes.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Ethernet II or 802.3 header.
pub(crate) const ETH: Declaration = Declaration {
    // The link type decides that this header is present.
    parse: Parse::Other,
    takes_declared: true,
    summary: None,
    outer: Some(Outer { required: &[Field::EthDst, Field::EthSrc], ..Outer::of(LEN) }),
    fields: &[
        rw(Field::EthDst, "eth.dst", 48, bytes(DST, 6), "Destination MAC address.")
            .shown(Show::Mac)
            .of_flow(),
        rw(Field::EthSrc, "eth.src", 48, bytes(SRC, 6), "Source MAC address.")
            .shown(Show::Mac)
            .of_flow(),
        ro(Field::EthType, "eth.type", 16, Where::Computed, "EtherType behind all VLAN tags.")
            .shown(Show::Hex(4))
            .of_flow(),
    ],
    ..Declaration::new(Header::Eth, "eth", &[])
};

/// The type field and the bytes behind the header.
pub(crate) fn check(window: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(Malformed::EthShort)?;
    Ok((be16(header[TYPE], header[TYPE + 1]), window.skip(LEN)))
}

/// Resolves an 802.3 length behind all VLAN tags. Returns the EtherType in a SNAP header or the
/// length itself, and the payload without padding. Other values of the type field stay as they are.
pub(crate) fn length_or_type(kind: u16, rest: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    if kind > ether_type::MOST_LENGTH {
        return Ok((kind, rest));
    }
    if usize::from(kind) > rest.wire() {
        return Err(Stop::Bad(Malformed::EthLength));
    }
    let rest = rest.limit(usize::from(kind));
    match rest.bytes().first_chunk::<8>() {
        Some(llc) if llc.starts_with(&SNAP) => Ok((be16(llc[6], llc[7]), rest.skip(8))),
        _ => Ok((kind, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_below_14_bytes_is_malformed() {
        let window = Window::new(&[0; 13], 13);
        assert_eq!(check(window).unwrap_err(), Stop::Bad(Malformed::EthShort));
        assert_eq!(check(Window::new(&[0; 13], 14)).unwrap_err(), Stop::Cut);
    }

    #[test]
    fn snap_gives_ether_type_and_drops_padding() {
        let mut data = vec![0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00, 1, 2, 3];
        data.extend([0; 30]);
        let (kind, rest) = length_or_type(11, Window::new(&data, data.len())).unwrap();
        assert_eq!((kind, rest.bytes()), (0x0800, &[1u8, 2, 3][..]));
    }

    #[test]
    fn llc_without_snap_keeps_length_as_type() {
        let data = [0x42, 0x42, 3, 0, 0, 0, 0, 0, 0, 0];
        let (kind, rest) = length_or_type(5, Window::new(&data, 10)).unwrap();
        assert_eq!((kind, rest.wire()), (5, 5));
    }

    #[test]
    fn length_beyond_the_wire_is_malformed() {
        let stop = length_or_type(11, Window::new(&[0; 10], 10)).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::EthLength));
    }
}
