//! The headers of TCP segments in Ethernet frames.

use braid_endpoint::{Incoming, Outgoing};
use braid_packet::checksum::{self, Sum16};
use braid_tcp::{Flags, Seq};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The place of the type in a frame without VLAN tags.
const TYPE: usize = 12;
/// The most bytes of a link header: Ethernet with some VLAN tags.
pub const MOST_LINK: usize = 64;
/// The number of TCP among the protocols above IP.
const TCP: u8 = 6;
/// The bytes of a TCP header without options.
const TCP_HEADER: usize = 20;
/// The TTL of new packets.
const TTL: u8 = 64;

/// The ends of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ends {
    /// The address and port of its sender.
    pub from: (IpAddr, u16),
    /// The address and port of its receiver.
    pub to: (IpAddr, u16),
}

impl Ends {
    /// The ends of a segment in the other direction.
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    /// The sum of the pseudo header for this many bytes of TCP (RFC 9293 §3.1).
    fn pseudo(&self, len: usize) -> Sum16 {
        let addresses = [self.from.0, self.to.0];
        let sum = addresses.iter().fold(Sum16::default(), |sum, address| match address {
            IpAddr::V4(address) => sum.with(&address.octets()),
            IpAddr::V6(address) => sum.with(&address.octets()),
        });
        sum.with_word(TCP.into()).with_word(u32::try_from(len).unwrap_or(u32::MAX))
    }
}

/// A segment of TCP in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The bytes in front of the IP header.
    pub link: &'a [u8],
    /// Its sender and its receiver.
    pub ends: Ends,
    /// The segment.
    pub segment: Incoming<'a>,
    /// Whether the checksum of TCP is right.
    pub is_right: bool,
}

impl<'a> Frame<'a> {
    /// The segment in an Ethernet frame, maybe behind VLAN tags. `None` for all other frames: IP
    /// fragments, IPv6 with extension headers, and what is cut or malformed.
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let (link, is_v4) = link(frame)?;
        let packet = frame.get(link.len()..)?;
        let (addresses, tcp) = if is_v4 { ipv4(packet)? } else { ipv6(packet)? };
        let (header, _) = tcp.split_first_chunk::<TCP_HEADER>()?;
        let &[s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, ..] = header;
        let data = usize::from(offset >> 4) * 4;
        let ends = Ends {
            from: (addresses[0], u16::from_be_bytes([s0, s1])),
            to: (addresses[1], u16::from_be_bytes([d0, d1])),
        };
        let segment = Incoming {
            seq: Seq(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: Seq(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags(flags),
            window: u16::from_be_bytes([w0, w1]),
            options: tcp.get(TCP_HEADER..data)?,
            payload: tcp.get(data..)?,
        };
        let is_right = ends.pseudo(tcp.len()).with(tcp).folded() == u16::MAX;
        Some(Self { link, ends, segment, is_right })
    }
}

/// The bytes of a frame in front of the IP header, and whether that is one of IPv4.
fn link(frame: &[u8]) -> Option<(&[u8], bool)> {
    let types = frame.get(TYPE..)?.as_chunks::<4>().0.iter().zip((TYPE + 2..=MOST_LINK).step_by(4));
    for ([high, low, ..], end) in types {
        match u16::from_be_bytes([*high, *low]) {
            0x8100 | 0x88a8 => {}
            kind @ (0x0800 | 0x86dd) => return Some((frame.get(..end)?, kind == 0x0800)),
            _ => return None,
        }
    }
    None
}

/// The addresses of an IPv4 packet, and its bytes of TCP.
fn ipv4(packet: &[u8]) -> Option<([IpAddr; 2], &[u8])> {
    let &[version, _, l0, l1, _, _, f0, f1, _, protocol, _, _, a, b, c, d, e, f, g, h] =
        packet.first_chunk::<20>()?;
    let header = usize::from(version & 0xf) * 4;
    let is_fragment = u16::from_be_bytes([f0, f1]) & 0x3fff != 0;
    if version >> 4 != 4 || header < 20 || is_fragment || protocol != TCP {
        return None;
    }
    let tcp = packet.get(header..usize::from(u16::from_be_bytes([l0, l1])))?;
    let addresses = [Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h)];
    Some((addresses.map(IpAddr::V4), tcp))
}

