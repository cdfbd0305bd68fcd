//! The headers of TCP segments in Ethernet frames.

use braid_endpoint::{Incoming, Outgoing};
use braid_packet::checksum::{self, Sum16};
use braid_packet::proto;
use braid_tcp::{Flags, Reader, Seq, Stored as _, put_bytes};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The place of the type in a frame without VLAN tags.
const TYPE: usize = 12;
/// The most bytes of a link header: Ethernet with some VLAN tags.
pub const MOST_LINK: usize = 64;
/// The least MTU that is believed, of IPv4 as in Linux, and of IPv6 (RFC 8200 §5).
const LEAST_MTU4: u32 = 552;
const LEAST_MTU6: u32 = 1280;
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
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    /// Writes them.
    pub fn put(&self, out: &mut Vec<u8>) {
        for (address, port) in [self.from, self.to] {
            match address {
                IpAddr::V4(address) => put_bytes(&address.octets(), out),
                IpAddr::V6(address) => put_bytes(&address.octets(), out),
            }
            port.put(out);
        }
    }

    /// Reads what [`Self::put`] has written. `None` if the bytes are damaged.
    pub fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { from: read_end(from)?, to: read_end(from)? })
    }

    /// The sum of the pseudo header for this many bytes of TCP.
    fn pseudo(&self, len: usize) -> Sum16 {
        pseudo([self.from.0, self.to.0], proto::TCP, len)
    }
}

/// Reads an address and a port.
fn read_end(from: &mut Reader<'_>) -> Option<(IpAddr, u16)> {
    let address = from.bytes()?;
    let v4 = || <[u8; 4]>::try_from(address).ok().map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(address).ok().map(IpAddr::from);
    Some((v4().or_else(v6)?, u16::get(from)?))
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
    #[must_use]
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let (link, is_v4) = link(frame)?;
        let packet = frame.get(link.len()..)?;
        let (addresses, tcp) =
            if is_v4 { ipv4(packet, proto::TCP)? } else { ipv6(packet, proto::TCP)? };
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

/// An ICMP message about a segment that was too long for a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    /// Its sender and its receiver.
    pub ends: Ends,
    /// Its number.
    pub seq: Seq,
    /// The most bytes of TCP, without its header, that the link takes.
    pub most: u16,
}

impl TooLong {
    /// The message in a frame: "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443
    /// §3.2). `None` for all other frames.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let (link, is_v4) = link(frame)?;
        let packet = frame.get(link.len()..)?;
        let (protocol, kind) = if is_v4 { (proto::ICMP, [3, 4]) } else { (proto::ICMP6, [2, 0]) };
        let read = if is_v4 { ipv4 } else { ipv6 };
        let (addresses, message) = read(packet, protocol)?;
        let (&[number, code, _, _, m0, m1, m2, m3], quoted) = message.split_first_chunk()?;
        let is_right = match is_v4 {
            true => checksum::rfc1071(message) == 0,
            false => pseudo(addresses, protocol, message.len()).with(message).folded() == u16::MAX,
        };
        if [number, code] != kind || !is_right {
            return None;
        }
        // Old routers do not tell the MTU, and no link counts as one that takes less than the
        // least. The headers are those of IP and TCP.
        let (mtu, headers, least) = if is_v4 {
            (u32::from(u16::from_be_bytes([m2, m3])), 40, LEAST_MTU4)
        } else {
            (u32::from_be_bytes([m0, m1, m2, m3]), 60, LEAST_MTU6)
        };
        let (addresses, tcp) = quoted_tcp(quoted, is_v4)?;
        let (&[s0, s1, d0, d1, q0, q1, q2, q3], _) = tcp.split_first_chunk()?;
        let ends = Ends {
            from: (addresses[0], u16::from_be_bytes([s0, s1])),
            to: (addresses[1], u16::from_be_bytes([d0, d1])),
        };
        let most = u16::try_from(mtu.max(least) - headers).unwrap_or(u16::MAX);
        Some(Self { ends, seq: Seq(u32::from_be_bytes([q0, q1, q2, q3])), most })
    }
}

