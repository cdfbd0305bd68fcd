//! Where fields are: the bytes and bits of every field that has some, by the field table.

use crate::field::{Base, Bits, Field, Header, Where};
use crate::layout::{Layout, parts};

impl Base {
    /// Where a [`Layout`] holds the offset, in bytes from its start, and in how many bytes (2 or 4);
    /// `None` for the packet itself.
    #[must_use]
    pub fn in_layout(self) -> Option<(usize, usize)> {
        Some(match self {
            Base::Packet => return None,
            Base::Network => (parts::NETWORK, 2),
            Base::Ip => (parts::IP, 2),
            Base::L4 => (parts::L4, 2),
            Base::Ah => (parts::AH, 2),
            Base::Mss => (parts::MSS, 2),
            Base::Wscale => (parts::WSCALE, 2),
            Base::Ts => (parts::TS, 2),
            Base::GreKey => (parts::GRE_KEY, 2),
            Base::QuotedIp => (parts::QUOTED_IP, 4),
            Base::QuotedL4 => (parts::QUOTED_L4, 4),
        })
    }
}

/// Where a field is in packets of a shape: so many bits of a big-endian number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    /// What the offset counts from.
    pub base: Base,
    /// Offset of the number's first byte.
    pub offset: u8,
    /// Bytes of the number, 1 to 16.
    pub len: u8,
    /// How many bits from its low end the field begins.
    pub shift: u8,
    /// Bits of the field that the packet has; the others of the field's width are 0.
    pub width: u8,
}

impl Spot {
    /// Where a field is in packets that have these headers (`None`: not known). `None` if the
    /// field's header is absent or not known to be present, if the field has no bytes of its own, or if
    /// its place depends on a header of which it is not known whether it is present.
    ///
    /// Where the header is present, the bytes are captured.
    pub fn of(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
        if has(field.info().header) != Some(true) { None } else { Spot::within(field, has) }
    }

    /// As [`Self::of`], for a field whose header is present.
    fn within(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
        let info = field.info();
        let spot = |bits: Bits| {
            let (base, start) = info.header.info().at;
            let Bits { offset, len, shift, width } = bits;
            let offset = u8::try_from(start + offset).unwrap_or(u8::MAX);
            Spot { base, offset, len, shift, width }
        };
        match info.place {
            Where::Bits(bits) => Some(spot(bits)),
            Where::Either(header, yes, no) => Some(spot(if has(header)? { yes } else { no })),
            Where::Part(owner, from) => {
                let owner = Spot::within(owner, has)?;
                let width = u8::try_from(info.width).unwrap_or(owner.width);
                Some(Spot { shift: owner.shift + from, width, ..owner })
            }
            Where::Same(header, yes, no) => Spot::within(if has(header)? { yes } else { no }, has),
            Where::First(fields) => {
                let (_, same) = fields.iter().find(|(header, _)| has(*header) == Some(true))?;
                Spot::within(*same, has)
            }
            Where::Words(_) | Where::Computed => None,
        }
    }
}

/// Where a field is in a packet: so many bits of a big-endian number, `shift` bits from its low end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) shift: u32,
    width: u32,
}

impl Place {
    /// The field's bits, at the low end.
    pub(crate) fn mask(self) -> u128 {
        u128::MAX >> (128 - self.width.clamp(1, 128))
    }
}

/// A field that fills `len` whole bytes.
pub(crate) fn bytes(offset: usize, len: usize) -> Place {
    Place { offset, len, shift: 0, width: u32::try_from(len * 8).unwrap_or(128) }
}

/// Where a field is in the packet; `None` when its header is absent or it has no bytes of its own.
pub(crate) fn place(layout: &Layout, field: Field) -> Option<Place> {
    let spot = Spot::of(field, &|header| Some(layout.has(header)))?;
    Some(Place {
        offset: layout.base(spot.base) + usize::from(spot.offset),
        len: usize::from(spot.len),
        shift: u32::from(spot.shift),
        width: u32::from(spot.width),
    })
}

/// Where the number of words is of a field that is a number of bytes; its header is present.
pub(crate) fn words(layout: &Layout, field: Field) -> Option<Place> {
    let Where::Words(bits) = field.info().place else { return None };
    let (base, start) = field.info().header.info().at;
    Some(Place {
        offset: layout.base(base) + start + bits.offset,
        len: usize::from(bits.len),
        shift: u32::from(bits.shift),
        width: u32::from(bits.width),
    })
}

/// The big-endian number in up to 16 bytes.
pub(crate) fn number(data: &[u8], place: Place) -> Option<u128> {
    let raw = data.get(place.offset..place.offset + place.len)?;
    Some(raw.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
