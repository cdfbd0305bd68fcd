//! The field table: every header and header field that models can name. It is made from the
//! headers' declarations.
//!
//! A field's value is an unsigned integer in host order of at most 128 bits.
#![expect(
    clippy::indexing_slicing,
    reason = "the tables are made at compile time, and a field's number is its place in them"
)]

pub use crate::declare::{
    Access, Address, Bits, Cover, Declaration, FieldInfo, Outer, Parse, Parts, Rules, Show, Where,
};
pub use crate::names::{Base, Field, Header};

use crate::wire::*;
use std::borrow::Borrow;

macro_rules! table {
    ($($header:ident $file:ident :: $declaration:ident [$($field:ident)*];)*) => {
        /// All headers' declarations (`DECLARATIONS[header as usize].header == header`).
        pub const DECLARATIONS: &[Declaration] = &[$($file::$declaration,)*];
        const _: () = {
            $(check(&$file::$declaration, Header::$header, &[$(Field::$field,)*]);)*
        };
    };
}

headers!(table);

/// Checks that a declaration belongs to the header in its line of the list and has the fields in
/// that line.
const fn check(declaration: &Declaration, header: Header, fields: &[Field]) {
    assert!(declaration.header as usize == header as usize, "the line's header");
    assert!(declaration.fields.len() == fields.len(), "the line's fields");
    let mut at = 0;
    while at < fields.len() {
        assert!(declaration.fields[at].field as usize == fields[at] as usize, "the line's fields");
        at += 1;
    }
}

/// All fields, in the order of the list of headers (`FIELDS[field as usize].field == field`).
pub const FIELDS: &[FieldInfo] = &{
    let mut all = [attributes::PKT.fields[0]; Field::COUNT];
    let (mut header, mut at) = (0, 0);
    while header < DECLARATIONS.len() {
        let declaration = &DECLARATIONS[header];
        let mut field = 0;
        while field < declaration.fields.len() {
            all[at] = FieldInfo { header: declaration.header, ..declaration.fields[field] };
            (at, field) = (at + 1, field + 1);
        }
        header += 1;
    }
    all
};

/// The fields that count the bytes of the payload: they change with its length.
pub const LENGTHS: [Field; length_count()] = {
    let mut all = [Field::PktLen; length_count()];
    let (mut field, mut count) = (0, 0);
    while field < FIELDS.len() {
        if FIELDS[field].counts_payload {
            all[count] = FIELDS[field].field;
            count += 1;
        }
        field += 1;
    }
    all
};

const fn length_count() -> usize {
    let (mut field, mut count) = (0, 0);
    while field < FIELDS.len() {
        count += FIELDS[field].counts_payload as usize;
        field += 1;
    }
    count
}

/// Names of headers for `has`, in the language.
pub const HEADERS: &[(Header, &str)] = &{
    let mut all = [(Header::Pkt, ""); DECLARATIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = (DECLARATIONS[at].header, DECLARATIONS[at].name);
        at += 1;
    }
    all
};

/// A field's value that announces a header.
#[derive(Clone, Copy)]
struct Link {
    field: Field,
    value: u16,
    header: Header,
}

/// All values that announce headers.
const LINKS: [Link; link_count()] = {
    let mut all = [Link { field: Field::PktLen, value: 0, header: Header::Pkt }; link_count()];
    let (mut header, mut count) = (0, 0);
    while header < DECLARATIONS.len() {
        let follows = DECLARATIONS[header].follows;
        let mut place = 0;
        while place < follows.len() {
            let (field, values) = follows[place];
            let mut value = 0;
            while value < values.len() {
                let header = DECLARATIONS[header].header;
                all[count] = Link { field, value: values[value], header };
                (count, value) = (count + 1, value + 1);
            }
            place += 1;
        }
        header += 1;
    }
    all
};

const fn link_count() -> usize {
    let (mut header, mut count) = (0, 0);
    while header < DECLARATIONS.len() {
        let mut place = 0;
        while place < DECLARATIONS[header].follows.len() {
            count += DECLARATIONS[header].follows[place].1.len();
            place += 1;
        }
        header += 1;
    }
    count
}

/// For each field, the headers whose presence it decides, as bits: the headers that its value
/// announces, and the headers that need one of those.
const DECIDED: [u128; Field::COUNT] = {
    let mut all = [0; Field::COUNT];
    let mut field = 0;
    while field < FIELDS.len() {
        let mut header = 0;
        while header < DECLARATIONS.len() {
            let mut is_decided = announces(field, &DECLARATIONS[header]);
            let mut needed = 0;
            while needed < DECLARATIONS[header].needs.len() {
                let other = DECLARATIONS[header].needs[needed];
                is_decided |= announces(field, &DECLARATIONS[other as usize]);
                needed += 1;
            }
            if is_decided && matches!(FIELDS[field].access, Access::Rw) {
                all[field] |= 1 << header;
            }
            header += 1;
        }
        field += 1;
    }
    all
};

