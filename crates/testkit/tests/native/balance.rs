//! Tests the balancer in chains: several clients ask servers over links that lose, delay and repeat
//! frames, and all engines do the same, also from a state in the middle.

use super::relays::engines_agree;
use super::*;
use braid_connections::wire::{Ends, Frame, answer, turn, write};
use braid_endpoint::{Endpoint, Settings, Status, refusal};
use braid_packet::Link;
use braid_testkit::generate::Rng;
use braid_testkit::record::{Detail, record};
use std::net::IpAddr;

const MS: u64 = 1_000_000;
/// The time between two steps, and the least time of a run (ns).
const STEP: u64 = 5 * MS;
const RUN: u64 = 1_500 * MS;
const SERVICE: (&str, u16) = ("192.0.2.1", 80);
/// The servers: two for HTTP, one for `/b`, and two for TLS. They are at this port.
const SERVERS: [&str; 5] = ["192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14"];
const PORT: u16 = 8080;

/// A chain with these functions in front of the balancer, and these behind it.
fn chain(front: &str, behind: &str) -> Chain {
    let servers = SERVERS.map(|at| format!("{{ addr: {at}, port: {PORT} }}")).join(", ");
    compile(&format!(
        r#"native nf balance(addresses: set<addr>, ports: set<port>,
            servers: list<{{ addr: ip4, port: port }}>, groups: list<{{ first: u32, count: u32 }}>,
            rules: patterns, tls_rules: patterns, cookie: string, check: string,
            check_every: duration, fall: u32 = 2, rise: u32 = 1, seed: u64 = 7) from "server";
        chain c {{ {INTERFACES} path lan {front} <-> balance(
            addresses: {{ {at} }}, ports: {{ 80 }}, servers: [{servers}],
            groups: [{{ first: 0, count: 2 }}, {{ first: 2, count: 1 }}, {{ first: 3, count: 2 }}],
            rules: {{ regex("^[A-Z]+ /b") }}, tls_rules: {{ "none.example", regex("^tls[.]example$") }},
            cookie: "STAY", check: "/health", check_every: 100 ms) {behind} <-> wan; }}"#,
        at = SERVICE.0,
    ))
}

fn chains() -> Vec<Chain> {
    vec![
        chain("<-> monitor()", "<-> monitor()"),
        chain("<-> stateful_firewall(ok: rules(\"some.rules\"), connections: 50)", ""),
        chain("<-> napt(public: 203.0.113.1) <-> monitor()", "<-> monitor()"),
        chain(
            "<-> stateful_firewall(ok: rules(\"some.rules\")) <-> napt(public: 203.0.113.1)",
            "<-> monitor()",
        ),
    ]
}

/// A host's end of a connection.
struct End {
    endpoint: Endpoint,
    ends: Ends,
    link: Vec<u8>,
    to_send: Vec<u8>,
    received: Vec<u8>,
    closes: bool,
    is_tls: bool,
}

impl End {
    fn new(endpoint: Endpoint, ends: Ends, link: Vec<u8>) -> Self {
        let (to_send, received, closes, is_tls) = (Vec::new(), Vec::new(), false, false);
        Self { endpoint, ends, link, to_send, received, closes, is_tls }
    }

    /// Moves bytes, and gives the frames to send.
    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        let taken = self.endpoint.write(&self.to_send);
        self.to_send.drain(..taken);
        let Status { is_established, has_peer_closed, .. } = self.endpoint.status();
        let is_done = self.to_send.is_empty() && (self.closes || has_peer_closed);
        if is_established && is_done {
            self.endpoint.close();
        }
        let (mut frames, mut frame) = (Vec::new(), Vec::new());
        self.endpoint.send(now, usize::MAX, &mut |segment| {
            write(&self.link, self.ends, 0, &segment, &mut frame);
            frames.push(frame.clone());
        });
        frames
    }

    /// Whether both directions have ended.
    fn is_done(&self) -> bool {
        let Status { has_peer_closed, is_all_acknowledged, is_over, .. } = self.endpoint.status();
        is_over || self.closes && has_peer_closed && is_all_acknowledged
    }

    fn read(&mut self) -> Vec<u8> {
        let (first, second) = self.endpoint.readable();
        let bytes = [first, second].concat();
        self.endpoint.consume(bytes.len());
        bytes
    }
}

