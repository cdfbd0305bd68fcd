//! Compares two packets field by field.

use crate::field::{FIELDS, Field, Header};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::place::{Place, bytes, number, place};
use crate::show::format_field;

/// One difference between two packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Where the packets differ: a field's name, `link` or `captured`. `payload[OFFSET]` stands for
    /// the payload from its first differing byte on, and `byte[OFFSET]` for header bytes or padding
    /// that no field covers. The first offset counts from the start of the payload, the second from
    /// the start of the packet.
    pub what: String,
    /// The first packet's value; `absent` when it has none.
    pub a: String,
    /// The second packet's.
    pub b: String,
}

/// The most bytes that a payload difference shows.
const SHOWN: usize = 8;

/// The most runs of header bytes that are listed.
const MAX_RUNS: usize = 16;

/// All differences between two packets' bytes: first header fields in the order of the field table,
/// then the first differing bytes of the payload, then header bytes that no field covers. The list
/// is empty exactly when link type, wire length and captured bytes are equal. Times, tags and
/// interfaces are not compared.
#[must_use]
pub fn diff_fields(a: &Packet, b: &Packet) -> Vec<Difference> {
    let mut found = Vec::new();
    if a.link != b.link {
        found.push(difference("link", format!("{:?}", a.link), format!("{:?}", b.link)));
    }
    let layouts = (a.parse(), b.parse());
    let mut explained = Vec::new();
    for info in FIELDS.iter().filter(|info| is_compared(info.field)) {
        let values = (a.get(&layouts.0, info.field), b.get(&layouts.1, info.field));
        if values.0 != values.1 {
            let text = |value: Option<u128>| {
                value.map_or_else(|| "absent".to_owned(), |v| format_field(info.field, v))
            };
            found.push(difference(info.name, text(values.0), text(values.1)));
            explained.extend(place(&layouts.0, info.field));
        }
    }
    icmp_checksum(a, b, &layouts, &mut found, &mut explained);
    let captured = (a.data().len(), b.data().len());
    if captured.0 != captured.1 {
        found.push(difference("captured", captured.0.to_string(), captured.1.to_string()));
    }
    payload(a, b, &layouts, &explained, &mut found);
    header_bytes(a, b, &layouts, &explained, &mut found);
    found
}

fn difference(what: impl Into<String>, a: String, b: String) -> Difference {
    Difference { what: what.into(), a, b }
}

/// Whether the field is compared: it describes the packet itself and repeats no other compared
/// field.
fn is_compared(field: Field) -> bool {
    use Field::*;
    let other_name = matches!(
        field,
        IpDscp | IpEcn | TcpSport | TcpDport | UdpSport | UdpDport | IcmpRest | Icmp6Rest
    );
    let attribute =
        matches!(field, PktTime | PktIngress | PktBackward | PktHeld | QuotedInetVersion);
    let either = field.info().header == Header::Inet;
    let quoted_either =
        matches!(field, QuotedInetSrc | QuotedInetDst | QuotedInetSport | QuotedInetDport);
    !(other_name || attribute || either || quoted_either)
}

fn is_explained(explained: &[Place], at: usize) -> bool {
    explained.iter().any(|place| (place.offset..place.offset + place.len).contains(&at))
}

/// Compares the checksums of ICMP and ICMPv6, which the field table lacks.
fn icmp_checksum(
    a: &Packet,
    b: &Packet,
    layouts: &(Layout, Layout),
    found: &mut Vec<Difference>,
    explained: &mut Vec<Place>,
) {
    for (header, name) in [(Header::Icmp, "icmp.checksum"), (Header::Icmp6, "icmp6.checksum")] {
        let value = |packet: &Packet, layout: &Layout| {
            let sum = layout.sum().filter(|_| layout.has(header))?;
            number(packet.data(), bytes(sum.at, 2))
        };
        let values = (value(a, &layouts.0), value(b, &layouts.1));
        if let (Some(x), Some(y)) = values
            && x != y
        {
            found.push(difference(name, format!("{x:#06x}"), format!("{y:#06x}")));
            explained.extend(layouts.0.sum().map(|sum| bytes(sum.at, 2)));
        }
    }
}

/// Compares the payloads and lists the first differing bytes. Where both payloads start at the same
/// offset, bytes that quoted fields explain do not count.
fn payload(
    a: &Packet,
    b: &Packet,
    layouts: &(Layout, Layout),
    explained: &[Place],
    found: &mut Vec<Difference>,
) {
    let bytes = (a.payload(&layouts.0), b.payload(&layouts.1));
    let start = layouts.0.payload_offset();
    let aligned = start == layouts.1.payload_offset();
    let pairs = bytes.0.iter().zip(bytes.1).enumerate();
    let same = pairs
        .take_while(|(at, (x, y))| x == y || aligned && is_explained(explained, start + at))
        .count();
    if same == bytes.0.len() && same == bytes.1.len() {
        return;
    }
    let text = |bytes: &[u8]| hex(bytes.get(same..).unwrap_or(&[]));
    found.push(difference(format!("payload[{same}]"), text(bytes.0), text(bytes.1)));
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "absent".to_owned();
    }
    let shown: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN { shown + "…" } else { shown }
}

/// Lists runs of differing bytes outside of the payload that no differing field explains. If the
/// headers lie at different offsets, runs are listed only when nothing else was found.
fn header_bytes(
    a: &Packet,
    b: &Packet,
    layouts: &(Layout, Layout),
    explained: &[Place],
    found: &mut Vec<Difference>,
) {
    let payload = (layouts.0.payload_offset(), layouts.0.payload_len());
    let comparable = a.data().len() == b.data().len()
        && payload == (layouts.1.payload_offset(), layouts.1.payload_len());
    if !comparable && !found.is_empty() {
        return;
    }
    let pairs: Vec<_> = a.data().iter().zip(b.data()).collect();
    let differs = |at: usize| {
        let in_payload = comparable && at >= payload.0 && at - payload.0 < payload.1;
        pairs.get(at).is_some_and(|(x, y)| x != y) && !in_payload && !is_explained(explained, at)
    };
    let mut at = 0;
    let mut runs = 0;
    while at < pairs.len() {
        let len = (at..).take_while(|at| differs(*at)).count();
        if len > 0 {
            runs += 1;
            if runs > MAX_RUNS {
                found.push(difference("byte", "more".to_owned(), "more".to_owned()));
                return;
            }
            let text = |packet: &Packet| hex(packet.data().get(at..at + len).unwrap_or(&[]));
            found.push(difference(format!("byte[{at}]"), text(a), text(b)));
        }
        at += len + 1;
    }
}
