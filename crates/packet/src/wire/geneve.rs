//! Geneve (RFC 8926).

use super::udp;
use crate::declare::{
    Bits, Cover, Declaration, Outer, Parse, Rules, Show, Where, bits, bytes, ro, rw,
};
use crate::names::{Base, Field, Header};

/// The length of the options in words.
const OPTIONS: Bits = Bits { offset: 0, len: 1, shift: 0, width: 6 };

/// Geneve (UDP port 6081), including its options. Other bytes on that port are UDP payload.
pub(crate) const GENEVE: Declaration = Declaration {
    follows: &[(Field::UdpDport, &[6081])],
    at: (Base::L4, udp::LEN),
    parse: Parse::Rules(Rules {
        // The version is 0.
        fixed: &[(0, 0xc0, 0)],
        words: Some((0, 0x3f)),
        ..Rules::of(8)
    }),
    sum: Cover::Transport,
    takes_declared: true,
    summary: Some(("Geneve", &[("", Field::GeneveVni)])),
    outer: Some(Outer {
        behind: &[Header::Udp],
        announces: Some(Field::GeneveProto),
        required: &[Field::GeneveVni],
        ..Outer::of(8)
    }),
    fields: &[
        rw(Field::GeneveVni, "geneve.vni", 24, bytes(4, 3), "Geneve network identifier.").of_flow(),
        ro(Field::GeneveProto, "geneve.proto", 16, bytes(2, 2), "EtherType of the Geneve payload.")
            .shown(Show::Hex(4))
            .of_flow(),
        ro(
            Field::GeneveOptions,
            "geneve.options",
            8,
            Where::Words(OPTIONS),
            "Length of the Geneve options in bytes.",
        ),
        rw(
            Field::GeneveControl,
            "geneve.control",
            1,
            bits(1, 1, 7, 1),
            "1 for a control packet, which tunnel endpoints process themselves.",
        ),
        rw(
            Field::GeneveCritical,
            "geneve.critical",
            1,
            bits(1, 1, 6, 1),
            "1 when an option must be understood.",
        ),
    ],
    ..Declaration::new(Header::Geneve, "geneve", &[Header::Udp, Header::L4, Header::Inet])
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Stop, Window};

    /// The offset behind the header at the start of these bytes.
    fn check(data: &[u8], wire: usize) -> Result<usize, Stop> {
        let Parse::Rules(rules) = GENEVE.parse else { panic!("{GENEVE:?}") };
        rules.check(Window::new(data, wire)).map(|(_, rest)| rest.at())
    }

    #[test]
    fn geneve_options_are_part_of_the_header() {
        let mut data = [0u8; 24];
        assert_eq!(check(&data, 24), Ok(8));
        data[0] = 3;
        assert_eq!(check(&data, 24), Ok(20));
        assert_eq!(check(&data[..19], 19), Err(Stop::Unknown));
        assert_eq!(check(&data[..19], 24), Err(Stop::Cut));
    }

    #[test]
    fn geneve_needs_version_0_and_8_bytes() {
        assert_eq!(check(&[0x40, 0, 0, 0, 0, 0, 0, 0], 8), Err(Stop::Unknown));
        assert_eq!(check(&[0; 7], 7), Err(Stop::Unknown));
    }
}
