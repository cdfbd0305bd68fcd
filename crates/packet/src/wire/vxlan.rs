//! VXLAN (RFC 7348).

use super::{Stop, Window};

/// UDP destination port of VXLAN.
pub(crate) const PORT: u16 = 4789;
/// Offset of the network identifier (24 bits).
pub(crate) const VNI: usize = 4;
/// Length of the header.
pub(crate) const LEN: usize = 8;

const HAS_VNI: u8 = 0x08;

/// What is behind the header. Anything else on that port is plain UDP, hence unknown.
pub(crate) fn check(window: Window<'_>) -> Result<Window<'_>, Stop> {
    let header = window.bytes().first_chunk::<LEN>().ok_or(Stop::Unknown)?;
    if header[0] & HAS_VNI == 0 {
        return Err(Stop::Unknown);
    }
    Ok(window.skip(LEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vxlan_needs_its_flag_and_8_bytes() {
        let mut data = [0u8; 8];
        assert_eq!(check(Window::new(&data, 8)).unwrap_err(), Stop::Unknown);
        data[0] = 8;
        assert_eq!(check(Window::new(&data, 8)).unwrap().at(), 8);
        assert_eq!(check(Window::new(&data[..7], 7)).unwrap_err(), Stop::Unknown);
    }
}
