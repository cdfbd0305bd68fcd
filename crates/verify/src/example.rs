//! Builds a packet from a solver's values for its headers and fields.

use braid_packet::{Field, Header, Link, Packet, Shape, build_fresh};

use crate::check::Difference;
use crate::headers::bit;

/// Fields that repeat other fields, or that follow from the packet's headers.
const DERIVED: [Field; 6] = [
    Field::InetTtl,
    Field::IpTos,
    Field::IcmpRest,
    Field::Icmp6Rest,
    Field::L4Sport,
    Field::L4Dport,
];
/// The longest packet that is built.
const MAX_LEN: u128 = 9014;
/// The shortest Ethernet frame.
const MIN_FRAME: u128 = 60;

/// Builds a packet with these headers and values. Not all headers can be built, so parse the packet
/// to see which ones it has.
#[must_use]
pub fn packet(difference: &Difference) -> Option<Packet> {
    let has = |header: Header| difference.presence & bit(header) != 0;
    let value = |field: Field| {
        difference.fields.iter().find(|(of, _)| *of == field).map(|(_, value)| *value)
    };
    let link = if has(Header::Eth) { Link::Ethernet } else { Link::RawIp };
    let not_built = [Header::Mpls, Header::Ah, Header::Esp, Header::Gre, Header::Pppoe];
    if not_built.into_iter().any(&has) {
        return None;
    }
    let settable: Vec<(Field, u128)> = difference
        .fields
        .iter()
        .copied()
        .filter(|(field, _)| !DERIVED.contains(field))
        .filter(|(field, _)| field.info().access == braid_packet::Access::Rw)
        .collect();
    let quoted = quote(&has, &value);
    let mut packet = match shape(&has) {
        Some(shape) => build_fresh(link, 0, shape, &settable, &quoted)?,
        None => bare(&has, &value, link)?,
    };
    let tags = [(Header::Vlan2, Field::Vlan2Id), (Header::Vlan, Field::VlanId)];
    for (header, id) in tags {
        if has(header) {
            packet.push_vlan(u16::try_from(value(id).unwrap_or(0) & 0xfff).ok()?);
        }
    }
    let packet = with_options(packet, &has);
    let mut packet = with_length(packet, value(Field::PktLen).unwrap_or(0));
    let layout = packet.parse();
    for (field, value) in settable {
        packet.set(&layout, field, value);
    }
    braid_packet::checksum::fill(&mut packet);
    Some(packet)
}

fn shape(has: &dyn Fn(Header) -> bool) -> Option<Shape> {
    let four = has(Header::Ip4);
    Some(if has(Header::Arp) {
        Shape::Arp
    } else if has(Header::Tcp) {
        if four { Shape::Tcp4 } else { Shape::Tcp6 }
    } else if has(Header::Udp) {
        if four { Shape::Udp4 } else { Shape::Udp6 }
    } else if has(Header::Icmp) {
        Shape::Icmp
    } else if has(Header::Icmp6) {
        Shape::Icmp6
    } else {
        return None;
    })
}

/// A packet without a recognised header behind its link or IP header.
fn bare(
    has: &dyn Fn(Header) -> bool,
    value: &dyn Fn(Field) -> Option<u128>,
    link: Link,
) -> Option<Packet> {
    if !has(Header::Inet) {
        let mut data = vec![0_u8; 60];
        // An unrecognised type: the one for local experiments.
        data[12..14].copy_from_slice(&[0x88, 0xb5]);
        return (link == Link::Ethernet).then(|| Packet::new(link, 0, data));
    }
    let shape = if has(Header::Ip4) { Shape::Udp4 } else { Shape::Udp6 };
    let packet = build_fresh(link, 0, shape, &[], &[])?;
    let at = packet.parse().payload_offset().checked_sub(8)?;
    let (version4, mut data) = (has(Header::Ip4), packet.data().to_vec());
    let proto = u8::try_from(value(Field::InetProto).unwrap_or(253)).unwrap_or(253);
    let known = [1, 6, 17, 47, 50, 51, 58, 0, 43, 44, 60, 135];
    // A protocol for experiments replaces a protocol that would add a header.
    let proto = if known.contains(&proto) { 253 } else { proto };
    let place = if version4 { at.checked_sub(20)? + 9 } else { at.checked_sub(40)? + 6 };
    *data.get_mut(place)? = proto;
    let mut packet = Packet::new(link, 0, data);
    braid_packet::checksum::fill(&mut packet);
    Some(packet)
}

