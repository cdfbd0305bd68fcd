//! Rule sets like ClassBench's acl1: the access lists of a large network (Taylor, Turner:
//! ClassBench, ToN 2007).
//!
//! The generated sets have those properties of sets of ten thousand rules that matter to a
//! classifier:
//! - no rule tests the source port. The destination port is any in 28 of 100 rules. Otherwise it is
//!   nearly always one of about a hundred ports, and a few of these ports are much more
//!   frequent than the others. A few rules have port ranges;
//! - nine tenths of the rules are for TCP. One in ten of these requires ACK, and one in ten
//!   excludes SYN. Some rules are for any protocol, ICMP or UDP;
//! - addresses are mostly single hosts and pairs of hosts. They lie in few networks and are nested;
//! - there are far fewer destinations (0.07 per rule) than sources (0.4 per rule). Each of a few
//!   destinations has a tenth of the rules. A pair of addresses has 1.3 rules;
//! - more specific rules come first.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use braid_traffic::random::{Random, exp, ln};

use super::common::{SEED, is_martian, mask};

/// Lengths of source prefixes and their shares.
const SOURCE_LENGTHS: &[(u32, u64)] =
    &[(32, 520), (31, 280), (30, 87), (29, 21), (25, 9), (24, 31), (23, 31), (22, 21)];
/// Lengths of destination prefixes and their shares.
const DESTINATION_LENGTHS: &[(u32, u64)] =
    &[(32, 370), (31, 190), (30, 51), (28, 13), (25, 24), (24, 38), (23, 47), (22, 70), (21, 34)];
/// Lengths of short prefixes and their shares, for both sides. Most other prefixes lie inside a
/// short one.
const WIDE_LENGTHS: &[(u32, u64)] = &[(20, 4), (17, 9), (16, 12), (15, 7), (14, 4), (8, 2), (7, 1)];
/// One prefix in `WIDE` is a short one.
const WIDE: u64 = 40;
/// Number of ports that rules test. The first ports are the most frequent.
const PORTS: usize = 100;
/// Port ranges that rules test.
const RANGES: &[(u16, u16)] =
    &[(1600, 1649), (1300, 1349), (7500, 7599), (2200, 2210), (1700, 1750), (1025, 65535)];

/// One side of the rules: its prefixes, and how a rule chooses one.
struct Side {
    prefixes: Vec<(u32, u32)>,
    /// Exponent of the Zipf distribution over the prefixes.
    skew: f64,
}

/// A ClassBench file with `count` rules.
#[must_use]
pub fn rules(count: u64) -> String {
    let mut random = Random::new(SEED, 2);
    let sources = Side::new(&mut random, count * 4 / 10 + 1, SOURCE_LENGTHS, 0.4);
    let destinations = Side::new(&mut random, count * 7 / 100 + 1, DESTINATION_LENGTHS, 0.9);
    let ports: Vec<u16> = (0..PORTS).map(|_| 1 + random.below(40_000) as u16).collect();
    let mut lines: Vec<(u32, String)> = Vec::new();
    let mut seen = HashSet::new();
    while (lines.len() as u64) < count {
        let (source, destination) = (sources.pick(&mut random), destinations.pick(&mut random));
        let (protocol, flags) = protocol(&mut random);
        let (low, high) = port(&mut random, &ports, protocol);
        let text = format!(
            "@{}/{}\t{}/{}\t0 : 65535\t{low} : {high}\t{protocol}\t{flags}\t\n",
            Ipv4Addr::from(source.0),
            source.1,
            Ipv4Addr::from(destination.0),
            destination.1,
        );
        if seen.insert(text.clone()) {
            lines.push((source.1 + destination.1 + random.below(6) as u32, text));
        }
    }
    // The sort is stable: rules that are about equally specific keep their random order.
    lines.sort_by_key(|(specific, _)| std::cmp::Reverse(*specific));
    lines.into_iter().fold(String::new(), |mut text, (_, line)| {
        let _ = write!(text, "{line}");
        text
    })
}

impl Side {
    /// Draws `count` different prefixes. Prefixes that are not short lie in a few networks.
    fn new(random: &mut Random, count: u64, lengths: &[(u32, u64)], skew: f64) -> Self {
        let networks: Vec<u32> = (0..count / 50 + 3).map(|_| network(random)).collect();
        let mut seen = HashSet::new();
        let mut prefixes = Vec::new();
        while (prefixes.len() as u64) < count {
            let network = networks[random.below(networks.len() as u64) as usize];
            let wide = random.below(WIDE) == 0;
            let length = draw(random, if wide { WIDE_LENGTHS } else { lengths });
            // A /22 contains the hosts. Shorter prefixes enclose such a /22.
            let address = (network | random.below(1 << 10) as u32) & mask(length);
            if seen.insert((address, length)) {
                prefixes.push((address, length));
            }
        }
        Self { prefixes, skew }
    }

