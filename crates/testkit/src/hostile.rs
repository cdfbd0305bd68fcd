//! Makes hostile packets from a fuzzer's bytes: any packets, in any order, at any times.

use crate::convert::packet_of;
use crate::harness::{self, Engine, Form, HOSTILE, USERS};
use crate::packet::packet;
use crate::record::{Detail, Stimulus, record};
use braid_ir::chain::Chain;
use braid_packet::{Link, Packet};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Packets with bytes that the input changes.
const TEMPLATES: &[&str] = &[
    "tcp 10.0.0.1:1234 > 192.0.2.2:80 S seq=7 mss=1460 \"GET /evil\"",
    "tcp 192.0.2.2:80 > 10.0.0.1:1234 SA seq=9 ack=8",
    "udp 10.0.0.2:5353 > 198.51.100.7:53 \"attack\"",
    "udp [2001:db8::1]:1 > [2001:db8:1::2]:2 ext=hop,dst \"x\"",
    "icmp 10.0.0.1 > 192.0.2.9 echo-request id=5 seq=1",
    "icmp 192.0.2.9 > 203.0.113.1 unreachable cut=28 / udp 203.0.113.1:1024 > 192.0.2.9:53",
    "vlan 5 / tcp 10.0.0.3:80 > 10.0.4.1:4000 FA",
    "ip 10.0.0.1 > 192.0.2.1 ipid=9 mf proto=17 hex=0001000200200000",
    "arp request 10.1.0.1 > 192.0.2.1",
    "udp 192.0.2.12:50000 > 192.0.2.11:4789 nosum / vxlan 42 / udp 198.51.100.1:1 > 10.0.0.1:2",
    "ip 10.0.0.1 > 192.0.2.1 / gre key=7 / tcp 198.51.100.1:1 > 10.0.0.1:2 S",
    "udp 10.0.0.1:7 > 192.0.2.1:2152 hex=30ff000000000001450000180000000040110000c0a80001c0a80002001600160000",
    "tcp 10.0.0.1:1234 > 192.0.2.2:80 S ts=1,2 mss=1460 \"GET / HTTP/1.1\"",
];

/// The library's chains, and a chain of functions with tunnels and headers of their own.
///
/// # Panics
/// When a chain does not compile.
pub fn chains() -> &'static [Chain] {
    static CHAINS: OnceLock<Vec<Chain>> = OnceLock::new();
    CHAINS.get_or_init(|| {
        let chains = harness::library_chains().expect("the library's chains compile");
        chains.into_iter().map(|(_, chain)| chain).collect()
    })
}

/// The chain that the first byte selects, and the packets that the other bytes make.
pub(crate) fn stimuli(bytes: &[u8]) -> Option<(&'static Chain, Vec<Stimulus>)> {
    let (pick, rest) = bytes.split_first()?;
    let chains = chains();
    let chain = &chains[usize::from(*pick) % chains.len()];
    Some((chain, packets(chain, rest)))
}

/// The packets for a chain that bytes make. Time advances past all time-outs at the end.
fn packets(chain: &Chain, mut rest: &[u8]) -> Vec<Stimulus> {
    let mut now = 1_000_000_000_u64;
    let mut stimuli = Vec::new();
    // Each packet takes a byte each for interface, time, and template or length, then further
    // bytes.
    while let [interface, time, what, after @ ..] = rest {
        now = match time % 4 {
            0 => now + u64::from(*time),
            1 => now + u64::from(*time) * 10_000_000,
            2 => now.saturating_sub(u64::from(*time) * 1_000_000),
            _ => now + u64::from(*time) * 1_000_000,
        };
        let (packet, after) = one_packet(*what, now, after);
        rest = after;
        // The high bits are the number of repetitions.
        let times = 1 + usize::from(*interface >> 5);
        let interface = u16::from(*interface) % u16::try_from(chain.interfaces.len()).unwrap_or(1);
        stimuli.extend((0..times).map(|_| Stimulus::Packet(interface, packet.clone())));
    }
    stimuli.push(Stimulus::Advance(now + 20_000_000_000));
    stimuli
}

