//! Every structure, before and after changes, gives the same answers as the rules tried in order.

use braid_classify::sample::{self, Kind, Noise};
use braid_classify::{Family, RuleTable};
use braid_ir::rules::{ANY_PORT, RulePacket};
use braid_ir::value::{Rule, RuleAddrs, RuleSet};
use proptest::prelude::*;

const FAMILIES: [Family; 8] = [
    Family::Linear,
    Family::Table,
    Family::Split(1),
    Family::Split(4),
    Family::Split(1000),
    Family::Tree,
    Family::Bits,
    Family::Tuples,
];

/// A range: sometimes a single value, all values or none.
fn range(max: u128) -> BoxedStrategy<(u128, u128)> {
    let value = move || prop_oneof![(0_u128..9), (0_u128..9).prop_map(move |n| max - n), 0..=max];
    prop_oneof![
        3 => value().prop_map(|value| (value, value)),
        3 => (value(), value()).prop_map(|(a, b)| (a.min(b), a.max(b))),
        2 => Just((0, max)),
        2 => (value(), 0_u32..128).prop_map(move |(value, host)| {
            let host = ((1_u128 << host) - 1) & max;
            (value & !host, value | host)
        }),
        1 => (value(), value()),
    ]
    .boxed()
}

fn addrs() -> BoxedStrategy<Option<RuleAddrs>> {
    let four = |range: (u128, u128)| (range.0 as u32, range.1 as u32);
    let max = u128::from(u32::MAX);
    prop_oneof![
        1 => Just(None),
        4 => (range(max), range(max))
            .prop_map(move |(src, dst)| Some(RuleAddrs::V4 { src: four(src), dst: four(dst) })),
        2 => (range(u128::MAX), range(u128::MAX))
            .prop_map(|(src, dst)| Some(RuleAddrs::V6 { src, dst })),
    ]
    .boxed()
}

fn ports() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![Just(ANY_PORT), range(0xffff).prop_map(|(lo, hi)| (lo as u16, hi as u16))]
}

fn rule() -> BoxedStrategy<Rule> {
    let masked =
        || prop_oneof![3 => Just((0, 0)), 1 => (0_u8..8, any::<u8>()), 1 => (any::<u8>(), 0_u8..8)];
    let proto = prop_oneof![Just((6, 0xff)), Just((17, 0xff)), Just((1, 0xff)), masked()];
    let icmp =
        prop_oneof![3 => Just((0, 0)), 1 => Just((0x0800, 0xff00)), 1 => any::<(u16, u16)>()];
    (addrs(), proto, ports(), ports(), masked(), icmp, any::<bool>())
        .prop_map(|(addrs, proto, sport, dport, tcp_flags, icmp, pass)| Rule {
            addrs,
            proto,
            sport,
            dport,
            tcp_flags,
            icmp,
            pass,
            line: 0,
        })
        .boxed()
}

/// Packets at and around the ends of rules, with and without each header.
fn packets(rules: &[Rule], count: usize, seed: u64) -> Vec<RulePacket> {
    let mut noise = Noise::new(seed);
    let any = Rule::any(true);
    (0..count)
        .map(|_| {
            let mut pick =
                || rules.get(noise.below(rules.len() as u64 + 1) as usize).unwrap_or(&any);
            let (a, b, c) = (pick(), pick(), pick());
            let mut packet = sample::packet(a, &mut noise);
            let mut end = |(lo, hi): (u128, u128)| match noise.below(5) {
                0 => lo,
                1 => hi,
                2 => lo.wrapping_sub(1),
                3 => hi.wrapping_add(1),
                _ => lo / 2 + hi / 2,
            };
            match b.addrs {
                None => {}
                Some(RuleAddrs::V4 { src, dst }) => {
                    packet.version = 4;
                    packet.src = end((src.0.into(), src.1.into())) & u128::from(u32::MAX);
                    packet.dst = end((dst.0.into(), dst.1.into())) & u128::from(u32::MAX);
                }
                Some(RuleAddrs::V6 { src, dst }) => {
                    packet.version = 6;
                    (packet.src, packet.dst) = (end(src), end(dst));
                }
            }
            let port = |end: u128| end as u16;
            let wide = |range: (u16, u16)| (range.0.into(), range.1.into());
            packet.ports = Some((port(end(wide(c.sport))), port(end(wide(c.dport)))));
            if noise.below(4) == 0 {
                packet.ports = None;
            }
            packet.tcp_flags =
                [None, Some(c.tcp_flags.0), Some(noise.draw() as u8)][noise.below(3) as usize];
            packet.icmp = [
                None,
                Some((8, 0)),
                Some((c.icmp.0 >> 8) as u8).map(|kind| (kind, c.icmp.0 as u8)),
            ][noise.below(3) as usize];
            if noise.below(4) == 0 {
                packet.proto = c.proto.0;
            }
            if packet.version == 4 {
                packet.src &= u128::from(u32::MAX);
                packet.dst &= u128::from(u32::MAX);
            }
            if noise.below(50) == 0 {
                packet.version = 5;
            }
            packet
        })
        .collect()
}