/// A server, and when it neither takes connections nor is well (ns).
struct Server {
    name: usize,
    fails: std::ops::Range<u64>,
    ends: Vec<End>,
    checks: usize,
}

impl Server {
    fn take(&mut self, frame: &Frame<'_>, now: u64) -> Option<Vec<u8>> {
        let ends = frame.ends.reversed();
        let is_it = |one: &&mut End| one.ends == ends && !one.endpoint.status().is_over;
        if let Some(one) = self.ends.iter_mut().find(is_it) {
            one.endpoint.segment(&frame.segment, now);
            return None;
        }
        let is_syn = frame.segment.flags.0 & 0x17 == 2;
        if !is_syn || self.fails.contains(&now) && self.name.is_multiple_of(2) {
            return refusal(&frame.segment).map(|segment| answer(frame, &segment));
        }
        let mut link = Vec::new();
        turn(frame.link, &mut link);
        self.ends.retain(|one| one.ends != ends);
        let endpoint = Endpoint::accept(&Settings::default(), &frame.segment, 5, now);
        self.ends.push(End::new(endpoint, ends, link));
        None
    }

    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        let fails = self.fails.contains(&now);
        let mut frames = Vec::new();
        for one in &mut self.ends {
            let bytes = one.read();
            one.is_tls |= one.received.is_empty() && bytes.first() == Some(&22);
            if one.is_tls {
                one.to_send.extend(bytes);
            } else {
                one.received.extend(bytes);
            }
            while let Some(end) = one.received.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = one.received.drain(..end + 4).collect();
                let head = String::from_utf8(head).expect("a text");
                let target = head.split(' ').nth(1).expect("a target");
                assert!(!head.contains("STAY="), "{head}");
                self.checks += usize::from(target == "/health");
                let status = if fails && target == "/health" { "503 No" } else { "200 OK" };
                let body = format!("{} {target} {}", self.name, "x".repeat(target.len() * 300));
                let length = body.len();
                let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
                one.to_send.extend(text.as_bytes());
            }
            frames.extend(one.run(now));
        }
        frames
    }
}

/// What a client does.
enum Plan {
    /// It asks for these, one after the other, and shows the cookie that it has got.
    Asks(Vec<String>, Option<String>),
    /// It says this in TLS, and gets it back.
    Tls(Vec<u8>),
}

struct Client {
    end: End,
    begins: u64,
    plan: Plan,
    /// The servers that have answered, with the first byte of the target.
    answered: Vec<(usize, String)>,
}

/// A ClientHello for the server "tls.example".
fn hello() -> Vec<u8> {
    let list = |bytes: &[u8]| [&[0, bytes.len() as u8][..], bytes].concat();
    let name = list(&[&[0][..], &list(b"tls.example")].concat());
    let extensions = list(&[&[0, 0][..], &list(&name)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &list(&[0x13, 1]), &[1, 0], &extensions].concat();
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1][..], &list(&message)].concat()
}

impl Client {
    fn new(number: usize, plan: Plan, begins: u64) -> Self {
        let end = |text: &str, port| (text.parse::<IpAddr>().expect("an address"), port);
        let from = end(&format!("10.0.0.{}", 20 + number), 40_000);
        let ends = Ends { from, to: end(SERVICE.0, SERVICE.1) };
        let link = [[2, 0, 0, 0, 0, 1].as_slice(), &[2, 0, 0, 0, 0, 2], &[8, 0]].concat();
        let endpoint = Endpoint::connect(&Settings::default(), 3, begins);
        let mut client =
            Self { end: End::new(endpoint, ends, link), begins, plan, answered: vec![] };
        client.ask();
        client
    }

    /// Says what comes next.
    fn ask(&mut self) {
        match &mut self.plan {
            Plan::Asks(left, cookie) => match left.pop() {
                Some(target) => {
                    let cookie = cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n"));
                    let cookie = cookie.unwrap_or_default();
                    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{cookie}\r\n");
                    self.end.to_send.extend(text.as_bytes());
                }
                None => self.end.closes = true,
            },
            Plan::Tls(bytes) => {
                self.end.to_send.extend(&*bytes);
                self.end.closes = true;
            }
        }
    }