/// Compares an engine with the reference engine on the packets. The last byte selects the engine,
/// which has machine code or flow records.
///
/// # Errors
/// The difference, on a smallest sequence.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    let Some((pick, bytes)) = bytes.split_last() else { return Ok(()) };
    let Some((chain, stimuli)) = stimuli(bytes) else { return Ok(()) };
    check_with(*pick, chain, &stimuli)
}

/// As [`check`], with a chain that reads, assigns, adds and removes headers of its own.
///
/// # Errors
/// As for [`check`].
pub fn check_headers(bytes: &[u8]) -> Result<(), String> {
    static CHAIN: OnceLock<Chain> = OnceLock::new();
    check_one(&CHAIN, include_str!("hostile/headers.braid"), bytes)
}

/// As [`check`], with a chain that reads, assigns, adds and removes TCP options.
///
/// # Errors
/// As for [`check`].
pub fn check_tcp_options(bytes: &[u8]) -> Result<(), String> {
    static CHAIN: OnceLock<Chain> = OnceLock::new();
    check_one(&CHAIN, include_str!("hostile/tcp_options.braid"), bytes)
}

/// As [`check`], with the chain in a source text, which is compiled once.
fn check_one(chain: &OnceLock<Chain>, source: &str, bytes: &[u8]) -> Result<(), String> {
    let Some((pick, bytes)) = bytes.split_last() else { return Ok(()) };
    let chain = chain.get_or_init(|| {
        harness::compile(source, &BTreeMap::new(), Form::AsWritten)
            .unwrap_or_else(|errors| panic!("{errors}"))
    });
    check_with(*pick, chain, &packets(chain, bytes))
}

/// Compares the engine that a byte selects with the reference engine.
fn check_with(pick: u8, chain: &Chain, stimuli: &[Stimulus]) -> Result<(), String> {
    let engine: Engine = HOSTILE[usize::from(pick) % HOSTILE.len()];
    let expected = record(harness::reference(chain).as_mut(), stimuli, Detail::End);
    engine.check(chain, stimuli, &expected)
}

/// Compares all engines with the options of users with the reference engine on the packets. Each
/// packet must be accounted for.
///
/// # Errors
/// The panic or the counters of the reference engine, or a difference on a smallest sequence.
pub fn check_users(bytes: &[u8]) -> Result<(), String> {
    let Some((chain, stimuli)) = stimuli(bytes) else { return Ok(()) };
    let expected = record(harness::reference(chain).as_mut(), &stimuli, Detail::End);
    if let Some(panic) = &expected.panic {
        return Err(format!("the reference engine panics: {panic}"));
    }
    if let Some(counters) = expected.counters.iter().find(|counters| !counters.balanced()) {
        return Err(format!("packets are unaccounted for: {counters:?}"));
    }
    USERS.iter().try_for_each(|engine| engine.check(chain, &stimuli, &expected))
}

/// A packet, and the remaining input.
fn one_packet(what: u8, now: u64, input: &[u8]) -> (Packet, &[u8]) {
    if let Some(template) = TEMPLATES.get(usize::from(what & 0x7f) % (TEMPLATES.len() + 4)) {
        let mut frame = packet(template).frame();
        // Pairs of offset and value change the packet.
        let changes = usize::from(what >> 7) * 4;
        let (pairs, after) = input.split_at(changes.min(input.len()));
        for pair in pairs.chunks_exact(2) {
            let at = usize::from(pair[0]) % frame.data.len();
            frame.data[at] = pair[1];
        }
        return (packet_of(&frame, now), after);
    }
    let len = input.first().map_or(0, |len| usize::from(*len));
    let body = input.get(1..).unwrap_or(&[]);
    let (data, after) = body.split_at(len.min(body.len()));
    let links = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];
    let link = links[usize::from(what) % 4];
    let wire_len = u32::try_from(data.len()).unwrap_or(0) + u32::from(what >> 6);
    (Packet::snapped(link, now, data, wire_len), after)
}
