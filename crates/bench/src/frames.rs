//! Frames in memory, in the order in which they are sent.

use std::ops::Range;

use braid_packet::{Link, Packet, checksum};

use crate::feed::Feed;
use braid_traffic::random::hash;

/// Frames start at multiples of this number of bytes.
const LINE: usize = 64;
/// The least number of frames in a round of traffic. Fewer flows are repeated, in another order
/// each time.
pub const MIN_FRAMES: u64 = 1024;
/// Time between two packets (ns): ten million packets a second.
pub const STEP_NS: u64 = 100;
/// Time of the first packet (ns): 2025-01-01T00:00:00Z.
pub const START_NS: u64 = braid_traffic::START_NS;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// The lowest source port.
pub const FIRST_PORT: u16 = 1024;

/// The fields of a frame's headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Headers {
    /// IPv4 source address.
    pub src: u32,
    /// IPv4 destination address.
    pub dst: u32,
    /// Protocol.
    pub proto: u8,
    /// Source port of TCP or UDP; identifier of ICMP echo.
    pub sport: u16,
    /// Destination port of TCP or UDP.
    pub dport: u16,
    /// TCP flags.
    pub flags: u8,
    /// TCP's sequence number and acknowledgement.
    pub numbers: (u32, u32),
    /// ICMP type and code.
    pub icmp: (u8, u8),
}

impl Headers {
    /// The same headers with other TCP flags.
    #[must_use]
    pub fn with_flags(self, flags: u8) -> Self {
        Self { flags, ..self }
    }

    /// The same headers with these numbers of TCP.
    #[must_use]
    pub fn with_numbers(self, seq: u32, ack: u32) -> Self {
        Self { numbers: (seq, ack), ..self }
    }

    /// Whether the packet has a payload. A TCP segment that opens or ends a connection has none.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        self.proto != 6 || self.flags & (SYN | FIN | RST) == 0
    }

    /// The length of the payload in a frame of this length.
    #[must_use]
    pub fn payload_len(&self, length: usize) -> usize {
        let headers = 34 + self.l4().len();
        if self.has_payload() { length.saturating_sub(headers) } else { 0 }
    }

    /// An Ethernet frame of `frame_bytes` bytes without FCS and with correct checksums. The frame
    /// is longer if its headers need more room. The payload begins with one of `payloads`, the same
    /// for all packets of a flow. The rest is zeros. Behind a packet without payload, there is
    /// padding.
    #[must_use]
    pub fn frame(&self, length: usize, payloads: &[String]) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let l4 = self.l4();
        let payload = self.payload_len(length);
        let total = 20 + l4.len() + payload;
        bytes.extend([0x45, 0]);
        bytes.extend(size(total));
        bytes.extend([0, 0, 0x40, 0, 64, self.proto, 0, 0]);
        bytes.extend(self.src.to_be_bytes());
        bytes.extend(self.dst.to_be_bytes());
        bytes.extend(l4);
        if self.proto == 17 {
            bytes[38..40].copy_from_slice(&size(total - 20));
        }
        let chosen = usize::try_from(self.hash()).unwrap_or(0) % payloads.len().max(1);
        let text = payloads.get(chosen).map_or(&[][..], |text| text.as_bytes());
        let end = bytes.len() + payload;
        bytes.extend(text.iter().take(payload));
        bytes.resize(end.max(length), 0);
        let mut packet = Packet::new(Link::Ethernet, 0, bytes);
        checksum::fill(&mut packet);
        packet.data().to_vec()
    }

    /// A hash of the flow, which selects the payload.
    fn hash(&self) -> u64 {
        let addresses = u64::from(self.src) << 32 | u64::from(self.dst);
        let ports = u64::from(self.sport) << 16 | u64::from(self.dport);
        hash(addresses, ports << 8 | u64::from(self.proto)) >> 32
    }

    fn l4(&self) -> Vec<u8> {
        let ports = [self.sport.to_be_bytes(), self.dport.to_be_bytes()].concat();
        match self.proto {
            6 => {
                let (seq, ack) = (self.numbers.0.to_be_bytes(), self.numbers.1.to_be_bytes());
                let rest = [0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0];
                [&ports, &seq[..], &ack[..], &rest[..]].concat()
            }
            17 => [&ports, &[0; 4][..]].concat(),
            1 => {
                let id = self.sport.to_be_bytes();
                vec![self.icmp.0, self.icmp.1, 0, 0, id[0], id[1], 0, 1]
            }
            _ => Vec::new(),
        }
    }
}

fn size(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}

/// Frames of one length in the order in which they are sent. Each is sent `train` times in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ring {
    bytes: Vec<u8>,
    length: usize,
    stride: usize,
    frames: usize,
    train: u64,
}

impl Ring {
    /// Builds the frames of these headers, in this order.
    #[must_use]
    pub fn new(headers: &[Headers], frame_bytes: usize, train: u64, payloads: &[String]) -> Self {
        let frame = |one: &Headers| one.frame(frame_bytes, payloads);
        let frames: Vec<Vec<u8>> = headers.iter().map(frame).collect();
        let length = frames.iter().map(Vec::len).max().unwrap_or(0);
        let stride = length.next_multiple_of(LINE);
        let mut bytes = vec![0; stride * frames.len()];
        for (place, frame) in bytes.chunks_exact_mut(stride.max(1)).zip(&frames) {
            place[..frame.len()].copy_from_slice(frame);
        }
        Self { bytes, length, stride, frames: frames.len(), train: train.max(1) }
    }

