//! 802.1Q and 802.1ad tags.

use super::{ether_type, ethernet};
use crate::declare::{Declaration, Show, bits, bytes, ro, rw};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the tag protocol identifier.
pub(crate) const TPID: usize = 0;
/// Offset of priority, drop eligibility and identifier.
pub(crate) const TCI: usize = 2;
/// Length of a tag.
pub(crate) const LEN: usize = 4;
/// The most tags that are parsed.
pub(crate) const MAX: usize = 8;

/// Outermost 802.1Q or 802.1ad tag.
pub(crate) const VLAN: Declaration = Declaration {
    at: (Base::Packet, ethernet::TYPE),
    fields: &[
        rw(
            Field::VlanId,
            "vlan.id",
            12,
            bits(TCI, 2, 0, 12),
            "VLAN identifier of the outermost tag.",
        )
        .of_flow(),
        rw(
            Field::VlanPcp,
            "vlan.pcp",
            3,
            bits(TCI, 2, 13, 3),
            "Priority code point of the outermost tag.",
        ),
        rw(
            Field::VlanDei,
            "vlan.dei",
            1,
            bits(TCI, 2, 12, 1),
            "Drop eligible indicator of the outermost tag.",
        ),
        ro(
            Field::VlanTpid,
            "vlan.tpid",
            16,
            bytes(TPID, 2),
            "Tag protocol identifier of the outermost tag.",
        )
        .shown(Show::Hex(4))
        .of_flow(),
    ],
    ..Declaration::new(Header::Vlan, "vlan", &[Header::Eth])
};

/// Second VLAN tag (QinQ).
pub(crate) const VLAN2: Declaration = Declaration {
    at: (Base::Packet, ethernet::TYPE + LEN),
    fields: &[
        rw(
            Field::Vlan2Id,
            "vlan2.id",
            12,
            bits(TCI, 2, 0, 12),
            "VLAN identifier of the second tag.",
        )
        .of_flow(),
        rw(
            Field::Vlan2Pcp,
            "vlan2.pcp",
            3,
            bits(TCI, 2, 13, 3),
            "Priority code point of the second tag.",
        ),
        rw(
            Field::Vlan2Dei,
            "vlan2.dei",
            1,
            bits(TCI, 2, 12, 1),
            "Drop eligible indicator of the second tag.",
        ),
    ],
    ..Declaration::new(Header::Vlan2, "vlan2", &[Header::Vlan, Header::Eth])
};

/// Whether an EtherType announces a tag.
pub(crate) fn is_tag(kind: u16) -> bool {
    ether_type::TAGS.contains(&kind)
}

/// The type in a tag, and the bytes behind the tag. The window starts behind the tag's TPID.
pub(crate) fn check(window: Window<'_>) -> Result<(u16, Window<'_>), Stop> {
    let tail = window.fixed::<4>(Malformed::VlanShort)?;
    Ok((be16(tail[2], tail[3]), window.skip(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_without_room_is_malformed() {
        let stop = check(Window::new(&[0, 1, 8], 3)).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::VlanShort));
    }

    #[test]
    fn tag_gives_the_type_behind_it() {
        let (kind, rest) = check(Window::new(&[0, 1, 8, 6, 9], 5)).unwrap();
        assert_eq!((kind, rest.bytes()), (0x0806, &[9u8][..]));
    }
}
