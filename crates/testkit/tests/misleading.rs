//! Tests of chains that are made to mislead the analysis of divisions: functions that build packets
//! with headers of all kinds for tables behind them, tables whose sums decide something, and turns
//! that are none. Where the analysis divides such a chain, workers do what one worker does. The
//! generated chains find each mutant of the analysis.

use braid_compiler::sharding::{
    Placement, Sharding, ShardingMutant, Verdict, divide_as, sharding, sharding_with,
};
use braid_ir::chain::Chain;
use braid_ir::model::{Kind, Word};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::record::{Output, Stimulus, step};
use std::collections::BTreeMap;

const WORKERS: u16 = 4;

/// The chain of a program with this text, for several workers.
fn chain(text: &str) -> Chain {
    let unit = harness::unit("test.braid", text, &BTreeMap::new(), Form::AsWritten);
    let mut unit = unit.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    Chain { workers: WORKERS, ..unit.chains.pop().expect("a chain") }
}

/// A packet from one of a few hosts: UDP, TCP, ICMP echoes and errors, with contents that look like
/// headers, and in one of three cases in a PPPoE session.
fn packet(rng: &mut Rng, time_ns: u64) -> Packet {
    let ends = [
        (Field::IpSrc, 0x0a00_0000 | Word::from(rng.range(1, 30))),
        (Field::IpDst, *rng.pick(&[0xc633_6401, 0xc633_6402, 0xc633_6409])),
    ];
    let ports = [*rng.pick(&[9, 1000, 1001, 1002]), *rng.pick(&[7, 7, 7, 9, 53, 4789, 6081])];
    let (shape, more) = match rng.below(5) {
        0..3 => (Shape::Udp4, [(Field::UdpSport, ports[0]), (Field::UdpDport, ports[1])]),
        3 => (Shape::Tcp4, [(Field::TcpSport, ports[0]), (Field::TcpDport, ports[1])]),
        _ => {
            let kind = (Field::IcmpType, *rng.pick(&[8, 8, 3]));
            (Shape::Icmp, [kind, (Field::IcmpId, *rng.pick(&[7, 9]))])
        }
    };
    // VXLAN, Geneve, and the start of an IPv4 packet with UDP ports.
    let contents: [&[u8]; 4] = [
        &[8, 0, 0, 0, 0, 0, 5, 0, 1, 2, 3, 4],
        &[0, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 3, 4],
        &[0x45, 0, 0, 60, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9],
        &[],
    ];
    let fields = [&ends[..], &more[..]].concat();
    let packet = build_fresh(Link::Ethernet, time_ns, shape, &fields, rng.pick::<&[u8]>(&contents));
    let packet = packet.expect("an Ethernet frame");
    if !rng.one_in(3) {
        return packet;
    }
    let (link, ip) = packet.data().split_at(14);
    let [high, low] = u16::try_from(ip.len() + 2).expect("a short packet").to_be_bytes();
    let session = [0x88, 0x64, 0x11, 0, 0, 5, high, low, 0, 0x21];
    Packet::new(Link::Ethernet, time_ns, [&link[..12], &session, ip].concat())
}

fn packets(seed: u64) -> Vec<Packet> {
    let mut rng = Rng::new(seed);
    (1..=300).map(|number| packet(&mut rng, number * 1_000_000)).collect()
}

/// What a chain does with packets, and the amounts in its tables: for each value the sum over all
/// workers.
fn run(chain: &Chain, packets: &[Packet]) -> (Vec<Vec<Output>>, BTreeMap<String, Word>) {
    let mut engine = harness::reference(chain);
    let outputs = packets.iter().map(|packet| Stimulus::Packet(0, packet.clone()));
    let outputs = outputs.map(|stimulus| step(engine.as_mut(), &stimulus)).collect();
    let mut sums = BTreeMap::new();
    for entry in engine.state() {
        for (slot, kind, value) in &entry.slots {
            if *kind != Kind::Time && *value > 0 {
                let name = format!("{} {} {:?} {slot}", entry.node, entry.table, entry.key);
                *sums.entry(name).or_default() += value;
            }
        }
    }
    (outputs, sums)
}

/// Whether workers with tables of these placements do something else than one worker.
fn differs(chain: &Chain, found: &Sharding, seed: u64) -> bool {
    let packets = packets(seed);
    let divided = run(&divide_as(chain.clone(), found), &packets);
    divided != run(&Chain { workers: 1, ..chain.clone() }, &packets)
}