    /// Draws a prefix. The prefix of rank r has a probability proportional to r^-skew.
    fn pick(&self, random: &mut Random) -> (u32, u32) {
        // The inverse of the continuous distribution with this density, from 1 to n + 1.
        let (n, rest) = (self.prefixes.len() as f64 + 1.0, 1.0 - self.skew);
        let span = exp(rest * ln(n)) - 1.0;
        let rank = exp(ln(1.0 + random.unit() * span) / rest);
        let at = (rank as usize).saturating_sub(1).min(self.prefixes.len() - 1);
        self.prefixes[at]
    }
}

/// A /22 of hosts that can send packets.
fn network(random: &mut Random) -> u32 {
    loop {
        let address = (random.bits() >> 32) as u32 & mask(22);
        // The network may only have addresses of hosts, even if it is shortened to a /7.
        if !is_martian(address & mask(7)) && !is_martian(address | !mask(7)) {
            return address;
        }
    }
}

fn draw(random: &mut Random, shares: &[(u32, u64)]) -> u32 {
    let mut left = random.below(shares.iter().map(|(_, share)| share).sum());
    for (value, share) in shares {
        if left < *share {
            return *value;
        }
        left -= share;
    }
    32
}

fn protocol(random: &mut Random) -> (&'static str, &'static str) {
    const NONE: &str = "0x0000/0x0000";
    match random.below(1000) {
        0..700 => ("0x06/0xFF", NONE),
        700..790 => ("0x06/0xFF", "0x0000/0x0200"),
        790..873 => ("0x06/0xFF", "0x1000/0x1000"),
        873..956 => ("0x00/0x00", NONE),
        956..987 => ("0x01/0xFF", NONE),
        _ => ("0x11/0xFF", NONE),
    }
}

fn port(random: &mut Random, ports: &[u16], protocol: &str) -> (u16, u16) {
    if !matches!(protocol, "0x06/0xFF" | "0x11/0xFF") {
        return (0, u16::MAX);
    }
    match random.below(100) {
        0..19 => (0, u16::MAX),
        19..27 => RANGES[random.below(RANGES.len() as u64) as usize],
        _ => {
            // The product of two random numbers favours the first ports.
            let at = random.below(1 + random.clone().below(ports.len() as u64)) as usize;
            (ports[at], ports[at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn columns(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split('\t').collect()).collect()
    }

    fn most<'a>(values: impl Iterator<Item = &'a str>) -> (usize, usize) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        values.for_each(|value| *counts.entry(value).or_default() += 1);
        (counts.len(), counts.into_values().max().unwrap_or(0))
    }

    #[test]
    fn set_has_the_structure_that_it_is_said_to_have() {
        let text = rules(9_700);
        let rows = columns(&text);
        assert_eq!(rows.len(), 9_700);
        let share = |at: usize, value: &str| rows.iter().filter(|row| row[at] == value).count();
        assert_eq!(share(2, "0 : 65535"), 9_700);
        assert!((2_200..3_300).contains(&share(3, "0 : 65535")), "{}", share(3, "0 : 65535"));
        assert!((8_200..8_800).contains(&share(4, "0x06/0xFF")), "{}", share(4, "0x06/0xFF"));
        assert!((200..400).contains(&share(4, "0x01/0xFF")), "{}", share(4, "0x01/0xFF"));
        let (sources, top_source) = most(rows.iter().map(|row| row[0]));
        assert!((2_500..3_900).contains(&sources), "{sources}");
        assert!(top_source < 200, "{top_source}");
        let (destinations, top) = most(rows.iter().map(|row| row[1]));
        assert!((500..700).contains(&destinations), "{destinations}");
        assert!((600..2_500).contains(&top), "{top}");
        let (ports, _) = most(rows.iter().map(|row| row[3]));
        assert!((80..=110).contains(&ports), "{ports}");
        let hosts = rows.iter().filter(|row| row[0].ends_with("/32")).count();
        assert!((4_000..6_500).contains(&hosts), "{hosts}");
    }

    #[test]
    fn no_rule_is_there_twice_and_the_same_count_gives_the_same_set() {
        let text = rules(1_000);
        let lines: HashSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1_000);
        assert_eq!(text, rules(1_000));
    }

    #[test]
    fn hosts_come_before_networks() {
        let text = rules(1_000);
        let specific = |row: &Vec<&str>| -> u32 {
            row[..2]
                .iter()
                .map(|cell| cell.split('/').nth(1).unwrap().parse::<u32>().unwrap())
                .sum()
        };
        let rows = columns(&text);
        let mean =
            |rows: &[Vec<&str>]| rows.iter().map(specific).sum::<u32>() as usize / rows.len();
        assert!(mean(&rows[..100]) > mean(&rows[900..]) + 10);
    }
}
