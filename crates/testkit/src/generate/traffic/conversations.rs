//! Generates TCP conversations for chains of stream functions: handshakes, data in both directions,
//! and ends. Segments come out of order, twice, not at all, cut in other ways, or with other bytes.
//! Connections between the same ports follow each other. UDP packets go between the same ports,
//! and ICMP echoes and packets of GRE between the same addresses.

use crate::generate::Rng;
use crate::harness;
use crate::record::{Output, Stimulus, Trace, step};
use braid_ir::chain::Chain;
use braid_packet::build::build_fresh;
use braid_packet::{Field, Link, Packet, Shape, checksum};
use std::collections::VecDeque;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The texts in streams. Many have parts of patterns.
const TEXTS: &[&str] = &[
    "a",
    "b",
    "ab",
    "ev",
    "il",
    "evil",
    "get /",
    "GET /a",
    "x",
    "xx",
    "aab",
    "zz",
    "z",
    "\r\n",
    "a very long text ",
    "that hardly ever comes",
    "some words without any pattern in them. ",
];

/// HTTP requests. Some have parts of patterns, one is malformed.
const REQUESTS: &[&str] = &[
    "GET /a HTTP/1.1\r\nHost: Evil.example:80\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: x\r\nUser-Agent: zz\r\n\r\n",
    "HEAD /ab?x=%61 HTTP/1.1\nHost: y\n\n",
    "\r\nPOST /xx HTTP/1.1\r\nContent-Length: 4\r\n\r\nevil",
    "POST http://aab/%65vil HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n",
    "CONNECT zz:1 HTTP/1.1\r\n\r\n",
    "GET /zzz HTTP/1.1\r\nno field\r\n\r\n",
];

/// HTTP responses to any of them. One ends the HTTP of the connection.
const RESPONSES: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 404 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabx\r\n0\r\n\r\n",
    "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.0 500 x\r\n\r\nevil",
    "HTTP/1.1 101 x\r\n\r\n",
];

/// A segment of a conversation.
#[derive(Clone, Debug)]
struct Segment {
    from_client: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    payload: Vec<u8>,
}

/// One end of a conversation.
#[derive(Clone, Copy, Debug)]
struct Peer {
    address: u128,
    port: u16,
    /// The number of the next byte.
    next: u32,
}

/// A conversation: the segments to come.
struct Conversation {
    is_v6: bool,
    client: Peer,
    server: Peer,
    /// The client's address and port as the server sees them.
    seen: Option<(u128, u16)>,
    segments: VecDeque<Segment>,
}

impl Conversation {
    fn draw(rng: &mut Rng) -> Self {
        let is_v6 = rng.one_in(5);
        let net = |v4: u128, v6: u128| if is_v6 { v6 } else { v4 };
        let high = 0x2001_0db8_u128 << 96;
        let client = Peer {
            address: net(0x0a00_0000, high) + 1 + rng.below(3) as u128,
            port: 1000 + u16::from(rng.byte() % 3),
            next: rng.word(),
        };
        let server = Peer {
            address: net(0xc633_6400, high + (1 << 64)) + 1 + rng.below(2) as u128,
            port: 80 + u16::from(rng.byte() % 2),
            next: if rng.one_in(4) { u32::MAX - 20 } else { rng.word() },
        };
        let mut it = Self { is_v6, client, server, seen: None, segments: VecDeque::new() };
        it.open(rng);
        let is_http = rng.one_in(3);
        for _ in 0..rng.below(6) {
            match is_http {
                true => it.messages(rng),
                false => it.exchange(rng),
            }
        }
        it.close(rng);
        it.disturb(rng);
        it
    }

    fn peers(&mut self, from_client: bool) -> (&mut Peer, &mut Peer) {
        match from_client {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        }
    }

    fn say(&mut self, from_client: bool, flags: u8, payload: &[u8]) {
        let (from, to) = self.peers(from_client);
        let ack = if flags & ACK == 0 { 0 } else { to.next };
        let segment =
            Segment { from_client, seq: from.next, ack, flags, payload: payload.to_vec() };
        let phantom = u32::from(flags & (SYN | FIN) != 0);
        let len = u32::try_from(payload.len()).expect("short") + phantom;
        from.next = from.next.wrapping_add(len);
        self.segments.push_back(segment);
    }