/// The division of a chain, if all of its tables have one of these placements and no exceptions.
fn divided(
    chain: &Chain,
    bug: Option<ShardingMutant>,
    placements: &[Placement],
) -> Option<Sharding> {
    let found = sharding_with(chain, bug).expect("a chain with a graph");
    let tables = &found.tables;
    let good =
        tables.iter().all(|one| placements.contains(&one.placement) && one.exceptions.is_empty());
    (found.verdict == Verdict::Split && found.assumes.is_empty() && good).then_some(found)
}

/// A function that builds packets in answer to others, and one that counts packets in a table, by a
/// key that often has the destination.
fn built(rng: &mut Rng) -> String {
    let when = ["l4.dport == 7 and has ip", "has ip and ip.src & 1 == 0.0.0.1", "has icmp.echo"];
    let payload = match rng.below(4) {
        0 => String::new(),
        1 => "payload = same;".to_owned(),
        _ => format!("payload = quote({});", rng.pick(&[8, 8, 20, 24, 28, 68])),
    };
    let to = *rng.pick(&["ip.dst = 198.51.100.9;", "ip.dst = 198.51.100.9;", ""]);
    let (fields, counted) = match rng.below(4) {
        0 => (
            format!("udp {{ {to} udp.sport = 9; udp.dport = {};", rng.pick(&[9, 4789, 6081])),
            *rng.pick(&[
                ("has ip and has vxlan", "ip.dst, udp.sport"),
                ("has ip and has geneve", "ip.dst, udp.sport"),
                ("has ip and has udp", "ip.dst, udp.sport"),
                ("has ip and has pppoe and has udp and udp.dport != 7", "ip.dst, udp.sport"),
            ]),
        ),
        1 => (
            format!("tcp {{ {to} tcp.sport = 9; tcp.dport = 9;"),
            *rng.pick(&[
                ("has ip and has pppoe and has tcp and tcp.dport != 7", "ip.dst, tcp.sport"),
                ("has ip and has tcp", "ip.dst, tcp.sport"),
            ]),
        ),
        _ => {
            let error = (3, "icmp.rest = 9;");
            let echo = (8, "icmp.id = 7; icmp.seq = 1;");
            let (kind, rest) = *rng.pick(&[echo, error, error, (13, "icmp.rest = 9;")]);
            (
                format!("icmp {{ {to} icmp.type = {kind}; {rest}"),
                *rng.pick(&[
                    ("has icmp.echo", "ip.dst, icmp.id"),
                    ("has icmp and not has quoted and icmp.type == 3", "ip.dst, u16(icmp.rest)"),
                    ("has icmp and icmp.type in { 3, 11 }", "ip.dst, u16(icmp.rest)"),
                    ("has quoted.ip and has quoted.l4", "quoted.ip.src, quoted.l4.sport"),
                    ("has quoted.ip and not has quoted.l4", "quoted.ip.src, 9"),
                ]),
            )
        }
    };
    let (what, key) = counted;
    format!(
        "nf build() {{ match {{ forward and {} => {{ send {fields} {payload} }} to right; output; }}
           else => output; }} }}
         nf count() {{
           state s: u32 per (ip4, u16) = 0, capacity 1 k;
           match {{
             forward and {what} => {{ s[{key}] += 1; if s[{key}] > 2 {{ drop; }} output; }}
             else => output;
           }}
         }}
         chain c {{ interface in {{ behind 10.0.0.0/8 }} interface out;
           path in <-> build() <-> count() <-> out; }}",
        rng.pick(&when)
    )
}

/// A function that changes amounts, and perhaps decides by them.
fn sums(rng: &mut Rng) -> String {
    let mut lines = String::new();
    for _ in 0..rng.range(1, 2) {
        lines += *rng.pick(&[
            "_s[1] += 1;",
            "_s[1] += 1;",
            "_s[1] += u32(pkt.len);",
            "_s[u8(pkt.len)] += 2;",
            "_s[1] += _s[1] + 1;",
            "_s[1] += _s[2] + 1;",
            "_s[2] = _s[1];",
            "if has tcp { _s[1] = 0; }",
            "if has tcp { delete _s[1]; }",
            "if _s[1] < 10 { _s[1] += 1; }",
            "if _s[1] > 30 { _s[2] += 1; }",
            "if _s[1] > 30 { _t[1] += 1; }",
            "_t[u8(_s[1])] += 1;",
            "_t[1] += _s[1];",
            "_s[1] = if pkt.len > 60 B { _s[1] * 2 } else { _s[1] + 1 };",
            "if exists _u[1] { _u[1] += 1; } else { _u[1] = 1; }",
            "if exists _u[1] { _u[1] += 1; } else { _u[1] = 5; }",
            "if exists _u[1] { _s[1] += 1; } else { _u[1] = 1; }",
            "if has ip { _u[1] = 1; }",
        ]);
    }
    let begin = if rng.one_in(6) { 1 } else { 0 };
    let states = [
        ("_s[", format!("state _s: u32 per (u8) = {begin}, capacity 4 k, full evict_oldest;")),
        ("_t[", "state _t: u32 per (u8) = 0, capacity 4 k, full evict_oldest;".to_owned()),
        ("_u[", "state _u: u32 per (u8), capacity 4 k, full evict_oldest;".to_owned()),
    ];
    let used = states.into_iter().filter(|(name, _)| lines.contains(name));
    let states: String = used.map(|(_, text)| text).collect();
    format!("nf f() {{ {states} {lines} output; }} chain c {{ path f(); }}")
}

