//! Clients and a server, over a link that loses, delays and repeats frames.

mod balance;
mod flood;
mod pages;
mod sockets;

use braid_connections::wire::{self, Ends, Frame};
use braid_endpoint::{Endpoint, Failure, Settings, Status};
use braid_native::{Checks, Config, Instance, Output, Reference, Value, Verdict};
use braid_packet::{Link, Packet};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A millisecond (ns).
const MS: u64 = 1_000_000;
/// How long a frame takes.
const DELAY: u64 = 5 * MS;
/// The time of the first frame.
const BEGIN: u64 = 1_700_000_000_000 * MS;

const SERVER: (&str, u16) = ("192.0.2.1", 80);

/// A client with its connection.
struct Client {
    endpoint: Endpoint,
    ends: Ends,
    link: Vec<u8>,
    to_send: VecDeque<u8>,
    /// Whether it closes when it has sent everything, or when the server has closed.
    closes: bool,
    closes_behind: bool,
    /// How many bytes it reads at most.
    reads: usize,
    received: Vec<u8>,
}

impl Client {
    fn new(from: (&str, u16), to: (&str, u16), now: u64) -> Self {
        let end = |(address, port): (&str, u16)| (address.parse::<IpAddr>().unwrap(), port);
        let ends = Ends { from: end(from), to: end(to) };
        let kind: [u8; 2] = if ends.from.0.is_ipv4() { [8, 0] } else { [0x86, 0xdd] };
        let link = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind].concat();
        Self {
            endpoint: Endpoint::connect(&Settings::default(), 7, now),
            ends,
            link,
            to_send: VecDeque::new(),
            closes: false,
            closes_behind: true,
            reads: usize::MAX,
            received: Vec::new(),
        }
    }

    fn status(&self) -> Status {
        self.endpoint.status()
    }

    fn failure(&self) -> Option<Failure> {
        self.status().failure
    }

    /// Reads, writes, closes, and gives the frames to send.
    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        let Self { endpoint, to_send, .. } = self;
        let (first, second) = endpoint.readable();
        let bytes = [first, second].concat();
        let count = bytes.len().min(self.reads - self.received.len().min(self.reads));
        self.received.extend(&bytes[..count]);
        endpoint.consume(count);
        let written = endpoint.write(to_send.make_contiguous());
        to_send.drain(..written);
        let Status { has_peer_closed, is_established, .. } = endpoint.status();
        let is_behind = self.closes_behind && has_peer_closed;
        if is_established && to_send.is_empty() && (self.closes || is_behind) {
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

/// Where a frame arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Server,
    Clients,
}

/// Clients, and a server at [`SERVER`] with the function under test.
struct Site {
    server: Instance,
    function: &'static str,
    config: Config,
    clients: Vec<Client>,
    now: u64,
    /// Frames on their way, by their times and in order.
    wire: BTreeMap<(u64, u64), (Place, Vec<u8>)>,
    number: u64,
    /// Of a thousand frames, this number is lost; and as many are repeated or late.
    loss: u64,
    random: u64,
    /// Frames to hosts that are no clients here.
    strays: Vec<Vec<u8>>,
    /// Frames that passed the server as they were, and the reasons of frames that it dropped.
    passed: usize,
    dropped: Vec<u32>,
}

fn instance(function: &str, config: &Config) -> Instance {
    try_instance(function, config).expect("an instance")
}

fn try_instance(function: &str, config: &Config) -> Result<Instance, String> {
    crate::register();
    let (records, observe) = (false, false);
    let reference = Reference {
        library: crate::SET.into(),
        function: function.into(),
        checks: Checks { records, observe },
        isolated: None,
    };
    Instance::new(&reference, "it", config.clone())
}

/// The server's addresses and ports, and other parameters.
fn config(more: &[(&str, Value)]) -> Config {
    let number = |text: &str| match text.parse().unwrap() {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    };
    let rows = |rows| Value { rows, texts: Vec::new() };
    let addresses = [SERVER.0, "2001:db8::1"].map(|text| vec![number(text); 2]);
    let mut config = vec![
        ("addresses".to_owned(), rows(addresses.into())),
        ("ports".to_owned(), rows(vec![vec![80, 81]])),
        ("seed".to_owned(), Value::scalar(7)),
    ];
    config.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    config
}

