#![no_main]
//! Reads rule, ClassBench, route, prefix, pattern, string and key files, and packet text.

use braid_lang::import::{self, Family};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 10 {
        0 => {
            if let Ok(set) = import::rules(text) {
                // Printed rules must read back unchanged.
                for rule in &set.rules {
                    let again = import::parse_rule(&rule.to_string()).expect("a printed rule");
                    assert_eq!(
                        (&again.addrs, again.proto, again.pass),
                        (&rule.addrs, rule.proto, rule.pass)
                    );
                }
            }
        }
        1 => drop(import::classbench(text, true, false)),
        2 => drop(import::routes(text)),
        3 => drop(import::prefixes(text, Family::V4)),
        4 => drop(import::prefixes(text, Family::V6)),
        5 => {
            if let Ok(set) = import::patterns(text) {
                let found = set.first_match(rest).map(|found| found.number);
                assert_eq!(set.lowest_match(rest), found);
            }
        }
        6 => drop(import::strings(text, 16)),
        8 => drop(import::keys(text)),
        7 => {
            if let Ok(set) = import::hosts(text) {
                let _ = set.contains(rest);
            }
        }
        _ => {
            if let Ok(spec) = braid_testkit::packet::parse(text) {
                let frame = spec.frame();
                let described = braid_testkit::packet::describe(&frame);
                assert_eq!(described.frame(), frame);
            }
        }
    }
});
