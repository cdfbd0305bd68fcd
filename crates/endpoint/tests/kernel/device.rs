//! A TAP device, with segments in Ethernet and IPv4 on it.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use braid_endpoint::{Incoming, Outgoing};
use braid_io::{OpenError, Port, TapPort, wait};
use braid_packet::{Frame, Header, Link, Packet, Pool, checksum};
use braid_tcp::{Flags, Seq};

/// The kernel's address.
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// The endpoint's address.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// The device.
pub struct Tap {
    port: TapPort,
    pool: Pool,
    frames: Vec<Frame>,
}

impl Tap {
    /// Makes the device in this network namespace.
    pub fn open() -> Result<Self, OpenError> {
        let port = TapPort::open("t0")?;
        for words in [
            "link set t0 address 02:00:00:00:00:01",
            "addr add 10.9.0.1/24 dev t0",
            "link set t0 up",
            "neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev t0 nud permanent",
        ] {
            let done = Command::new("ip").args(words.split(' ')).status().unwrap();
            assert!(done.success(), "ip {words}");
        }
        let pool = Pool::new(256, 2048).expect("memory for frames");
        Ok(Self { port, pool, frames: Vec::new() })
    }

    /// Waits for a segment, at most this long, and takes all that are there with the ports from and
    /// to which they go.
    pub fn receive(&mut self, most: Duration, mut take: impl FnMut((u16, u16), &Incoming<'_>)) {
        let _ = wait([self.port.descriptor()].into_iter(), most);
        let mut frames = Vec::new();
        let lost = &mut |why| panic!("a frame is lost: {why:?}");
        self.port.receive(&mut self.pool, &mut frames, lost).unwrap();
        for frame in frames {
            let bytes = frame.bytes();
            let packet = Packet::new(Link::Ethernet, 0, bytes);
            if packet.parse().has(Header::Tcp) {
                assert!(checksum::verify(&packet, &packet.parse()).all_right());
                let (ports, segment) = segment_of(bytes);
                take(ports, &segment);
            }
            self.pool.put(frame);
        }
    }

    /// Sends a segment between these ports.
    pub fn send(&mut self, ports: (u16, u16), segment: &Outgoing<'_>) {
        let mut packet = Packet::new(Link::Ethernet, 0, frame_of(ports, segment));
        checksum::fill(&mut packet);
        self.frames.push(packet.into_frame());
        let lost = &mut |_, why| panic!("a frame is not sent: {why:?}");
        self.port.send(&mut self.pool, &mut self.frames, lost);
    }
}

fn frame_of((from, to): (u16, u16), segment: &Outgoing<'_>) -> Vec<u8> {
    let options = &segment.options;
    let len = u16::try_from(40 + options.len() + segment.payload_len()).unwrap();
    let mut frame = [MACS[0], MACS[1]].concat();
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(len.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(HERE.octets());
    frame.extend(THERE.octets());
    frame.extend(from.to_be_bytes());
    frame.extend(to.to_be_bytes());
    frame.extend(segment.seq.0.to_be_bytes());
    frame.extend(segment.ack.0.to_be_bytes());
    frame.extend([u8::try_from((20 + options.len()) * 4).unwrap(), segment.flags.0]);
    frame.extend(segment.window.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(options);
    frame.extend(segment.payload.0);
    frame.extend(segment.payload.1);
    frame
}

/// The segment of a frame with TCP in IPv4 without options.
fn segment_of(frame: &[u8]) -> ((u16, u16), Incoming<'_>) {
    let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    let tcp = &frame[34..14 + len];
    let short = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let long = |at: usize| Seq(u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap()));
    let (options, payload) = tcp[20..].split_at(usize::from(tcp[12] >> 4) * 4 - 20);
    let segment = Incoming {
        seq: long(4),
        ack: long(8),
        flags: Flags(tcp[13]),
        window: short(14),
        options,
        payload,
    };
    ((short(0), short(2)), segment)
}