fn site(function: &'static str, config: Config, loss: u64, seed: u64) -> Site {
    Site {
        server: instance(function, &config),
        function,
        config,
        clients: Vec::new(),
        now: BEGIN,
        wire: BTreeMap::new(),
        number: 0,
        loss,
        random: seed.wrapping_mul(2_654_435_761) | 1,
        strays: Vec::new(),
        passed: 0,
        dropped: Vec::new(),
    }
}

impl Site {
    /// A client begins, from this port. Returns its number.
    fn client(&mut self, port: u16, to_send: &[u8]) -> usize {
        let mut client = Client::new(("10.0.0.7", port), SERVER, self.now);
        client.to_send.extend(to_send);
        self.clients.push(client);
        self.clients.len() - 1
    }

    fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000
    }

    /// Puts a frame on the wire, unless it gets lost.
    fn launch(&mut self, to: Place, frame: Vec<u8>) {
        if self.chance() < self.loss {
            return;
        }
        let late = if self.chance() < self.loss { 3 * DELAY } else { DELAY };
        let copies = 1 + usize::from(self.chance() < self.loss);
        for _ in 0..copies {
            self.number += 1;
            self.wire.insert((self.now + late, self.number), (to, frame.clone()));
        }
    }

    /// A frame comes to the server.
    fn enter(&mut self, frame: &[u8]) {
        let mut packet = Packet::new(Link::Ethernet, self.now, frame);
        let verdict = self.server.packet(&mut packet, self.now).expect("a verdict");
        self.leave();
        match verdict {
            Verdict::Forward => self.passed += 1,
            Verdict::Drop(reason) => self.dropped.push(reason),
            _ => {}
        }
    }

    /// The server sends frames, all of them back.
    fn leave(&mut self) {
        for output in self.server.take_outputs() {
            if let Output::Packet(sent) = output {
                assert_eq!(sent.to, Verdict::Back);
                self.launch(Place::Clients, sent.bytes);
            }
        }
    }

    /// A frame comes to the clients.
    fn arrive(&mut self, bytes: &[u8]) {
        let frame = Frame::of(bytes).filter(|frame| frame.is_right).expect("a right frame");
        let is_it = |client: &&mut Client| client.ends == frame.ends.reversed();
        match self.clients.iter_mut().find(is_it) {
            Some(client) => client.endpoint.segment(&frame.segment, self.now),
            None => self.strays.push(bytes.to_vec()),
        }
    }

    /// One millisecond.
    fn step(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                (Place::Server, frame) => self.enter(&frame),
                (Place::Clients, frame) => self.arrive(&frame),
            }
        }
        self.server.advance(self.now + 1);
        self.leave();
        let now = self.now;
        let sent: Vec<_> = self.clients.iter_mut().flat_map(|client| client.run(now)).collect();
        sent.into_iter().for_each(|frame| self.launch(Place::Server, frame));
        self.now += MS;
    }

    /// Goes on until something holds, or for this long (ms). Returns whether it holds.
    fn until(&mut self, most: u64, holds: impl Fn(&Self) -> bool) -> bool {
        (0..most).any(|_| {
            self.step();
            holds(self)
        })
    }

    /// Goes on until all clients are done.
    fn run_to_the_end(&mut self) {
        let is_over = |site: &Self| site.clients.iter().all(|client| client.status().is_over);
        assert!(self.until(600_000, is_over), "the connections do not end");
    }

    /// Goes on in another instance.
    fn restart(&mut self) {
        let memory = self.server.save().expect("it can save its memory");
        let mut next = instance(self.function, &self.config);
        next.restore(&memory).expect("its own memory");
        self.server = next;
    }

    /// The number of connections that the server has.
    fn connections(&self) -> usize {
        self.server.report().iter().filter(|entry| entry.table == "flows").count()
    }

    fn counter(&self, name: &str) -> u128 {
        counter(&self.server, name)
    }
}

/// A counter of an instance.
fn counter(of: &Instance, name: &str) -> u128 {
    let all = of.report();
    let is_it = |entry: &&braid_native::Entry| format!("{entry:?}").contains(&format!("{name:?}"));
    let entry = all.iter().find(is_it).unwrap_or_else(|| panic!("{name} in {all:?}"));
    entry.values[0].2
}

/// Bytes that are different in each place.
fn body(len: usize, salt: u32) -> Vec<u8> {
    let word = |at: u32| (at ^ salt).wrapping_mul(2_654_435_761).to_le_bytes();
    (0..).flat_map(word).take(len).collect()
}
