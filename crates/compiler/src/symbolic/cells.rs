//! Cells: names for the fields of packets of a known shape, without aliases. Every field is a
//! constant, a cell, bits of a cell, or two cells together.

use super::headers::{Headers, quoted_fields, transports};
use braid_ir::model::{ValueId, Word};
use braid_packet::field::{Address, Cover, Where};
use braid_packet::{Field, Header};

/// A cell's content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Cell {
    /// This value. The flag says whether the value has not been written to the packet's bytes yet.
    Value(ValueId, bool),
    /// Whatever the packet's bytes hold: they must be loaded when they are needed.
    Reload,
}

/// How a field is stored in packets of a shape.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Place {
    /// The same value in all packets.
    Const(Word),
    /// Bits of a cell, starting at this bit. The field's width gives their number.
    Cell(Field, u16),
    /// Two cells of 16 bits, the upper one first.
    Halves([Field; 2]),
}

impl Place {
    /// The cells that make up the field.
    pub(super) fn cells(self) -> impl Iterator<Item = Field> {
        let (one, two) = match self {
            Place::Const(_) => (None, None),
            Place::Cell(cell, _) => (Some(cell), None),
            Place::Halves([upper, lower]) => (Some(upper), Some(lower)),
        };
        one.into_iter().chain(two)
    }
}

/// The place of a field. The error is a header whose presence decides the place and is not known
/// yet. The caller makes sure that the field's own header is present.
pub(super) fn place(field: Field, headers: &mut Headers) -> Result<Place, Header> {
    match field {
        Field::IpProto => return proto(headers, field),
        Field::Ip6Proto | Field::InetProto => return proto(headers, Field::InetProto),
        Field::PktFragment if !headers.has(Header::Inet)? => return Ok(Place::Const(0)),
        Field::PktLaterFragment if is_whole(headers)? => return Ok(Place::Const(0)),
        _ => {}
    }
    match field.info().place {
        Where::Part(owner, from) => Ok(Place::Cell(owner, from.into())),
        Where::Same(header, yes, no) => {
            Ok(Place::Cell(if headers.has(header)? { yes } else { no }, 0))
        }
        Where::Number(header, yes, no) => {
            Ok(Place::Const(if headers.has(header)? { yes } else { no }.into()))
        }
        // The halves may differ: the identifier of an echo is the same in all packets of a flow,
        // but the sequence number is not.
        Where::Halves(header, halves, _) if headers.has(header)? => Ok(Place::Halves(halves)),
        Where::First(fields) => {
            for (header, same) in fields {
                if headers.has(*header)? {
                    return Ok(Place::Cell(*same, 0));
                }
            }
            Ok(Place::Const(0))
        }
        Where::Bits(_)
        | Where::Either(..)
        | Where::Halves(..)
        | Where::Words(_)
        | Where::Computed => Ok(Place::Cell(field, 0)),
    }
}

/// The place of a protocol field. If the parser recognised the next header, that header determines
/// the value.
fn proto(headers: &mut Headers, field: Field) -> Result<Place, Header> {
    let version4 = headers.has(Header::Ip4)?;
    if field == Field::IpProto && headers.has(Header::Ah)? {
        return Ok(Place::Cell(Field::IpProto, 0));
    }
    for header in Header::transports() {
        if headers.has(header)? {
            let mut numbers = header.info().follows.iter().flat_map(|(_, numbers)| *numbers);
            return Ok(Place::Const(numbers.next().copied().unwrap_or(0).into()));
        }
    }
    // Without AH, both fields are the same byte of the IPv4 header.
    let same = version4 && !headers.has(Header::Ah)?;
    Ok(Place::Cell(if same { Field::IpProto } else { Field::InetProto }, 0))
}

/// Whether the packet is certainly not a later fragment. The error is a header whose presence
/// decides this.
fn is_whole(headers: &mut Headers) -> Result<bool, Header> {
    if !headers.has(Header::Inet)? {
        return Ok(true);
    }
    for header in transports() {
        if headers.has(header)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The bits of [`checksums`] for TCP and UDP, whose checksums cover addresses.
pub(super) const TRANSPORTS: u32 = 2 | 4;
/// The bit of [`checksums`] for ICMP, whose checksum covers no addresses.
pub(super) const ICMP: u32 = 1 << 31;

/// The checksums that a write of a cell updates, and so makes canonical, as bits.
pub(super) fn checksums(field: Field) -> u32 {
    const IP: u32 = 1;
    const TRANSPORT: u32 = 2;
    let info = field.info();
    match (info.header.info().sum, info.address) {
        (Cover::None, _) | (Cover::Ip6, None) => 0,
        (Cover::Ip4, Some(Address::Src)) => IP | TRANSPORT,
        // The bit 4 means: the transport checksum, if the address is in the pseudo header. An
        // active source route puts another address there.
        (Cover::Ip4, Some(Address::Dst)) => IP | 4,
        (Cover::Ip4, None) => IP,
        (Cover::Ip6, Some(Address::Src)) => TRANSPORT,
        (Cover::Ip6, Some(Address::Dst)) => 4,
        (Cover::Gre, _) => 8,
        (Cover::Quoted, Some(Address::Src)) => TRANSPORT | 16,
        (Cover::Quoted, Some(Address::Dst)) => TRANSPORT | 32,
        // The quoted transport checksum may be cut behind any of these fields.
        (Cover::Quoted, None) => {
            let others = quoted_fields().filter(|other| other.info().address.is_none());
            TRANSPORT | 64 << others.take_while(|other| *other != field).count()
        }
        (Cover::Transport, _) if lacks_pseudo(info.header) => ICMP,
        (Cover::Transport | Cover::Inet, _) => TRANSPORT,
    }
}

/// Whether the transport checksum that covers a header's fields covers no addresses.
fn lacks_pseudo(header: Header) -> bool {
    let mut all = [header].into_iter().chain(header.implies().iter().copied());
    all.any(|header| header.info().holds.is_some_and(|sum| !sum.has_pseudo()))
}

/// The headers whose presence decides the place of a field.
pub(super) fn needs(field: Field) -> Vec<Header> {
    match field {
        Field::IpProto | Field::Ip6Proto | Field::InetProto => {
            return [Header::Ah].into_iter().chain(Header::transports()).collect();
        }
        Field::PktLaterFragment => return transports().collect(),
        Field::PktFragment => return vec![Header::Inet],
        Field::PktPayloadLen => return Header::behind_ports().collect(),
        _ => {}
    }
    match field.info().place {
        Where::Same(header, ..) | Where::Number(header, ..) | Where::Halves(header, ..) => {
            vec![header]
        }
        Where::First(fields) => fields.iter().map(|(header, _)| *header).collect(),
        _ => Vec::new(),
    }
}