    fn open(&mut self, rng: &mut Rng) {
        match rng.below(12) {
            // The capture begins later.
            0 => {}
            // The answer takes another way.
            1 => {
                self.say(true, SYN, b"");
                self.server.next = self.server.next.wrapping_add(1);
                self.say(true, ACK, b"");
            }
            // Data comes with the SYN, without a pattern. A SYN may take the place of a connection.
            // If a function resets the new connection for bytes of the SYN, functions behind it do
            // not get the SYN: with a stack of their own, they still have the old connection.
            2 => {
                self.say(true, SYN, b"q");
                self.say(false, SYN | ACK, b"");
            }
            _ => {
                self.say(true, SYN, b"");
                self.say(false, SYN | ACK, b"");
                self.say(true, ACK, b"");
            }
        }
    }

    fn exchange(&mut self, rng: &mut Rng) {
        let from_client = rng.one_in(2);
        let mut bytes = Vec::new();
        for _ in 0..1 + rng.below(5) {
            bytes.extend_from_slice(rng.pick(TEXTS).as_bytes());
        }
        self.send(from_client, &bytes, 9, rng);
        if !rng.one_in(4) {
            self.say(!from_client, ACK, b"");
        }
    }

    /// HTTP requests, one or several at once, and their responses.
    fn messages(&mut self, rng: &mut Rng) {
        let count = if rng.one_in(3) { 1 + rng.below(4) } else { 1 };
        // Most messages are of the first kinds.
        let mut some = |from: &[&str]| {
            let kinds = if rng.one_in(4) { from.len() } else { 3 };
            (0..count).map(|_| *rng.pick(&from[..kinds])).collect::<String>()
        };
        let (requests, responses) = (some(REQUESTS), some(RESPONSES));
        self.send(true, requests.as_bytes(), 40, rng);
        self.send(false, responses.as_bytes(), 40, rng);
        self.say(true, ACK, b"");
    }

