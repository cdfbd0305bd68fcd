//! VXLAN (RFC 7348).

use super::udp;
use crate::declare::{Cover, Declaration, Outer, Parse, Rules, bytes, rw};
use crate::names::{Base, Field, Header};

/// VXLAN (UDP port 4789). Other bytes on that port are UDP payload.
pub(crate) const VXLAN: Declaration = Declaration {
    follows: &[(Field::UdpDport, &[4789])],
    at: (Base::L4, udp::LEN),
    parse: Parse::Rules(Rules {
        // The flag for a network identifier.
        fixed: &[(0, 0x08, 0x08)],
        ..Rules::of(8)
    }),
    sum: Cover::Transport,
    takes_declared: true,
    summary: Some(("VXLAN", &[("", Field::VxlanVni)])),
    outer: Some(Outer { behind: &[Header::Udp], required: &[Field::VxlanVni], ..Outer::of(8) }),
    fields: &[
        rw(Field::VxlanVni, "vxlan.vni", 24, bytes(4, 3), "VXLAN network identifier.").of_flow()
    ],
    ..Declaration::new(Header::Vxlan, "vxlan", &[Header::Udp, Header::L4, Header::Inet])
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Stop, Window};

    #[test]
    fn vxlan_needs_its_flag_and_8_bytes() {
        let Parse::Rules(rules) = VXLAN.parse else { panic!("{VXLAN:?}") };
        let mut data = [0u8; 8];
        assert_eq!(rules.check(Window::new(&data, 8)).unwrap_err(), Stop::Unknown);
        data[0] = 8;
        assert_eq!(rules.check(Window::new(&data, 8)).unwrap().1.at(), 8);
        assert_eq!(rules.check(Window::new(&data[..7], 7)).unwrap_err(), Stop::Unknown);
    }
}
