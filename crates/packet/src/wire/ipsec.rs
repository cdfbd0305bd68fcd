//! IPsec: the authentication header (RFC 4302) and ESP (RFC 4303).

use super::proto;
use crate::declare::{Behind, Declaration, Outer, Own, Parse, Rules, Show, bytes, ro};
use crate::layout::Layout;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

/// Offset of AH's length: in words of 32 bits, less 2.
pub(crate) const AH_LENGTH: usize = 1;
/// Offset of the security parameters index in AH.
pub(crate) const AH_SPI: usize = 4;
/// Offset of the sequence number in AH.
pub(crate) const AH_SEQ: usize = 8;
/// Offset of the security parameters index in ESP.
pub(crate) const ESP_SPI: usize = 0;
/// Offset of the sequence number in ESP.
pub(crate) const ESP_SEQ: usize = 4;

/// Length of AH, up to the check value.
pub(crate) const AH_LEN: usize = 12;
/// Length of the header of ESP, up to the initialisation vector.
pub(crate) const ESP_LEN: usize = 8;

/// IPsec authentication header. Behind IPv6, it is one of the extension headers.
pub(crate) const AH: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::AH as u16])],
    at: (Base::Ah, 0),
    parse: Parse::Own(Own(parse_ah)),
    outer: Some(Outer {
        behind: &[Header::Ip4, Header::Ip6],
        required: &[Field::AhSpi, Field::AhSeq],
        ..Outer::of(AH_LEN)
    }),
    fields: &[
        ro(Field::AhSpi, "ah.spi", 32, bytes(AH_SPI, 4), "Security parameters index of AH.")
            .shown(Show::Hex(8)),
        ro(Field::AhSeq, "ah.seq", 32, bytes(AH_SEQ, 4), "Sequence number of AH."),
    ],
    ..Declaration::new(Header::Ah, "ah", &[Header::Inet])
};

/// IPsec encapsulating security payload.
pub(crate) const ESP: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::ESP as u16]), (Field::Ip6Proto, &[proto::ESP as u16])],
    at: (Base::L4, 0),
    parse: Parse::Rules(Rules { short: Some(Malformed::EspShort), ..Rules::of(ESP_LEN) }),
    summary: Some(("ESP", &[("spi ", Field::EspSpi)])),
    outer: Some(Outer {
        behind: &[Header::Ip4, Header::Ip6, Header::Udp],
        required: &[Field::EspSpi, Field::EspSeq],
        ..Outer::of(ESP_LEN)
    }),
    fields: &[
        ro(Field::EspSpi, "esp.spi", 32, bytes(ESP_SPI, 4), "Security parameters index of ESP.")
            .shown(Show::Hex(8))
            .of_flow(),
        ro(Field::EspSeq, "esp.seq", 32, bytes(ESP_SEQ, 4), "Sequence number of ESP."),
    ],
    ..Declaration::new(Header::Esp, "esp", &[Header::Inet])
};

/// Parses one authentication header, and no second one.
fn parse_ah<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    if layout.has(Header::Ah) {
        return Ok(None);
    }
    let (proto, rest) = check_ah(window)?;
    layout.authenticated(window.at(), rest);
    layout.set_proto(proto);
    Ok(Some((Field::IpProto, proto.into(), rest)))
}

/// The next header, and the bytes behind an authentication header.
pub(crate) fn check_ah(window: Window<'_>) -> Result<(u8, Window<'_>), Stop> {
    let header = window.fixed::<AH_LEN>(Malformed::AhLength)?;
    let len = (usize::from(header[1]) + 2) * 4;
    if len < AH_LEN {
        return Err(Stop::Bad(Malformed::AhLength));
    }
    window.first(len, Malformed::AhLength)?;
    Ok((header[0], window.skip(len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ah_length_counts_words_minus_two() {
        let mut data = [0u8; 24];
        data[..2].copy_from_slice(&[6, 4]);
        let (next, rest) = check_ah(Window::new(&data, 24)).unwrap();
        assert_eq!((next, rest.at()), (6, 24));
        data[1] = 5;
        let bad = Stop::Bad(Malformed::AhLength);
        assert_eq!(check_ah(Window::new(&data, 24)).unwrap_err(), bad);
        data[1] = 0;
        assert_eq!(check_ah(Window::new(&data, 24)).unwrap_err(), bad);
    }

    #[test]
    fn esp_below_8_bytes_is_malformed() {
        let Parse::Rules(rules) = ESP.parse else { panic!("{ESP:?}") };
        let stop = rules.check(Window::new(&[0; 7], 7)).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::EspShort));
    }
}
