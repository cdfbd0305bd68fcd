//! Clients, the balancer, and servers behind it, over links that lose frames.

mod checks;
mod cookies;
mod requests;
mod tls;

use super::{BEGIN, Client, DELAY, MS, instance};
use braid_connections::wire::{Ends, Frame, turn, write};
use braid_endpoint::{Endpoint, Settings};
use braid_native::{Config, Instance, Output, Value, Verdict};
use braid_packet::{Link, Packet};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The place of the balancer, and those of the servers.
const AT: (&str, u16) = ("192.0.2.1", 80);
const SERVERS: [&str; 4] = ["192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.13"];
const PORT: u16 = 8080;

/// A server of HTTP. Its responses say what it was asked for.
#[derive(Default)]
struct Server {
    name: String,
    /// Whether it refuses connections.
    is_down: bool,
    /// Whether it takes no frames at all, and whether it says nothing to TLS.
    is_silent: bool,
    is_mute: bool,
    /// What has come by TLS.
    carried: Vec<u8>,
    /// Whether it ends each connection behind its first response, without saying so.
    ends_early: bool,
    connections: Vec<Served>,
    /// How many connections it has taken, and how many requests.
    taken: usize,
    asked: usize,
    /// The heads of the requests.
    heads: Vec<String>,
    /// What it says to the requests of checks. Nothing if it ends their connections.
    health: &'static [u8],
    checks: usize,
}

struct Served {
    /// From the server to the client.
    ends: Ends,
    link: Vec<u8>,
    endpoint: Endpoint,
    received: Vec<u8>,
    to_send: Vec<u8>,
    closes: bool,
    /// Whether it echoes what comes.
    is_echo: bool,
    /// Whether what comes is TLS. The server names itself, and echoes it.
    is_tls: bool,
}

/// What a server says to a request: the response, and whether the connection ends behind it.
fn response(name: &str, line: &str, body: &[u8]) -> (Vec<u8>, bool) {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    let mut text = format!("{name} {method} {target} {} {sum}", body.len()).into_bytes();
    if let Some(size) = target.strip_prefix("/long/") {
        text.resize(size.parse().unwrap(), b'x');
    }
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", text.len());
    match target {
        "/chunked" => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            let (one, two) = text.split_at(5);
            let chunk =
                |part: &[u8]| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
            ([head, chunk(one), chunk(two), b"0\r\n\r\n".to_vec()].concat(), false)
        }
        "/end" => ([b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), text].concat(), true),
        "/last" => ([length.as_bytes(), b"Connection: close\r\n\r\n", &text].concat(), true),
        "/cut" => (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc".to_vec(), true),
        "/silent" => (Vec::new(), false),
        "/wrong" => (b"this is no HTTP\r\n\r\n".to_vec(), false),
        "/sets" => {
            let head = length + "set-cookie: STAY = none; Path=/\r\nSet-Cookie: theme=x\r\n\r\n";
            ([head.as_bytes(), &text].concat(), false)
        }
        "/soon" => {
            let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
            ([interim, length.into_bytes(), b"\r\n".to_vec(), text].concat(), false)
        }
        "/switch" => {
            let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n";
            (head.to_vec(), false)
        }
        _ if method == "HEAD" => ([length.as_bytes(), b"\r\n"].concat(), false),
        _ => ([length.as_bytes(), b"\r\n", &text].concat(), false),
    }
}

impl Server {
    /// A frame comes. Returns the one that refuses it.
    fn segment(&mut self, frame: &Frame<'_>, now: u64) -> Option<Vec<u8>> {
        let ends = frame.ends.reversed();
        if let Some(one) = self.connections.iter_mut().find(|one| one.ends == ends)
            && !one.endpoint.status().is_over
        {
            one.endpoint.segment(&frame.segment, now);
            return None;
        }
        let mut link = Vec::new();
        turn(frame.link, &mut link);
        if self.is_silent {
            return None;
        }
        let is_syn = frame.segment.flags.0 & 0x17 == 2;
        if !is_syn || self.is_down {
            let refusal = braid_endpoint::refusal(&frame.segment)?;
            let mut bytes = Vec::new();
            write(&link, ends, 0, &refusal, &mut bytes);
            return Some(bytes);
        }
        self.connections.retain(|one| one.ends != ends);
        let endpoint = Endpoint::accept(&Settings::default(), &frame.segment, 77, now);
        let (received, to_send) = (Vec::new(), Vec::new());
        self.taken += 1;
        let (closes, is_echo, is_tls) = (false, false, false);
        self.connections.push(Served {
            ends,
            link,
            endpoint,
            received,
            to_send,
            closes,
            is_echo,
            is_tls,
        });
        None
    }

