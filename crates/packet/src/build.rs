//! Builds packets from fields: answers to a packet, and packets from nothing.

use crate::checksum;
use crate::declare::Parse;
use crate::field::{Base, DECLARATIONS, Declaration, Field, Header};
use crate::layout::Layout;
use crate::link::Link;
use crate::options;
use crate::packet::Packet;
use crate::wire::{arp, cooked, ether_type, ethernet, icmp, ipv4, ipv6, proto, tcp, udp};

/// The headers of a new packet behind the link header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// IPv4 and ICMP (8 bytes of header).
    Icmp,
    /// IPv6 and ICMPv6 (8 bytes of header).
    Icmp6,
    /// IPv4 and TCP without options.
    Tcp4,
    /// IPv6 and TCP without options.
    Tcp6,
    /// IPv4 and UDP.
    Udp4,
    /// IPv6 and UDP.
    Udp6,
    /// ARP (Ethernet link only).
    Arp,
}

/// The payload of a new packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NewPayload {
    /// No payload.
    Empty,
    /// The current packet from its IP header on, at most this many bytes, as ICMP errors quote it.
    Quote(u16),
    /// The current packet's payload, as an echo reply repeats it.
    Same,
}

const TTL: u8 = 64;

impl Shape {
    /// The headers that each packet of this shape has behind its link header.
    #[must_use]
    pub fn headers(self) -> &'static [Header] {
        use Header::{Arp, Icmp, Icmp6, Inet, Ip4, Ip6, L4, Tcp, Udp};
        match self {
            Shape::Icmp => &[Inet, Ip4, Icmp],
            Shape::Icmp6 => &[Inet, Ip6, Icmp6],
            Shape::Tcp4 => &[Inet, Ip4, L4, Tcp],
            Shape::Tcp6 => &[Inet, Ip6, L4, Tcp],
            Shape::Udp4 => &[Inet, Ip4, L4, Udp],
            Shape::Udp6 => &[Inet, Ip6, L4, Udp],
            Shape::Arp => &[Arp],
        }
    }

    /// Whether fields of a header can be assigned in a packet of this shape: of its own headers, of
    /// a link that the packet may have been built for, and of the echo that an ICMP message may be.
    #[must_use]
    pub fn takes(self, header: Header) -> bool {
        let echo = match self {
            Shape::Icmp => Some(Header::IcmpEcho),
            Shape::Icmp6 => Some(Header::Icmp6Echo),
            _ => None,
        };
        [self.headers(), Header::LINK].iter().any(|all| all.contains(&header))
            || echo == Some(header)
    }

    fn is_ip4(self) -> bool {
        matches!(self, Shape::Icmp | Shape::Tcp4 | Shape::Udp4)
    }

    fn ether_type(self) -> u16 {
        match self {
            Shape::Arp => ether_type::ARP,
            _ if self.is_ip4() => ether_type::IPV4,
            _ => ether_type::IPV6,
        }
    }

    fn proto(self) -> u8 {
        match self {
            Shape::Icmp => proto::ICMP,
            Shape::Icmp6 => proto::ICMP6,
            Shape::Tcp4 | Shape::Tcp6 => proto::TCP,
            Shape::Udp4 | Shape::Udp6 => proto::UDP,
            Shape::Arp => 0,
        }
    }

    /// Length of the transport header.
    fn transport_len(self) -> usize {
        match self {
            Shape::Icmp | Shape::Icmp6 => icmp::LEN,
            Shape::Tcp4 | Shape::Tcp6 => tcp::LEN,
            Shape::Udp4 | Shape::Udp6 => udp::LEN,
            Shape::Arp => 0,
        }
    }

    /// The largest payload that the length fields can express. Those of a header in front of IP
    /// count the IP header and the bytes `between`.
    fn max_payload(self, between: usize) -> usize {
        let ip = match (self.is_ip4(), between) {
            (true, _) => ipv4::LEN,
            (false, 0) => 0,
            (false, _) => ipv6::LEN,
        };
        usize::from(u16::MAX).saturating_sub(ip + self.transport_len() + between)
    }
}

/// Builds the packet that a function sends beside the current one. The link header is copied from
/// the current packet and keeps its VLAN tags. If the new packet goes `back`, the Ethernet
/// addresses are exchanged, and so is the direction in a Linux cooked header. The IP addresses are
/// copied from the current packet, and exchanged likewise, if it has the same IP version. Otherwise
/// they are 0. The TTL is 64, other fields are 0. Then the assignments are applied in order, and
/// lengths and checksums are computed. No Ethernet padding is added.
///
/// If the current packet's transport checksum is wrong and the new packet repeats its payload, the
/// new packet's checksum is wrong by the same amount, so that receivers notice the damage.
///
/// The payload is the captured part of it, cut to the length that the length fields can express.
/// ARP has no payload. Assignments to read-only fields and to fields that the shape lacks do
/// nothing. Returns `None` when the current packet has no link header to copy, and for ARP on any
/// link but Ethernet.
#[must_use]
pub fn build_new(
    current: &Packet,
    shape: Shape,
    back: bool,
    assignments: &[(Field, u128)],
    payload: NewPayload,
) -> Option<Packet> {
    build_with_options(current, shape, back, assignments, &[], payload)
}

