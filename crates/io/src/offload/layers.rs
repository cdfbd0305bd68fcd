//! The headers in front of the segments of a frame: those of one IP packet, or those of a tunnel
//! and of the packet in it.

use braid_packet::field::Parse;
use braid_packet::{Field, Header, ether_type, proto};

/// A header whose length, or whose checksum, is another one in each segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layer {
    /// An IP header at this offset.
    Ip(usize),
    /// A UDP header of a tunnel, at this offset behind an IP header at the other.
    Udp(usize, usize),
}

/// The most headers of a frame.
const MOST: usize = 8;

/// The headers of a frame up to its transport header, from the outside in.
#[derive(Clone, Copy, Default)]
pub(super) struct Layers {
    all: [Option<Layer>; MOST],
}

impl Layers {
    /// Finds the headers in front of a transport header. `None` if they hold a header that is not
    /// known here, or that would need more work than a length.
    pub(super) fn find(frame: &[u8], transport: usize) -> Option<Self> {
        let mut found = Self::default();
        let mut places = found.all.iter_mut();
        let mut ip = network(frame, 0)?;
        loop {
            *places.next()? = Some(Layer::Ip(ip));
            let (protocol, behind) = ip_header(frame, ip)?;
            if behind == transport {
                return Some(found);
            }
            let next = match protocol {
                proto::IP4 | proto::IP6 => Inside::Packet(behind),
                proto::GRE => gre(frame, behind)?,
                proto::UDP => {
                    *places.next()? = Some(Layer::Udp(behind, ip));
                    udp_tunnel(frame, behind)?
                }
                _ => return None,
            };
            ip = match next {
                Inside::Packet(at) => at,
                Inside::Frame(at) => network(frame, at)?,
            };
            if ip >= transport {
                return None;
            }
        }
    }

    /// The headers, from the inside out.
    pub(super) fn inside_out(&self) -> impl Iterator<Item = Layer> {
        self.all.iter().rev().copied().flatten()
    }
}

/// What a tunnel holds, and where it begins.
enum Inside {
    Packet(usize),
    Frame(usize),
}

impl Inside {
    /// What an EtherType announces at an offset.
    fn announced(kind: u16, at: usize) -> Option<Self> {
        match kind {
            ether_type::IPV4 | ether_type::IPV6 => Some(Inside::Packet(at)),
            ether_type::BRIDGED => Some(Inside::Frame(at)),
            _ => None,
        }
    }
}

/// The start of the IP header in a frame that begins at an offset, after VLAN tags.
pub(super) fn network(frame: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 12;
    loop {
        match number16(frame, at)? {
            kind if ether_type::TAGS.contains(&kind) => at += 4,
            ether_type::IPV4 | ether_type::IPV6 => return Some(at + 2),
            _ => return None,
        }
    }
}

/// The protocol behind an IP header and its extension headers, and where it begins.
fn ip_header(frame: &[u8], ip: usize) -> Option<(u8, usize)> {
    let first = *frame.get(ip)?;
    if first >> 4 == 4 {
        return Some((*frame.get(ip + 9)?, ip + usize::from(first & 15) * 4));
    }
    let (mut next, mut at) = (*frame.get(ip + 6)?, ip + 40);
    while proto::EXTENSIONS.contains(&next) {
        let length = 8 + 8 * usize::from(*frame.get(at + 1)?);
        next = *frame.get(at)?;
        at += length;
    }
    (first >> 4 == 6).then_some((next, at))
}

/// What a GRE header holds. It may have a key, but no checksum and no sequence number.
fn gre(frame: &[u8], at: usize) -> Option<Inside> {
    let [flags, low] = *frame.get(at..)?.first_chunk()?;
    let length = match (flags, low) {
        (0, 0) => 4,
        (0x20, 0) => 8,
        _ => return None,
    };
    Inside::announced(number16(frame, at + Field::GreProto.offset())?, at + length)
}

/// What a UDP header holds at the ports of VXLAN and Geneve.
fn udp_tunnel(frame: &[u8], at: usize) -> Option<Inside> {
    let port = number16(frame, at + Field::UdpDport.offset())?;
    let tunnel = Header::announced(Field::UdpDport, port)?;
    let Parse::Rules(rules) = tunnel.info().parse else { return None };
    let start = at + tunnel.info().at.1;
    let behind = start + rules.length(frame.get(start..start + rules.least)?);
    match tunnel {
        Header::Vxlan => Some(Inside::Frame(behind)),
        Header::Geneve => {
            Inside::announced(number16(frame, at + Field::GeneveProto.offset())?, behind)
        }
        _ => None,
    }
}

fn number16(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}