/// Whether the field's value announces the header. A field that is part of this one counts too.
const fn announces(field: usize, declaration: &Declaration) -> bool {
    let mut at = 0;
    while at < declaration.follows.len() {
        let by = declaration.follows[at].0 as usize;
        let is_part = matches!(FIELDS[by].place, Where::Part(owner, _) if owner as usize == field);
        if by == field || is_part {
            return true;
        }
        at += 1;
    }
    false
}

/// Number of values of a field that announce a header.
const fn values_of(field: Field) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < LINKS.len() {
        count += (LINKS[at].field as usize == field as usize) as usize;
        at += 1;
    }
    count
}

/// The UDP ports that announce a header.
const PORTS: [u16; values_of(Field::UdpDport)] = {
    let mut all = [0; values_of(Field::UdpDport)];
    let (mut at, mut count) = (0, 0);
    while at < LINKS.len() {
        if LINKS[at].field as usize == Field::UdpDport as usize {
            all[count] = LINKS[at].value;
            count += 1;
        }
        at += 1;
    }
    all
};

/// Whether a UDP destination port announces a header.
#[inline(always)]
pub(crate) fn is_announced_port(port: u16) -> bool {
    PORTS.iter().fold(false, |is, announced| is | (*announced == port))
}

/// The header that a UDP destination port announces.
pub(crate) fn behind_port(port: u16) -> Option<&'static Declaration> {
    static ALL: [&Declaration; PORTS.len()] = {
        let mut all = [&DECLARATIONS[0]; PORTS.len()];
        let (mut at, mut count) = (0, 0);
        while at < LINKS.len() {
            if LINKS[at].field as usize == Field::UdpDport as usize {
                all[count] = &DECLARATIONS[LINKS[at].header as usize];
                count += 1;
            }
            at += 1;
        }
        all
    };
    ALL.get(PORTS.iter().position(|known| *known == port)?).copied()
}

/// The header that a field's value announces.
pub(crate) fn behind(field: Field, value: u16) -> Option<&'static Declaration> {
    static ALL: &[Declaration] = DECLARATIONS;
    let link = LINKS.iter().find(|link| link.value == value && link.field == field)?;
    Some(&ALL[link.header as usize])
}

impl Field {
    /// The field table's entry.
    #[must_use]
    pub fn info(self) -> &'static FieldInfo {
        static ALL: &[FieldInfo] = FIELDS;
        &ALL[self as usize]
    }

    /// The offset of the field's first byte from the base of its header.
    ///
    /// # Panics
    /// If the field's place depends on other headers.
    #[must_use]
    pub const fn offset(self) -> usize {
        let info = &FIELDS[self as usize];
        match info.place {
            Where::Bits(bits) => DECLARATIONS[info.header as usize].at.1 + bits.offset,
            Where::Part(owner, _) => owner.offset(),
            _ => panic!("the field's place depends on other headers"),
        }
    }

    /// The field with this name in the language, if any.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Field> {
        FIELDS.iter().find(|info| info.name == name).map(|info| info.field)
    }

    /// The field that has its own bits here. A field that only names bits of another field gives
    /// that field.
    #[must_use]
    pub fn owner(self) -> Field {
        match self.info().place {
            Where::Part(owner, _) => owner,
            _ => self,
        }
    }

    /// The field of the other end, such as the destination for the source. It is the only other
    /// field of the header that holds an address or a port of this kind.
    #[must_use]
    pub fn opposite(self) -> Option<Field> {
        let info = self.info();
        if !matches!(info.show, Show::Mac | Show::Ip4 | Show::Ip6 | Show::Inet | Show::Port) {
            return None;
        }
        let fields = info.header.info().fields.iter();
        let mut others = fields.filter(|other| other.field != self && other.show == info.show);
        match (others.next(), others.next()) {
            (Some(other), None) => Some(other.field),
            _ => None,
        }
    }

    /// Headers whose presence may change when this field is assigned.
    pub fn decides(self) -> impl Iterator<Item = Header> {
        let bits = self.decided_bits();
        Header::LIST.iter().copied().filter(move |header| bits >> *header as u32 & 1 == 1)
    }

    /// The same headers as bits by header number.
    #[must_use]
    pub fn decided_bits(self) -> u128 {
        static ALL: [u128; Field::COUNT] = DECIDED;
        ALL[self as usize]
    }
}

impl Header {
    /// The header's bit in a set of headers.
    #[must_use]
    pub const fn bit(self) -> u128 {
        1 << self as u32
    }

    /// The bits of a set of headers.
    pub fn bits(headers: impl IntoIterator<Item = impl Borrow<Header>>) -> u128 {
        headers.into_iter().fold(0, |bits, header| bits | header.borrow().bit())
    }

    /// The bits of the header and of the headers that it implies.
    #[must_use]
    pub fn closure(self) -> u128 {
        self.bit() | Header::bits(self.implies())
    }

