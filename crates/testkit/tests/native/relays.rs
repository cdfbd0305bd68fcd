//! Tests the split proxies in chains: all engines do the same for a conversation between a client
//! and a server.

use super::*;
use braid_compiler::sharding::{Verdict, divide};
use braid_connections::wire::{Ends, Frame, write};
use braid_endpoint::{Endpoint, Settings};
use braid_packet::Link;
use braid_testkit::record::{Detail, record};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;

const FUNCTIONS: &str = r#"
native nf tcp(ports: set<port>, seed: u64 = 7) from "relay";
native nf http(ports: set<port>, seed: u64 = 9, cache: size = 0 B) from "relay";
"#;

/// Chains with proxies between models. The server is at port 80.
fn chains() -> Vec<Chain> {
    [
        "monitor() <-> tcp(ports: { 80 })",
        "http(ports: { 80 }) <-> monitor() <-> napt(public: 203.0.113.1)",
        "tcp(ports: { 80 }) <-> http(ports: { 80 }, cache: 1 MiB) <-> monitor()",
        "monitor() <-> http(ports: { 80 }, cache: 1 MiB) <-> maglev(vip: 192.0.2.1, \
         backends: [192.0.2.9])",
    ]
    .map(|path| {
        compile(&format!("{FUNCTIONS} chain c {{ {INTERFACES} path lan <-> {path} <-> wan; }}"))
    })
    .into()
}

/// An end of a conversation.
struct Host {
    endpoint: Option<Endpoint>,
    ends: Option<Ends>,
    link: Vec<u8>,
    to_send: VecDeque<u8>,
    received: Vec<u8>,
}

impl Host {
    fn new(ends: Option<Ends>, text: &[u8]) -> Self {
        let link = [[2, 0, 0, 0, 0, 1].as_slice(), &[2, 0, 0, 0, 0, 2], &[8, 0]].concat();
        let (endpoint, received) = (None, Vec::new());
        Self { endpoint, ends, link, to_send: text.iter().copied().collect(), received }
    }

    /// A frame has come. A host without a connection takes one.
    fn take(&mut self, packet: &Packet, now: u64) {
        let Some(frame) = Frame::of(packet.data()) else { return };
        assert!(frame.is_right);
        self.ends.get_or_insert(frame.ends.reversed());
        match &mut self.endpoint {
            Some(endpoint) => endpoint.segment(&frame.segment, now),
            None => {
                let endpoint = Endpoint::accept(&Settings::default(), &frame.segment, 5, now);
                self.endpoint = Some(endpoint);
            }
        }
    }