/// As [`build_new`], with TCP options in this order, each with its values ([`options::values`]).
/// The payload leaves room for them.
#[must_use]
pub fn build_with_options(
    current: &Packet,
    shape: Shape,
    back: bool,
    assignments: &[(Field, u128)],
    options: &[(Header, Vec<u128>)],
    payload: NewPayload,
) -> Option<Packet> {
    let layout = current.parse();
    let mut data = link_header(current, &layout, shape, back)?;
    let error = match payload {
        NewPayload::Same => checksum::error(current, &layout),
        NewPayload::Empty | NewPayload::Quote(_) => None,
    };
    let payload = match payload {
        NewPayload::Empty => &[],
        NewPayload::Same => current.payload(&layout),
        NewPayload::Quote(most) => quote(current, &layout, usize::from(most)),
    };
    let more: usize = options.iter().filter_map(|(option, _)| options::growth(*option)).sum();
    let between = match layout.is_encapsulated() {
        true => data.len().saturating_sub(layout.base(Base::Network)),
        false => 0,
    };
    let most = shape.max_payload(between).saturating_sub(more);
    push_body(&mut data, shape, payload.get(..most).unwrap_or(payload));
    adapt_encapsulation(&mut data, &layout, shape);
    let mut packet = Packet::new(current.link, current.time_ns, data);
    packet.ingress = current.ingress;
    packet.backward = current.backward != back;
    let fresh = packet.parse();
    for (from, to) in address_fields(shape, back) {
        if let Some(address) = current.get(&layout, from) {
            packet.write(&fresh, to, address);
        }
    }
    finish(&mut packet, assignments);
    // Each option comes in front of the packet's other ones.
    for (option, values) in options.iter().rev() {
        let layout = packet.parse();
        options::push(&mut packet, &layout, *option, values);
    }
    if let Some(error) = error {
        checksum::spoil(&mut packet, error);
    }
    Some(packet)
}

/// Builds a packet from nothing. The link addresses are zero, and the rest is as in [`build_new`].
/// Returns `None` when the link cannot carry `shape`.
#[must_use]
pub fn build_fresh(
    link: Link,
    time_ns: u64,
    shape: Shape,
    assignments: &[(Field, u128)],
    payload: &[u8],
) -> Option<Packet> {
    if shape == Shape::Arp && link != Link::Ethernet {
        return None;
    }
    let protocol = shape.ether_type().to_be_bytes();
    let mut data = match link {
        Link::Ethernet => [&[0; ethernet::TYPE], &protocol[..]].concat(),
        Link::RawIp => Vec::new(),
        Link::Cooked => [&[0; cooked::PROTOCOL], &protocol[..]].concat(),
        Link::Cooked2 => [&protocol[..], &[0; cooked::LEN2 - 2]].concat(),
    };
    push_body(&mut data, shape, payload.get(..shape.max_payload(0)).unwrap_or(payload));
    let mut packet = Packet::new(link, time_ns, data);
    finish(&mut packet, assignments);
    Some(packet)
}

/// The fields to fill, each with the current packet's field that supplies the address: the source
/// first, then the destination.
fn address_fields(shape: Shape, back: bool) -> [(Field, Field); 2] {
    let (src, dst) = match shape.is_ip4() {
        true => (Field::IpSrc, Field::IpDst),
        false => (Field::Ip6Src, Field::Ip6Dst),
    };
    if back { [(src, dst), (dst, src)] } else { [(src, src), (dst, dst)] }
}

/// The current packet from its IP header on, without link padding, at most `most` bytes.
fn quote<'a>(current: &'a Packet, layout: &Layout, most: usize) -> &'a [u8] {
    if !layout.has(Header::Inet) {
        return &[];
    }
    let end = layout.ip_end().min(layout.ip().saturating_add(most)).min(current.data().len());
    current.data().get(layout.ip()..end).unwrap_or(&[])
}

