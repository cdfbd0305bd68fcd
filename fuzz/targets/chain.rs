#![no_main]
//! Chains of the library's functions: whatever packets come, in whatever order and at whatever
//! times, the engine goes on and accounts for all of them.

use braid_ir::chain::Chain;
use braid_packet::{Link, Packet};
use braid_testkit::harness;
use braid_testkit::packet::packet;
use braid_testkit::record::{Stimulus, step};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// Packets whose bytes the input changes.
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
];

fn chains() -> &'static [Chain] {
    static CHAINS: OnceLock<Vec<Chain>> = OnceLock::new();
    CHAINS.get_or_init(|| {
        let chains = harness::library_chains().expect("the library's chains compile");
        chains.into_iter().map(|(_, chain)| chain).collect()
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some((pick, mut rest)) = bytes.split_first() else { return };
    let chains = chains();
    let chain = &chains[usize::from(*pick) % chains.len()];
    let mut engine = harness::reference(chain);
    let mut now = 1_000_000_000_u64;
    // Interface, time, template or length, then bytes.
    while let [interface, time, what, after @ ..] = rest {
        now = match time % 4 {
            0 => now + u64::from(*time),
            1 => now + u64::from(*time) * 10_000_000,
            2 => now.saturating_sub(u64::from(*time) * 1_000_000),
            _ => now + u64::from(*time) * 1_000_000,
        };
        let (packet, after) = one_packet(*what, now, after);
        rest = after;
        let interface = u16::from(*interface) % u16::try_from(chain.interfaces.len()).unwrap_or(1);
        step(engine.as_mut(), &Stimulus::Packet(interface, packet));
    }
    step(engine.as_mut(), &Stimulus::Advance(now + 20_000_000_000));
    assert!(engine.counters().balanced(), "{:?}", engine.counters());
    let _ = engine.state();
});

/// A packet, and what is left of the input.
fn one_packet(what: u8, now: u64, input: &[u8]) -> (Packet, &[u8]) {
    if let Some(template) = TEMPLATES.get(usize::from(what & 0x7f) % (TEMPLATES.len() + 4)) {
        let mut frame = packet(template).frame();
        // Pairs of place and value change it.
        let changes = usize::from(what >> 7) * 4;
        let (pairs, after) = input.split_at(changes.min(input.len()));
        for pair in pairs.chunks_exact(2) {
            let at = usize::from(pair[0]) % frame.data.len();
            frame.data[at] = pair[1];
        }
        return (braid_testkit::convert::packet_of(&frame, now), after);
    }
    let len = input.first().map_or(0, |len| usize::from(*len));
    let body = input.get(1..).unwrap_or(&[]);
    let (data, after) = body.split_at(len.min(body.len()));
    let links = [Link::Ethernet, Link::RawIp, Link::Cooked, Link::Cooked2];
    let link = links[usize::from(what) % 4];
    let wire_len = u32::try_from(data.len()).unwrap_or(0) + u32::from(what >> 6);
    (Packet::snapped(link, now, data.to_vec(), wire_len), after)
}
