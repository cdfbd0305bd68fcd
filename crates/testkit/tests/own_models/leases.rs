//! The DHCP guard: which packets pass follows from the leases that a list holds.

use crate::{LEFT, RIGHT, Run, packets};
use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use std::fmt::Write;

const SECOND: u64 = 1_000_000_000;
/// Most leases, in the model and in the chain.
const MOST: usize = 3;

/// Leases in the order of their ACKs: the address, the MAC address, and the end.
#[derive(Default)]
struct Leases(Vec<(u64, u64, u64)>);

impl Leases {
    fn give(&mut self, address: u64, mac: u64, until: u64) {
        self.end(address);
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((address, mac, until));
    }

    fn end(&mut self, address: u64) {
        self.0.retain(|lease| lease.0 != address);
    }

    /// Whether the address is that of the host.
    fn has(&self, address: u64, mac: u64) -> bool {
        self.0.iter().any(|lease| (lease.0, lease.1) == (address, mac))
    }

    fn is_valid(&self, address: u64, mac: u64, now: u64) -> bool {
        self.has(address, mac) && self.0.iter().any(|lease| lease.0 == address && now < lease.2)
    }
}

/// A DHCP message. Addresses are last bytes of 10.0.0.0/24, and 0 is no address.
#[derive(Default)]
struct Message {
    reply: bool,
    kind: u64,
    client: u64,
    own: u64,
    yours: u64,
    relay: u64,
    seconds: Option<u64>,
    wanted: Option<u64>,
    relayed: bool,
    cut: bool,
}

impl Message {
    /// The options in some order, with padding.
    fn options(&self, rng: &mut Rng) -> String {
        let mut options = vec![format!("3501{:02x}", self.kind)];
        options.extend(self.seconds.map(|seconds| format!("3304{seconds:08x}")));
        options.extend(self.wanted.map(|wanted| format!("32040a0000{wanted:02x}")));
        options.extend(self.relayed.then(|| "5203010161".to_owned()));
        options.extend(rng.one_in(2).then(|| "0c026162".to_owned()));
        let turn = rng.below(options.len());
        options.rotate_left(turn);
        let pads = "00".repeat(rng.below(4));
        let end = if self.cut { "3204" } else { *rng.pick(&["ff", "ff0000", ""]) };
        options.join(&pads) + end
    }

    fn hex(&self, rng: &mut Rng) -> String {
        let address = |last: u64| if last == 0 { 0 } else { 0x0a00_0000 + last };
        let mut hex =
            format!("{:02x}010600{:08x}{:08x}", 2 - u64::from(!self.reply), rng.word(), 0);
        for last in [self.own, self.yours, 0, self.relay] {
            let _ = write!(hex, "{:08x}", address(last));
        }
        let _ = write!(hex, "{:012x}{}", 0x0200_0000_0000 + self.client, "00".repeat(202));
        hex + "63825363" + &self.options(rng)
    }
}

fn frame(mac: u64) -> String {
    format!("eth 02:00:00:00:00:{mac:02x} > ff:ff:ff:ff:ff:ff /")
}

/// A message of a host at the left, and whether it passes.
fn client(rng: &mut Rng, leases: &mut Leases, mac: u64) -> (String, bool) {
    let mut message = Message {
        kind: *rng.pick(&[1, 3, 4, 4, 7, 7, 8, 2, 5]),
        client: if rng.one_in(6) { rng.range(1, 3) } else { mac },
        own: rng.range(0, 5),
        wanted: rng.one_in(2).then(|| rng.range(1, 5)),
        relayed: rng.one_in(10),
        cut: rng.one_in(12),
        ..Message::default()
    };
    if rng.one_in(10) {
        message.relay = 9;
    }
    let address = if message.kind == 7 { message.own } else { message.wanted.unwrap_or(0) };
    let sound = message.client == mac && message.relay == 0 && !message.relayed && !message.cut;
    let passes = sound
        && match message.kind {
            1 | 3 | 8 => true,
            4 | 7 => leases.has(address, mac),
            _ => false,
        };
    if passes && matches!(message.kind, 4 | 7) {
        leases.end(address);
    }
    let text = format!("{} udp 0.0.0.0:68 > 255.255.255.255:67 hex=", frame(mac));
    (text + &message.hex(rng), passes)
}

/// A message of a server at the right, which passes unless it is cut off.
fn server(rng: &mut Rng, leases: &mut Leases, now: u64) -> (String, bool) {
    let message = Message {
        reply: true,
        kind: *rng.pick(&[5, 5, 5, 2, 6]),
        client: rng.range(1, 3),
        yours: rng.range(0, 5),
        seconds: Some(rng.range(0, 4)).filter(|_| !rng.one_in(6)),
        cut: rng.one_in(12),
        ..Message::default()
    };
    let seconds = message.seconds.unwrap_or(0);
    if !message.cut && message.kind == 5 && message.yours != 0 && seconds > 0 {
        leases.give(message.yours, message.client, now + seconds * SECOND);
    }
    let text = format!("{} udp 10.0.0.53:67 > 255.255.255.255:68 hex=", frame(0x53));
    (text + &message.hex(rng), !message.cut)
}

/// A packet of a host that is no DHCP, and whether it passes.
fn other(rng: &mut Rng, leases: &Leases, mac: u64, now: u64) -> (String, bool) {
    let address = rng.range(0, 5);
    let shown = if address == 0 { "0.0.0.0".to_owned() } else { format!("10.0.0.{address}") };
    if rng.one_in(2) {
        let sender = if rng.one_in(5) { rng.range(1, 3) } else { mac };
        let kind = *rng.pick(&["request", "reply"]);
        let text = format!(
            "{} arp {kind} {shown} > 10.0.0.53 sha=02:00:00:00:00:{sender:02x}",
            frame(mac)
        );
        let known = address == 0 || leases.is_valid(address, mac, now);
        return (text, sender == mac && known);
    }
    let text = format!("{} udp {shown}:4000 > 192.0.2.1:9 \"data\"", frame(mac));
    (text, leases.is_valid(address, mac, now))
}

#[test]
fn leases_decide_what_passes() {
    let mut passed = [0; 4];
    for seed in budget::seeds(16) {
        let mut rng = Rng::new(seed);
        let mut run = Run::new(&format!("dhcp_guard(leases: {MOST})"));
        let (mut leases, mut now) = (Leases::default(), SECOND);
        for nth in 0..300 {
            now += if rng.one_in(4) { rng.range(0, SECOND) } else { 0 };
            let mac = rng.range(1, 3);
            let what = rng.below(4);
            let (side, (text, passes)) = match what {
                0 => (RIGHT, server(&mut rng, &mut leases, now)),
                1 => (LEFT, client(&mut rng, &mut leases, mac)),
                _ => (LEFT, other(&mut rng, &leases, mac, now)),
            };
            let outputs = run.packet(side, now, &text);
            assert_eq!(!packets(&outputs).is_empty(), passes, "seed {seed}, packet {nth}: {text}");
            passed[what] += u32::from(passes);
        }
        run.compare_engines(seed);
    }
    assert!(passed.iter().all(|&count| count > 20), "{passed:?}");
}
