//! Rule sets that differ from a given set but match everything that it matches.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use braid_traffic::random::Random;

use super::common::{SEED, mask};

/// The largest number of bits by which a prefix becomes shorter.
const SHORTER: u64 = 4;
/// No prefix becomes shorter than this, so that the rule still names a network.
const SHORTEST: u32 = 8;
/// One single port of two becomes a range of this many ports.
const RANGE: u16 = 16;

/// Widens the rules of a ClassBench file at random and shuffles them. Every packet that matches an
/// old rule matches a new one. With `number` 1, returns the rules unchanged. Other numbers give
/// different sets.
#[must_use]
pub fn wider(rules: &str, number: u64) -> String {
    if number <= 1 {
        return rules.to_owned();
    }
    let mut random = Random::new(SEED, 16 + number);
    let mut lines: Vec<String> = rules.lines().map(|line| wide(line, &mut random)).collect();
    for at in (1..lines.len()).rev() {
        lines.swap(at, random.below(at as u64 + 1) as usize);
    }
    lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn wide(line: &str, random: &mut Random) -> String {
    let cells: Vec<&str> = line.split('\t').collect();
    let [source, destination, sport, dport, rest @ ..] = &cells[..] else { return line.to_owned() };
    let source = source.strip_prefix('@').unwrap_or(source);
    let (Some(source), Some(destination)) = (shorter(source, random), shorter(destination, random))
    else {
        return line.to_owned();
    };
    let dport = range(dport, random).unwrap_or_else(|| (*dport).to_owned());
    format!("@{source}\t{destination}\t{sport}\t{dport}\t{}", rest.join("\t"))
}

fn shorter(prefix: &str, random: &mut Random) -> Option<String> {
    let (address, length) = prefix.split_once('/')?;
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let by = random.below(SHORTER + 1) as u32;
    let length = length.saturating_sub(by).max(length.min(SHORTEST));
    let address = u32::from(address) & mask(length);
    Some(format!("{}/{length}", Ipv4Addr::from(address)))
}

fn range(ports: &str, random: &mut Random) -> Option<String> {
    let (low, high) = ports.split_once(" : ")?;
    let port: u16 = low.parse().ok().filter(|_| low == high)?;
    let low = port - port % RANGE;
    (random.below(2) == 0).then(|| format!("{low} : {}", low + (RANGE - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::rules;

    #[test]
    fn each_number_gives_other_rules_of_the_same_count_and_the_first_the_same() {
        let one = rules(100);
        assert_eq!(wider(&one, 1), one);
        let (two, three) = (wider(&one, 2), wider(&one, 3));
        assert_eq!((two.lines().count(), three.lines().count()), (100, 100));
        assert!(two != one && two != three && two == wider(&one, 2));
    }

    #[test]
    fn prefixes_and_ports_only_grow() {
        let mut random = Random::new(1, 1);
        for _ in 0..braid_cases::cases(100) {
            let text = shorter("10.1.2.3/32", &mut random).unwrap();
            let (address, length) = text.split_once('/').unwrap();
            let (length, address): (u32, Ipv4Addr) =
                (length.parse().unwrap(), address.parse().unwrap());
            assert!((28..=32).contains(&length));
            assert_eq!(u32::from(address), 0x0a01_0203 & mask(length));
            assert_eq!(shorter("0.0.0.0/0", &mut random).unwrap(), "0.0.0.0/0");
            assert!(shorter("10.0.0.0/8", &mut random).unwrap().ends_with("/8"));
            let range = range("65535 : 65535", &mut random);
            assert!(range.is_none_or(|range| range == "65520 : 65535"));
        }
        assert_eq!(range("1 : 2", &mut random), None);
    }
}