    /// Sends bytes in segments. Many of them have this length at most.
    fn send(&mut self, from_client: bool, bytes: &[u8], most: usize, rng: &mut Rng) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = rest.len();
            let len = if rng.one_in(3) { left } else { 1 + rng.below(left.min(most)) };
            let (part, behind) = rest.split_at(len);
            self.say(from_client, ACK, part);
            rest = behind;
        }
    }

    fn close(&mut self, rng: &mut Rng) {
        match rng.below(5) {
            0 => {}
            1 => self.say(rng.one_in(2), RST | ACK, b""),
            _ => {
                let first = rng.one_in(2);
                self.say(first, FIN | ACK, if rng.one_in(3) { b"ab" } else { b"" });
                self.say(!first, ACK, b"");
                if !rng.one_in(4) {
                    self.say(!first, FIN | ACK, b"");
                    self.say(first, ACK, b"");
                }
            }
        }
    }

    /// Loses, repeats, cuts, changes and moves segments.
    fn disturb(&mut self, rng: &mut Rng) {
        if rng.one_in(3) {
            return;
        }
        let mut out: Vec<Segment> = Vec::new();
        for mut segment in self.segments.drain(..) {
            match rng.below(14) {
                0 => continue,
                1 => out.push(segment.clone()),
                // A segment that repeats the end of the one before, perhaps with other bytes.
                2 => {
                    let before = out.iter().rev().find(|one| {
                        one.from_client == segment.from_client && !one.payload.is_empty()
                    });
                    if let Some(before) = before.cloned() {
                        let take = 1 + rng.below(before.payload.len());
                        let mut bytes = before.payload[before.payload.len() - take..].to_vec();
                        if rng.one_in(2) {
                            bytes.iter_mut().for_each(|byte| *byte = b'q');
                        }
                        let end = before
                            .seq
                            .wrapping_add(u32::try_from(before.payload.len()).expect("short"));
                        let seq = end.wrapping_sub(u32::try_from(take).expect("short"));
                        bytes.extend_from_slice(&segment.payload);
                        let flags = ACK;
                        out.push(Segment { seq, flags, payload: bytes, ..segment.clone() });
                    }
                }
                3 if rng.one_in(3) => segment.seq = segment.seq.wrapping_add(rng.word() >> 8),
                4 if rng.one_in(4) => segment.flags |= RST,
                _ => {}
            }
            out.push(segment);
        }
        for at in 1..out.len() {
            if rng.one_in(6) {
                let back = 1 + rng.below(3);
                out.swap(at, at.saturating_sub(back));
            }
        }
        self.segments = out.into();
    }

    /// The address and the port of the sender, and those of the receiver.
    fn ends(&self, from_client: bool) -> ((u128, u16), (u128, u16)) {
        let client = self.seen.filter(|_| !from_client);
        let client = client.unwrap_or((self.client.address, self.client.port));
        let server = (self.server.address, self.server.port);
        if from_client { (client, server) } else { (server, client) }
    }

    /// A UDP packet between the same addresses and ports.
    fn datagram(&self, from_client: bool, time_ns: u64, rng: &mut Rng) -> Packet {
        let (src, dst) = self.ends(from_client);
        let (shape, from, to) = match self.is_v6 {
            false => (Shape::Udp4, Field::IpSrc, Field::IpDst),
            true => (Shape::Udp6, Field::Ip6Src, Field::Ip6Dst),
        };
        let ports = [(Field::UdpSport, src.1.into()), (Field::UdpDport, dst.1.into())];
        let fields = [(from, src.0), (to, dst.0), ports[0], ports[1]];
        let payload = rng.pick(TEXTS).as_bytes();
        let packet = build_fresh(Link::Ethernet, time_ns, shape, &fields, payload);
        packet.expect("the shape has these fields")
    }

    /// An ICMP echo between the same addresses, or a packet of GRE.
    fn without_ports(&self, from_client: bool, time_ns: u64, rng: &mut Rng) -> Packet {
        let (src, dst) = self.ends(from_client);
        let seq = rng.below(5) as u128;
        // The last part is the place of the protocol behind the Ethernet header.
        let (shape, from, to, echo, protocol) = match self.is_v6 {
            false => {
                let echo = [(Field::IcmpType, 8), (Field::IcmpSeq, seq)];
                (Shape::Icmp, Field::IpSrc, Field::IpDst, echo, 14 + 9)
            }
            true => {
                let echo = [(Field::Icmp6Type, 128), (Field::Icmp6Seq, seq)];
                (Shape::Icmp6, Field::Ip6Src, Field::Ip6Dst, echo, 14 + 6)
            }
        };
        let fields = [(from, src.0), (to, dst.0), echo[0], echo[1]];
        let payload = rng.pick(TEXTS).as_bytes();
        let packet = build_fresh(Link::Ethernet, time_ns, shape, &fields, payload);
        let packet = packet.expect("the shape has these fields");
        if !rng.one_in(3) {
            return packet;
        }
        let mut data = packet.data().to_vec();
        data[protocol] = 47;
        Packet::new(Link::Ethernet, time_ns, data)
    }

    /// The packet of a segment, and whether the client sends it.
    fn packet(&self, segment: &Segment, time_ns: u64, rng: &mut Rng) -> (bool, Packet) {
        let (src, dst) = self.ends(segment.from_client);
        let (shape, from, to, ttl) = match self.is_v6 {
            false => (Shape::Tcp4, Field::IpSrc, Field::IpDst, Field::IpTtl),
            true => (Shape::Tcp6, Field::Ip6Src, Field::Ip6Dst, Field::Ip6Ttl),
        };
        let fields = [
            (from, src.0),
            (to, dst.0),
            (ttl, if rng.one_in(40) { 1 } else { 64 }),
            (Field::TcpSport, src.1.into()),
            (Field::TcpDport, dst.1.into()),
            (Field::TcpSeq, segment.seq.into()),
            (Field::TcpAck, segment.ack.into()),
            (Field::TcpFlags, segment.flags.into()),
            (Field::TcpWindow, 4000),
        ];
        let packet = build_fresh(Link::Ethernet, time_ns, shape, &fields, &segment.payload);
        let packet = packet.expect("the shape has these fields");
        // Damaged bytes make the checksum wrong.
        let packet = match rng.below(60) {
            0 => {
                let mut data = packet.data().to_vec();
                if let Some(last) = data.last_mut() {
                    *last ^= 1;
                }
                Packet::new(Link::Ethernet, time_ns, data)
            }
            1 => {
                let len = packet.data().len();
                let data = packet.data()[..len - rng.below(8).min(len)].to_vec();
                Packet::snapped(Link::Ethernet, time_ns, data, packet.wire_len)
            }
            _ => packet,
        };
        (segment.from_client, packet)
    }
}

