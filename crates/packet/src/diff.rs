//! What differs between two packets, field by field.

use crate::access::{Place, place};
use crate::field::{FIELDS, Field, Header};
use crate::layout::Layout;
use crate::packet::Packet;
use crate::show::format_field;

/// One thing in which two packets differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// A field's name, `payload[OFFSET]`, or `byte[OFFSET]` for a byte of a header that no
    /// field covers. Offsets count from the start of the payload and of the packet.
    pub what: String,
    /// The first packet's value; `absent` when it has none.
    pub a: String,
    /// The second packet's.
    pub b: String,
}

/// Most bytes that a payload difference shows.
const SHOWN: usize = 8;

/// All differences between two packets' bytes: header fields in the order of the field table,
/// then payload (the first differing bytes), then header bytes that no field covers. Empty exactly
/// when link type, wire length and captured bytes are equal; times, tags and interfaces are not
/// compared.
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
    let captured = (a.data().len(), b.data().len());
    if captured.0 != captured.1 {
        found.push(difference("captured", captured.0.to_string(), captured.1.to_string()));
    }
    payload(a, b, &layouts, &mut found);
    header_bytes(a, b, &layouts, &explained, &mut found);
    found
}

fn difference(what: impl Into<String>, a: String, b: String) -> Difference {
    Difference { what: what.into(), a, b }
}

/// Fields that say nothing that another one does not say.
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

fn payload(a: &Packet, b: &Packet, layouts: &(Layout, Layout), found: &mut Vec<Difference>) {
    let bytes = (a.payload(&layouts.0), b.payload(&layouts.1));
    if bytes.0 == bytes.1 {
        return;
    }
    let same = bytes.0.iter().zip(bytes.1).take_while(|(x, y)| x == y).count();
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

/// Differing bytes outside of the payload that no differing field explains. Where the headers lie
/// elsewhere in the two packets, only if nothing else was found.
fn header_bytes(
    a: &Packet,
    b: &Packet,
    layouts: &(Layout, Layout),
    explained: &[Place],
    found: &mut Vec<Difference>,
) {
    let comparable = a.data().len() == b.data().len()
        && layouts.0.payload_offset() == layouts.1.payload_offset()
        && layouts.0.payload_len() == layouts.1.payload_len();
    if !comparable && !found.is_empty() {
        return;
    }
    let start = layouts.0.payload_offset();
    let payload = start..start + layouts.0.payload_len();
    for (at, (x, y)) in a.data().iter().zip(b.data()).enumerate() {
        let known = comparable && payload.contains(&at)
            || explained.iter().any(|p| (p.offset..p.offset + p.len).contains(&at));
        if x != y && !known {
            found.push(difference(format!("byte[{at}]"), format!("{x:02x}"), format!("{y:02x}")));
        }
    }
}