    /// Reads requests and writes responses. Gives the frames to send.
    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for one in &mut self.connections {
            let (first, second) = one.endpoint.readable();
            let bytes = [first, second].concat();
            one.endpoint.consume(bytes.len());
            if !one.is_tls && one.received.is_empty() && bytes.first() == Some(&22) {
                one.is_tls = true;
                one.to_send.extend(self.name.as_bytes().iter().filter(|_| !self.is_mute));
                self.asked += 1;
            }
            if one.is_tls {
                self.carried.extend(&bytes);
                one.to_send.extend(bytes.iter().filter(|_| !self.is_mute && !one.closes));
                one.closes |= self.ends_early;
            } else if one.is_echo {
                one.to_send.extend(&bytes);
            } else {
                one.received.extend(&bytes);
            }
            while let Some(end) = one.received.windows(4).position(|four| four == b"\r\n\r\n")
                && !one.closes
            {
                let head = String::from_utf8(one.received[..end].to_vec()).unwrap();
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length: usize = length.map_or(0, |length| length.parse().unwrap());
                let Some(body) = one.received.get(end + 4..end + 4 + length) else { break };
                if head.contains("User-Agent: braid\r\n") {
                    assert!(head.starts_with("GET /health HTTP/1.1\r\nHost: 192.0.2.1"), "{head}");
                    one.received.drain(..end + 4);
                    one.to_send.extend(self.health);
                    one.closes |= self.health.is_empty();
                    self.checks += 1;
                    continue;
                }
                // What is for one connection alone stays there.
                let is_upgrade = head.contains("Upgrade: echo");
                assert_eq!(head.contains("Connection:"), is_upgrade, "{head}");
                let (text, closes) = response(&self.name, head.lines().next().unwrap(), body);
                one.received.drain(..end + 4 + length);
                one.to_send.extend(&text);
                one.closes |= closes || self.ends_early;
                one.is_echo = is_upgrade;
                self.asked += 1;
                self.heads.push(head);
            }
            let count = one.endpoint.write(&one.to_send);
            one.to_send.drain(..count);
            let status = one.endpoint.status();
            if one.to_send.is_empty() && (one.closes || status.has_peer_closed) {
                one.endpoint.close();
            }
            let mut frame = Vec::new();
            one.endpoint.send(now, usize::MAX, &mut |segment| {
                write(&one.link, one.ends, 0, &segment, &mut frame);
                frames.push(frame.clone());
            });
        }
        frames
    }

    /// The connections that have not ended.
    fn open(&self) -> usize {
        self.connections.iter().filter(|one| !one.endpoint.status().is_over).count()
    }
}

/// A response that a check takes for a good one.
const GOOD: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Clients on one side, servers on the other, and the balancer between.
struct Site {
    balancer: Instance,
    config: Config,
    clients: Vec<Client>,
    servers: Vec<Server>,
    now: u64,
    wire: BTreeMap<(u64, u64), Vec<u8>>,
    number: u64,
    /// Of a thousand frames, this number is lost; and as many are repeated or late.
    loss: u64,
    random: u64,
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn number(text: &str) -> u128 {
    let IpAddr::V4(address) = address(text) else { panic!("{text}") };
    u32::from(address).into()
}

/// Requests for `/b…` go to the third server, those for another host to the fourth, and all others
/// to the first two in turn.
fn config() -> Config {
    let rows = |rows: Vec<Vec<u128>>| Value { rows, texts: Vec::new() };
    let servers = SERVERS.map(|server| vec![number(server), PORT.into()]);
    let rules = Value {
        rows: vec![vec![1, 1, 0], vec![2, 0, 1]],
        texts: vec![b"^[A-Z]+ /b".to_vec(), b"host: other".to_vec()],
    };
    vec![
        ("addresses".to_owned(), rows(vec![vec![number(AT.0); 2]])),
        ("ports".to_owned(), rows(vec![vec![80, 80]])),
        ("seed".to_owned(), Value::scalar(7)),
        ("servers".to_owned(), rows(servers.into())),
        ("groups".to_owned(), rows(vec![vec![0, 2], vec![2, 1], vec![3, 1]])),
        ("rules".to_owned(), rules),
    ]
}

fn site(loss: u64, seed: u64) -> Site {
    let health = GOOD;
    let server = |name: &str| Server { name: name.to_owned(), health, ..Server::default() };
    Site {
        balancer: instance("balance", &config()),
        config: config(),
        clients: Vec::new(),
        servers: ["a1", "a2", "b", "c"].map(server).into(),
        now: BEGIN,
        wire: BTreeMap::new(),
        number: 0,
        loss,
        random: seed.wrapping_mul(2_654_435_761) | 1,
    }
}

impl Site {
    fn client(&mut self, port: u16, to_send: &[u8]) -> usize {
        let mut client = Client::new(("10.0.0.7", port), AT, self.now);
        client.to_send.extend(to_send);
        self.clients.push(client);
        self.clients.len() - 1
    }

    fn chance(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1_000 < self.loss
    }

    fn launch(&mut self, frame: &[u8]) {
        if self.chance() {
            return;
        }
        let late = if self.chance() { 3 * DELAY } else { DELAY };
        for _ in 0..1 + usize::from(self.chance()) {
            self.number += 1;
            self.wire.insert((self.now + late, self.number), frame.to_vec());
        }
    }