/// The addresses of a quoted packet, and the start of its TCP. The quotation may be cut.
fn quoted_tcp(packet: &[u8], is_v4: bool) -> Option<([IpAddr; 2], &[u8])> {
    if is_v4 {
        let header = packet.first_chunk::<20>()?;
        let len = usize::from(header[0] & 0xf) * 4;
        let is_tcp = header[0] >> 4 == 4 && len >= 20 && header[9] == proto::TCP;
        is_tcp.then_some((addresses4(header), packet.get(len..)?))
    } else {
        let (header, tcp) = packet.split_first_chunk::<40>()?;
        (header[0] >> 4 == 6 && header[6] == proto::TCP).then_some((addresses6(header), tcp))
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

/// The addresses of an IPv4 packet of this protocol, and the bytes behind its header.
fn ipv4(packet: &[u8], wanted: u8) -> Option<([IpAddr; 2], &[u8])> {
    let header = packet.first_chunk::<20>()?;
    let &[version, _, l0, l1, _, _, f0, f1, _, protocol, ..] = header;
    let len = usize::from(version & 0xf) * 4;
    let is_fragment = u16::from_be_bytes([f0, f1]) & 0x3fff != 0;
    if version >> 4 != 4 || len < 20 || is_fragment || protocol != wanted {
        return None;
    }
    let behind = packet.get(len..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((addresses4(header), behind))
}

/// As [`ipv4`], for IPv6.
fn ipv6(packet: &[u8], wanted: u8) -> Option<([IpAddr; 2], &[u8])> {
    let (header, rest) = packet.split_first_chunk::<40>()?;
    let &[version, _, _, _, l0, l1, next, ..] = header;
    if version >> 4 != 6 || next != wanted {
        return None;
    }
    let behind = rest.get(..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((addresses6(header), behind))
}

fn addresses4(header: &[u8; 20]) -> [IpAddr; 2] {
    let [.., a, b, c, d, e, f, g, h] = *header;
    [Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h)].map(IpAddr::V4)
}

fn addresses6(header: &[u8; 40]) -> [IpAddr; 2] {
    let (_, addresses) = header.split_at(8);
    let mut both = addresses.as_chunks::<16>().0.iter().map(|octets| Ipv6Addr::from(*octets));
    [0, 1].map(|_| IpAddr::V6(both.next().unwrap_or(Ipv6Addr::UNSPECIFIED)))
}

/// The sum of the pseudo header for this many bytes of a protocol.
fn pseudo(addresses: [IpAddr; 2], protocol: u8, len: usize) -> Sum16 {
    let sum = Sum16::pseudo_header(protocol, len);
    addresses.iter().fold(sum, |sum, address| match address {
        IpAddr::V4(address) => sum.with(&address.octets()),
        IpAddr::V6(address) => sum.with(&address.octets()),
    })
}

/// Makes the link header of frames in the other direction: the addresses are exchanged.
pub fn turn(link: &[u8], turned: &mut Vec<u8>) {
    turned.clear();
    turned.extend(link);
    if let Some(addresses) = turned.first_chunk_mut::<12>() {
        addresses.rotate_left(6);
    }
}

/// A link header of frames of an IP version, like that of another frame.
#[must_use]
pub fn link_for(link: &[u8], is_v4: bool) -> Vec<u8> {
    let mut made = link.to_vec();
    if let Some(kind) = made.last_chunk_mut::<2>() {
        *kind = if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    }
    made
}

/// The frame of a segment that answers another one.
#[must_use]
pub fn answer(to: &Frame<'_>, segment: &Outgoing<'_>) -> Vec<u8> {
    let (mut link, mut frame) = (Vec::new(), Vec::new());
    turn(to.link, &mut link);
    write(&link, to.ends.reversed(), 0, segment, &mut frame);
    frame
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
    let mut header =
        [0x45, 0, t0, t1, n0, n1, 0x40, 0, TTL, proto::TCP, 0, 0, a, b, c, d, e, f, g, h];
    let sum = checksum::rfc1071(&header).to_be_bytes();
    [header[10], header[11]] = sum;
    out.extend(header);
}

fn write_ipv6(from: Ipv6Addr, to: Ipv6Addr, len: usize, out: &mut Vec<u8>) {
    let len = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    out.extend([0x60, 0, 0, 0, len[0], len[1], proto::TCP, TTL]);
    out.extend(from.octets());
    out.extend(to.octets());
}
