//! The parts of a packet that actions touch. The paper's packet fields are independent, but Braid's
//! fields are not: `l4.sport` is `tcp.sport` or `udp.sport`, `ip.tos` holds `ip.dscp`, a write of
//! `icmp.type` decides whether there is an identifier, and every write also changes a checksum.

use braid_packet::field::{Cover, FieldInfo, Where};
use braid_packet::{DECLARATIONS, Field, HEADERS, Header};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

/// A part of a packet, or of the data that travels with it, that actions touch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Part {
    /// A header field or an attribute.
    Field(Field),
    /// The presence of a header.
    Presence(Header),
    /// A tag, by name.
    Tag(String),
    /// The bytes behind the headers.
    Payload,
    /// All bytes and tags. A copy for another port includes all of them.
    Whole,
}

/// The relation of two parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// They have nothing in common.
    None,
    /// Writing both also changes the same other bytes: a checksum that covers both, or a byte that
    /// holds bits of both. Two writers of one copy would undo each other's change.
    Beside(String),
    /// One part decides something about the other, or they are the same.
    Same,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Field(field) => f.write_str(field.info().name),
            Part::Presence(header) => write!(f, "whether there is {}", header.name()),
            Part::Tag(name) => write!(f, "tag {name}"),
            Part::Payload => f.write_str("the payload"),
            Part::Whole => f.write_str("the whole packet"),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Part {
    /// Whether a write of this part changes the result of reading the other part.
    #[must_use]
    pub fn changes(&self, read: &Part) -> bool {
        match (self, read) {
            (Part::Whole, _) | (_, Part::Whole) => true,
            (Part::Tag(a), Part::Tag(b)) => a == b,
            (Part::Payload, Part::Payload) => true,
            (Part::Field(written), Part::Field(read)) => {
                let mut of_read = places(*read).iter().chain(deciders(read.info().header));
                of_read.any(|place| places(*written).contains(place))
                    || self.drags(*read)
                    // The lengths tell where the last recognised header ends.
                    || *read == Field::PktPayloadLen && decides(*written)
            }
            (Part::Field(written), Part::Presence(header)) => {
                deciders(*header).iter().any(|field| places(*written).contains(field))
            }
            // The field decides where the payload begins.
            (Part::Field(written), Part::Payload) => decides(*written),
            (Part::Payload, Part::Field(read)) => self.drags(*read),
            _ => false,
        }
    }

    /// Whether a write of this part changes a checksum that can be read as this field.
    fn drags(&self, checksum: Field) -> bool {
        self.follow().iter().any(|sum| sum.field() == Some(checksum))
    }

    /// The checksums that follow a write of this part.
    fn follow(&self) -> &'static [Sum] {
        static OF_PAYLOAD: LazyLock<Vec<Sum>> =
            LazyLock::new(|| Header::transports().map(Sum::Transport).collect());
        match self {
            Part::Field(field) => sums(*field),
            Part::Payload => &OF_PAYLOAD,
            Part::Presence(_) | Part::Tag(_) | Part::Whole => &[],
        }
    }

    /// Whether a write of this part may write bits of the other part itself, and not only decide
    /// where or whether it is.
    #[must_use]
    pub fn shares_bits(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Field(a), Part::Field(b)) => {
                let of_b = bits(*b);
                bits(*a).iter().any(|field| of_b.contains(field))
            }
            _ => self == other,
        }
    }

    /// The relation of two written parts.
    #[must_use]
    pub fn overlap(&self, other: &Part) -> Overlap {
        if self.changes(other) || other.changes(self) {
            return Overlap::Same;
        }
        let common = self.follow().iter().find(|sum| other.follow().contains(sum));
        common.map_or(Overlap::None, |sum| Overlap::Beside(sum.name()))
    }

    /// Whether adding or removing such a header makes this name refer to another header of the
    /// stack.
    #[must_use]
    pub fn moves_with(&self, header: Header) -> bool {
        let Part::Field(field) = self else { return *self == Part::Whole };
        let stack = [Header::Vlan, Header::Vlan2];
        let of = field.info().header;
        of == header || (stack.contains(&of) && stack.contains(&header))
    }

    /// The parts of one header that make up this part. Each can be written alone. Without such
    /// parts, the part itself.
    #[must_use]
    pub fn pieces(&self) -> Vec<Part> {
        match self {
            Part::Field(Field::IpTos) => {
                places(Field::IpTos).iter().map(|f| Part::Field(*f)).collect()
            }
            whole => vec![whole.clone()],
        }
    }

    /// Whether the part is in a packet's headers, and so in a copy of the headers.
    #[must_use]
    pub fn is_in_headers(&self) -> bool {
        match self {
            // A copy of the headers alone is a truncated packet.
            Part::Field(field) => *field != Field::PktTruncated && !is_quoted(field.info().header),
            Part::Presence(header) => !is_quoted(*header),
            Part::Tag(_) => true,
            Part::Payload | Part::Whole => false,
        }
    }
}

/// Bytes that follow writes of several fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Ip4,
    /// The checksum that this transport header holds.
    Transport(Header),
    /// A number of a header that holds several fields: the header, and the number's offset.
    Number(Header, usize),
}

