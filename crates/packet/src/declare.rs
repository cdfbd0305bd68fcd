//! The types that declare a header. The declarations are constants in `wire`, in one file for each
//! protocol.

use crate::layout::{Layout, Sum};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Everything that Braid knows about a header.
#[derive(Debug)]
pub struct Declaration {
    /// The header.
    pub header: Header,
    /// Its name in the language, for `has`.
    pub name: &'static str,
    /// The headers that are present whenever this one is, the nearest first.
    pub needs: &'static [Header],
    /// The fields that announce this header, with the values that do so. Only [`Self::parse`] can
    /// decide whether the announced header is present.
    pub follows: &'static [(Field, &'static [u16])],
    /// The headers that this one stands for, such as those of `inet`. It is present if one of them
    /// is.
    pub one_of: &'static [Header],
    /// The smaller parts that the header may have. Each part has a declaration of its own.
    pub parts: Parts,
    /// Where the header begins: the base that offsets count from, and the offset from that base.
    pub at: (Base, usize),
    /// How the parser finds the header's length and the next header.
    pub parse: Parse,
    /// The checksums that cover its fields.
    pub sum: Cover,
    /// The transport checksum that it holds, and the checksum's offset in it.
    pub holds: Option<Sum>,
    /// Whether headers that a program declares may follow it.
    pub takes_declared: bool,
    /// How a packet's summary shows the header: a word, then fields with their labels.
    pub summary: Option<(&'static str, &'static [(&'static str, Field)])>,
    /// The facts of an outer header that functions can add. `None` for other headers.
    pub outer: Option<Outer>,
    /// Its fields.
    pub fields: &'static [FieldInfo],
}

/// What a function that adds outer headers needs to know of one.
#[derive(Debug)]
pub struct Outer {
    /// The header's length, without optional parts.
    pub len: usize,
    /// The outer headers that may be directly in front of it.
    pub behind: &'static [Header],
    /// The field that Braid fills in to announce what is behind the header. A program assigns it
    /// only if it has declared the next header itself.
    pub announces: Option<Field>,
    /// The fields that a program must assign. It need not assign a field that announces the next
    /// header of its list.
    pub required: &'static [Field],
    /// The values of fields that a program does not assign. All other bits are 0.
    pub defaults: &'static [(Field, u64)],
}

impl Outer {
    /// An outer header of `len` bytes with the defaults that suit most headers.
    pub(crate) const fn of(len: usize) -> Outer {
        Outer { len, behind: &[], announces: None, required: &[], defaults: &[] }
    }
}

/// Which parts a header may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// Any of these, in any combination.
    Any(&'static [Header]),
    /// At most one of these.
    One(&'static [Header]),
}

/// The announcement behind a header: the field that announces the next header, that field's value,
/// and the bytes. `None` means payload.
pub(crate) type Behind<'a> = Option<(Field, u16, Window<'a>)>;

/// How the parser finds a header and what follows it.
#[derive(Clone, Copy, Debug)]
pub enum Parse {
    /// The parser of another header finds it.
    Other,
    /// These rules find it.
    Rules(Rules),
    /// A function of its own finds it and adds it to the layout.
    Own(Own),
}

/// The function of [`Parse::Own`].
#[derive(Clone, Copy)]
pub struct Own(pub(crate) for<'a> fn(&mut Layout, Window<'a>) -> Result<Behind<'a>, Stop>);

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own")
    }
}

/// Rules for the length of a header and for the announcement of the next one.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The length of its fixed part.
    pub least: usize,
    /// Bytes with a fixed value: offset, mask, and value under the mask. If a byte has another
    /// value, the bytes are payload.
    pub fixed: &'static [(usize, u8, u8)],
    /// The byte that holds the number of 4-byte words behind the fixed part: offset and mask.
    pub words: Option<(usize, u8)>,
    /// The offset of the 16-bit number of bytes behind the header. The field there counts the
    /// payload.
    pub body: Option<usize>,
    /// The field that announces the next header, with its offset in the header and its length (1 or
    /// 2 bytes).
    pub next: Option<(Field, usize, usize)>,
    /// Values of that field, each with another field and its value that announce the same header.
    pub same: &'static [(u16, Field, u16)],
    /// Why a packet is malformed when it has too few bytes for the header. `None` means that the
    /// bytes are payload.
    pub short: Option<Malformed>,
}

impl Rules {
    /// The rules of a header of `least` bytes with payload behind it.
    pub const fn of(least: usize) -> Rules {
        Rules { least, fixed: &[], words: None, body: None, next: None, same: &[], short: None }
    }

    /// The length of the header at the start of these bytes. Bytes that are missing count as 0.
    #[must_use]
    pub fn length(&self, bytes: &[u8]) -> usize {
        let words = self.words.map_or(0, |(at, mask)| bytes.get(at).copied().unwrap_or(0) & mask);
        self.least + 4 * usize::from(words)
    }

