//! A client and a server with a proxy between them, over links that lose frames.

mod cache;
mod http;
mod own;
mod tcp;

use braid_connections::wire::{self, Ends, Frame};
use braid_endpoint::{Endpoint, Settings, Status};
use braid_native::{Checks, Config, Instance, Output, Reference, Value, Verdict};
use braid_packet::{Link, Packet, checksum};
use braid_tcp::Flags;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A millisecond (ns).
const MS: u64 = 1_000_000;
/// How long a frame takes between two hosts.
const DELAY: u64 = 5 * MS;
/// The time of the first frame.
const BEGIN: u64 = 1_700_000_000_000 * MS;

const CLIENT: (&str, u16) = ("10.0.0.7", 40_000);
const SERVER: (&str, u16) = ("192.0.2.1", 80);

/// A place where frames arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Client,
    Server,
    /// The proxy, from the client's or from the server's side.
    Proxy(bool),
}

/// The length of a link header.
const LINK: usize = 14;

/// A router's message that a frame is too long for a link. It quotes 28 bytes behind an IPv4
/// header, and 1,000 bytes of an IPv6 packet.
fn too_long(frame: &[u8], mtu: usize) -> Vec<u8> {
    let mut link = Vec::new();
    wire::turn(&frame[..LINK], &mut link);
    let packet = &frame[LINK..];
    let (mut head, mut message) = if packet[0] >> 4 == 4 {
        let [m0, m1] = u16::try_from(mtu).unwrap().to_be_bytes();
        let mut head = vec![0x45, 0, 0, 20 + 8 + 48, 0, 0, 0, 0, 64, 1, 0, 0, 198, 51, 100, 1];
        head.extend(&packet[12..16]);
        let sum = checksum::rfc1071(&head);
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        (head, [&[3, 4, 0, 0, 0, 0, m0, m1], &packet[..48]].concat())
    } else {
        let mtu = u32::try_from(mtu).unwrap().to_be_bytes();
        let message = [&[2, 0, 0, 0], &mtu[..], &packet[..1000]].concat();
        let [l0, l1] = u16::try_from(message.len()).unwrap().to_be_bytes();
        let mut head = vec![0x60, 0, 0, 0, l0, l1, 58, 64, 0x20, 1, 0xd, 0xb8];
        head.extend([0; 12]);
        head.extend(&packet[8..24]);
        (head, message)
    };
    let sum = checksum::Sum16::default().with(&message);
    let sum = match head[0] >> 4 {
        4 => sum,
        _ => sum.with(&head[8..40]).with_word(58 + u32::try_from(message.len()).unwrap()),
    };
    message[2..4].copy_from_slice(&(!sum.folded()).to_be_bytes());
    link.append(&mut head);
    link.append(&mut message);
    link
}

/// What a host does with its connection.
struct Host {
    endpoint: Option<Endpoint>,
    ends: Ends,
    settings: Settings,
    link: Vec<u8>,
    /// What it still has to send.
    to_send: VecDeque<u8>,
    /// Whether it closes when it has sent everything, or when the other end has closed.
    closes: bool,
    closes_behind: bool,
    /// How many bytes it reads at most.
    reads: usize,
    received: Vec<u8>,
}

impl Host {
    fn new((from, to): ((&str, u16), (&str, u16)), mac: u8) -> Self {
        let end = |(address, port): (&str, u16)| (address.parse::<IpAddr>().unwrap(), port);
        let ends = Ends { from: end(from), to: end(to) };
        let kind: [u8; 2] = if ends.from.0.is_ipv4() { [8, 0] } else { [0x86, 0xdd] };
        let link = [[2, 0, 0, 0, 0, 3 - mac], [2, 0, 0, 0, 0, mac]].concat();
        Self {
            endpoint: None,
            ends,
            settings: Settings::default(),
            link: [link, kind.to_vec()].concat(),
            to_send: VecDeque::new(),
            closes: false,
            closes_behind: false,
            reads: usize::MAX,
            received: Vec::new(),
        }
    }

    fn status(&self) -> Option<Status> {
        self.endpoint.as_ref().map(Endpoint::status)
    }

