//! Hosts with FTP behind the functions that help them, while segments are lost, swapped, repeated
//! and cut anew: the other end gets the host's bytes with the public address in the commands, the
//! host hears of no byte that the other end lacks, and by `napt_ftp` one connection comes in for
//! each command. The host is called the client here, and the other end the server.

use crate::{LEFT, RIGHT, Run, field, packets};
use braid_packet::{Field, Packet};
use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use std::collections::{BTreeMap, VecDeque};

/// A command as the client writes it, the port that it names if it is to be translated, and its
/// bytes as they have first left for the server.
struct Command {
    text: String,
    port: Option<u16>,
    sent: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Napt,
    StaticClient,
    /// The host is the server. Its answers to PASV take the place of commands.
    StaticServer,
}

struct World {
    kind: Kind,
    run: Run,
    now: u64,
    client: &'static str,
    public: &'static str,
    /// The number of the first byte of each direction.
    first: u32,
    commands: Vec<Command>,
    /// How many bytes the client has sent, and how many it knows to have arrived.
    sent: usize,
    acknowledged: usize,
    /// What is on its way: the client's bytes from and to, what goes to the server,
    /// acknowledgements and the SACK blocks in them.
    from_client: VecDeque<(usize, usize)>,
    to_server: VecDeque<(usize, Vec<u8>)>,
    from_server: VecDeque<(String, Option<(usize, usize)>)>,
    /// The bytes that the server has, and how many of them are in order.
    got: Vec<Option<u8>>,
    next: usize,
    /// How many acknowledgements had SACK blocks, and how many ended in the middle of a command.
    sacks: usize,
    middles: usize,
    /// By the client's port: the public one, and whether a connection may come.
    ports: BTreeMap<u16, (u16, bool)>,
}

fn payload(packet: &Packet) -> Vec<u8> {
    packet.payload(&packet.parse()).to_vec()
}

fn number(packet: &Packet, which: Field) -> u32 {
    u32::try_from(field(packet, which)).expect("32 bits")
}

/// An address and a port as the command writes them.
fn command(first: char, address: &str, port: u16) -> String {
    let numbers = format!("{},{},{}", address.replace('.', ","), port >> 8, port & 255);
    match first {
        'E' => format!("EPRT |1|{address}|{port}|\r\n"),
        'P' => format!("PORT {numbers}\r\n"),
        _ => format!("227 Entering Passive Mode ({numbers}).\r\n"),
    }
}

impl World {
    fn new(rng: &mut Rng, kind: Kind) -> Self {
        let client = *rng.pick(&["10.0.0.1", "10.100.200.100", "10.20.3.40"]);
        let public = *rng.pick(&["203.0.113.1", "9.9.9.9", "100.200.100.200"]);
        let run = Run::new(&match kind {
            Kind::Napt => format!("napt_ftp(public: {public}, ports: 9995..10010)"),
            _ => format!("static_nat_ftp(inside: {client}, outside: {public})"),
        });
        let mut commands = Vec::new();
        for _ in 0..20 {
            let port = *rng.pick(&[1024, 1281, 9999, 50_000, 65_535]);
            let first = *rng.pick(if kind == Kind::StaticServer { &['2'] } else { &['E', 'P'] });
            let (text, port) = match rng.below(5) {
                0 => (command(first, "10.0.0.99", port), None),
                1..3 => ((*rng.pick(&["LIST\r\n", "STOR a long name of a file\r\n"])).into(), None),
                _ => (command(first, client, port), Some(port)),
            };
            commands.push(Command { text, port, sent: None });
        }
        let mut world = Self {
            kind,
            run,
            now: 10_000_000_000,
            client,
            public,
            // Some numbers wrap around.
            first: if rng.one_in(2) { rng.word() } else { u32::MAX - 40 },
            commands,
            sent: 0,
            acknowledged: 0,
            from_client: VecDeque::new(),
            to_server: VecDeque::new(),
            from_server: VecDeque::new(),
            got: Vec::new(),
            next: 0,
            sacks: 0,
            middles: 0,
            ports: BTreeMap::new(),
        };
        let flags = if kind == Kind::StaticServer { "SA ack=1" } else { "S" };
        let syn = format!("{flags} seq={} sackok", world.first.wrapping_sub(1));
        assert_eq!(packets(&world.client_sends(&syn)).len(), 1);
        world
    }