/// A function that chooses members of a list.
fn turns(rng: &mut Rng) -> String {
    let next = rng.pick(&[
        "(n + 1) % len(l)",
        "(n + 2) % len(l)",
        "(n % len(l) + 1) % len(l)",
        "(n * 2 + 1) % len(l)",
        "u32(ip.src) % len(l)",
        "(n + u32(ip.src)) % len(l)",
        "(n + n) % len(l)",
    ]);
    let more = rng.pick(&["", "", "if has tcp { n = 0; }"]);
    format!(
        "nf f(l: list<ip4> = [1.1.1.1, 2.2.2.2, 3.3.3.3]) {{ state n: index(l) global = 0;
           match {{ has ip => {{ ip.dst = l[n % len(l)]; n = {next}; {more} output; }}
             else => output; }} }}
         chain c {{ path f(); }}"
    )
}

/// How often each member of a list is chosen.
fn chosen(chain: &Chain, packets: &[Packet]) -> [usize; 3] {
    let (outputs, _) = run(chain, packets);
    let mut counts = [0; 3];
    for output in outputs.iter().flatten() {
        let Output::Packet(_, packet) = output else { continue };
        let member = packet.get(&packet.parse(), Field::IpDst).expect("IPv4") & 3;
        counts[usize::try_from(member).expect("small") - 1] += 1;
    }
    counts
}

/// Whether workers choose a member more often than the placement says: in one row, members are
/// chosen equally often, or once more. Each worker chooses a member at most once more.
fn is_unfair(chain: &Chain, found: &Sharding, seed: u64) -> bool {
    let counts = chosen(&divide_as(chain.clone(), found), &packets(seed));
    let [low, .., high] = {
        let mut all = counts;
        all.sort_unstable();
        all
    };
    high - low > usize::from(WORKERS)
}

/// The number of chains that a generator makes, that the analysis divides, and that then go wrong.
fn tried(
    make: fn(&mut Rng) -> String,
    placements: &[Placement],
    wrong: fn(&Chain, &Sharding, u64) -> bool,
    bug: Option<ShardingMutant>,
) -> (usize, Option<String>) {
    let mut count = 0;
    // A mutant may need more chains: the first that it spoils ends the search.
    let most = if bug.is_some() { budget::PAIRS } else { budget::PAIRS / 6 };
    for seed in budget::seeds(most) {
        let text = make(&mut Rng::new(seed));
        let chain = chain(&text);
        let Some(found) = divided(&chain, bug, placements) else { continue };
        count += 1;
        if wrong(&chain, &found, seed) {
            return (count, Some(format!("seed {seed}\n{text}\n{found:?}")));
        }
    }
    (count, None)
}

const SHARED: &[Placement] = &[Placement::Local, Placement::Replicated];
const SUMMED: &[Placement] = &[Placement::Local, Placement::Replicated, Placement::Summed];

#[test]
fn built_packets_use_entries_of_their_own_worker() {
    let (count, wrong) = tried(built, SHARED, differs, None);
    assert_eq!(wrong, None);
    println!("{count} chains are divided");
    assert!(count >= 4 || budget::is_asked(), "only {count} chains are divided");
}

#[test]
fn summed_tables_have_the_sums_of_one_worker() {
    let (count, wrong) = tried(sums, SUMMED, differs, None);
    assert_eq!(wrong, None);
    assert!(count >= 4 || budget::is_asked(), "only {count} chains are divided");
}

#[test]
fn turns_choose_all_members_alike() {
    let (count, wrong) = tried(turns, &[Placement::Turns], is_unfair, None);
    assert_eq!(wrong, None);
    assert!(count >= 4 || budget::is_asked(), "only {count} chains are divided");
}

