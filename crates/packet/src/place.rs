//! Locates fields: the bytes and bits of every field that has some, from the field table.

use crate::field::{Base, Bits, Field, Header, Where};
use crate::layout::{Layout, parts};

impl Base {
    /// Where a [`Layout`] stores the offset of this base: the offset in bytes from the start of the
    /// layout, and the length in bytes (2 or 4). `None` for the packet itself.
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

/// Where a field is in packets of a header shape: some bits of a big-endian number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    /// The base that the offset counts from.
    pub base: Base,
    /// Offset of the number's first byte.
    pub offset: u8,
    /// Bytes of the number, 1 to 16.
    pub len: u8,
    /// How many bits lie below the field, at the low end of the number.
    pub shift: u8,
    /// Number of bits of the field that the packet holds. The field's other bits are 0.
    pub width: u8,
}

impl Spot {
    /// Where a field is in packets with these headers. `has` returns `None` for a header that may
    /// be present or absent. The result is `None` in three cases: the field's header is not known
    /// to be present, the field has no bytes of its own, or its place depends on a header that may
    /// be present or absent.
    ///
    /// If the header is present, the field's bytes are captured.
    pub fn of(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
        if has(field.info().header) != Some(true) { None } else { Spot::within(field, has) }
    }

    /// Where the number of words is for a field that is a number of bytes.
    #[must_use]
    pub fn words(field: Field) -> Option<Spot> {
        let Where::Words(bits) = field.info().place else { return None };
        Some(Spot::new(field.info().header, bits))
    }

    fn place(self, layout: &Layout) -> Place {
        Place {
            offset: layout.base(self.base) + usize::from(self.offset),
            len: usize::from(self.len),
            shift: u32::from(self.shift),
            width: u32::from(self.width),
        }
    }

    fn new(header: Header, bits: Bits) -> Spot {
        let (base, start) = header.info().at;
        let Bits { offset, len, shift, width } = bits;
        let offset = u8::try_from(start + offset).unwrap_or(u8::MAX);
        Spot { base, offset, len, shift, width }
    }

    /// Does the same as [`Self::of`] for a field whose header is present.
    fn within(field: Field, has: &dyn Fn(Header) -> Option<bool>) -> Option<Spot> {
        let info = field.info();
        match info.place {
            Where::Bits(bits) | Where::Halves(_, _, bits) => Some(Spot::new(info.header, bits)),
            Where::Either(header, yes, no) => {
                Some(Spot::new(info.header, if has(header)? { yes } else { no }))
            }
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
            Where::Words(_) | Where::Number(..) | Where::Computed => None,
        }
    }
}

/// Where a field is in a packet: some bits of a big-endian number, `shift` bits from its low end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) shift: u32,
    width: u32,
}

impl Place {
    /// The field's bits as a mask at the low end.
    pub(crate) fn mask(self) -> u128 {
        u128::MAX >> (128 - self.width.clamp(1, 128))
    }
}

/// A field that fills `len` whole bytes.
pub(crate) fn bytes(offset: usize, len: usize) -> Place {
    Place { offset, len, shift: 0, width: u32::try_from(len * 8).unwrap_or(128) }
}

/// Where a field is in the packet. `None` when its header is absent or the field has no bytes of
/// its own.
pub(crate) fn place(layout: &Layout, field: Field) -> Option<Place> {
    let info = field.info();
    let spot = match info.place {
        // Nearly all fields: their place depends on nothing.
        Where::Bits(bits) if layout.has(info.header) => Spot::new(info.header, bits),
        Where::Bits(_) => return None,
        _ => Spot::of(field, &|header| Some(layout.has(header)))?,
    };
    Some(spot.place(layout))
}

/// Where the number of words is for a field that is a number of bytes. The field's header is
/// present.
pub(crate) fn words(layout: &Layout, field: Field) -> Option<Place> {
    Spot::words(field).map(|spot| spot.place(layout))
}

/// The big-endian number in at most 16 bytes.
pub(crate) fn number(data: &[u8], place: Place) -> Option<u128> {
    let raw = data.get(place.offset..place.offset + place.len)?;
    Some(raw.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
