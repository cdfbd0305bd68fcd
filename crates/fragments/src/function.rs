//! The native function.

use crate::datagrams::{Brought, Datagrams, Limits};
use crate::fragment::Fragment;
use braid_native::{Dump, Function, Host, Info, Kind, PacketRef, ProfileInfo, Scope, Verdict, may};
use braid_packet::{Field, Header, Link, Packet};

/// How often it looks for datagrams that are too old (ns).
const TICK: u64 = 1_000_000_000;
/// The most memory, unless it is configured (bytes).
const MEMORY: u128 = 4 << 20;
/// The time after which a datagram is given up, unless it is configured (ns).
const TIMEOUT: u128 = 30_000_000_000;

/// Drops for the function's reasons, by their numbers.
const CUT: Verdict = Verdict::Drop(0);
const WRONG: Verdict = Verdict::Drop(1);

/// It reads whole packets, takes fragments, and changes nothing.
static PROFILE: ProfileInfo = ProfileInfo::new(c"*", c"", may::DROP | may::REDIRECT);

/// Puts fragments together. Other packets pass.
pub struct Defragment {
    datagrams: Datagrams,
    /// The counters of datagrams that were put together, and that were given up because of their
    /// age and because of the memory.
    together: i32,
    timed_out: i32,
    given_up: i32,
}

impl Defragment {
    /// Tells the host which datagrams were given up.
    fn count(&mut self, host: &mut Host<'_>) {
        let Self { datagrams, timed_out, given_up, .. } = self;
        for (counter, count) in
            [(*timed_out, &mut datagrams.timed_out), (*given_up, &mut datagrams.given_up)]
        {
            if *count > 0 {
                host.count(counter, std::mem::take(count));
            }
        }
    }
}

/// A copy of the packet.
fn copy(packet: &mut PacketRef<'_, Defragment>) -> Packet {
    // Raw IP begins with the version, and the second cooked header with an EtherType.
    let link = match packet.bytes() {
        _ if packet.has(Header::Eth) => Link::Ethernet,
        [0x40..0x70, ..] => Link::RawIp,
        [0, 0..=4, ..] => Link::Cooked,
        _ => Link::Cooked2,
    };
    let now = packet.host().now();
    let mut copy = Packet::new(link, now, packet.bytes());
    copy.backward = packet.get(Field::PktBackward) == Some(1);
    copy
}

impl Function for Defragment {
    const INFO: Info = Info {
        scope: Scope::Biflow,
        profile: Some(&PROFILE),
        reasons: c"fragment is cut\nfragments do not fit together",
        sends: 1,
        ..Info::new(c"puts IP fragments together")
    };
    type Flow = ();

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let number = |name, otherwise| host.config(name).unwrap_or(otherwise);
        let memory = number("memory", MEMORY);
        let timeout = number("timeout", TIMEOUT);
        let limits = Limits {
            memory: usize::try_from(memory).map_err(|_| "`memory` is too large")?,
            timeout: u64::try_from(timeout).map_err(|_| "`timeout` is too long")?,
        };
        host.every::<Self>(TICK, 0).map_err(|_| "it needs a timer")?;
        Ok(Self {
            datagrams: Datagrams::new(limits),
            together: host.counter("put together"),
            timed_out: host.counter("timed out"),
            given_up: host.counter("given up for memory"),
        })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        if packet.get(Field::PktFragment) != Some(1) {
            return Verdict::Forward;
        }
        let copy = copy(packet);
        let Some((key, fragment)) = Fragment::of(&copy, &copy.parse()) else { return CUT };
        let brought = self.datagrams.add(key, fragment, copy.time_ns);
        self.count(packet.host());
        match brought {
            Brought::Nothing => Verdict::Consume,
            Brought::Wrong => WRONG,
            Brought::Whole(bytes) => {
                // It is no longer than a packet may be, and the only one.
                let _ = packet.send(&bytes, Verdict::Forward);
                packet.host().count(self.together, 1);
                Verdict::Consume
            }
        }
    }

    fn timer(&mut self, _number: u32, host: &mut Host<'_>) {
        self.datagrams.advance(host.now());
        self.count(host);
    }

    fn dump(&self, into: &mut Dump<'_>) {
        for (key, fragments, bytes) in self.datagrams.shown() {
            let address = if key.version == 4 { Kind::Ip4 } else { Kind::Ip6 };
            let key = [(address, key.src), (address, key.dst), (Kind::Uint, key.id.into())];
            let count = |name, count: usize| (name, Kind::Uint, count as u128);
            into.entry(c"waiting", &key, &[count(c"fragments", fragments), count(c"bytes", bytes)]);
        }
    }

    fn save(&mut self, _host: &mut Host<'_>) -> Option<Vec<u8>> {
        Some(self.datagrams.save())
    }

    fn restore(&mut self, bytes: &[u8], _host: &mut Host<'_>) -> Result<(), String> {
        self.datagrams.restore(bytes).ok_or_else(|| "its memory is damaged".to_owned())
    }
}
