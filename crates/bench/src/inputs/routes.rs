//! Route tables with the prefix lengths of the Internet.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use braid_traffic::random::{Random, hash};

use super::common::{HOPS, SEED, is_martian, mask};

/// Shares (of 1000) of prefix lengths, rounded from today's full IPv4 tables. Prefixes longer than
/// a /24 are not announced, and prefixes shorter than a /16 are rare.
const LENGTHS: &[(u32, u64)] = &[
    (24, 590),
    (23, 95),
    (22, 115),
    (21, 55),
    (20, 50),
    (19, 30),
    (18, 18),
    (17, 12),
    (16, 20),
    (15, 5),
    (14, 4),
    (13, 3),
    (12, 2),
    (11, 1),
];

/// A route file: a default route and `count - 1` prefixes. The prefixes depend only on `count`. The
/// next hops (0 to [`HOPS`] - 1) depend on `router`, too.
#[must_use]
pub fn routes(count: u64, router: u64) -> String {
    let mut text = format!("# {count} generated routes of router {router}\n0.0.0.0/0 0\n");
    let mut random = Random::new(SEED, 1);
    let mut seen = HashSet::new();
    while (seen.len() as u64) + 1 < count {
        let length = length(&mut random);
        let address = (random.bits() >> 32) as u32 & mask(length);
        let private = address >> 24 == 10;
        if is_martian(address) || private || !seen.insert((address, length)) {
            continue;
        }
        let hop = hash(u64::from(address) << 8 | u64::from(length), router) % HOPS;
        let _ = writeln!(text, "{}/{length} {hop}", Ipv4Addr::from(address));
    }
    text
}

fn length(random: &mut Random) -> u32 {
    let mut draw = random.below(LENGTHS.iter().map(|(_, share)| share).sum());
    for (length, share) in LENGTHS {
        if draw < *share {
            return *length;
        }
        draw -= share;
    }
    24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(text: &str) -> Vec<&str> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split(' ').next().unwrap_or("")).collect()
    }

    #[test]
    fn routers_share_prefixes_and_differ_in_next_hops() {
        let (one, two) = (routes(200, 1), routes(200, 2));
        assert_eq!(prefixes(&one), prefixes(&two));
        assert_eq!(prefixes(&one).len(), 200);
        assert_ne!(one.lines().last(), two.lines().last());
        assert_eq!(one, routes(200, 1));
    }

    #[test]
    fn lengths_have_the_shares_of_the_table() {
        let text = routes(10_000, 1);
        let share = |end: &str| prefixes(&text).iter().filter(|p| p.ends_with(end)).count();
        assert!((5_700..6_100).contains(&share("/24")), "{}", share("/24"));
        assert!((100..300).contains(&share("/16")), "{}", share("/16"));
    }
}