    /// Where a command begins in the client's bytes, and in the server's.
    fn start(&self, nth: usize) -> usize {
        self.commands[..nth].iter().map(|one| one.text.len()).sum()
    }

    fn start_at_server(&self, nth: usize) -> usize {
        let length = |one: &Command| one.sent.as_ref().expect("sent in order").len();
        self.commands[..nth].iter().map(length).sum()
    }

    fn text(&self) -> String {
        self.commands.iter().map(|one| one.text.as_str()).collect()
    }

    fn client_sends(&mut self, rest: &str) -> Vec<braid_testkit::record::Output> {
        self.now += 1_000_000;
        let (near, far) = if self.kind == Kind::StaticServer { (21, 4000) } else { (4000, 21) };
        let text = format!("tcp {}:{near} > 192.0.2.1:{far} {rest}", self.client);
        self.run.packet(LEFT, self.now, &text)
    }

    /// The client sends its next command, perhaps with others behind it.
    fn send_more(&mut self, rng: &mut Rng) {
        let Some(nth) = (0..self.commands.len()).find(|&nth| self.start(nth) == self.sent) else {
            return;
        };
        let mut end = nth + 1;
        while end < self.commands.len() && rng.one_in(3) {
            end += 1;
        }
        self.from_client.push_back((self.sent, self.start(end)));
        self.sent = self.start(end);
    }

    /// The client sends some bytes again.
    fn send_again(&mut self, rng: &mut Rng) {
        if self.acknowledged == self.sent {
            return;
        }
        let back = if rng.one_in(4) { rng.below(30) } else { 0 };
        let from = if rng.one_in(3) {
            rng.range(self.acknowledged as u64, self.sent as u64 - 1) as usize
        } else {
            self.acknowledged.saturating_sub(back)
        };
        let ends: Vec<usize> = (0..=self.commands.len()).map(|nth| self.start(nth)).collect();
        let ends: Vec<usize> = ends.into_iter().filter(|&e| from < e && e <= self.sent).collect();
        // What has not passed yet comes in whole commands.
        let passed = self.commands.iter().take_while(|one| one.sent.is_some()).count();
        let passed = self.start(passed);
        let to = if from < passed && rng.one_in(3) {
            rng.range(from as u64 + 1, passed as u64) as usize
        } else {
            *rng.pick(&ends)
        };
        self.from_client.push_back((from, to));
    }

    /// An acknowledgement of the client, behind all that it has sent. What it has sent may be lost.
    fn answer(&mut self) {
        let seq = self.first.wrapping_add(self.sent as u32);
        let outputs = self.client_sends(&format!("A seq={seq} ack=1"));
        assert_eq!(packets(&outputs).len(), 1, "{outputs:?}");
    }

    /// A segment of the client reaches the function.
    fn pass(&mut self, (from, to): (usize, usize)) {
        let bytes = &self.text().into_bytes()[from..to];
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let seq = self.first.wrapping_add(from as u32);
        let outputs = self.client_sends(&format!("PA seq={seq} ack=1 hex={hex}"));
        let Some(&(side, packet)) = packets(&outputs).first() else { return };
        assert_eq!(side, RIGHT);
        let at = number(packet, Field::TcpSeq).wrapping_sub(self.first) as usize;
        let mut left = payload(packet);
        self.to_server.push_back((at, left.clone()));
        // Whole commands that leave for the first time.
        let mut nth = (0..self.commands.len())
            .find(|&nth| self.start(nth) == from)
            .filter(|&nth| self.commands[nth].sent.is_none());
        while let Some(index) = nth.filter(|_| !left.is_empty()) {
            let end = left.iter().position(|&byte| byte == b'\n').expect("a whole command") + 1;
            let rest = left.split_off(end);
            self.check_command(index, &String::from_utf8(left.clone()).expect("text"));
            self.commands[index].sent = Some(left);
            left = rest;
            nth = Some(index + 1).filter(|&next| next < self.commands.len());
        }
    }

