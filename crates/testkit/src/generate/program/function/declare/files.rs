//! Generates files that parameters name: rules, routes, patterns, strings.

use crate::generate::Rng;
use crate::generate::program::types::{ip6, prefix4};
use std::fmt::Write as _;

/// Generates a rule file.
pub(in crate::generate::program) fn rules(rng: &mut Rng) -> String {
    let mut text = String::from("# generated\n");
    for _ in 0..1 + rng.below(8) {
        let verdict = if rng.one_in(3) { "drop" } else { "pass" };
        let _ = write!(text, "{verdict}");
        let proto = *rng.pick(&["", " proto tcp", " proto udp", " proto icmp", " proto 47"]);
        text.push_str(proto);
        let ports = matches!(proto, " proto tcp" | " proto udp");
        for side in ["from", "to"] {
            if rng.one_in(2) {
                let prefix = if rng.one_in(5) { format!("{}/126", ip6(rng)) } else { prefix4(rng) };
                // Source and destination must have the same IP version.
                let prefix = if text.lines().last().is_some_and(|line| line.contains("from")) {
                    prefix4(rng)
                } else {
                    prefix
                };
                let prefix =
                    if side == "from" && prefix.contains(':') { prefix4(rng) } else { prefix };
                let _ = write!(text, " {side} {prefix}");
                if ports && rng.one_in(2) {
                    let low = rng.range(1, 9000);
                    let _ = write!(text, " port {low}-{}", low + rng.range(0, 900));
                }
            }
        }
        if proto == " proto tcp" && rng.one_in(3) {
            text.push_str(" flags SYN,!ACK");
        }
        text.push('\n');
    }
    let default = if rng.one_in(2) { "pass" } else { "drop" };
    let _ = writeln!(text, "default {default}");
    text
}

/// Generates a route table.
pub(in crate::generate::program) fn routes(rng: &mut Rng) -> String {
    let mut text = String::new();
    for hop in 0..1 + rng.below(8) {
        let _ = writeln!(text, "{} {hop}", prefix4(rng));
    }
    if rng.one_in(2) {
        text.push_str("2001:db8::/64 9\n");
    }
    if rng.one_in(3) {
        text.push_str("0.0.0.0/0 7\n");
    }
    text
}

/// Generates a list of strings, or of host names.
pub(super) fn strings(rng: &mut Rng, of_hosts: bool) -> String {
    let all = match of_hosts {
        true => ["a.example", "*.example.org", "WWW.Example.net.", "*.b.example", "localhost"],
        false => ["GET", "\"evil \\x00\"", "0123456789abcdefghi", "Last", "\"\\xff\\xfe\""],
    };
    let mut text = String::new();
    for string in all {
        if rng.one_in(2) {
            let _ = writeln!(text, "{string}");
        }
    }
    text.push_str("# the last one\nlast\n");
    text
}

/// Generates a pattern file.
pub(super) fn patterns(rng: &mut Rng) -> String {
    let all =
        ["\"GET /\"", "\"evil\" nocase", "/[a-c]+x{2,3}/", "/^\\x00\\x01/i", "7 \"\\x90\\x90\""];
    let mut text = String::new();
    for pattern in all {
        if rng.one_in(2) {
            let _ = writeln!(text, "{pattern}");
        }
    }
    text.push_str("99 \"last\"\n");
    text
}

/// Keys with the numbers 1, 2 and 4. The last one does not encrypt.
pub(in crate::generate::program) fn keys() -> String {
    let (gcm, cbc, mac) = ("01".repeat(20), "23".repeat(64), "45".repeat(32));
    format!("1 aes-128-gcm {gcm}\n2 aes-256-cbc-hmac-sha-256-128 {cbc}\n4 hmac-sha-256-128 {mac}\n")
}