/// Makes the link header of a packet of this shape from the current packet's link header.
fn link_header(current: &Packet, layout: &Layout, shape: Shape, back: bool) -> Option<Vec<u8>> {
    let data = current.data();
    let protocol = shape.ether_type().to_be_bytes();
    match current.link {
        Link::RawIp => (shape != Shape::Arp).then(Vec::new),
        Link::Ethernet => {
            if !layout.has(Header::Eth) {
                return None;
            }
            let is_inside = layout.is_encapsulated() && layout.has(Header::Inet);
            let is_inside = is_inside && shape != Shape::Arp;
            let end = if is_inside { layout.ip() } else { layout.ether_type_at() };
            let mut header = data.get(..end)?.to_vec();
            if back {
                let (dst, rest) = header.split_at_mut_checked(ethernet::SRC)?;
                dst.swap_with_slice(rest.get_mut(..6)?);
            }
            if !is_inside {
                header.extend(protocol);
            }
            Some(header)
        }
        Link::Cooked | Link::Cooked2 if shape == Shape::Arp => None,
        Link::Cooked => {
            let mut header = *data.first_chunk::<{ cooked::LEN }>()?;
            header[cooked::PROTOCOL..].copy_from_slice(&protocol);
            header[cooked::TYPE] = direction(header[cooked::TYPE], back);
            Some(header.to_vec())
        }
        Link::Cooked2 => {
            let mut header = *data.first_chunk::<{ cooked::LEN2 }>()?;
            header[..2].copy_from_slice(&protocol);
            header[cooked::TYPE2] = direction(header[cooked::TYPE2], back);
            Some(header.to_vec())
        }
    }
}

/// Updates protocol and length in the headers between the link header and IP for the new contents.
fn adapt_encapsulation(data: &mut [u8], layout: &Layout, shape: Shape) {
    let is_kept = layout.is_encapsulated() && layout.has(Header::Inet) && layout.has(Header::Eth);
    if !is_kept || shape == Shape::Arp {
        return;
    }
    let is_there = |declaration: &&Declaration| {
        declaration.at.0 == Base::Network && layout.has(declaration.header)
    };
    for declaration in DECLARATIONS.iter().filter(is_there) {
        let Parse::Rules(rules) = declaration.parse else { continue };
        let at = layout.base(Base::Network) + declaration.at.1;
        let body = data.len().saturating_sub(at + rules.least);
        let mut write = |offset: usize, value: u16| {
            let field = data.get_mut(at + offset..).and_then(|tail| tail.first_chunk_mut::<2>());
            if let Some(field) = field {
                *field = value.to_be_bytes();
            }
        };
        if let Some(offset) = rules.body {
            write(offset, u16::try_from(body).unwrap_or(u16::MAX));
        }
        let kind = (Field::EthType, shape.ether_type());
        let same = rules.same.iter().find(|(_, field, value)| (*field, *value) == kind);
        if let (Some((value, ..)), Some((_, offset, 2))) = (same, rules.next) {
            write(offset, *value);
        }
    }
}

/// The packet type of a cooked header. Received and sent are exchanged for a packet that goes back.
fn direction(kind: u8, back: bool) -> u8 {
    match kind {
        cooked::TO_US if back => cooked::BY_US,
        cooked::BY_US if back => cooked::TO_US,
        other => other,
    }
}

/// Appends network header, transport header and payload, with lengths but without checksums.
fn push_body(data: &mut Vec<u8>, shape: Shape, payload: &[u8]) {
    if shape == Shape::Arp {
        data.extend(arp::ETHERNET_IPV4);
        data.extend([0; arp::LEN - arp::ETHERNET_IPV4.len()]);
        return;
    }
    let len = shape.transport_len() + payload.len();
    let be = |len: usize| u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    if shape.is_ip4() {
        let [high, low] = be(ipv4::LEN + len);
        data.extend([0x45, 0, high, low, 0, 0, 0, 0, TTL, shape.proto(), 0, 0]);
        data.extend([0; 8]);
    } else {
        let [high, low] = be(len);
        data.extend([0x60, 0, 0, 0, high, low, shape.proto(), TTL]);
        data.extend([0; 32]);
    }
    let [high, low] = be(len);
    match shape {
        Shape::Tcp4 | Shape::Tcp6 => {
            data.extend([0; tcp::DATA_OFFSET]);
            data.extend([5 << 4, 0, 0, 0, 0, 0, 0, 0]);
        }
        Shape::Udp4 | Shape::Udp6 => data.extend([0, 0, 0, 0, high, low, 0, 0]),
        Shape::Icmp | Shape::Icmp6 | Shape::Arp => data.extend([0; icmp::LEN]),
    }
    data.extend(payload);
}

/// Applies the assignments, then the checksums.
fn finish(packet: &mut Packet, assignments: &[(Field, u128)]) {
    let mut layout = packet.parse();
    // The ICMP identifier may be assigned before the type that makes the message an echo.
    if layout.has(Header::Icmp) {
        layout.add(Header::IcmpEcho);
    }
    if layout.has(Header::Icmp6) {
        layout.add(Header::Icmp6Echo);
    }
    for (field, value) in assignments {
        packet.write(&layout, *field, *value);
    }
    checksum::fill(packet);
}