/// A packet of IPv4 becomes a fragment, or gets an option.
fn odd_header(packet: &Packet, rng: &mut Rng) -> Packet {
    const IP: usize = 14;
    let mut data = packet.data().to_vec();
    if data[IP] != 0x45 {
        return packet.clone();
    }
    match rng.below(3) {
        // The first fragment of more.
        0 => data[IP + 6] = 0x20,
        1 => {
            let more = if rng.one_in(2) { 0x2000 } else { 0 };
            let offset = u16::try_from(rng.range(1, 30)).unwrap_or(1);
            data[IP + 6..IP + 8].copy_from_slice(&(more | offset).to_be_bytes());
        }
        // A route to be recorded, without room for it.
        _ => {
            data.splice(IP + 20..IP + 20, [7, 3, 4, 0]);
            data[IP] = 0x46;
            data[IP + 3] += 4;
        }
    }
    let mut odd = Packet::new(Link::Ethernet, packet.time_ns, data);
    checksum::fill(&mut odd);
    odd
}

/// Makes stimuli with `count` segments for a chain with the interfaces `lan` and `wan`, in this
/// order, and some packets of other protocols besides. The reference engine runs at the same time,
/// because translated packets have translated answers. Returns the stimuli and its trace.
#[must_use]
pub fn recorded(chain: &Chain, seed: u64, count: usize) -> (Vec<Stimulus>, Trace) {
    let mut rng = Rng::new(seed ^ 0x0063_6f6e_7665_7273);
    let mut other = Rng::new(seed ^ 0x0064_6174_6167_7261);
    let mut others = Rng::new(seed ^ 0x006f_7468_6572_7321);
    let mut pieces = Rng::new(seed ^ 0x0070_6965_6365_7321);
    let mut left = count;
    let mut engine = harness::reference(chain);
    let (mut stimuli, mut trace) = (Vec::new(), Trace::default());
    let mut now = 1_000_000_123;
    let mut running: Vec<Conversation> = Vec::new();
    while left > 0 {
        running.retain(|one| !one.segments.is_empty());
        if running.is_empty() || running.len() < 4 && rng.one_in(10) {
            running.push(Conversation::draw(&mut rng));
            continue;
        }
        now += match rng.below(300) {
            0 => rng.range(1_000_000_000, 90_000_000_000),
            1..20 => rng.range(1_000_000, 2_000_000_000),
            _ => rng.range(0, 1_000_000),
        };
        let at = rng.below(running.len());
        let one = &mut running[at];
        let Some(segment) = one.segments.pop_front() else { continue };
        let (from_client, packet) = one.packet(&segment, now, &mut rng);
        if other.one_in(8) {
            let from_client = other.one_in(2);
            let packet = one.datagram(from_client, now, &mut other);
            let datagram = Stimulus::Packet(u16::from(!from_client), packet);
            trace.outputs.push(step(engine.as_mut(), &datagram));
            stimuli.push(datagram);
        }
        if others.one_in(10) {
            let from_client = others.one_in(2);
            let packet = one.without_ports(from_client, now, &mut others);
            let packet = Stimulus::Packet(u16::from(!from_client), packet);
            trace.outputs.push(step(engine.as_mut(), &packet));
            stimuli.push(packet);
        }
        if pieces.one_in(12) {
            let from_client = pieces.one_in(2);
            let packet = match pieces.one_in(3) {
                true => one.without_ports(from_client, now, &mut pieces),
                false => one.datagram(from_client, now, &mut pieces),
            };
            let packet = odd_header(&packet, &mut pieces);
            let packet = Stimulus::Packet(u16::from(!from_client), packet);
            trace.outputs.push(step(engine.as_mut(), &packet));
            stimuli.push(packet);
        }
        left -= 1;
        let stimulus = Stimulus::Packet(u16::from(!from_client), packet);
        let outputs = step(engine.as_mut(), &stimulus);
        for output in outputs.iter().filter(|_| from_client) {
            if let Output::Packet(1, packet) = output
                && let Some(flow) = packet.flow_key(&packet.parse())
            {
                one.seen = Some((flow.src, flow.sport));
            }
        }
        stimuli.push(stimulus);
        trace.outputs.push(outputs);
    }
    trace.counters.push(engine.counters());
    trace.state = engine.state();
    (stimuli, trace)
}
