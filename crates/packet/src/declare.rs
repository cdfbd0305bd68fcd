//! The types of which a header's declaration consists. The declarations are constants in `wire`, in one
//! file for each protocol.

use crate::layout::Layout;
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// All that Braid knows about a header.
#[derive(Debug)]
pub struct Declaration {
    /// The header.
    pub header: Header,
    /// Its name in the language, for `has`.
    pub name: &'static str,
    /// The headers that are present whenever this one is, the nearest first.
    pub needs: &'static [Header],
    /// The fields that announce it, with the values that do. Only [`Self::parse`] can say whether
    /// the announced header is there.
    pub follows: &'static [(Field, &'static [u16])],
    /// The headers that it stands for, as `inet` does: it is present if one of them is.
    pub one_of: &'static [Header],
    /// The smaller parts that it may have, each with a declaration of its own.
    pub parts: Parts,
    /// Where it begins: what offsets count from, and how many bytes behind that.
    pub at: (Base, usize),
    /// How its length is found, and what is behind it.
    pub parse: Parse,
    /// The checksums that cover its fields.
    pub sum: Cover,
    /// How a packet's summary shows it: a word, then fields with their labels.
    pub summary: Option<(&'static str, &'static [(&'static str, Field)])>,
    /// Its fields.
    pub fields: &'static [FieldInfo],
}

/// Which of a header's parts there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// Any of these together.
    Any(&'static [Header]),
    /// At most one of these.
    One(&'static [Header]),
}

/// What follows a header: the field that announces it, that field's value, and the bytes. `None` means
/// payload.
pub(crate) type Behind<'a> = Option<(Field, u16, Window<'a>)>;

/// How a header is found and what is behind it.
#[derive(Clone, Copy, Debug)]
pub enum Parse {
    /// Another header's parser finds it.
    Other,
    /// By these rules.
    Rules(Rules),
    /// By a function of its own, which adds the header to the layout.
    Own(Own),
}

/// See [`Parse::Own`].
#[derive(Clone, Copy)]
pub struct Own(pub(crate) for<'a> fn(&mut Layout, Window<'a>) -> Result<Behind<'a>, Stop>);

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own")
    }
}

/// How the length of a header is known, and what announces the next one.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The length of its fixed part.
    pub least: usize,
    /// Bytes that have a fixed value: offset, mask and value under the mask. Where one has another, the
    /// bytes are payload.
    pub fixed: &'static [(usize, u8, u8)],
    /// Where it says how many words of 4 bytes follow the fixed part: offset and mask.
    pub words: Option<(usize, u8)>,
    /// The offset of the 16 bits that say how many bytes are behind the header.
    pub body: Option<usize>,
    /// The field that says what is behind it, with its offset in the header and its bytes (1 or 2).
    pub next: Option<(Field, usize, usize)>,
    /// Values of that field, each with a field and a value that announce the same header elsewhere.
    pub same: &'static [(u16, Field, u16)],
    /// Why a packet with too few bytes for the header is malformed. `None` means that the bytes are
    /// payload.
    pub short: Option<Malformed>,
}

impl Rules {
    /// A header of `least` bytes with payload behind it.
    pub const fn of(least: usize) -> Rules {
        Rules { least, fixed: &[], words: None, body: None, next: None, same: &[], short: None }
    }

    /// Looks at the header that is to be at the start of `window`.
    pub(crate) fn check<'a>(&self, window: Window<'a>) -> Result<Found<'a>, Stop> {
        let short = self.short.map_or(Stop::Unknown, Stop::Bad);
        if window.wire() < self.least {
            return Err(short);
        }
        let bytes = window.bytes();
        if bytes.len() < self.least {
            return Err(Stop::Cut);
        }
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        if self.fixed.iter().any(|(at, mask, value)| byte(*at) & mask != *value) {
            return Err(Stop::Unknown);
        }
        let words = self.words.map_or(0, |(at, mask)| usize::from(byte(at) & mask));
        let len = self.least + 4 * words;
        if window.wire() < len {
            return Err(short);
        }
        if bytes.len() < len {
            return Err(Stop::Cut);
        }
        let mut rest = window.skip(len);
        if let Some(at) = self.body {
            let body = usize::from(be16(byte(at), byte(at + 1)));
            if body > rest.wire() {
                return Err(short);
            }
            rest = rest.limit(body);
        }
        let next = self.next.map(|(field, at, len)| match len {
            1 => (field, u16::from(byte(at))),
            _ => (field, be16(byte(at), byte(at + 1))),
        });
        let same = self.same.iter().find(|(value, ..)| next.is_some_and(|next| next.1 == *value));
        Ok((same.map(|(_, field, value)| (*field, *value)).or(next), rest))
    }
}