    /// A command leaves with the public address and a port of its own.
    fn check_command(&mut self, nth: usize, text: &str) {
        let Some(port) = self.commands[nth].port else {
            assert_eq!(text, self.commands[nth].text);
            return;
        };
        let first = text.chars().next().expect("a command");
        if self.kind != Kind::Napt {
            assert_eq!(text, command(first, self.public, port));
            return;
        }
        let fits = |&public: &u16| command(first, self.public, public) == text;
        let public = (9995..=10_010).find(fits).unwrap_or_else(|| panic!("{text}"));
        let others = self.ports.iter().filter(|&(&of, _)| of != port);
        assert!(others.into_iter().all(|(_, &(other, _))| other != public), "{text}");
        let before = self.ports.insert(port, (public, true));
        assert!(before.is_none_or(|(other, _)| other == public), "{text}: {before:?}");
    }

    /// The server takes what it lacks, which must be right.
    fn receive(&mut self, at: usize, bytes: &[u8]) {
        let expected: Vec<u8> =
            self.commands.iter().map_while(|one| one.sent.clone()).flatten().collect();
        self.got.resize(expected.len(), None);
        for (place, &byte) in (at..).zip(bytes).filter(|&(place, _)| place < 1 << 31) {
            if place >= self.next {
                assert_eq!(
                    byte,
                    expected[place],
                    "at {place}: {:?}",
                    String::from_utf8_lossy(bytes)
                );
                self.got[place] = Some(byte);
            }
        }
        while self.got.get(self.next).is_some_and(Option::is_some) {
            self.next += 1;
        }
    }

    /// The server says what it has.
    fn acknowledge(&mut self, rng: &mut Rng) {
        let place = |at: usize| self.first.wrapping_add(at as u32);
        let (mut sack, mut block) = (String::new(), None);
        let islands = (self.next..self.got.len()).filter(|&at| self.got[at].is_some());
        if let Some(left) = islands.min().filter(|_| rng.one_in(2)) {
            let has = |&at: &usize| self.got.get(at).is_some_and(Option::is_some);
            let right = (left..).find(|at| !has(at)).expect("an end");
            self.sacks += 1;
            block = Some((left, right));
            sack = format!("nop nop opt=050a{:08x}{:08x}", place(left), place(right));
        }
        let ends = self.got[..self.next].last().is_some_and(|byte| *byte != Some(b'\n'));
        self.middles += usize::from(ends);
        let text = format!("A seq=1 ack={} {sack}", place(self.next));
        self.from_server.push_back((text, block));
    }

    /// Whether the server has a byte of the client, or all of the command that it belongs to.
    fn has(&self, at: usize) -> bool {
        let nth = (0..self.commands.len()).rfind(|&nth| self.start(nth) <= at).expect("a command");
        let from = self.start_at_server(nth);
        let have = |at: usize| at < self.next || self.got.get(at).is_some_and(Option::is_some);
        if self.commands[nth].port.is_none() {
            return have(from + at - self.start(nth));
        }
        (from..from + self.commands[nth].sent.as_ref().expect("sent").len()).all(have)
    }

    /// An acknowledgement reaches the client, and claims nothing that is wrong.
    fn hear(&mut self, rest: &str, block: Option<(usize, usize)>) {
        self.now += 1_000_000;
        let text = match self.kind {
            Kind::Napt => format!("tcp 192.0.2.1:21 > {}:9995 {rest}", self.public),
            Kind::StaticClient => format!("tcp 192.0.2.1:21 > {}:4000 {rest}", self.client),
            Kind::StaticServer => format!("tcp 192.0.2.1:4000 > {}:21 {rest}", self.client),
        };
        let outputs = self.run.packet(RIGHT, self.now, &text);
        let [(LEFT, packet)] = packets(&outputs)[..] else { panic!("{outputs:?}") };
        let place = |number: u32| number.wrapping_sub(self.first).cast_signed();
        let up_to = usize::try_from(place(number(packet, Field::TcpAck))).unwrap_or(0);
        assert!((0..up_to).all(|at| self.has(at)), "{up_to} are not there: {rest}");
        self.acknowledged = self.acknowledged.max(up_to);
        let Some((from, to)) = block else { return };
        let data = packet.data();
        let option = data.windows(2).position(|two| two == [5, 10]).expect("the option");
        let edge =
            |at: usize| place(u32::from_be_bytes(data[at..at + 4].try_into().expect("4 bytes")));
        let (left, right) = (edge(option + 2), edge(option + 6));
        assert!((left.max(0)..right).all(|at| self.has(at as usize)), "{left}..{right}: {rest}");
        for (at_server, found) in [(from, left), (to, right)] {
            // The block may be old, or end in the middle of a command.
            let exact = self.at_client(at_server).filter(|&at| at >= self.acknowledged);
            assert!(exact.is_none_or(|at| at as i32 == found), "{exact:?}, not {found}: {rest}");
        }
    }

