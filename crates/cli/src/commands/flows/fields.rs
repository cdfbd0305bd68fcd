//! The fields that packets of a flow share, by name.

use braid_engine::{Path, SharedBytes};
use braid_packet::field::Where;
use braid_packet::rewrite::Outline;
use braid_packet::show::format_field;
use braid_packet::{Base, Field, HEADERS, Header, proto};

/// A field's name, or a byte of the packet, with its value as people write it.
pub type Named = (String, String);

/// A field with this value.
pub fn named((field, value): (Field, u128)) -> Named {
    (field.info().name.to_owned(), format_field(field, value))
}

/// Fields of the IP header or of a header behind it, as far as all packets of a flow share them.
/// Each has its offset and its length, in bytes.
fn shared(header: Header, outline: Outline) -> impl Iterator<Item = (Field, usize, usize)> {
    let (base, start) = header.info().at;
    let base = match base {
        Base::Ip => Some(outline.ip),
        Base::L4 => Some(outline.l4()),
        _ => None,
    };
    let fields = header.info().fields.iter().filter(|info| info.is_flow);
    fields.filter_map(move |info| match info.place {
        Where::Bits(bits) => Some((info.field, base? + start + bits.offset, bits.len.into())),
        _ => None,
    })
}

/// The headers that a protocol number or a UDP port announces, with the headers that they stand for
/// and the parts that need no bytes of their own.
fn announced(field: Field, value: u16) -> impl Iterator<Item = Header> {
    let first = Header::announced(field, value);
    let is_with = move |header: Header| {
        let is_part = |first: Header| header.is_certain() && header.implies().contains(&first);
        first.is_some_and(|first| [first, first.group()].contains(&header) || is_part(first))
    };
    HEADERS.iter().map(|(header, _)| *header).filter(move |header| is_with(*header))
}

/// The link addresses of a path's packets.
pub fn link(path: &Path) -> Vec<Named> {
    values(LINK.into_iter(), &path.link())
}

/// The fields that a flow's packets have in common.
pub fn key(outline: Outline, start: &SharedBytes) -> Vec<Named> {
    let key = &start.bytes;
    let (network, by) = match outline.is_ip6 {
        true => (Header::Ip6, Field::Ip6Proto),
        false => (Header::Ip4, Field::IpProto),
    };
    let proto = key[outline.proto()];
    let port = outline.l4() + Field::UdpDport.offset();
    let port = u16::from_be_bytes([key[port], key[port + 1]]);
    let above = announced(Field::UdpDport, port).filter(|_| proto == proto::UDP);
    let headers = [network].into_iter().chain(announced(by, proto.into())).chain(above);
    let proto = [(by, outline.proto(), 1)].into_iter();
    let fields = proto.chain(headers.flat_map(|header| shared(header, outline)));
    values(LINK.into_iter().chain(fields), start)
}

/// The link addresses: field, offset, length in bytes.
const LINK: [(Field, usize, usize); 2] =
    [(Field::EthDst, Field::EthDst.offset(), 6), (Field::EthSrc, Field::EthSrc.offset(), 6)];

/// The values of the fields whose bits are all in the mask, and of the remaining bytes of the mask.
/// Fields are given with offset and length in bytes.
fn values(
    fields: impl Iterator<Item = (Field, usize, usize)>,
    SharedBytes { mask, bytes }: &SharedBytes,
) -> Vec<Named> {
    let (mut left, mut found) = (*mask, Vec::new());
    for (field, at, len) in fields {
        if left[at..at + len].iter().all(|byte| *byte == 0xff) {
            let value =
                bytes[at..at + len].iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
            found.push(named((field, value)));
            left[at..at + len].fill(0);
        }
    }
    let rest = left.iter().enumerate().filter(|(_, mask)| **mask != 0);
    found.extend(rest.map(|(at, mask)| {
        (format!("byte {at} & {mask:#04x}"), format!("{:#04x}", bytes[at] & mask))
    }));
    found
}