fn agrees(table: &RuleTable, packets: &[RulePacket]) {
    for packet in packets {
        let truth = table.set().decide(packet);
        assert_eq!(
            table.lookup(packet),
            truth,
            "{packet:?} in {:?}:\n{}",
            table.families(),
            table.set()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn every_family_answers_as_rules_in_order_do(
        rules in prop::collection::vec(rule(), 0..40),
        default_pass: bool,
        seed: u64,
    ) {
        let packets = packets(&rules, 50, seed);
        let set = RuleSet { rules, default_pass };
        agrees(&RuleTable::new(&set), &packets);
        for family in FAMILIES {
            agrees(&RuleTable::of_family(&set, family).expect("small enough"), &packets);
        }
    }

    #[test]
    fn changed_tables_answer_as_their_rules_in_order_do(
        mut rules in prop::collection::vec(rule(), 0..30),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(rule())), 1..20),
        family in prop::sample::select(FAMILIES.to_vec()),
        settle in 0_usize..30,
        seed: u64,
    ) {
        let set = RuleSet { rules: rules.clone(), default_pass: false };
        let mut table = RuleTable::of_family(&set, family).expect("small enough");
        for (number, (at, change)) in changes.into_iter().enumerate() {
            let at = at.index(rules.len() + 2);
            match change {
                Some(rule) => {
                    rules.insert(at.min(rules.len()), rule.clone());
                    table.insert(at, rule);
                }
                None => {
                    let removed = (at < rules.len()).then(|| rules.remove(at));
                    prop_assert_eq!(table.remove(at), removed);
                }
            }
            if number == settle {
                table.settle();
                table.set_default(true);
            }
            prop_assert_eq!(&table.set().rules, &rules);
            agrees(&table, &packets(&rules, 16, seed ^ number as u64));
        }
    }
}

#[test]
fn made_up_sets_answer_as_rules_in_order_do_in_every_family() {
    for (name, kind) in sample::KINDS {
        let set = sample::rules(kind, 300, 7);
        let packets: Vec<_> = [packets(&set.rules, 300, 1), sample::packets(&set, 300, 2)].concat();
        agrees(&RuleTable::new(&set), &packets);
        for family in FAMILIES {
            let table = RuleTable::of_family(&set, family);
            assert!(table.is_some() || name == "nested" || name == "tangled", "{name} {family:?}");
            if let Some(table) = table {
                agrees(&table, &packets);
            }
        }
    }
}

/// Hostile sets use structures whose memory is bounded for any rules.
#[test]
fn hostile_sets_take_bounded_memory_and_keep_their_answers() {
    for kind in [Kind::Nested, Kind::Tangled, Kind::Same, Kind::Ports] {
        let set = sample::rules(kind, 3000, 5);
        let table = RuleTable::new(&set);
        assert!(table.memory() < 32 << 20, "{kind:?}: {}", table.memory());
        agrees(&table, &packets(&set.rules, 200, 3));
    }
    let same = RuleTable::new(&sample::rules(Kind::Same, 100_000, 5));
    assert!(same.memory() < 1 << 20, "{}", same.memory());
}

#[test]
fn the_structure_fits_the_rules() {
    let family = |kind, count| RuleTable::new(&sample::rules(kind, count, 1)).families()[0];
    assert_eq!(family(Kind::Access, 8), Family::Linear);
    assert_eq!(family(Kind::Access, 300), Family::Table);
    assert_eq!(family(Kind::Firewall, 6000), Family::Split(64));
    assert_eq!(family(Kind::Same, 3000), Family::Table, "one list of one rule");
    assert_eq!(family(Kind::Ports, 3000), Family::Tree, "one list of all rules");
    assert_eq!(family(Kind::Nested, 3000), Family::Bits, "a list for each pair of ranges");
    // IPv6 packets match none of the rules.
    assert_eq!(RuleTable::new(&sample::rules(Kind::Chain, 300, 1)).families()[1], Family::Linear);
}

#[test]
fn large_tables_without_empty_cells_answer_as_rules_in_order_do() {
    let host = |number: u32| (0x0a00_0000 + number, 0x0a00_0000 + number);
    let all = (0, u32::MAX);
    let rule = |src, dst| Rule { addrs: Some(RuleAddrs::V4 { src, dst }), ..Rule::any(true) };
    let hosts = (0..80).flat_map(|n| [rule(host(n * 3), all), rule(all, host(n * 5))]);
    let udp = Rule { proto: (17, 0xff), ..rule(all, all) };
    let set = RuleSet { rules: hosts.chain([udp]).collect(), default_pass: false };
    let table = RuleTable::of_family(&set, Family::Table).expect("small enough");
    agrees(&table, &packets(&set.rules, 400, 8));
}

#[test]
fn one_change_does_not_make_the_structure_anew_and_many_do() {
    let set = sample::rules(Kind::Access, 2000, 3);
    let mut table = RuleTable::new(&set);
    let packets = sample::packets(&set, 200, 4);
    for number in 0..150 {
        table.insert(number * 3, sample::rules(Kind::Firewall, 1, number as u64).rules.remove(0));
        table.remove(number * 2 + 900);
        agrees(&table, &packets[..20]);
    }
    agrees(&table, &packets);
    // The first rule matches everything. Then each other rule may decide in its place, and some of
    // them are removed.
    table.insert(0, Rule::any(false));
    table.settle();
    assert_eq!(table.remove(0), Some(Rule::any(false)));
    agrees(&table, &packets);
    for number in 0..30 {
        let decides = table.lookup(&packets[number]).1 as usize;
        table.remove(decides);
        table.insert(number, sample::rules(Kind::Firewall, 1, number as u64).rules.remove(0));
        agrees(&table, &packets[..60]);
    }
    table.settle();
    agrees(&table, &packets);
}
