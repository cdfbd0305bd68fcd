//! Tests native functions under `Priority`: what they wrote is found by comparing packets.

use super::isolated::isolated;
use super::*;
use braid_packet::checksum::verify;
use braid_testkit::harness::USERS;

/// Functions of the language beside the native ones.
const MODELS: &str = "
nf ports(s: port, d: port) {
  match { has udp => { udp.sport = s; udp.dport = d; output; } else => output; }
}
nf low() { match { has ip => { ip.ttl = 9; output; } else => output; } }
nf wall(from: port) { match { has udp and udp.sport == from => drop \"wall\"; else => output; } }
nf pass() { output; }
nf retag() { match { vlan.id == 7 => { vlan.id = 8; output; } else => output; } }
nf by_colour() {
  tag colour: u8;
  state seen: u32 per (u8) = 0;
  match { colour == 2 => { seen[colour] += 1; drop \"two\"; } else => output; }
}
event TOLD extends EVENT { from: addr }
nf told() { match { has inet => { emit TOLD { from: inet.src }; output; } else => output; } }
";

/// A chain of functions named `a`, `b`, … with these rules.
fn ruled(functions: &[&str], rules: &str) -> Chain {
    let own = library("crates/testkit/tests/native/priority.c");
    let effects = library("crates/testkit/tests/native/effects.c");
    let good = library("crates/native/tests/c/good.c");
    let names: Vec<String> = ('a'..).map(String::from).take(functions.len()).collect();
    let mut nodes = String::new();
    for (name, function) in names.iter().zip(functions) {
        nodes += &format!("{name} = {function};\n");
        if *function == "echo()" {
            nodes += &format!("interface spy; link {name}.tap -> spy;\n");
        }
    }
    compile(&format!(
        r#"{MODELS}
        native nf sets(ttl: u8, sport: u16) from "{own}";
        native nf scribble() from "{own}";
        native nf tagger() from "{own}";
        native nf longer() from "{own}";
        native nf filter(sport: u16) from "{own}";
        native nf herald(flows: u32 = 100, idle: duration = 9 s) from "{effects}";
        native nf stain(flows: u32 = 100, idle: duration = 9 s) from "{effects}";
        native nf painter() from "{effects}";
        native nf echo() from "{effects}";
        native nf tunnel() from "{good}";
        native nf limiter(limit: u32, flows: u32 = 5, idle: duration = 1 s) from "{good}";
        chain c {{ {INTERFACES} {nodes} path lan <-> {} <-> wan; policy {{ {rules} }} }}"#,
        names.join(" <-> ")
    ))
}

/// The packet that the reference engine makes of one from the left, with a payload of `ab`.
fn left(functions: &[&str], rules: &str, text: &str) -> Packet {
    let mut engine = harness::reference(&ruled(functions, rules));
    let packet = packet(text).at(1_000_000);
    let outputs = step(engine.as_mut(), &Stimulus::Packet(0, packet));
    let [Output::Packet(1, packet)] = outputs.as_slice() else { panic!("{outputs:?}") };
    packet.clone()
}

const UDP: &str = "udp 10.0.0.1:3 > 192.0.2.1:4 \"ab\"";

fn fields<const N: usize>(packet: &Packet, fields: [Field; N]) -> [u128; N] {
    fields.map(|field| packet.get(&packet.parse(), field).unwrap_or_default())
}

#[test]
fn fields_that_native_code_wrote_merge_with_others() {
    let functions = ["sets(ttl: 7, sport: 5)", "ports(s: 6, d: 8)"];
    for (rule, sport) in [("Priority(a > b);", 5), ("Priority(b > a);", 6)] {
        let packet = left(&functions, rule, UDP);
        let found = fields(&packet, [Field::IpTtl, Field::UdpSport, Field::UdpDport]);
        assert_eq!(found, [7, sport, 8], "{rule}");
        assert!(verify(&packet, &packet.parse()).all_right());
    }
    // What native code wrote with the value that it had is no write.
    let packet = left(&["sets(ttl: 64, sport: 3)", "low()"], "Priority(a > b);", UDP);
    assert_eq!(fields(&packet, [Field::IpTtl]), [9]);
}

#[test]
fn payload_that_native_code_changed_merges_with_fields() {
    for rule in ["Priority(a > b);", "Priority(b > a);"] {
        let packet = left(&["scribble()", "ports(s: 6, d: 8)"], rule, UDP);
        assert_eq!(packet.payload(&packet.parse()), b"bb", "{rule}");
        assert_eq!(fields(&packet, [Field::UdpSport, Field::UdpDport]), [6, 8]);
    }
}

#[test]
fn vlan_tag_that_native_code_added_stands_before_the_arriving_one() {
    let tagged = format!("vlan 7 / {UDP}");
    for rule in ["Priority(a > b);", "Priority(b > a);"] {
        let packet = left(&["tagger()", "retag()"], rule, &tagged);
        let found = fields(&packet, [Field::VlanId, Field::VlanPcp, Field::Vlan2Id]);
        assert_eq!(found, [5, 1, 8], "{rule}");
    }
}

#[test]
fn packet_with_another_length_is_taken_whole() {
    // By the rule: the TTL. A loser's writes are lost, a winner's are written to the longer packet.
    for (rule, ttl) in [("Priority(a > b);", 64), ("Priority(b > a);", 9)] {
        let packet = left(&["longer()", "low()"], rule, UDP);
        assert_eq!(packet.data().len(), 14 + 20 + 8 + 2 + 2);
        assert_eq!(fields(&packet, [Field::IpTtl]), [ttl], "{rule}");
    }
    // Where the winner has added headers of its own, the loser's other length is lost.
    let packet = left(&["longer()", "tagger()"], "Priority(b > a);", UDP);
    assert_eq!(packet.data().len(), 14 + 4 + 20 + 8 + 2);
}

/// The reasons of the drops of packets from these ports, and the interfaces by which others left.
fn ends(functions: &[&str], rules: &str, ports: &[u16]) -> (Vec<(u16, String)>, Vec<u16>) {
    let mut engine = harness::reference(&ruled(functions, rules));
    let mut left = Vec::new();
    for (at, port) in (1..).zip(ports) {
        let packet = packet(&format!("udp 10.0.0.1:{port} > 192.0.2.1:4 \"ab\"")).at(at * 1000);
        for output in step(engine.as_mut(), &Stimulus::Packet(0, packet)) {
            if let Output::Packet(interface, _) = output {
                left.push(interface);
            }
        }
    }
    let drops = engine.counters().drops;
    let drops: BTreeSet<_> = drops.into_keys().map(|(node, _, why)| (node, why)).collect();
    (drops.into_iter().collect(), left)
}

#[test]
fn verdict_of_native_code_that_may_drop_counts_if_it_wins() {
    let functions = ["filter(sport: 3)", "wall(from: 9)"];
    // Port 3 is dropped, 4 a fault, 5 goes back. The wall's drop of port 9 does not count.
    let (drops, left) = ends(&functions, "Priority(a > b);", &[3, 4, 5, 9, 10]);
    assert_eq!(drops, [(0, "native".to_owned()), (0, "port".to_owned())]);
    assert_eq!(left, [0, 1, 1]);
    let (drops, left) = ends(&functions, "Priority(b > a);", &[3, 4, 5, 9, 10]);
    assert_eq!(drops, [(1, "wall".to_owned())]);
    assert_eq!(left, [1, 1, 1, 1]);
}

#[test]
fn native_code_between_others_decides_in_its_place() {
    let functions = ["wall(from: 9)", "filter(sport: 3)", "wall(from: 8)"];
    for (rule, wall) in [("Priority(a > c);", 0), ("Priority(c > a);", 2)] {
        let (drops, left) = ends(&functions, rule, &[3, 4, 5, 8, 9, 10]);
        let mut expected =
            vec![(1, "native".to_owned()), (1, "port".to_owned()), (wall, "wall".to_owned())];
        expected.sort();
        assert_eq!(drops, expected, "{rule}");
        assert_eq!(left, [0, 1, 1], "{rule}");
    }
}

/// Chains with native functions under `Priority`, and between functions under it.
pub fn chains() -> Vec<Chain> {
    let chains: [(&[&str], &str); 14] = [
        (&["sets(ttl: 7, sport: 5)", "ports(s: 6, d: 8)"], "Priority(a > b);"),
        (&["sets(ttl: 7, sport: 5)", "ports(s: 6, d: 8)"], "Priority(b > a);"),
        (&["scribble()", "low()", "sets(ttl: 3, sport: 2)"], "Priority(a > b); Priority(b > c);"),
        (&["low()", "scribble()", "ports(s: 1, d: 53)", "monitor()"], "Priority(c > a);"),
        (&["tagger()", "retag()", "tagger()"], "Priority(a > c);"),
        (&["tunnel()", "ports(s: 1, d: 53)"], "Priority(b > a);"),
        (&["low()", "tunnel()", "scribble()"], "Priority(a > c);"),
        (&["longer()", "tagger()", "low()"], "Priority(b > a); Priority(a > c);"),
        (&["filter(sport: 3)", "wall(from: 4)", "limiter(limit: 3)"], "Priority(c > a);"),
        (&["limiter(limit: 2)", "told()", "filter(sport: 2)", "monitor()"], "Priority(a > d);"),
        (&["herald()", "told()", "monitor()"], "Priority(c > a);"),
        (&["stain()", "by_colour()", "painter()"], "Priority(c > a);"),
        (&["stain()", "painter()", "by_colour()"], "Priority(b > a);"),
        (&["monitor()", "echo()", "by_colour()", "told()"], "Priority(a > c);"),
    ];
    chains.map(|(functions, rules)| ruled(functions, rules)).into()
}

#[test]
fn engines_do_the_same_with_native_functions_under_priority() {
    for (at, chain) in chains().into_iter().enumerate() {
        for seed in 0..braid_cases::at_least(2).into() {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let apart = isolated(chain.clone());
            for engine in ENGINES.iter().filter(|engine| seed == 0 || !engine.has_machine_code()) {
                for chain in [&chain, &apart] {
                    let found = engine.check(chain, &stimuli, &expected);
                    assert!(found.is_ok(), "{at}, seed {seed}: {}", found.unwrap_err());
                }
            }
            let engine = USERS[0].in_stages(8, 3).stalled(seed);
            let mut staged = engine.make(&chain);
            let found = engine.difference_of(staged.as_mut(), &stimuli, &expected);
            assert!(found.is_none(), "{at}, seed {seed}, {engine}: {found:?}");
        }
    }
}