#[test]
fn generated_chains_find_each_mutant() {
    use ShardingMutant::{AnyTurns, BareLinks, DecidingSums, LongQuotes, NoEchoes, NoPorts};
    for bug in [NoEchoes, NoPorts, BareLinks, LongQuotes] {
        let (_, wrong) = tried(built, SHARED, differs, Some(bug));
        assert!(wrong.is_some() || budget::is_asked(), "{bug:?} is not found");
    }
    let (_, wrong) = tried(sums, SUMMED, differs, Some(DecidingSums));
    assert!(wrong.is_some() || budget::is_asked(), "DecidingSums is not found");
    let (_, wrong) = tried(turns, &[Placement::Turns], is_unfair, Some(AnyTurns));
    assert!(wrong.is_some() || budget::is_asked(), "AnyTurns is not found");
}

/// A prober that answers packets to UDP port 7 with a packet of its own, and a table behind it.
fn probed(send: &str, what: &str, key: &str) -> String {
    format!(
        "nf prober() {{ match {{
           forward and l4.dport == 7 and has ip => {{ send {send} to right; output; }}
           else => output; }} }}
         nf limit() {{
           state s: {{ n: u32, q: u32 }} per (ip4, u16) = {{ n: 0, q: 0 }}, capacity 1 k;
           match {{ forward and {what} => {{ s[{key}].n += 1;
               if s[{key}].n > 3 {{ s[{key}].q = 1; drop \"too many\"; }} output; }}
             else => output; }} }}
         chain c {{ interface in {{ behind 10.0.0.0/8 }} interface out;
           path in <-> prober() <-> limit() <-> out; }}"
    )
}

#[test]
fn a_table_that_built_packets_use_without_their_worker_is_not_divided() {
    let to = "ip.dst = 198.51.100.9;";
    let cases = [
        (
            format!("icmp {{ {to} icmp.type = 8; icmp.id = 7; icmp.seq = 1; }}"),
            "has icmp.echo",
            "ip.dst, icmp.id",
        ),
        (
            format!("udp {{ {to} udp.sport = 9; udp.dport = 4789; payload = same; }}"),
            "has ip and has vxlan",
            "ip.dst, udp.sport",
        ),
        (
            format!("udp {{ {to} udp.sport = 9; udp.dport = 9; }}"),
            "has ip and has pppoe and has udp and udp.dport != 7",
            "ip.dst, udp.sport",
        ),
        (
            format!("icmp {{ {to} icmp.type = 3; icmp.rest = 9; payload = quote(8); }}"),
            "has icmp and not has quoted and icmp.type == 3",
            "ip.dst, u16(icmp.rest)",
        ),
    ];
    for (send, what, key) in cases {
        let found = sharding(&chain(&probed(&send, what, key))).expect("a chain with a graph");
        assert_eq!(found.verdict, Verdict::OneWorker, "{send}: {found:?}");
    }
    // The built packet keeps the destination, which steers.
    let kept = "icmp { icmp.type = 8; icmp.id = 7; icmp.seq = 1; }";
    let found = sharding(&chain(&probed(kept, "has icmp.echo", "ip.dst, icmp.id")));
    assert_eq!(found.expect("a chain with a graph").verdict, Verdict::Split);
}

#[test]
fn classes_follow_from_what_values_decide() {
    let placement = |text: &str| {
        let found = sharding(&chain(text)).expect("a chain with a graph");
        found.tables[0].placement
    };
    let sum = |lines: &str| {
        let more = if lines.contains("t[") {
            "state t: u32 per (u8) = 0, capacity 8, full evict_oldest;"
        } else {
            ""
        };
        let state = "state s: u32 per (u8) = 0, capacity 8, full evict_oldest;";
        placement(&format!("nf m() {{ {state} {more} {lines} output; }} chain c {{ path m(); }}"))
    };
    assert_eq!(sum("s[1] += 1;"), Placement::Summed);
    for lines in [
        "if s[1] < 10 { s[1] += 1; }",
        "s[1] += 1; if s[1] > 30 { t[1] += 1; }",
        "s[1] += 1; t[u8(s[1])] += 1;",
        "s[1] = if pkt.len > 60 B { s[1] * 2 } else { s[1] + 1 };",
        "if has tcp { s[1] = 0; } else { s[1] += 1; }",
    ] {
        assert_eq!(sum(lines), Placement::Owner, "{lines}");
    }
    let turn = |next: &str| {
        placement(&format!(
            "nf m(l: list<ip4> = [1.1.1.1, 2.2.2.2]) {{ state n: index(l) global = 0;
               match {{ has ip => {{ ip.dst = l[n]; n = {next}; output; }} else => output; }} }}
             chain c {{ path m(); }}"
        ))
    };
    assert_eq!(turn("(n + 1) % len(l)"), Placement::Turns);
    for next in ["u32(ip.src) % len(l)", "(n * 2 + 1) % len(l)"] {
        assert_eq!(turn(next), Placement::Owner, "{next}");
    }
}