    fn run(&mut self, now: u64) -> Vec<Vec<u8>> {
        if now < self.begins {
            return Vec::new();
        }
        let bytes = self.end.read();
        self.end.received.extend(bytes);
        if let Some((head, body)) = self.response() {
            let set = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
            if let (Plan::Asks(_, cookie), Some(set)) = (&mut self.plan, set) {
                *cookie = set.split(';').next().map(ToOwned::to_owned);
            }
            let mut words = body.split(' ');
            let server = words.next().and_then(|name| name.parse().ok()).expect("a server");
            self.answered.push((server, words.next().expect("a target").to_owned()));
            self.end.received.clear();
            self.ask();
        }
        self.end.run(now)
    }

    /// The head and the body of a response that is whole.
    fn response(&self) -> Option<(String, String)> {
        let Plan::Asks(..) = self.plan else { return None };
        let text = String::from_utf8_lossy(&self.end.received);
        let (head, body) = text.split_once("\r\n\r\n")?;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
        (body.len() == length.parse::<usize>().ok()?).then(|| (head.to_owned(), body.to_owned()))
    }
}

/// Clients with random plans, and servers. The one of an even number refuses connections for some
/// time, and the one behind it fails only its checks then.
fn site(rng: &mut Rng, begin: u64) -> (Vec<Client>, Vec<Server>) {
    let mut clients: Vec<_> = (0..rng.range(3, 5) as usize)
        .map(|number| {
            let plan = match number {
                0 => Plan::Tls([hello(), vec![23; rng.below(60_000)]].concat()),
                _ => {
                    let target = |rng: &mut Rng| {
                        let at = rng.pick(&["/a", "/b"]);
                        format!("{at}{}", "y".repeat(rng.below(100)))
                    };
                    let left = (0..rng.range(3, 6)).map(|_| target(rng)).collect();
                    Plan::Asks(left, None)
                }
            };
            Client::new(number, plan, begin + rng.range(0, 400) * MS)
        })
        .collect();
    clients.sort_by_key(|client| client.begins);
    let failing = rng.below(2);
    let from = begin + rng.range(100, 400) * MS;
    let server = |name: usize| {
        let fails = if [failing, 3].contains(&name) { from..from + 700 * MS } else { 0..0 };
        Server { name, fails, ends: Vec::new(), checks: 0 }
    };
    (clients, (0..SERVERS.len()).map(server).collect())
}

/// Runs a site in `reference`. Of a thousand frames, `loss` are lost, as many are late, and
/// as many are repeated. Returns the stimuli, the clients and the servers.
fn run(chain: &Chain, seed: u64, loss: usize) -> (Vec<Stimulus>, Vec<Client>, Vec<Server>) {
    let mut rng = Rng::new(seed);
    let begin = 1_000_000 * MS;
    let mut now = begin;
    let (mut clients, mut servers) = site(&mut rng, begin);
    let (mut engine, mut stimuli) = (harness::reference(chain), Vec::new());
    let mut wire: BTreeMap<(u64, usize), (u16, Vec<u8>)> = BTreeMap::new();
    let mut number = 0;
    for _ in 0..20_000 {
        let mut sent: Vec<(u16, Vec<u8>)> = Vec::new();
        sent.extend(clients.iter_mut().flat_map(|one| one.run(now)).map(|frame| (0, frame)));
        sent.extend(servers.iter_mut().flat_map(|one| one.run(now)).map(|frame| (1, frame)));
        let mut launch = |rng: &mut Rng, sent: Vec<(u16, Vec<u8>)>, now: u64| {
            for (ingress, frame) in sent {
                if rng.below(1_000) < loss {
                    continue;
                }
                let late = if rng.below(1_000) < loss { 3 * STEP } else { 0 };
                for _ in 0..1 + usize::from(rng.below(1_000) < loss) {
                    number += 1;
                    wire.insert((now + late, number), (ingress, frame.clone()));
                }
            }
        };
        launch(&mut rng, sent, now);
        let mut due = Vec::new();
        while let Some(entry) = wire.first_entry().filter(|entry| entry.key().0 <= now) {
            let (ingress, frame) = entry.remove();
            due.push(Stimulus::Packet(ingress, Packet::new(Link::Ethernet, now, &frame)));
        }
        due.push(Stimulus::Advance(now + STEP / 2));
        for stimulus in due {
            for output in step(engine.as_mut(), &stimulus) {
                let Output::Packet(_, packet) = output else { continue };
                let Some(frame) = Frame::of(packet.data()) else { continue };
                assert!(frame.is_right);
                let to = frame.ends.to;
                let is_to = |place: &&str| to.0 == place.parse::<IpAddr>().expect("an address");
                if let Some(at) = SERVERS.iter().position(is_to) {
                    let refusal = servers[at].take(&frame, now);
                    wire.extend(refusal.map(|frame| ((now + STEP, usize::MAX - at), (1, frame))));
                } else if let Some(client) =
                    clients.iter_mut().find(|one| one.end.ends == frame.ends.reversed())
                {
                    client.end.endpoint.segment(&frame.segment, now);
                }
            }
            stimuli.push(stimulus);
        }
        now += STEP;
        if now > begin + RUN && clients.iter().all(|client| client.end.is_done()) {
            break;
        }
    }
    assert_eq!(engine.problems(), []);
    (stimuli, clients, servers)
}

