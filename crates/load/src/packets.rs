//! The packets that are sent: Ethernet, IPv4, UDP, and 18 bytes that say which packet it is.

use std::net::{Ipv4Addr, SocketAddrV4};

use braid_packet::checksum::Sum16;
use braid_packet::{Frame, proto};
use rustix::time::{ClockId, clock_gettime};

/// Where the IPv4 header begins.
const IP: usize = 14;
const UDP: usize = 34;
/// Where the payload begins: the number of the run (2 bytes), of the packet (8), the time (8).
const PAYLOAD: usize = 42;
/// The shortest frame: it just holds the payload, and is as long as Ethernet asks.
pub const LEAST: usize = 60;
/// The longest frame.
pub const MOST: usize = 1514;

/// The time (ns) of the clock that stamps packets.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// Where packets go.
pub struct Target {
    /// The MAC address of the sending device.
    pub source: [u8; 6],
    /// The MAC address of the device under test.
    pub mac: [u8; 6],
    /// The address and the port behind it.
    pub address: SocketAddrV4,
}

/// Writes the packets of a run.
pub struct Packets {
    /// A packet without source address, source port and payload for each size, with the sum of its
    /// UDP header and pseudo header and the sum of its IP header.
    templates: Vec<(Vec<u8>, Sum16, Sum16)>,
    run: u16,
    flows: u32,
}

/// What the payload of a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The number of the run.
    pub run: u16,
    /// The number of the packet, from 0.
    pub number: u64,
    /// When the packet was sent.
    pub sent_ns: u64,
}

impl Packets {
    /// Packets whose sizes and flows take turns.
    pub fn new(target: &Target, sizes: &[usize], flows: u32) -> Self {
        let templates = sizes.iter().map(|size| template(target, *size)).collect();
        // Tells the packets of this run from late ones of another.
        let run = (now_ns() / 1000) as u16;
        Self { templates, run, flows }
    }

    /// The number that the packets carry.
    pub fn run(&self) -> u16 {
        self.run
    }

    /// Writes packet `number` to an empty frame.
    pub fn write(&self, number: u64, now_ns: u64, frame: &mut Frame) {
        let (template, udp, ip) = &self.templates[(number % self.templates.len() as u64) as usize];
        assert!(frame.push(template), "a frame has room for a packet");
        let (address, port) = source((number % u64::from(self.flows)) as u32);
        let mut payload = [0; 18];
        payload[..2].copy_from_slice(&self.run.to_be_bytes());
        payload[2..10].copy_from_slice(&number.to_be_bytes());
        payload[10..].copy_from_slice(&now_ns.to_be_bytes());
        let ip = !ip.with(&address.octets()).folded();
        let sum = udp.with(&address.octets()).with(&port.to_be_bytes()).with(&payload);
        // 0 would say that there is no checksum.
        let udp = if sum.folded() == u16::MAX { u16::MAX } else { !sum.folded() };
        let bytes = frame.bytes_mut();
        bytes[IP + 10..IP + 12].copy_from_slice(&ip.to_be_bytes());
        bytes[IP + 12..IP + 16].copy_from_slice(&address.octets());
        bytes[UDP..UDP + 2].copy_from_slice(&port.to_be_bytes());
        bytes[UDP + 6..UDP + 8].copy_from_slice(&udp.to_be_bytes());
        bytes[PAYLOAD..PAYLOAD + 18].copy_from_slice(&payload);
    }
}

/// The source of a flow: one of a hundred hosts in 10.0.0.0/24, and a port.
fn source(flow: u32) -> (Ipv4Addr, u16) {
    (Ipv4Addr::new(10, 0, 0, 100 + (flow % 100) as u8), 1024 + (flow / 100 % 64_000) as u16)
}

