//! The parts of a packet that actions touch. The paper's packet fields are independent, but Braid's
//! fields are not: `l4.sport` is `tcp.sport` or `udp.sport`, `ip.tos` holds `ip.dscp`, a write of
//! `icmp.type` decides whether there is an identifier, and every write also changes a checksum.

use braid_packet::field::Cover;
use braid_packet::{Field, Header};
use serde::{Serialize, Serializer};
use std::fmt;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// They have nothing in common.
    None,
    /// Writing both also changes the same other bytes: a checksum that covers both, or a byte that
    /// holds bits of both. Two writers of one copy would undo each other's change.
    Beside(&'static str),
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
                deciders(*header).any(|field| places(*written).contains(field))
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
        match self {
            Part::Field(field) => sums(*field),
            Part::Payload => &[Sum::L4, Sum::Icmp, Sum::Icmp6],
            Part::Presence(_) | Part::Tag(_) | Part::Whole => &[],
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
            Part::Field(field) => *field != Field::PktTruncated,
            Part::Presence(_) | Part::Tag(_) => true,
            Part::Payload | Part::Whole => false,
        }
    }
}

/// Bytes that follow writes of several fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Ip4,
    L4,
    Icmp,
    Icmp6,
    VlanTag,
    Vlan2Tag,
    MplsEntry,
    Ip6Word,
}

impl Sum {
    fn name(self) -> &'static str {
        match self {
            Sum::Ip4 => "ip.checksum",
            Sum::L4 => "l4.checksum",
            Sum::Icmp => "the ICMP checksum",
            Sum::Icmp6 => "the ICMPv6 checksum",
            Sum::VlanTag => "a byte of the VLAN tag",
            Sum::Vlan2Tag => "a byte of the second VLAN tag",
            Sum::MplsEntry => "a byte of the MPLS entry",
            Sum::Ip6Word => "a byte of the IPv6 header",
        }
    }

    /// The field that reads this checksum.
    fn field(self) -> Option<Field> {
        match self {
            Sum::Ip4 => Some(Field::IpChecksum),
            Sum::L4 => Some(Field::L4Checksum),
            _ => None,
        }
    }
}

/// The basic fields that a field stands for.
fn places(field: Field) -> &'static [Field] {
    use Field::*;
    match field {
        InetVersion => &[InetVersion],
        InetSrc => &[IpSrc, Ip6Src],
        InetDst => &[IpDst, Ip6Dst],
        InetProto => &[IpProto, Ip6Proto],
        InetTtl => &[IpTtl, Ip6Ttl],
        InetSport => &[TcpSport, UdpSport, IcmpId, Icmp6Id, IcmpType, Icmp6Type],
        InetDport => &[TcpDport, UdpDport, IcmpId, Icmp6Id, IcmpType, Icmp6Type],
        L4Sport => &[TcpSport, UdpSport],
        L4Dport => &[TcpDport, UdpDport],
        IpTos => &[IpDscp, IpEcn],
        IcmpRest => &[IcmpRest, IcmpId, IcmpSeq],
        Icmp6Rest => &[Icmp6Rest, Icmp6Id, Icmp6Seq],
        QuotedInetSrc => &[QuotedIpSrc, QuotedIp6Src],
        QuotedInetDst => &[QuotedIpDst, QuotedIp6Dst],
        QuotedInetSport => &[QuotedSport, QuotedId],
        QuotedInetDport => &[QuotedDport, QuotedId],
        _ => {
            let at = field as usize;
            SINGLE.get(at..=at).unwrap_or_default()
        }
    }
}

/// All fields, so that a slice of one element exists for each.
const SINGLE: &[Field] = &{
    let mut all = [Field::PktLen; braid_packet::FIELDS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = braid_packet::FIELDS[at].field;
        at += 1;
    }
    all
};

/// Assignable fields that decide whether the parser recognises a header.
fn deciders(header: Header) -> impl Iterator<Item = &'static Field> {
    let all = braid_packet::FIELDS.iter().map(|info| &info.field);
    all.filter(move |field| {
        // Fields that stand for several fields consist of these.
        let is_plain = !matches!(field.info().header, Header::L4 | Header::Inet);
        is_plain && field.decides().any(|decided| decided == header)
    })
}

/// Whether a write of the field decides where headers end.
fn decides(field: Field) -> bool {
    places(field).iter().any(|place| place.decided_bits() != 0)
}

/// The checksums that follow a write of the field.
fn sums(field: Field) -> &'static [Sum] {
    use Field::*;
    match field {
        IpSrc | IpDst => &[Sum::Ip4, Sum::L4],
        Ip6Src | Ip6Dst => &[Sum::L4, Sum::Icmp6],
        VlanId | VlanPcp | VlanDei => &[Sum::VlanTag],
        Vlan2Id | Vlan2Pcp | Vlan2Dei => &[Sum::Vlan2Tag],
        MplsLabel | MplsTc | MplsTtl => &[Sum::MplsEntry],
        Ip6Tc | Ip6Flow => &[Sum::Ip6Word],
        // Either IP version.
        InetTtl => &[Sum::Ip4],
        _ => {
            let header = field.info().header;
            let is_of = |other: Header| header == other || header.implies().contains(&other);
            match header.info().sum {
                Cover::Ip4 => &[Sum::Ip4],
                Cover::Transport if is_of(Header::Icmp) => &[Sum::Icmp],
                Cover::Transport if is_of(Header::Icmp6) => &[Sum::Icmp6],
                Cover::Transport => &[Sum::L4],
                Cover::Quoted => &[Sum::Icmp, Sum::Icmp6],
                Cover::None | Cover::Ip6 | Cover::Inet | Cover::Gre => &[],
            }
        }
    }
}