/// The IP packet that an ICMP error quotes.
fn quote(has: &dyn Fn(Header) -> bool, value: &dyn Fn(Field) -> Option<u128>) -> Vec<u8> {
    if !has(Header::Quoted) {
        return match (has(Header::Vxlan), has(Header::Geneve)) {
            (true, _) => vec![8, 0, 0, 0, 0, 0, 0, 0],
            (_, true) => vec![0; 8],
            _ => Vec::new(),
        };
    }
    let proto = value(Field::QuotedProto).unwrap_or(0);
    let shape = match (has(Header::Quoted4), has(Header::QuotedL4), has(Header::QuotedEcho), proto)
    {
        (true, true, _, 6) => Shape::Tcp4,
        (true, false, true, _) => Shape::Icmp,
        (true, ..) => Shape::Udp4,
        (false, true, _, 6) => Shape::Tcp6,
        (false, false, true, _) => Shape::Icmp6,
        (false, ..) => Shape::Udp6,
    };
    let kind = match shape {
        Shape::Icmp => vec![(Field::IcmpType, 8)],
        Shape::Icmp6 => vec![(Field::Icmp6Type, 128)],
        _ => Vec::new(),
    };
    let built = build_fresh(Link::RawIp, 0, shape, &kind, &[]);
    built.map(|packet| packet.data().to_vec()).unwrap_or_default()
}

/// Adds the required TCP options in front of the payload.
fn with_options(packet: Packet, has: &dyn Fn(Header) -> bool) -> Packet {
    let known: [(Header, &[u8]); 4] = [
        (Header::TcpMss, &[2, 4, 0, 0]),
        (Header::TcpWscale, &[1, 3, 3, 0]),
        (Header::TcpSackOk, &[1, 1, 4, 2]),
        (Header::TcpTs, &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let options: Vec<u8> = known
        .iter()
        .filter(|(header, _)| has(*header))
        .flat_map(|(_, bytes)| bytes.iter().copied())
        .collect();
    if options.is_empty() || !has(Header::Tcp) {
        return packet;
    }
    let layout = packet.parse();
    let (at, link) = (layout.payload_offset(), packet.link);
    let mut data = packet.data().to_vec();
    data.splice(at..at, options.iter().copied());
    if let Some(byte) = data.get_mut(at - 8) {
        *byte += u8::try_from(options.len() / 4).unwrap_or(0) << 4;
    }
    lengthen(Packet::new(link, 0, data), options.len(), has(Header::Ip4))
}

/// Increases the length in the IP header.
fn lengthen(packet: Packet, more: usize, version4: bool) -> Packet {
    let (link, mut data) = (packet.link, packet.data().to_vec());
    let ip = if link == Link::RawIp { 0 } else { ether_end(&data) };
    let at = if version4 { ip + 2 } else { ip + 4 };
    if let Some(field) = data.get_mut(at..at + 2) {
        let length = u16::from_be_bytes([field[0], field[1]]);
        let length = length.saturating_add(u16::try_from(more).unwrap_or(u16::MAX));
        field.copy_from_slice(&length.to_be_bytes());
    }
    let mut packet = Packet::new(link, 0, data);
    braid_packet::checksum::fill(&mut packet);
    packet
}

/// The end of an Ethernet frame's link header, including its tags.
fn ether_end(data: &[u8]) -> usize {
    let mut at = 12;
    while data.get(at..at + 2) == Some(&[0x81, 0x00]) {
        at += 4;
    }
    at + 2
}

/// Extends the packet to this length with padding behind it.
fn with_length(packet: Packet, wanted: u128) -> Packet {
    let wanted = wanted.clamp(MIN_FRAME, MAX_LEN);
    let link = packet.link;
    let mut data = packet.data().to_vec();
    let length = usize::try_from(wanted).unwrap_or(0);
    if link == Link::Ethernet && data.len() < length {
        data.resize(length, 0);
    }
    Packet::new(link, 0, data)
}

#[cfg(test)]
mod tests {
    use super::packet;
    use crate::check::Difference;
    use crate::headers;
    use braid_packet::{Field, Header};

    fn built(presence: u128, fields: &[(Field, u128)]) -> Option<braid_packet::Packet> {
        let difference = Difference {
            path: String::new(),
            parts: Vec::new(),
            presence,
            fields: fields.to_vec(),
        };
        packet(&difference)
    }

    fn port(set: u128) -> u128 {
        match (set & headers::bit(Header::Vxlan) != 0, set & headers::bit(Header::Geneve) != 0) {
            (true, _) => 4789,
            (_, true) => 6081,
            _ => 53,
        }
    }

    #[test]
    fn packets_have_the_headers_and_values_that_were_asked_for() {
        let mut right = 0;
        let sets = headers::all();
        for set in &sets {
            let fields = [
                (Field::IpSrc, 0x0a00_0001),
                (Field::IpDst, 0xc000_0201),
                (Field::TcpDport, 80),
                (Field::UdpDport, port(*set)),
                (Field::IcmpType, if set & headers::bit(Header::Quoted) == 0 { 8 } else { 3 }),
                (Field::Icmp6Type, if set & headers::bit(Header::Quoted) == 0 { 128 } else { 3 }),
                (Field::PktLen, 100),
            ];
            let Some(packet) = built(*set, &fields) else { continue };
            let layout = packet.parse();
            let echo = headers::bit(Header::IcmpEcho) | headers::bit(Header::Icmp6Echo);
            if layout.presence() & !echo == set & !echo {
                right += 1;
            }
            assert_eq!(packet.get(&layout, Field::IpSrc).unwrap_or(0x0a00_0001), 0x0a00_0001);
            assert!(braid_packet::checksum::verify(&packet, &layout).all_right());
        }
        assert!(right > 60, "{right} of {}", sets.len());
    }
}