/// What announces the next header, and the bytes behind this one.
type Found<'a> = (Option<(Field, u16)>, Window<'a>);

/// The checksums that cover a header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cover {
    /// None.
    None,
    /// The IPv4 header's; for addresses the transport's too.
    Ip4,
    /// The transport's, for addresses.
    Ip6,
    /// The IPv4 header's, if it is IPv4.
    Inet,
    /// The one behind the IP header: of TCP, UDP, ICMP or ICMPv6.
    Transport,
    /// GRE's.
    Gre,
    /// The quoted packet's and that of the ICMP error around it.
    Quoted,
}

/// Whether models may assign a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Read and written.
    Rw,
    /// Read only: a structural field, a checksum (kept valid by the runtime) or an attribute.
    Ro,
}

/// What the field table says of a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// The field.
    pub field: Field,
    /// Its name in the language, such as `ip.src`.
    pub name: &'static str,
    /// The header that must be present.
    pub header: Header,
    /// Width in bits.
    pub width: u16,
    /// Read-write or read-only.
    pub access: Access,
    /// One line on its meaning.
    pub doc: &'static str,
    /// Where its bits are.
    pub place: Where,
    /// How people write its value.
    pub show: Show,
    /// Whether it is an address that a pseudo header may have, and which.
    pub address: Option<Address>,
    /// Whether all packets of a flow have the same value, as long as nobody changes it.
    pub is_flow: bool,
}

/// An address of an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// The source address. A pseudo header always has it.
    Src,
    /// The destination address. A pseudo header has another one while the packet is source-routed.
    Dst,
}

/// How people write a field's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    /// In decimal.
    Decimal,
    /// In hexadecimal, with `0x` and this many digits.
    Hex(usize),
    /// As a MAC address.
    Mac,
    /// As an IPv4 address.
    Ip4,
    /// As an IPv6 address.
    Ip6,
    /// As an address of either version.
    Inet,
    /// As TCP flags.
    Flags,
}

/// Bits of a big-endian number in a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// Offset of the number's first byte in the header.
    pub offset: usize,
    /// Bytes of the number, 1 to 16.
    pub len: u8,
    /// How many bits from its low end the field begins.
    pub shift: u8,
    /// How many bits the field has.
    pub width: u8,
}

/// Where a field's bits are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// In its header.
    Bits(Bits),
    /// In its header: the first place if another header is present, else the second.
    Either(Header, Bits, Bits),
    /// In another field, from a bit on.
    Part(Field, u8),
    /// It is the first field if the header is present, else the second.
    Same(Header, Field, Field),
    /// It is the field of the first header here that is present; without any it is 0.
    First(&'static [(Header, Field)]),
    /// In its header, as a number of words; the field is the number of bytes.
    Words(Bits),
    /// It has no bits: code computes it.
    Computed,
}

/// A field of whole bytes.
pub(crate) const fn bytes(offset: usize, len: u8) -> Where {
    bits(offset, len, 0, len * 8)
}

/// A field of `width` bits in a number of `len` bytes.
pub(crate) const fn bits(offset: usize, len: u8, shift: u8, width: u8) -> Where {
    Where::Bits(Bits { offset, len, shift, width })
}

/// A field that models may assign.
pub(crate) const fn rw(
    field: Field,
    name: &'static str,
    width: u16,
    place: Where,
    doc: &'static str,
) -> FieldInfo {
    FieldInfo {
        field,
        name,
        // The table puts the header of the declaration here.
        header: Header::Pkt,
        width,
        access: Access::Rw,
        doc,
        place,
        show: Show::Decimal,
        address: None,
        is_flow: false,
    }
}

/// A field that models may only read.
pub(crate) const fn ro(
    field: Field,
    name: &'static str,
    width: u16,
    place: Where,
    doc: &'static str,
) -> FieldInfo {
    FieldInfo { access: Access::Ro, ..rw(field, name, width, place, doc) }
}

impl FieldInfo {
    pub(crate) const fn shown(self, show: Show) -> Self {
        Self { show, ..self }
    }

    pub(crate) const fn address(self, address: Address, show: Show) -> Self {
        Self { address: Some(address), show, ..self }
    }

    /// With the same value in all packets of a flow.
    pub(crate) const fn of_flow(self) -> Self {
        Self { is_flow: true, ..self }
    }
}

impl Declaration {
    /// What most headers have in common.
    pub(crate) const fn new(header: Header, name: &'static str, needs: &'static [Header]) -> Self {
        Declaration {
            header,
            name,
            needs,
            follows: &[],
            one_of: &[],
            parts: Parts::Any(&[]),
            at: (Base::Packet, 0),
            parse: Parse::Other,
            sum: Cover::None,
            summary: None,
            fields: &[],
        }
    }
}
