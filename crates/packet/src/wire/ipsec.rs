//! IPsec: the authentication header (RFC 4302), which is walked, and ESP (RFC 4303).

use super::{Stop, Window};
use crate::malformed::Malformed;

/// Offset of the security parameters index in AH.
pub(crate) const AH_SPI: usize = 4;
/// Offset of the sequence number in AH.
pub(crate) const AH_SEQ: usize = 8;
/// Offset of the security parameters index in ESP.
pub(crate) const ESP_SPI: usize = 0;
/// Offset of the sequence number in ESP.
pub(crate) const ESP_SEQ: usize = 4;

const AH_LEN: usize = 12;
const ESP_LEN: usize = 8;

/// Next header and what is behind an authentication header.
pub(crate) fn check_ah(window: Window<'_>) -> Result<(u8, Window<'_>), Stop> {
    let header = window.fixed::<AH_LEN>(Malformed::AhLength)?;
    let len = (usize::from(header[1]) + 2) * 4;
    if len < AH_LEN {
        return Err(Stop::Bad(Malformed::AhLength));
    }
    window.first(len, Malformed::AhLength)?;
    Ok((header[0], window.skip(len)))
}

/// What is behind the clear part of ESP.
pub(crate) fn check_esp(window: Window<'_>) -> Result<Window<'_>, Stop> {
    window.fixed::<ESP_LEN>(Malformed::EspShort)?;
    Ok(window.skip(ESP_LEN))
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
        let stop = check_esp(Window::new(&[0; 7], 7)).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::EspShort));
    }
}