    /// What it sends now. It closes when it has sent everything and got something.
    fn give(&mut self, now: u64) -> Vec<Packet> {
        let (Some(endpoint), Some(ends)) = (&mut self.endpoint, self.ends) else {
            return Vec::new();
        };
        let (first, second) = endpoint.readable();
        let bytes = [first, second].concat();
        endpoint.consume(bytes.len());
        self.received.extend(bytes);
        let taken = endpoint.write(self.to_send.make_contiguous());
        self.to_send.drain(..taken);
        if self.to_send.is_empty() && !self.received.is_empty() {
            endpoint.close();
        }
        let (mut frames, mut frame) = (Vec::new(), Vec::new());
        endpoint.send(now, usize::MAX, &mut |segment| {
            write(&self.link, ends, 0, &segment, &mut frame);
            frames.push(Packet::new(Link::Ethernet, now, &frame));
        });
        frames
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";

/// A conversation through a chain in the reference engine, as stimuli. With losses, some packets
/// never come. Returns what the client got, too.
pub fn conversation(chain: &Chain, port: u16, losses: bool) -> (Vec<Stimulus>, Vec<u8>) {
    let end = |text: &str, port| (text.parse().expect("an address"), port);
    let ends = Ends { from: end("10.0.0.7", port), to: end("192.0.2.1", 80) };
    let page = "A line of a page.\n".repeat(3_000);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n\
         Content-Length: {}\r\n\r\n",
        page.len()
    );
    let mut client = Host::new(Some(ends), REQUEST);
    let mut server = Host::new(None, format!("{head}{page}").as_bytes());
    let mut now = 1_000_000 * MS;
    client.endpoint = Some(Endpoint::connect(&Settings::default(), 3, now));
    let (mut engine, mut stimuli) = (harness::reference(chain), Vec::new());
    let mut number = 0;
    for _ in 0..8_000 {
        let sent = [client.give(now), server.give(now)];
        let both = sent.into_iter().zip(0..).flat_map(|(sent, at)| {
            sent.into_iter().map(move |packet| Stimulus::Packet(at, packet))
        });
        let mut steps: Vec<_> = both.collect();
        steps.push(Stimulus::Advance(now));
        for step_now in steps {
            number += 1;
            if losses && number % 17 == 0 && matches!(step_now, Stimulus::Packet(..)) {
                continue;
            }
            for output in step(engine.as_mut(), &step_now) {
                match output {
                    Output::Packet(0, packet) => client.take(&packet, now),
                    Output::Packet(_, packet) => server.take(&packet, now),
                    _ => {}
                }
            }
            stimuli.push(step_now);
        }
        // Without a connection to the server, the chain itself has answered.
        let is_over = |host: &Host| host.endpoint.as_ref().is_none_or(|e| e.status().is_over);
        if is_over(&client) && is_over(&server) {
            break;
        }
        now += 5 * MS;
    }
    assert_eq!(engine.problems(), []);
    (stimuli, client.received)
}

/// Proxies keep connections, so workers can share the connections of a chain.
#[test]
fn workers_carry_on_the_same_conversations() {
    for (at, chain) in chains().into_iter().enumerate() {
        let divided = workers_agree(at, &chain);
        // Under another steering, segments of a connection come to several proxies.
        let (_, whole) = conversation(&chain, 40_000, false);
        let other = Chain { steering: harness::by_sender(&chain), ..divided };
        let is_lost = |port| conversation(&other, port, false).1 != whole;
        assert!((40_000..40_008).any(is_lost), "chain {at}");
    }
}

/// Three workers that share eight conversations do the same as three shards of the reference, and
/// clients get what they get from one worker. Returns the divided chain.
pub fn workers_agree(at: usize, chain: &Chain) -> Chain {
    let (divided, found) = divide(Chain { workers: 3, ..chain.clone() }).expect("a chain");
    assert_eq!(found.verdict, Verdict::Split, "chain {at}: {:?}", found.why_not);
    let (_, whole) = conversation(chain, 40_000, false);
    let (mut all, mut workers) = (Vec::new(), BTreeSet::new());
    for port in 40_000..40_008 {
        let (stimuli, received) = conversation(&divided, port, false);
        assert_eq!(String::from_utf8_lossy(&received), String::from_utf8_lossy(&whole));
        for stimulus in &stimuli {
            if let Stimulus::Packet(ingress, packet) = stimulus {
                let mut packet = packet.clone();
                packet.ingress = *ingress;
                workers.insert(divided.worker(&packet, &packet.parse()));
            }
        }
        all.push(stimuli);
    }
    assert_eq!(workers.len(), 3, "chain {at}: {workers:?}");
    let stimuli = by_turns(all);
    let expected = record(harness::reference(&divided).as_mut(), &stimuli, Detail::End);
    // Listings show the sums of the workers' counters.
    let lines = braid_runtime::json::state_lines(&divided, expected.state.clone());
    let lines: Vec<String> = lines.filter(|line| line.contains("\"connections\"")).collect();
    let all = r#""shard":null,"table":"counters","value":{"connections":8}}"#;
    assert!(!lines.is_empty() && lines.iter().all(|line| line.ends_with(all)), "{lines:?}");
    for kind in [ENGINES[0], harness::USERS[0]] {
        let conversations = (stimuli.clone(), expected.clone());
        let differs = harness::differs_from_shards(&divided, kind, conversations);
        assert!(differs.is_none(), "chain {at}: {}", differs.unwrap_or_default());
    }
    divided
}

/// The stimuli of several conversations at the same times.
fn by_turns(all: Vec<Vec<Stimulus>>) -> Vec<Stimulus> {
    let time = |stimulus: &Stimulus| match stimulus {
        Stimulus::Packet(_, packet) => packet.time_ns,
        Stimulus::Advance(time) => *time,
        Stimulus::Control(control) => control.time_ns,
    };
    let mut all: Vec<Stimulus> = all.into_iter().flatten().collect();
    all.sort_by_key(time);
    all
}

#[test]
fn engines_carry_on_the_same_conversation() {
    for (at, chain) in chains().into_iter().enumerate() {
        for losses in [false, true] {
            let (stimuli, received) = conversation(&chain, 40_000, losses);
            let text = String::from_utf8_lossy(&received);
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "chain {at}: {text}");
            assert_eq!(text.contains("Content-Encoding: gzip"), at > 0, "chain {at}");
            engines_agree(at, &chain, &stimuli, losses);
        }
    }
}

/// All engines do what the reference does. With losses, only some of them are asked.
pub fn engines_agree(at: usize, chain: &Chain, stimuli: &[Stimulus], losses: bool) {
    let expected = record(harness::reference(chain).as_mut(), stimuli, Detail::End);
    let check = |engine: &harness::Engine, chain: &Chain| {
        let found = engine.check(chain, stimuli, &expected);
        assert!(found.is_ok(), "chain {at}: {}", found.unwrap_err());
    };
    let engines = ENGINES.iter().filter(|engine| !losses || !engine.has_machine_code());
    engines.for_each(|engine| check(engine, chain));
    if losses {
        check(&ENGINES[0], &isolated::isolated(chain.clone()));
    }
}
