//! Tests importers on arbitrary text, and checks that printed values read back unchanged.

use braid_ir::rules::ANY_PORT;
use braid_ir::value::{Rule, RuleAddrs, RuleSet};
use braid_lang::import::{
    Family, ImportErrors, MAX_ERRORS, classbench, hosts, parse_rule, patterns, prefixes, routes,
    rules, strings,
};
use proptest::prelude::*;

/// Text similar to an importer's input, so that the importer reads more than the first word.
fn near_miss() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("@10.0.0.0/8".to_owned()),
        Just("0 : 65535".to_owned()),
        Just("0x06/0xFF".to_owned()),
        Just("pass".to_owned()),
        Just("default".to_owned()),
        Just("proto".to_owned()),
        Just("tcp".to_owned()),
        Just("from".to_owned()),
        Just("to".to_owned()),
        Just("any".to_owned()),
        Just("port".to_owned()),
        Just("flags SYN,!ACK".to_owned()),
        Just("type 3".to_owned()),
        Just("::/0".to_owned()),
        Just("10.0.0.0/8".to_owned()),
        Just("\"a\\x41é\"".to_owned()),
        Just("/a(b|é)/i".to_owned()),
        Just("\n".to_owned()),
        Just("#".to_owned()),
        "\\PC{0,3}",
        "[0-9/:x.\\\\\"-]{0,6}",
    ];
    proptest::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
}

fn is_sound<T>(text: &str, result: Result<T, ImportErrors>) -> Result<(), TestCaseError> {
    let Err(errors) = result else { return Ok(()) };
    prop_assert!((1..=MAX_ERRORS).contains(&errors.errors.len()));
    prop_assert!(errors.more == 0 || errors.errors.len() == MAX_ERRORS);
    prop_assert!(errors.errors.is_sorted_by_key(|e| e.line));
    for error in &errors.errors {
        let line =
            text.strip_prefix('\u{feff}').unwrap_or(text).lines().nth(error.line as usize - 1);
        let length = line.map_or(0, |line| line.chars().count());
        prop_assert!((1..=length + 1).contains(&(error.column as usize)), "{error:?}");
    }
    Ok(())
}

fn all_importers(text: &str) -> Result<(), TestCaseError> {
    is_sound(text, classbench(text, true, false))?;
    is_sound(text, rules(text))?;
    is_sound(text, routes(text))?;
    is_sound(text, prefixes(text, Family::V4))?;
    is_sound(text, prefixes(text, Family::V6))?;
    is_sound(text, patterns(text))?;
    is_sound(text, strings(text, 16))?;
    is_sound(text, hosts(text))?;
    prop_assert!(parse_rule(text).is_ok_and(|rule| rule.line == 0) || parse_rule(text).is_err());
    Ok(())
}

fn ordered<T: Ord + Copy>((a, b): (T, T)) -> (T, T) {
    (a.min(b), a.max(b))
}

/// A range, often a prefix.
fn range4() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![
        any::<(u32, u32)>().prop_map(ordered),
        (any::<u32>(), 0_u32..=32).prop_map(|(addr, length)| {
            let host = u32::MAX.checked_shr(length).unwrap_or(0);
            (addr & !host, addr | host)
        }),
    ]
}

fn range6() -> impl Strategy<Value = (u128, u128)> {
    prop_oneof![
        any::<(u128, u128)>().prop_map(ordered),
        (any::<u128>(), 0_u32..=128).prop_map(|(addr, length)| {
            let host = u128::MAX.checked_shr(length).unwrap_or(0);
            (addr & !host, addr | host)
        }),
    ]
}

fn ports() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        Just(ANY_PORT),
        any::<u16>().prop_map(|p| (p, p)),
        any::<(u16, u16)>().prop_map(ordered)
    ]
}

fn masked8() -> impl Strategy<Value = (u8, u8)> {
    let mask = prop_oneof![Just(0), Just(0xff), any::<u8>()];
    (any::<u8>(), mask).prop_map(|(value, mask)| (value & mask, mask))
}

fn masked16() -> impl Strategy<Value = (u16, u16)> {
    let mask = prop_oneof![Just(0), Just(0xff00), Just(0xffff), any::<u16>()];
    (any::<u16>(), mask).prop_map(|(value, mask)| (value & mask, mask))
}

fn rule() -> impl Strategy<Value = Rule> {
    let addrs = prop_oneof![
        Just(None),
        (range4(), range4()).prop_map(|(src, dst)| Some(RuleAddrs::V4 { src, dst })),
        (range6(), range6()).prop_map(|(src, dst)| Some(RuleAddrs::V6 { src, dst })),
    ];
    let named = prop_oneof![Just((6, 0xff)), Just((17, 0xff)), Just((1, 0xff)), Just((58, 0xff))];
    let proto = prop_oneof![named, masked8()];
    (addrs, proto, ports(), ports(), masked8(), masked16(), any::<bool>()).prop_map(
        |(addrs, proto, sport, dport, tcp_flags, icmp, pass)| Rule {
            addrs,
            proto,
            sport,
            dport,
            tcp_flags,
            icmp,
            pass,
            line: 0,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn importers_never_panic_on_arbitrary_text(text in any::<String>()) {
        all_importers(&text)?;
    }

    #[test]
    fn importers_never_panic_on_near_misses(text in near_miss()) {
        all_importers(&text)?;
    }

    #[test]
    fn printed_rule_reads_back(rule in rule()) {
        let printed = rule.to_string();
        prop_assert_eq!(parse_rule(&printed), Ok(rule), "{}", printed);
    }

    #[test]
    fn printed_rule_set_reads_back(
        rules_in in proptest::collection::vec(rule(), 0..5),
        default_pass: bool,
    ) {
        let numbered = (1..).zip(rules_in).map(|(line, rule)| Rule { line, ..rule }).collect();
        let set = RuleSet { rules: numbered, default_pass };
        prop_assert_eq!(rules(&set.to_string()), Ok(set));
    }
}
