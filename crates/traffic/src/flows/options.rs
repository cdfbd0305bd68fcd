//! The options of synthetic flows, with their limits.

use super::size::FrameSize;
use crate::{Arrivals, Prefix, START_NS};
use std::str::FromStr;

/// Most flows; each takes about 40 bytes of memory.
pub const MAX_FLOWS: u64 = 1 << 22;
/// Most packets.
pub const MAX_PACKETS: u64 = u32::MAX as u64;
/// Most packets a second.
pub const MAX_RATE: u64 = 1_000_000_000;

/// The flows to generate.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Number of flows.
    pub flows: u64,
    /// Number of packets of all flows; at least one for each flow.
    pub packets: u64,
    /// Packets a second.
    pub rate: u64,
    /// How packets arrive.
    pub arrivals: Arrivals,
    /// Frame sizes.
    pub size: FrameSize,
    /// Tail index of the sizes of flows. Without it all flows have the same size.
    pub tail: Option<f64>,
    /// Protocols.
    pub protocol: Protocol,
    /// Packets that a flow sends in a row.
    pub train: u32,
    /// Clients.
    pub from: Prefix,
    /// Servers.
    pub to: Prefix,
    /// Server ports.
    pub ports: Ports,
    /// Share of a flow's packets that the server sends, in millionths. With 0 the server sends
    /// nothing, not even the packets that open and close a TCP connection.
    pub replies_ppm: u32,
    /// Seed.
    pub seed: u64,
    /// The time of the start.
    pub start_ns: u64,
}

impl Options {
    /// Options with this number of flows and packets, and the defaults for everything else.
    #[must_use]
    pub fn new(flows: u64, packets: u64) -> Self {
        let (from, to) = Self::prefixes(false);
        Self {
            flows,
            packets,
            rate: 1_000_000,
            arrivals: Arrivals::Regular,
            size: FrameSize::default(),
            tail: None,
            protocol: Protocol::Mix,
            train: 1,
            from,
            to,
            ports: Ports::default(),
            replies_ppm: 0,
            seed: 0,
            start_ns: START_NS,
        }
    }

    /// The default clients and servers: private addresses, and the addresses reserved for
    /// benchmarks (RFC 2544). For IPv6, two of the prefixes reserved for documentation (RFC 3849).
    #[must_use]
    pub fn prefixes(v6: bool) -> (Prefix, Prefix) {
        match v6 {
            false => (Prefix::around(10 << 24, 8, false), Prefix::around(0xc612 << 16, 15, false)),
            true => {
                let base = 0x2001_0db8_u128 << 96;
                (Prefix::around(base | 1 << 80, 64, true), Prefix::around(base | 2 << 80, 64, true))
            }
        }
    }
}

/// The protocols of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// All TCP.
    Tcp,
    /// All UDP.
    Udp,
    /// On average three flows in four are TCP, the others UDP.
    Mix,
}

impl Protocol {
    /// Names and values, for options.
    pub const NAMES: &[(&str, Protocol)] =
        &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp), ("mix", Protocol::Mix)];
}

/// Server ports, drawn evenly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ports {
    ranges: Vec<(u16, u16)>,
}

/// Most entries in a list of ports.
const MAX_RANGES: usize = 1024;

impl Default for Ports {
    fn default() -> Self {
        Self { ranges: vec![(80, 80), (443, 443)] }
    }
}

impl Ports {
    /// Number of ports.
    pub(super) fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// The port with this number, which is below the count.
    pub(super) fn at(&self, mut number: u64) -> u16 {
        for (first, last) in &self.ranges {
            let count = u64::from(last - first) + 1;
            if number < count {
                return first + number as u16;
            }
            number -= count;
        }
        0
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
            port(first).zip(port(last)).filter(|(first, last)| first <= last)
        };
        let ranges: Option<Vec<(u16, u16)>> =
            text.split(',').take(MAX_RANGES + 1).map(range).collect();
        ranges
            .filter(|ranges| ranges.len() <= MAX_RANGES)
            .map(|ranges| Ports { ranges })
            .ok_or_else(|| {
                format!(
                    "expected at most {MAX_RANGES} ports or ranges from 1 to 65535, such as \
                     80,443,8000-8010; found `{text}`"
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_listed_and_counted() {
        let ports: Ports = "80,8000-8002,443".parse().unwrap();
        assert_eq!(ports.count(), 5);
        let all: Vec<u16> = (0..5).map(|number| ports.at(number)).collect();
        assert_eq!(all, [80, 8000, 8001, 8002, 443]);
    }

    #[test]
    fn wrong_ports_are_refused() {
        for text in ["", "0", "65536", "80,", "9-8", "a", "80 443", "1-", "-1"] {
            assert!(text.parse::<Ports>().unwrap_err().contains("expected at most"), "{text}");
        }
        assert!("1,".repeat(2000).trim_end_matches(',').parse::<Ports>().is_err());
    }

    #[test]
    fn default_prefixes_are_the_reserved_ones() {
        let texts = |(from, to): (Prefix, Prefix)| [from.to_string(), to.to_string()];
        assert_eq!(texts(Options::prefixes(false)), ["10.0.0.0/8", "198.18.0.0/15"]);
        let v6 = ["2001:db8:1::/64", "2001:db8:2::/64"];
        assert_eq!(texts(Options::prefixes(true)), v6);
    }
}