    /// Whether these rules are for headers of a constant length in front of payload, and these
    /// bytes begin with one.
    #[inline]
    pub(crate) fn is_all_of(&self, bytes: &[u8]) -> bool {
        let is_constant = self.words.is_none() && self.body.is_none() && self.next.is_none();
        let is_fixed = |(at, mask, value): &(usize, u8, u8)| {
            bytes.get(*at).is_some_and(|byte| byte & mask == *value)
        };
        is_constant && bytes.len() >= self.least && self.fixed.iter().all(is_fixed)
    }

    /// Checks the header at the start of `window`.
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
        let len = self.length(bytes);
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

/// The field and value that announce the next header, and the bytes behind this one.
type Found<'a> = (Option<(Field, u16)>, Window<'a>);

/// The checksums that cover a header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cover {
    /// No checksum.
    None,
    /// The IPv4 header checksum. Addresses are also covered by the transport checksum.
    Ip4,
    /// The transport checksum, which covers addresses.
    Ip6,
    /// The IPv4 header checksum, if the packet is IPv4.
    Inet,
    /// The checksum behind the IP header: of TCP, UDP, ICMP or ICMPv6.
    Transport,
    /// The GRE checksum.
    Gre,
    /// The checksums of the quoted packet and of the ICMP error around it.
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

/// An entry of the field table.
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
    /// Which address of a pseudo header the field can be, if any.
    pub address: Option<Address>,
    /// Whether the field is the same in all packets of a flow, unless a function changes it.
    pub is_flow: bool,
    /// Whether the field is a number of bytes that include the payload. It changes when a function
    /// makes the payload longer or shorter. In a header, it is a number of 16 bits.
    pub counts_payload: bool,
}

/// An address of an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// The source address. Every pseudo header has it.
    Src,
    /// The destination address. While a packet is source-routed, its pseudo header has another one.
    Dst,
}

/// How people write a field's value, and so its kind of value in the language.
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
    /// In decimal: the number of a port.
    Port,
    /// In decimal: a number of bytes.
    Size,
    /// In decimal: a time in nanoseconds.
    Time,
}

/// Bits of a big-endian number in a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// Offset of the number's first byte in the header.
    pub offset: usize,
    /// Bytes of the number, 1 to 16.
    pub len: u8,
    /// How many bits lie below the field, at the low end of the number.
    pub shift: u8,
    /// Width of the field in bits.
    pub width: u8,
}

/// Where a field's bits are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// In its header.
    Bits(Bits),
    /// In its header. The first place holds if another header is present, otherwise the second.
    Either(Header, Bits, Bits),
    /// In its header. If another header is present, its two fields hold the upper and the lower
    /// half.
    Halves(Header, [Field; 2], Bits),
    /// In another field, from this bit on.
    Part(Field, u8),
    /// The field equals the first field if the header is present, otherwise the second.
    Same(Header, Field, Field),
    /// The field equals the field of the first header here that is present. Without any it is 0.
    First(&'static [(Header, Field)]),
    /// In its header, as a number of words. The field's value is the number of bytes.
    Words(Bits),
    /// The field is the first number if the header is present, otherwise the second.
    Number(Header, u8, u8),
    /// The field has no bits of its own: code computes it.
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
        // The field table replaces this with the declaration's header.
        header: Header::Pkt,
        width,
        access: Access::Rw,
        doc,
        place,
        show: Show::Decimal,
        address: None,
        is_flow: false,
        counts_payload: false,
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
    /// Whether packets have the field as bits of their own at a place that only the headers decide.
    #[must_use]
    pub const fn has_bits(&self) -> bool {
        match self.place {
            Where::Bits(_)
            | Where::Either(..)
            | Where::Part(..)
            | Where::Same(..)
            | Where::First(_) => true,
            Where::Halves(..) | Where::Words(_) | Where::Number(..) | Where::Computed => false,
        }
    }

    pub(crate) const fn shown(self, show: Show) -> Self {
        Self { show, ..self }
    }

    pub(crate) const fn address(self, address: Address, show: Show) -> Self {
        Self { address: Some(address), show, ..self }
    }

    /// Marks the field as the same in all packets of a flow.
    pub(crate) const fn of_flow(self) -> Self {
        Self { is_flow: true, ..self }
    }

    /// Marks the field as a number of bytes that include the payload.
    pub(crate) const fn counts_payload(self) -> Self {
        Self { counts_payload: true, ..self }
    }
}

impl Declaration {
    /// A declaration with the defaults that suit most headers.
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
            holds: None,
            takes_declared: false,
            summary: None,
            outer: None,
            fields: &[],
        }
    }
}