    /// The balancer sends frames: to clients back, and to servers onward.
    fn leave(&mut self) {
        for output in self.balancer.take_outputs() {
            if let Output::Packet(sent) = output {
                let to = Frame::of(&sent.bytes).expect("a frame").ends.to;
                let is_server = SERVERS.iter().any(|server| to.0 == address(server));
                assert_eq!(sent.to == Verdict::Forward, is_server, "{to:?}");
                self.launch(&sent.bytes);
            }
        }
    }

    /// A frame arrives where its ends say.
    fn arrive(&mut self, bytes: &[u8]) {
        let frame = Frame::of(bytes).filter(|frame| frame.is_right).expect("a right frame");
        let now = self.now;
        let is_from = |place: &str| frame.ends.from.0 == address(place);
        let is_to = |place: &&str| frame.ends.to.0 == address(place);
        let client = self.clients.iter_mut().find(|one| one.ends == frame.ends.reversed());
        if let Some(at) = SERVERS.iter().position(is_to) {
            let refusal = self.servers[at].segment(&frame, now);
            refusal.into_iter().for_each(|frame| self.launch(&frame));
        } else if let Some(client) = client {
            client.endpoint.segment(&frame.segment, now);
        } else {
            let mut packet = Packet::new(Link::Ethernet, now, bytes);
            packet.backward = SERVERS.iter().any(|place| is_from(place));
            let verdict = self.balancer.packet(&mut packet, now).expect("a verdict");
            // A server may repeat itself when the balancer has forgotten the connection.
            assert!(verdict == Verdict::Consume || packet.backward, "{verdict:?}");
            self.leave();
        }
    }

    /// One millisecond.
    fn step(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let frame = entry.remove();
            self.arrive(&frame);
        }
        self.balancer.advance(self.now + 1);
        self.leave();
        let now = self.now;
        let mut sent: Vec<_> = self.clients.iter_mut().flat_map(|one| one.run(now)).collect();
        sent.extend(self.servers.iter_mut().flat_map(|one| one.run(now)));
        sent.iter().for_each(|frame| self.launch(frame));
        self.now += MS;
    }

    fn until(&mut self, most: u64, holds: impl Fn(&Self) -> bool) -> bool {
        (0..most).any(|_| {
            self.step();
            holds(self)
        })
    }

    /// Goes on until the client has received this text, and no more.
    fn hears(&mut self, client: usize, text: &str) {
        let heard = self.until(60_000, |site| site.clients[client].received.len() >= text.len());
        let received = String::from_utf8_lossy(&self.clients[client].received).into_owned();
        assert!(heard && received == text, "{received:?} instead of {text:?}");
        self.clients[client].received.clear();
    }

    fn say(&mut self, client: usize, text: &str) {
        self.clients[client].to_send.extend(text.as_bytes());
    }

    /// Goes on in another instance.
    fn restart(&mut self) {
        let memory = self.balancer.save().expect("it can save its memory");
        let mut next = instance("balance", &self.config);
        next.restore(&memory).expect("its own memory");
        self.balancer = next;
    }

    /// Goes on with other parameters.
    fn reload(&mut self, more: &[(&str, Value)]) {
        for (name, value) in more {
            self.config.retain(|(known, _)| known != name);
            self.config.push(((*name).to_owned(), value.clone()));
        }
        self.restart();
    }

    /// Asks for something. Returns the head of the response, and its body.
    fn ask(&mut self, client: usize, request: &str) -> (String, String) {
        self.say(client, request);
        let heard = self.until(60_000, |site| parted(&site.clients[client].received).is_some());
        assert!(heard, "no response to {request:?}");
        let parted = parted(&self.clients[client].received).expect("a response");
        self.clients[client].received.clear();
        parted
    }

    fn counter(&self, name: &str) -> u128 {
        super::counter(&self.balancer, name)
    }

    /// All clients end, and nothing is left anywhere.
    fn ends(&mut self) {
        self.clients.iter_mut().for_each(|client| client.closes = true);
        let is_over = |site: &Self| {
            site.clients.iter().all(|client| client.status().is_over)
                && site.servers.iter().all(|server| server.open() == 0)
        };
        assert!(self.until(200_000, is_over), "the connections do not end");
        let left = |site: &Self| {
            site.balancer.report().iter().filter(|entry| entry.table == "flows").count()
        };
        assert!(self.until(200_000, |site| left(site) == 0), "the balancer keeps connections");
    }
}

/// The head and the body of a response with a length, if it is whole.
fn parted(bytes: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
    (body.len() == length.parse::<usize>().ok()?).then(|| (head.to_owned(), body.to_owned()))
}

/// A response of a server with a length, as its client gets it.
fn ok(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: site\r\nConnection: keep-alive\r\n\r\n")
}

const BAD_GATEWAY: &str =
    "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