/// As [`ipv4`], for IPv6.
fn ipv6(packet: &[u8]) -> Option<([IpAddr; 2], &[u8])> {
    let (&[version, _, _, _, l0, l1, next, _], rest) = packet.split_first_chunk::<8>()?;
    let (from, rest) = rest.split_first_chunk::<16>()?;
    let (to, rest) = rest.split_first_chunk::<16>()?;
    if version >> 4 != 6 || next != TCP {
        return None;
    }
    let tcp = rest.get(..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some(([from, to].map(|octets| IpAddr::V6(Ipv6Addr::from(*octets))), tcp))
}

/// Makes the link header of frames in the other direction: the addresses are exchanged.
pub fn turn(link: &[u8], turned: &mut Vec<u8>) {
    turned.clear();
    turned.extend(link);
    if let Some(addresses) = turned.first_chunk_mut::<12>() {
        addresses.rotate_left(6);
    }
}

/// Writes the frame of a segment behind a link header. `number` is the identification of IPv4.
pub fn write(link: &[u8], ends: Ends, number: u16, segment: &Outgoing<'_>, out: &mut Vec<u8>) {
    let len = TCP_HEADER + segment.options.len() + segment.payload_len();
    out.clear();
    out.extend(link);
    match (ends.from.0, ends.to.0) {
        (IpAddr::V4(from), IpAddr::V4(to)) => write_ipv4(from, to, number, len, out),
        (IpAddr::V6(from), IpAddr::V6(to)) => write_ipv6(from, to, len, out),
        // All segments of a connection have the IP version of its first one.
        _ => return,
    }
    let start = out.len();
    let offset = u8::try_from((TCP_HEADER + segment.options.len()) / 4).unwrap_or(15) << 4;
    out.extend(ends.from.1.to_be_bytes());
    out.extend(ends.to.1.to_be_bytes());
    out.extend(segment.seq.0.to_be_bytes());
    out.extend(segment.ack.0.to_be_bytes());
    out.extend([offset, segment.flags.0]);
    out.extend(segment.window.to_be_bytes());
    let place = out.len();
    // The checksum and the urgent pointer.
    out.extend([0; 4]);
    out.extend(&segment.options);
    out.extend(segment.payload.0);
    out.extend(segment.payload.1);
    let sum = !ends.pseudo(len).with(out.get(start..).unwrap_or_default()).folded();
    if let Some(field) = out.get_mut(place..place + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

fn write_ipv4(from: Ipv4Addr, to: Ipv4Addr, number: u16, len: usize, out: &mut Vec<u8>) {
    let [t0, t1] = u16::try_from(20 + len).unwrap_or(u16::MAX).to_be_bytes();
    let [n0, n1] = number.to_be_bytes();
    let ([a, b, c, d], [e, f, g, h]) = (from.octets(), to.octets());
    // Version and header length, length, identification, "don't fragment", TTL, protocol, checksum.
    let mut header = [0x45, 0, t0, t1, n0, n1, 0x40, 0, TTL, TCP, 0, 0, a, b, c, d, e, f, g, h];
    let sum = checksum::rfc1071(&header).to_be_bytes();
    [header[10], header[11]] = sum;
    out.extend(header);
}

fn write_ipv6(from: Ipv6Addr, to: Ipv6Addr, len: usize, out: &mut Vec<u8>) {
    let len = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    out.extend([0x60, 0, 0, 0, len[0], len[1], TCP, TTL]);
    out.extend(from.octets());
    out.extend(to.octets());
}