fn template(target: &Target, size: usize) -> (Vec<u8>, Sum16, Sum16) {
    let mut bytes = vec![0; size];
    bytes[..6].copy_from_slice(&target.mac);
    bytes[6..12].copy_from_slice(&target.source);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let length = ((size - IP) as u16).to_be_bytes();
    bytes[IP..IP + 4].copy_from_slice(&[0x45, 0, length[0], length[1]]);
    // DF, TTL 64, UDP.
    bytes[IP + 6..IP + 10].copy_from_slice(&[0x40, 0, 64, 17]);
    bytes[IP + 16..UDP].copy_from_slice(&target.address.ip().octets());
    bytes[UDP + 2..UDP + 4].copy_from_slice(&target.address.port().to_be_bytes());
    let length = (size - UDP) as u16;
    bytes[UDP + 4..UDP + 6].copy_from_slice(&length.to_be_bytes());
    let ip = Sum16::default().with(&bytes[IP..UDP]);
    let pseudo = Sum16::pseudo_header(proto::UDP, size - UDP).with(&bytes[IP + 12..UDP]);
    (bytes.clone(), pseudo.with(&bytes[UDP..]), ip)
}

/// The source and the payload of a packet, if it has the form of the packets of [`Packets`].
pub fn read(frame: &[u8]) -> Option<(Ipv4Addr, Payload)> {
    let head = frame.get(..PAYLOAD + 18)?;
    let is_ours = head[12..15] == [8, 0, 0x45] && head[IP + 9] == 17;
    let number = |at: usize| head[at..at + 8].try_into().map(u64::from_be_bytes).ok();
    let run = u16::from_be_bytes([head[PAYLOAD], head[PAYLOAD + 1]]);
    let payload = Payload { run, number: number(PAYLOAD + 2)?, sent_ns: number(PAYLOAD + 10)? };
    let source = <[u8; 4]>::try_from(&head[IP + 12..IP + 16]).ok()?;
    is_ours.then_some((source.into(), payload))
}

/// Whether the checksums of a packet of that form are right.
pub fn is_right(frame: &[u8]) -> bool {
    let length = u16::from_be_bytes([frame[UDP + 4], frame[UDP + 5]]);
    let Some(udp) = frame.get(UDP..UDP + usize::from(length)) else { return false };
    let pseudo = Sum16::pseudo_header(proto::UDP, udp.len()).with(&frame[IP + 12..UDP]);
    let sum = pseudo.with(udp);
    sum.folded() == u16::MAX && Sum16::default().with(&frame[IP..UDP]).folded() == u16::MAX
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Packets of these sizes, over three flows.
    pub fn packets(sizes: &[usize]) -> Packets {
        let address = "198.51.100.10:5000".parse().unwrap();
        Packets::new(&Target { source: [2; 6], mac: [4; 6], address }, sizes, 3)
    }

    /// Packet `number`, sent at a time.
    pub fn packet(packets: &Packets, number: u64, sent_ns: u64) -> Frame {
        let mut frame = braid_packet::Pool::new(1, 2048).unwrap().take().unwrap();
        packets.write(number, sent_ns, &mut frame);
        frame
    }

    #[test]
    fn packets_say_who_they_are_and_have_right_checksums() {
        let packets = packets(&[60, 590, 1514]);
        for number in 0..70_000 {
            let frame = packet(&packets, number, 7 * number);
            assert_eq!(frame.len(), [60, 590, 1514][(number % 3) as usize]);
            let expected = Payload { run: packets.run(), number, sent_ns: 7 * number };
            let source = Ipv4Addr::new(10, 0, 0, 100 + (number % 3) as u8);
            assert_eq!(read(frame.bytes()), Some((source, expected)));
            assert!(is_right(frame.bytes()), "{number}");
        }
    }

    #[test]
    fn changed_packets_have_wrong_checksums() {
        let packets = packets(&[60]);
        for at in IP..60 {
            let mut frame = packet(&packets, 5, 6);
            frame.bytes_mut()[at] ^= 1;
            assert!(!is_right(frame.bytes()), "byte {at}");
        }
    }

    #[test]
    fn flows_have_sources_of_their_own() {
        let sources: std::collections::HashSet<_> = (0..5000).map(source).collect();
        assert_eq!(sources.len(), 5000);
    }
}
