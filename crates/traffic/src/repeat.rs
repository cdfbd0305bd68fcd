//! A capture that is repeated at later times with other addresses.

use crate::{END_NS, Error, Prefix, Progress, Traffic, later};
use braid_io::{CaptureReader, PacketSource};
use braid_packet::{Field, FlowKey, Layout, Packet};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How a capture is repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of times that the capture is sent.
    pub times: u64,
    /// Addresses in these prefixes change: repetition k (from 0) adds k times `step` to the host
    /// part, cyclically. If several prefixes contain an address, the first one counts. An empty
    /// list stands for every unicast address; the host part is then the last 24 bits of an IPv4
    /// address and the last 112 bits of an IPv6 address.
    pub shift: Vec<Prefix>,
    /// The number that each repetition adds.
    pub step: u64,
    /// The time from the end of a repetition to the start of the next. By default the capture's
    /// mean gap.
    pub gap_ns: Option<u64>,
    /// The time of the start. By default the start of the capture.
    pub start_ns: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { times: 1, shift: Vec::new(), step: 1, gap_ns: None, start_ns: None }
    }
}

/// The most flows that are counted. The number of flows is not reported for a capture with more.
const MAX_FLOWS: usize = 1 << 20;
/// The gap after a capture of one packet, or of packets that all have the same time.
const LEAST_GAP_NS: u64 = 1_000;

/// Addresses that change, and whether they are IPv6. Checksums change with them.
const ADDRESSES: [(Field, bool); 10] = [
    (Field::IpSrc, false),
    (Field::IpDst, false),
    (Field::Ip6Src, true),
    (Field::Ip6Dst, true),
    (Field::ArpSpa, false),
    (Field::ArpTpa, false),
    (Field::QuotedIpSrc, false),
    (Field::QuotedIpDst, false),
    (Field::QuotedIp6Src, true),
    (Field::QuotedIp6Dst, true),
];

/// A repeated capture.
pub struct Repeat {
    path: PathBuf,
    reader: CaptureReader,
    options: Options,
    facts: Facts,
    /// Nanoseconds from one repetition to the next.
    period_ns: u64,
    start_ns: u64,
    /// The current repetition, from 0.
    repetition: u64,
    given: u64,
}

/// Facts from the first reading of the capture.
struct Facts {
    packets: u64,
    first_ns: u64,
    last_ns: u64,
    flows: Option<u64>,
    nanoseconds: bool,
    warning: Option<String>,
}

impl Repeat {
    /// Opens a capture. It is read once to find its duration, then once per repetition.
    ///
    /// # Errors
    /// When it can't be read, has no packets, or times would go past the year 2106.
    pub fn open(path: &Path, options: Options) -> Result<Self, Error> {
        let facts = survey(path)?;
        let span_ns = facts.last_ns - facts.first_ns;
        let mean_ns = span_ns / facts.packets.saturating_sub(1).max(1);
        let gap_ns = options.gap_ns.unwrap_or(mean_ns.max(LEAST_GAP_NS));
        let period_ns = span_ns.checked_add(gap_ns).ok_or(Error::End)?;
        let start_ns = options.start_ns.unwrap_or(facts.first_ns);
        let whole = u128::from(period_ns) * u128::from(options.times.saturating_sub(1))
            + u128::from(span_ns)
            + u128::from(start_ns);
        if whole > u128::from(END_NS) {
            return Err(Error::End);
        }
        let reader = open(path)?;
        let path = path.to_owned();
        Ok(Self { path, reader, options, facts, period_ns, start_ns, repetition: 0, given: 0 })
    }

    /// Whether the capture's times may be finer than microseconds.
    #[must_use]
    pub fn nanoseconds(&self) -> bool {
        self.facts.nanoseconds
    }

    /// A warning about the capture for the user.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.facts.warning.as_deref()
    }

    fn shift(&self, packet: &mut Packet, layout: &Layout) {
        let by = u128::from(self.options.step) * u128::from(self.repetition);
        if by == 0 {
            return;
        }
        for (field, v6) in ADDRESSES {
            let Some(old) = packet.get(layout, field) else { continue };
            let Some(prefix) = host_part(&self.options.shift, old, v6) else { continue };
            let new = prefix.shifted(old, by);
            if new != old {
                packet.set(layout, field, new);
            }
        }
    }
}

/// The prefix whose host part of an address changes.
fn host_part(shift: &[Prefix], address: u128, v6: bool) -> Option<Prefix> {
    if shift.is_empty() {
        let unicast = match v6 {
            false => !matches!(address >> 24, 0 | 127 | 224..),
            // Addresses that are unspecified, loopback, mapped, link-local or multicast don't
            // change.
            true => !matches!(address >> 112, 0 | 0xfe80..=0xfebf | 0xff00..),
        };
        let len = if v6 { 16 } else { 8 };
        return unicast.then(|| Prefix::around(address, len, v6));
    }
    shift.iter().find(|prefix| prefix.is_v6() == v6 && prefix.contains(address)).copied()
}

fn open(path: &Path) -> Result<CaptureReader, Error> {
    CaptureReader::open(path).map_err(|why| Error::Read { file: path.display().to_string(), why })
}

fn survey(path: &Path) -> Result<Facts, Error> {
    let file = || path.display().to_string();
    let mut reader = open(path)?;
    let nanoseconds = reader.nanoseconds();
    let mut seen: HashSet<FlowKey> = HashSet::new();
    let (mut packets, mut first_ns, mut last_ns) = (0, u64::MAX, 0);
    while let Some(packet) =
        reader.next_packet().map_err(|why| Error::Read { file: file(), why })?
    {
        packets += 1;
        first_ns = first_ns.min(packet.time_ns);
        last_ns = last_ns.max(packet.time_ns);
        if seen.len() <= MAX_FLOWS {
            seen.extend(packet.flow_key(&packet.parse()).map(FlowKey::bidirectional));
        }
    }
    if packets == 0 {
        let why = "has no packets to repeat".to_owned();
        return Err(Error::Capture { file: file(), why });
    }
    let warning = reader.warning().map(|warning| format!("{}: {warning}", file()));
    let flows = (seen.len() <= MAX_FLOWS).then_some(seen.len() as u64);
    Ok(Facts { packets, first_ns, last_ns, flows, nanoseconds, warning })
}

impl Traffic for Repeat {
    fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        while self.repetition < self.options.times {
            let next = self.reader.next_packet();
            let file = || self.path.display().to_string();
            if let Some(mut packet) = next.map_err(|why| Error::Read { file: file(), why })? {
                let layout = packet.parse();
                self.shift(&mut packet, &layout);
                let offset = packet.time_ns.saturating_sub(self.facts.first_ns);
                let begin = later(self.start_ns, self.period_ns.saturating_mul(self.repetition))?;
                packet.time_ns = later(begin, offset)?;
                self.given += 1;
                return Ok(Some(packet));
            }
            self.repetition += 1;
            if self.repetition < self.options.times {
                self.reader = open(&self.path)?;
            }
        }
        Ok(None)
    }

    /// The capture's flows times the repetitions, as if each shifted flow were a new one.
    fn flows(&self) -> Option<u64> {
        let times = if self.options.step == 0 { 1 } else { self.options.times };
        self.facts.flows?.checked_mul(times)
    }

    fn progress(&self) -> Progress {
        let total = self.facts.packets.saturating_mul(self.options.times);
        Progress { done: self.given, total }
    }
}