impl Sum {
    fn name(self) -> String {
        match self {
            Sum::Ip4 => Field::IpChecksum.info().name.into(),
            Sum::Transport(header) => self.field().map_or_else(
                || format!("the checksum of {}", header.name()),
                |field| field.info().name.into(),
            ),
            Sum::Number(header, _) => format!("a byte of {}", header.name()),
        }
    }

    /// The field that reads this checksum.
    fn field(self) -> Option<Field> {
        match self {
            Sum::Ip4 => Some(Field::IpChecksum),
            Sum::Transport(header) if header.group() == Header::L4 => Some(Field::L4Checksum),
            _ => None,
        }
    }
}

/// The basic fields that a field stands for, and the fields that decide which of them it is.
fn places(field: Field) -> &'static [Field] {
    static ALL: LazyLock<Vec<Vec<Field>>> =
        LazyLock::new(|| braid_packet::FIELDS.iter().map(|info| basic(info.field)).collect());
    ALL.get(field as usize).map_or(&[], Vec::as_slice)
}

fn basic(field: Field) -> Vec<Field> {
    let info = field.info();
    match info.place {
        Where::Same(_, one, other) => [basic(one), basic(other)].concat(),
        Where::First(fields) => {
            let of = |(header, same): &(Header, Field)| {
                basic(*same).into_iter().chain(deciders(*header).iter().copied())
            };
            fields.iter().flat_map(of).collect()
        }
        Where::Halves(_, [upper, lower], _) => vec![field, upper, lower],
        // Behind AH, the protocol is another byte, which nothing assigns.
        _ if field == Field::InetProto => vec![Field::IpProto, Field::Ip6Proto],
        _ => {
            let is_part = |place| matches!(place, Where::Part(owner, _) if owner == field);
            let all = braid_packet::FIELDS.iter().filter(|part| is_part(part.place));
            let parts: Vec<Field> = all.map(|part| part.field).collect();
            if parts.is_empty() { vec![field] } else { parts }
        }
    }
}

/// Whether a header is in the packet that an ICMP error quotes, and so in the payload.
fn is_quoted(header: Header) -> bool {
    use Header::{Quoted, Quoted4, Quoted6, QuotedEcho, QuotedL4};
    matches!(header, Quoted | Quoted4 | Quoted6 | QuotedEcho | QuotedL4)
}

/// The basic fields that a field may stand for.
fn bits(field: Field) -> Vec<Field> {
    match field.info().place {
        Where::Same(_, one, other) => [bits(one), bits(other)].concat(),
        Where::First(fields) => fields.iter().flat_map(|(_, same)| bits(*same)).collect(),
        _ => basic(field),
    }
}

/// Assignable fields that decide whether the parser recognises a header.
fn deciders(header: Header) -> &'static [Field] {
    static ALL: LazyLock<Vec<Vec<Field>>> = LazyLock::new(|| {
        // Fields that stand for several fields consist of these.
        let is_plain = |info: &&FieldInfo| !matches!(info.header, Header::L4 | Header::Inet);
        let plain = braid_packet::FIELDS.iter().filter(is_plain).map(|info| info.field);
        let of = |(header, _): &(Header, &str)| {
            plain.clone().filter(|field| field.decides().any(|one| one == *header)).collect()
        };
        HEADERS.iter().map(of).collect()
    });
    ALL.get(header as usize).map_or(&[], Vec::as_slice)
}

/// Whether a write of the field decides where headers end.
fn decides(field: Field) -> bool {
    places(field).iter().any(|place| place.decided_bits() != 0)
}

/// Whether the checksum in this transport header covers the field.
fn covers(holder: Header, info: &FieldInfo) -> bool {
    let header = info.header;
    match header.info().sum {
        Cover::None | Cover::Inet | Cover::Gre => false,
        Cover::Ip4 | Cover::Ip6 => {
            let has_pseudo = holder.info().holds.is_some_and(|sum| sum.has_pseudo());
            // `icmp6` is only behind the other IP version than `ip`.
            let versions = header.group().info().one_of;
            let is_other = |needed: &Header| *needed != header && versions.contains(needed);
            info.address.is_some() && has_pseudo && !holder.implies().iter().any(is_other)
        }
        Cover::Transport => {
            let mut headers = header.implies().iter().chain(header.info().one_of);
            header == holder || headers.any(|other| *other == holder)
        }
        Cover::Quoted => DECLARATIONS
            .iter()
            .any(|other| other.sum == Cover::Quoted && other.needs.contains(&holder)),
    }
}

/// The checksums that follow a write of the field, and the number that it shares with other fields.
fn sums(field: Field) -> &'static [Sum] {
    static ALL: LazyLock<Vec<Vec<Sum>>> =
        LazyLock::new(|| braid_packet::FIELDS.iter().map(sums_of).collect());
    ALL.get(field as usize).map_or(&[], Vec::as_slice)
}

fn sums_of(info: &FieldInfo) -> Vec<Sum> {
    let header = info.header;
    let cover = header.info().sum;
    let mut all = Vec::new();
    // An `inet` field is in either IP version.
    if matches!(cover, Cover::Ip4 | Cover::Inet) {
        all.push(Sum::Ip4);
    }
    all.extend(Header::transports().filter(|holder| covers(*holder, info)).map(Sum::Transport));
    if let Where::Bits(bits) = info.place
        && usize::from(bits.width) < 8 * usize::from(bits.len)
    {
        all.push(Sum::Number(header, bits.offset));
    }
    all
}