    /// Number of packets until the order repeats.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.frames as u64 * self.train
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Number of packets that a flow sends in a row.
    #[must_use]
    pub fn train(&self) -> u64 {
        self.train
    }

    /// Length of each frame in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.length
    }

    /// A cursor over all packets from the first one on, or over the first `packets` of them. It
    /// repeats them without end.
    #[must_use]
    pub fn cursor(&self, packets: u64) -> Cursor<'_> {
        let frames = packets.div_ceil(self.train).clamp(1, self.frames.max(1) as u64) as usize;
        let train = self.train;
        Cursor { ring: self, train, frames: 0..frames, at: 0, sent: 0, time_ns: START_NS }
    }
}

/// A position in a [`Ring`], and the time there.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    ring: &'a Ring,
    train: u64,
    frames: Range<usize>,
    at: usize,
    sent: u64,
    time_ns: u64,
}

impl Cursor<'_> {
    /// From now on, sends only these frames, one packet of each at a time, and repeats them without
    /// end. The time continues.
    pub fn only(&mut self, frames: Range<usize>) {
        let end = frames.end.min(self.ring.frames);
        self.frames = frames.start.min(end.saturating_sub(1))..end;
        (self.at, self.sent, self.train) = (self.frames.start, 0, 1);
    }

    /// As [`Cursor::only`], for this number of frames at the end.
    pub fn only_last(&mut self, frames: usize) {
        self.only(self.ring.frames.saturating_sub(frames)..self.ring.frames);
    }

    /// The next frame and its time.
    #[inline]
    pub fn next_frame(&mut self) -> (&[u8], u64) {
        let start = self.at * self.ring.stride;
        self.sent += 1;
        if self.sent == self.train {
            self.sent = 0;
            self.at += 1;
            if self.at == self.frames.end {
                self.at = self.frames.start;
            }
        }
        self.time_ns += STEP_NS;
        (&self.ring.bytes[start..start + self.ring.length], self.time_ns)
    }

    /// Adds the next frame to a burst.
    #[inline]
    pub fn add(&mut self, feed: &mut Feed) {
        let (frame, time_ns) = self.next_frame();
        feed.add(Link::Ethernet, time_ns, frame, frame.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Header, Packet};

    fn udp(sport: u16) -> Headers {
        Headers {
            src: 0x0a00_0001,
            dst: 0xc612_0001,
            proto: 17,
            sport,
            dport: 53,
            flags: 0,
            numbers: (1, 1),
            icmp: (0, 0),
        }
    }

    #[test]
    fn frames_are_well_formed_with_right_checksums() {
        let tcp = Headers { proto: 6, flags: 0x10, ..udp(1) };
        let echo = Headers { proto: 1, icmp: (8, 0), ..udp(2) };
        let other = Headers { proto: 47, ..udp(3) };
        for (headers, header) in [
            (udp(7), Header::Udp),
            (tcp, Header::Tcp),
            (echo, Header::IcmpEcho),
            (other, Header::Ip4),
        ] {
            for length in [60, 61, 1500] {
                let packet = Packet::new(Link::Ethernet, 0, headers.frame(length, &[]));
                let layout = packet.parse();
                assert_eq!(packet.data().len(), length);
                assert!(layout.has(header), "{headers:?}");
                assert_eq!(layout.malformed(), None);
                assert!(checksum::verify(&packet, &layout).all_right(), "{headers:?} {length}");
            }
        }
        assert_eq!(tcp.frame(10, &[]).len(), 54);
    }

    #[test]
    fn payloads_begin_with_a_text_that_belongs_to_the_flow() {
        let texts = ["abcd".to_owned(), "GET / HTTP/1.1 and more than fits".to_owned()];
        let mut seen = [0; 2];
        for port in 0..64 {
            let frame = udp(port).frame(60, &texts);
            assert_eq!((frame.len(), &frame), (60, &udp(port).frame(60, &texts)));
            let at = texts.iter().position(|text| text.as_bytes()[..4] == frame[42..46]).unwrap();
            seen[at] += 1;
            let packet = Packet::new(Link::Ethernet, 0, frame);
            assert!(checksum::verify(&packet, &packet.parse()).all_right());
        }
        assert!(seen.iter().all(|count| *count > 16), "{seen:?}");
    }

    #[test]
    fn cursor_goes_over_some_frames_once_each_with_time_going_on() {
        let ring = Ring::new(&[udp(1), udp(2), udp(3)], 60, 2, &[]);
        let mut cursor = ring.cursor(u64::MAX);
        cursor.next_frame();
        cursor.only(1..9);
        let ports: Vec<u8> = (0..4).map(|_| cursor.next_frame().0[35]).collect();
        assert_eq!(ports, [2, 3, 2, 3]);
        assert_eq!(cursor.next_frame().1, START_NS + 6 * STEP_NS);
    }

    #[test]
    fn cursor_goes_round_in_trains_with_time_going_on() {
        let ring = Ring::new(&[udp(1), udp(2), udp(3)], 60, 2, &[]);
        assert_eq!(ring.packets(), 6);
        let mut cursor = ring.cursor(u64::MAX);
        let ports: Vec<u8> = (0..8).map(|_| cursor.next_frame().0[35]).collect();
        assert_eq!(ports, [1, 1, 2, 2, 3, 3, 1, 1]);
        assert_eq!(cursor.next_frame().1, START_NS + 9 * STEP_NS);
        let mut short = ring.cursor(3);
        let ports: Vec<u8> = (0..5).map(|_| short.next_frame().0[35]).collect();
        assert_eq!(ports, [1, 1, 2, 2, 1]);
    }
}