/// Runs a site, and checks that clients have got what they have asked for, from the right servers.
fn served(at: usize, chain: &Chain, seed: u64, loss: usize) -> Vec<Stimulus> {
    let (stimuli, clients, servers) = run(chain, seed, loss);
    for client in &clients {
        let what = format!("chain {at} seed {seed} loss {loss}: {:?}", client.end.ends.from);
        assert_eq!(client.end.endpoint.status().failure, None, "{what}");
        match &client.plan {
            Plan::Tls(bytes) => {
                let received = &client.end.received;
                let start = &received[..received.len().min(9)];
                assert!(
                    received == bytes,
                    "{what}: {} of {}, {start:?}",
                    received.len(),
                    bytes.len()
                );
            }
            Plan::Asks(left, _) => {
                assert!(left.is_empty() && client.answered.len() >= 3, "{what}");
                for (server, target) in &client.answered {
                    assert_eq!(*server == 2, target.starts_with("/b"), "{what}: {target}");
                    assert!(*server <= 2, "{what}");
                }
                // The client stays at a server, but for one that fails.
                let of_group = client.answered.iter().map(|(server, _)| *server);
                let of_group: Vec<_> = of_group.filter(|server| *server < 2).collect();
                let changes = of_group.windows(2).filter(|two| two[0] != two[1]).count();
                assert!(changes <= 1, "{what}: {of_group:?}");
            }
        }
    }
    for Server { name, ends, checks, .. } in &servers {
        // Those for TLS only have to take connections.
        let empty = ends.iter().filter(|one| !one.is_tls).count();
        let is_asked = *name < 3;
        assert!(
            if is_asked { *checks > 2 } else { empty > 2 && *checks == 0 },
            "chain {at} seed {seed}"
        );
    }
    stimuli
}

#[test]
fn engines_balance_the_same_requests() {
    let mut counted = BTreeMap::<String, u128>::new();
    for (at, chain) in chains().into_iter().enumerate() {
        for (seed, loss) in [(at as u64, 0), (10 + at as u64, 20), (20 + at as u64, 60)] {
            let stimuli = served(at, &chain, seed, loss);
            engines_agree(at, &chain, &stimuli, loss > 0);
            let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
            for line in braid_runtime::json::state_lines(&chain, trace.state) {
                for name in ["TLS connections", "servers down", "servers up", "failed checks"] {
                    let start = format!("\"table\":\"counters\",\"value\":{{\"{name}\":");
                    let count = line.split(&start).nth(1).and_then(|rest| rest.split('}').next());
                    let count: u128 = count.map_or(0, |count| count.parse().expect("a number"));
                    *counted.entry(name.to_owned()).or_default() += count;
                }
            }
        }
    }
    assert!(counted.len() == 4 && counted.values().all(|count| *count > 2), "{counted:?}");
}

#[test]
fn engines_go_on_from_a_state_in_the_middle() {
    for (at, chain) in chains().into_iter().enumerate() {
        let stimuli = served(at, &chain, 30 + at as u64, 30);
        for part in [10, 4, 2] {
            let (before, after) = stimuli.split_at(stimuli.len() / part);
            let mut engine = harness::reference(&chain);
            record(engine.as_mut(), before, Detail::End);
            let snapshot = engine.export();
            let mut next = harness::reference(&chain);
            next.import(snapshot.clone()).expect("its own state");
            let expected = record(next.as_mut(), after, Detail::End);
            for engine in ENGINES.iter().filter(|engine| !engine.has_machine_code()) {
                let mut next = engine.make(&chain);
                next.import(snapshot.clone()).expect("the state fits");
                let found = engine.difference_of(next.as_mut(), after, &expected);
                assert!(found.is_none(), "chain {at}, {engine}: {found:?}");
            }
        }
    }
}