    /// Where a byte of the server's is among the client's, if it is not in the middle of a command
    /// that has changed.
    fn at_client(&self, at: usize) -> Option<usize> {
        let sent = self.commands.iter().take_while(|one| one.sent.is_some()).count();
        let nth = (0..=sent).rfind(|&nth| self.start_at_server(nth) <= at)?;
        let inside = at - self.start_at_server(nth);
        let kept = inside == 0 || self.commands[nth].port.is_none();
        kept.then(|| self.start(nth) + inside)
    }

    /// The server, or a stranger, tries to open a connection for data.
    fn connect(&mut self, rng: &mut Rng) {
        let Some((&inside, &(public, waits))) = self.ports.iter().nth(rng.below(6)) else { return };
        let stranger = rng.one_in(3);
        let from = if stranger { "198.51.100.9" } else { "192.0.2.1" };
        self.now += 1_000_000;
        let (port, seq) = (rng.range(20, 22), rng.word());
        let text = format!("tcp {from}:{port} > {}:{public} S seq={seq}", self.public);
        let outputs = self.run.packet(RIGHT, self.now, &text);
        let passed = packets(&outputs);
        assert_eq!(passed.len(), usize::from(waits && !stranger), "{text}: {outputs:?}");
        for (side, packet) in passed {
            assert_eq!((side, field(packet, Field::L4Dport)), (LEFT, inside.into()));
            self.ports.insert(inside, (public, false));
        }
    }
}

/// One of what is on its way: a random one, and perhaps it stays there to come again.
fn take<T: Clone>(rng: &mut Rng, way: &mut VecDeque<T>) -> Option<T> {
    let at = if rng.one_in(3) { rng.below(way.len()) } else { 0 };
    if rng.one_in(6) { way.get(at).cloned() } else { way.remove(at).filter(|_| !rng.one_in(6)) }
}

/// What happens next, to a random part of what is on its way. Returns whether a connection came in.
fn step(rng: &mut Rng, world: &mut World) -> bool {
    match rng.below(12) {
        10.. => world.send_more(rng),
        0 if rng.one_in(2) => world.answer(),
        0..3 => world.send_again(rng),
        3..6 => {
            if let Some(segment) = take(rng, &mut world.from_client) {
                world.pass(segment);
            }
        }
        6..8 => {
            if let Some((at, bytes)) = take(rng, &mut world.to_server) {
                // It may have room for a part only.
                let room = if rng.one_in(4) { rng.below(bytes.len()) } else { bytes.len() };
                world.receive(at, &bytes[..room]);
                world.acknowledge(rng);
            }
        }
        8 => {
            if let Some((text, block)) = take(rng, &mut world.from_server) {
                world.hear(&text, block);
            }
        }
        _ => {
            let waiting = |world: &World| world.ports.values().filter(|(_, waits)| *waits).count();
            let before = waiting(world);
            world.connect(rng);
            return waiting(world) < before;
        }
    }
    false
}

#[test]
fn commands_are_translated_whatever_happens_to_segments() {
    let (mut translated, mut opened, mut sacks, mut middles) = (0, 0, 0, 0);
    for seed in budget::seeds(24) {
        let mut rng = Rng::new(seed);
        let kind = [Kind::Napt, Kind::StaticClient, Kind::StaticServer][(seed % 3) as usize];
        let mut world = World::new(&mut rng, kind);
        let all = world.text().len();
        for round in 0.. {
            if world.acknowledged == all {
                break;
            }
            assert!(round < 20_000, "seed {seed}: {} of {all} bytes", world.acknowledged);
            opened += usize::from(step(&mut rng, &mut world));
        }
        translated += world.commands.iter().filter(|one| one.port.is_some()).count();
        sacks += world.sacks;
        middles += world.middles;
        world.run.compare_engines(seed);
    }
    assert!(translated > 100 && opened > 20, "{translated}, {opened}");
    assert!(sacks > 30 && middles > 30, "{sacks}, {middles}");
}