    /// The header's declaration.
    #[must_use]
    pub fn info(self) -> &'static Declaration {
        static ALL: &[Declaration] = DECLARATIONS;
        &ALL[self as usize]
    }

    /// The header's name in the language.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The header with this name in the language, if any.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Header> {
        HEADERS.iter().find(|(_, n)| *n == name).map(|(h, _)| *h)
    }

    /// Headers that are present whenever this one is: the transitive closure without the header
    /// itself.
    #[must_use]
    pub fn implies(self) -> &'static [Header] {
        self.info().needs
    }

    /// The values of a field that announce this header.
    #[must_use]
    pub fn announced_by(self, field: Field) -> &'static [u16] {
        let follows = self.info().follows.iter().find(|(by, _)| *by == field);
        follows.map_or(&[], |(_, values)| values)
    }

    /// The header that a field's value announces.
    #[must_use]
    pub fn announced(field: Field, value: u16) -> Option<Header> {
        behind(field, value).map(|declaration| declaration.header)
    }

    /// The header that stands for this one or another, such as `l4` for `tcp`. If there is none,
    /// the header itself.
    #[must_use]
    pub fn group(self) -> Header {
        let mut all = Header::LIST.iter().copied();
        all.find(|header| header.info().one_of.contains(&self)).unwrap_or(self)
    }

    /// Whether the header is present whenever a field announces it, because it has no bytes of its
    /// own that may be missing.
    #[must_use]
    pub fn is_certain(self) -> bool {
        matches!(self.info().parse, Parse::Rules(rules) if rules.least == 0)
    }

    /// The link header with its VLAN tags, from the outside in.
    pub const LINK: &'static [Header] = &[Header::Eth, Header::Vlan, Header::Vlan2];

    /// Headers that only some packets of a flow have.
    pub const PASSING: [Header; 4] =
        [Header::TcpMss, Header::TcpWscale, Header::TcpSackOk, Header::TcpTs];

    /// The headers of transport protocols: each holds a transport checksum.
    pub fn transports() -> impl Iterator<Item = Header> {
        Header::LIST.iter().copied().filter(|header| header.info().holds.is_some())
    }

    /// The headers that headers of a program may follow.
    pub fn before_declared() -> impl Iterator<Item = Header> {
        Header::LIST.iter().copied().filter(|header| header.info().takes_declared)
    }

    /// Headers that a UDP port announces.
    pub fn behind_ports() -> impl Iterator<Item = Header> {
        let all = Header::LIST.iter().copied();
        all.filter(|header| !header.announced_by(Field::UdpDport).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_names_all_that_it_needs() {
        for declaration in DECLARATIONS {
            for needed in declaration.needs {
                for further in needed.implies() {
                    assert!(
                        declaration.needs.contains(further),
                        "{}: {further:?}",
                        declaration.name
                    );
                }
            }
        }
    }

    #[test]
    fn no_value_announces_two_headers() {
        for (at, link) in LINKS.iter().enumerate() {
            let same = |other: &Link| other.field == link.field && other.value == link.value;
            assert!(!LINKS[at + 1..].iter().any(same), "{:?} {}", link.field, link.value);
        }
    }

    #[test]
    fn fields_lie_in_their_width() {
        for info in FIELDS {
            if let Where::Bits(bits) = info.place {
                assert_eq!(u16::from(bits.width), info.width, "{}", info.name);
                assert!(bits.shift + bits.width <= bits.len.saturating_mul(8), "{}", info.name);
            }
        }
    }

    #[test]
    fn lengths_in_headers_are_numbers_of_16_bits() {
        for field in LENGTHS {
            let info = field.info();
            let is_there = matches!(info.place, Where::Bits(_)) && field.whole_bytes() == Some(2);
            assert!(is_there || info.header == Header::Pkt, "{}", info.name);
        }
    }

    #[test]
    fn the_length_that_the_parser_reads_follows_the_payload() {
        for declaration in DECLARATIONS {
            let Parse::Rules(Rules { body: Some(at), .. }) = declaration.parse else { continue };
            let is_it = |info: &&FieldInfo| match info.place {
                Where::Bits(bits) => bits.offset == at && bits.len == 2,
                _ => false,
            };
            let field = declaration.fields.iter().find(is_it);
            assert!(field.is_some_and(|info| info.counts_payload), "{}", declaration.name);
        }
    }

    #[test]
    fn assigning_a_type_or_port_decides_what_is_behind() {
        let decided = |field: Field| field.decides().collect::<Vec<_>>();
        use Header::{IcmpEcho, Quoted, Quoted4, Quoted6, QuotedEcho, QuotedL4};
        let quoted = [IcmpEcho, Quoted, Quoted4, Quoted6, QuotedL4, QuotedEcho];
        assert_eq!(decided(Field::IcmpType), quoted);
        assert!(decided(Field::L4Dport).contains(&Header::Vxlan));
        assert_eq!(decided(Field::UdpDport), decided(Field::L4Dport));
        assert!(decided(Field::TcpDport).is_empty() && decided(Field::UdpSport).is_empty());
    }
}
