//! GRE (RFC 2784) with key and sequence number (RFC 2890), and version 1 as in PPTP (RFC 2637).

use super::proto;
use crate::declare::{Behind, Cover, Declaration, Outer, Own, Parse, Parts, Show, bytes, ro, rw};
use crate::layout::Layout;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the payload's EtherType.
pub(crate) const PROTO: usize = 2;
/// Offset of the checksum, if there is one.
pub(crate) const CHECKSUM: usize = 4;

/// GRE.
pub(crate) const GRE: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::GRE as u16]), (Field::Ip6Proto, &[proto::GRE as u16])],
    parts: Parts::Any(&[Header::GreKey]),
    at: (Base::L4, 0),
    parse: Parse::Own(Own(parse)),
    takes_declared: true,
    summary: Some(("GRE", &[("", Field::GreProto)])),
    outer: Some(Outer {
        behind: &[Header::Ip4, Header::Ip6],
        announces: Some(Field::GreProto),
        ..Outer::of(4)
    }),
    fields: &[ro(
        Field::GreProto,
        "gre.proto",
        16,
        bytes(PROTO, 2),
        "EtherType of the GRE payload.",
    )
    .shown(Show::Hex(4))
    .of_flow()],
    ..Declaration::new(Header::Gre, "gre", &[Header::Inet])
};

/// GRE with the key present.
pub(crate) const KEY: Declaration = Declaration {
    at: (Base::GreKey, 0),
    sum: Cover::Gre,
    outer: Some(Outer::of(4)),
    fields: &[rw(Field::GreKey, "gre.key", 32, bytes(0, 4), "GRE key.")],
    ..Declaration::new(Header::GreKey, "gre.key", &[Header::Gre, Header::Inet])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    let gre = check(window)?;
    layout.add(Header::Gre);
    if let Some(key) = gre.key {
        layout.add(Header::GreKey);
        layout.begin_at(Base::GreKey, key);
    }
    layout.gre_checksum(gre.checksum);
    layout.behind(gre.rest);
    Ok(None)
}

const HAS_CHECKSUM: u16 = 0x8000;
const HAS_ROUTING: u16 = 0x4000;
const HAS_KEY: u16 = 0x2000;
const HAS_SEQUENCE: u16 = 0x1000;
const HAS_ACK: u16 = 0x0080;
const VERSION: u16 = 0x0007;

/// A checked header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gre<'a> {
    /// Absolute offset of the key. Version 1 has a length and a call number there instead.
    pub(crate) key: Option<usize>,
    /// Absolute offset of the checksum over header and payload.
    pub(crate) checksum: Option<usize>,
    /// The bytes behind the header. Source routes of RFC 1701 count as payload.
    pub(crate) rest: Window<'a>,
}

/// Checks a header. Versions above 1 are unknown.
pub(crate) fn check(window: Window<'_>) -> Result<Gre<'_>, Stop> {
    let header = window.fixed::<4>(Malformed::GreShort)?;
    let flags = be16(header[0], header[1]);
    let has = |flag: u16| flags & flag != 0;
    let version = flags & VERSION;
    if version > 1 {
        return Err(Stop::Unknown);
    }
    let mut len = 4;
    let checksum = (version == 0 && has(HAS_CHECKSUM)).then_some(window.at() + CHECKSUM);
    if version == 0 && has(HAS_CHECKSUM | HAS_ROUTING) {
        len += 4;
    }
    let key = (version == 0 && has(HAS_KEY)).then_some(window.at() + len);
    let words = [has(HAS_KEY), has(HAS_SEQUENCE), version == 1 && has(HAS_ACK)];
    len += words.iter().filter(|word| **word).count() * 4;
    window.first(len, Malformed::GreShort)?;
    Ok(Gre { key, checksum, rest: window.skip(len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_words_are_counted() {
        let at = |flags: u16, wire: usize| {
            let mut data = [0u8; 20];
            data[..2].copy_from_slice(&flags.to_be_bytes());
            check(Window::new(&data[..wire], wire)).map(|g| (g.key, g.checksum, g.rest.at()))
        };
        assert_eq!(at(0x0000, 4), Ok((None, None, 4)));
        assert_eq!(at(0x2000, 8), Ok((Some(4), None, 8)));
        assert_eq!(at(0xb000, 16), Ok((Some(8), Some(4), 16)));
        assert_eq!(at(0x3081, 16), Ok((None, None, 16)));
        assert_eq!(at(0xb000, 15), Err(Stop::Bad(Malformed::GreShort)));
        assert_eq!(at(0x0002, 4), Err(Stop::Unknown));
    }
}