    fn is_over(&self) -> bool {
        self.status().is_none_or(|status| status.is_over)
    }

    /// Reads, writes, closes, and gives the frames to send.
    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        let Some(endpoint) = &mut self.endpoint else { return Vec::new() };
        let (first, second) = endpoint.readable();
        let bytes = [first, second].concat();
        let count = bytes.len().min(self.reads - self.received.len().min(self.reads));
        self.received.extend(&bytes[..count]);
        endpoint.consume(count);
        let (first, _) = self.to_send.as_slices();
        let written = endpoint.write(first);
        self.to_send.drain(..written);
        let Status { has_peer_closed, is_established, .. } = endpoint.status();
        if is_established
            && self.to_send.is_empty()
            && (self.closes || self.closes_behind && has_peer_closed)
        {
            endpoint.close();
        }
        let (mut frames, mut frame) = (Vec::new(), Vec::new());
        endpoint.send(now, usize::MAX, &mut |segment| {
            wire::write(&self.link, self.ends, 0, &segment, &mut frame);
            frames.push(frame.clone());
        });
        frames
    }
}

/// A client, a proxy and a server.
struct World {
    proxy: Instance,
    function: &'static str,
    config: Config,
    client_is_left: bool,
    client: Host,
    server: Host,
    /// Whether the server takes connections. Without: it refuses them, or says nothing.
    listens: Option<bool>,
    now: u64,
    /// Frames on their way, by their times and in order.
    wire: BTreeMap<(u64, u64), (Place, Vec<u8>)>,
    number: u64,
    /// Of a thousand frames, this number is lost.
    loss: u64,
    random: u64,
    /// The most bytes that a link between the proxy and the server takes behind the link header.
    mtu: usize,
    /// Frames for earlier hosts.
    strays: Vec<Vec<u8>>,
    /// Frames that passed the proxy as they were, and frames that it dropped.
    passed: usize,
    dropped: Vec<u32>,
}

fn instance(function: &str, config: &Config) -> Instance {
    crate::register();
    let (records, observe) = (false, false);
    let reference = Reference {
        library: crate::SET.into(),
        function: function.into(),
        checks: Checks { records, observe },
        isolated: None,
    };
    Instance::new(&reference, "it", config.clone()).expect("an instance")
}

fn world(function: &'static str, loss: u64, seed: u64) -> World {
    let ports = Value { rows: vec![vec![80, 80], vec![8080, 8090]], texts: Vec::new() };
    let config = vec![("ports".to_owned(), ports)];
    World {
        proxy: instance(function, &config),
        function,
        config,
        client_is_left: seed.is_multiple_of(2),
        client: Host::new((CLIENT, SERVER), 1),
        server: Host::new((SERVER, CLIENT), 2),
        listens: Some(true),
        now: BEGIN,
        wire: BTreeMap::new(),
        number: 0,
        loss,
        random: seed.wrapping_mul(2_654_435_761) | 1,
        mtu: usize::MAX,
        strays: Vec::new(),
        passed: 0,
        dropped: Vec::new(),
    }
}

impl World {
    /// The client begins anew, from another port.
    fn begin_anew(&mut self, port: u16) {
        self.client = Host::new(((CLIENT.0, port), SERVER), 1);
        self.server = Host::new((SERVER, (CLIENT.0, port)), 2);
    }

    fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000
    }

    /// Puts a frame on the wire, unless it gets lost. Some frames are late.
    fn launch(&mut self, to: Place, frame: Vec<u8>) {
        if self.chance() < self.loss {
            return;
        }
        let late = if self.loss > 0 && self.chance() < 50 { 3 * DELAY } else { DELAY };
        self.number += 1;
        self.wire.insert((self.now + late, self.number), (to, frame));
    }

    fn connect(&mut self) {
        self.client.endpoint = Some(Endpoint::connect(&self.client.settings, 7, self.now));
    }

    /// A frame comes to the proxy.
    fn enter(&mut self, from_client: bool, frame: Vec<u8>) {
        let mut packet = Packet::new(Link::Ethernet, self.now, &frame);
        packet.backward = from_client != self.client_is_left;
        let verdict = self.proxy.packet(&mut packet, self.now).expect("a verdict");
        let outputs = self.proxy.take_outputs();
        self.leave(outputs, from_client);
        match verdict {
            Verdict::Forward => {
                self.passed += 1;
                let to = if from_client { Place::Server } else { Place::Client };
                self.launch(to, frame);
            }
            Verdict::Drop(reason) => self.dropped.push(reason),
            _ => {}
        }
    }

    /// The proxy sends frames.
    fn leave(&mut self, outputs: Vec<Output>, from_client: bool) {
        let from_left = from_client == self.client_is_left;
        for output in outputs {
            let Output::Packet(sent) = output else { continue };
            let is_back = sent.to == Verdict::Back;
            let to_left = if sent.from_timer { is_back } else { is_back == from_left };
            let to = if to_left == self.client_is_left { Place::Client } else { Place::Server };
            if to == Place::Server && sent.bytes.len() - LINK > self.mtu {
                let message = too_long(&sent.bytes, self.mtu);
                self.launch(Place::Proxy(false), message);
                continue;
            }
            self.launch(to, sent.bytes);
        }
    }

    /// A frame comes to a host.
    fn arrive(&mut self, to: Place, bytes: &[u8]) {
        let Some(frame) = Frame::of(bytes).filter(|frame| frame.is_right) else {
            panic!("{to:?} gets a wrong frame")
        };
        let (now, listens) = (self.now, self.listens);
        let host = if to == Place::Client { &mut self.client } else { &mut self.server };
        if (frame.ends.from, frame.ends.to) != (host.ends.to, host.ends.from) {
            self.strays.push(bytes.to_vec());
            return;
        }
        let mut link = Vec::new();
        wire::turn(&host.link, &mut link);
        assert_eq!(frame.link, link, "{to:?}");
        match &mut host.endpoint {
            Some(endpoint) => endpoint.segment(&frame.segment, now),
            None if listens == Some(true) => {
                host.endpoint = Some(Endpoint::accept(&host.settings, &frame.segment, 9, now));
            }
            None if listens == Some(false) && !frame.segment.flags.has(Flags::RST) => {
                let mut endpoint = Endpoint::accept(&host.settings, &frame.segment, 9, now);
                endpoint.abort();
                host.endpoint = Some(endpoint);
            }
            None => {}
        }
    }

    /// One millisecond.
    fn step(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                (Place::Proxy(from_client), frame) => self.enter(from_client, frame),
                (place, frame) => self.arrive(place, &frame),
            }
        }
        // What has come in this millisecond is answered a nanosecond later.
        self.proxy.advance(self.now + 1);
        let outputs = self.proxy.take_outputs();
        self.leave(outputs, true);
        for (frames, from_client) in
            [(self.client.run(self.now), true), (self.server.run(self.now), false)]
        {
            frames.into_iter().for_each(|frame| self.launch(Place::Proxy(from_client), frame));
        }
        self.now += MS;
    }

    /// Goes on until something holds, or for this long (ms). Returns whether it holds.
    fn until(&mut self, most: u64, holds: impl Fn(&Self) -> bool) -> bool {
        (0..most).any(|_| {
            self.step();
            holds(self)
        })
    }

    /// Goes on in another instance.
    fn restart(&mut self) {
        let memory = self.proxy.save().expect("it can save its memory");
        let mut next = instance(self.function, &self.config);
        next.restore(&memory).expect("its own memory");
        self.proxy = next;
    }

    /// The number of connections that the proxy has.
    fn connections(&self) -> usize {
        self.proxy.report().iter().filter(|entry| entry.table == "flows").count()
    }

    fn counter(&self, name: &str) -> u128 {
        let all = self.proxy.report();
        let shown = format!("{all:?}");
        let of = |entry: &&braid_native::Entry| format!("{entry:?}").contains(&format!("{name:?}"));
        let entry = all.iter().find(of).unwrap_or_else(|| panic!("{name} in {shown}"));
        entry.values[0].2
    }
}

/// Bytes that are different in each place.
fn body(len: usize, salt: u32) -> Vec<u8> {
    let word = |at: u32| (at ^ salt).wrapping_mul(2_654_435_761).to_le_bytes();
    (0..).flat_map(word).take(len).collect()
}
