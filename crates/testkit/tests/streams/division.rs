//! Tests of chains with stream functions that the analysis divides over workers. The engines of the
//! workers do what the reference engine with shards does. Where workers share nothing, one worker
//! does the same. A steering that does not keep connections together makes a difference.

use braid_compiler::sharding::{
    Placement, Sharding, ShardingMutant, Verdict, divide, divide_as, sharding, sharding_with,
};
use braid_ir::chain::Chain;
use braid_ir::model::{BinOp, Op, ParamTy, Sum};
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, Engine as Kind, Form, USERS, by_sender, roomy, settled};
use braid_testkit::record::step;
use std::collections::BTreeMap;

/// The number of packets of each chain.
const PACKETS: usize = 300;

/// The generated chain of a seed, for several workers. `None` if its connections have state in
/// common.
fn generated(seed: u64) -> Option<Chain> {
    let program = streams::program(seed);
    if program.source.contains("per inet.src") {
        return None;
    }
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    let chain = chain.unwrap_or_else(|error| panic!("seed {seed}\n{program}\n{error}"));
    Some(Chain { workers: 2 + u16::try_from(seed % 3).expect("small"), ..chain })
}

/// The chain of a program with this text, for several workers.
fn chain(text: &str) -> Chain {
    let chain = harness::compile(text, &BTreeMap::new(), Form::AsWritten);
    Chain { workers: 4, ..chain.unwrap_or_else(|errors| panic!("{errors}\n{text}")) }
}

/// The analysis of the chain of stream function `f` with this body between two interfaces.
fn found(body: &str) -> Sharding {
    sharding(&chain(&alone(body))).expect("a chain with a graph")
}

fn alone(body: &str) -> String {
    format!(
        "event SEEN extends EVENT {{ n: u32 }}
         stream nf f(most: u32 = 9, limit: size = 1 MB) {{ {body} }}
         chain c {{ interface lan {{ behind 10.0.0.0/8 }} interface wan;
           f = f(); path lan <-> f <-> wan; }}"
    )
}

/// The first difference between the engines of the workers and the reference engine with shards.
fn differs_from_shards(divided: &Chain, kind: Kind, seed: u64) -> Option<String> {
    harness::differs_from_shards(divided, kind, recorded(divided, seed, PACKETS))
}

/// The first packet for which a divided chain does something else than one worker.
fn differs_from_one(divided: &Chain, whole: &Chain, seed: u64) -> Option<usize> {
    let whole = roomy(Chain { workers: 1, ..whole.clone() });
    let (stimuli, expected) = recorded(&whole, seed, PACKETS);
    let mut engine = harness::reference(&roomy(divided.clone()));
    let actual = stimuli.iter().map(|stimulus| step(engine.as_mut(), stimulus));
    actual.zip(expected.outputs).position(|(a, b)| settled(a) != settled(b))
}

/// An entry that packets of two workers use, if conversations find one.
fn conflict(divided: &Chain, found: &Sharding, seed: u64) -> Option<String> {
    let (stimuli, _) = recorded(divided, seed, PACKETS);
    harness::conflict(divided, found, (&divided.steering, divided.workers), &stimuli)
}

/// Whether one worker does what many do: each entry belongs to one of them, and no function takes
/// members of a pool.
fn is_as_one(chain: &Chain, found: &Sharding) -> bool {
    let alone = |placement| matches!(placement, Placement::Local | Placement::Replicated);
    let mut params = chain.nodes.iter().flat_map(|node| &node.model.params);
    found.tables.iter().all(|table| alone(table.placement) && table.exceptions.is_empty())
        && !params.any(|param| matches!(param.ty, ParamTy::Pool(..)))
        && !found.assumes.iter().any(|assumed| assumed.contains("threshold"))
}

#[test]
fn workers_of_generated_chains_do_what_one_worker_does() {
    let (mut count, mut divided, mut as_one, mut wrong, mut conflicts) = (0, 0, 0, 0, 0);
    for seed in 0..u64::from(braid_cases::at_least(60)) {
        let Some(whole) = generated(seed) else { continue };
        count += 1;
        let (chain, found) = divide(whole.clone()).expect("a chain with a graph");
        if found.verdict != Verdict::Split {
            continue;
        }
        divided += 1;
        let about = || format!("seed {seed}\n{}\n{found:?}", streams::program(seed));
        for kind in Kind::drawn(seed, false).into_iter().chain([USERS[0]]) {
            let differs = differs_from_shards(&chain, kind, seed);
            assert!(differs.is_none(), "{}\n{}", differs.unwrap_or_default(), about());
        }
        assert_eq!(conflict(&chain, &found, seed), None, "{}", about());
        if is_as_one(&whole, &found) {
            as_one += 1;
            let differs = differs_from_one(&chain, &whole, seed);
            assert!(differs.is_none(), "packet {differs:?}\n{}", about());
            // Here the two directions of a connection may have different workers.
            let other = Chain { steering: by_sender(&whole), ..chain };
            wrong += usize::from(differs_from_one(&other, &whole, seed).is_some());
            conflicts += usize::from(conflict(&other, &found, seed).is_some());
        }
    }
    println!("of {count} chains, {divided} are divided; {as_one} share nothing, {wrong} need that");
    assert!(divided >= 12 && divided * 2 >= count, "{divided} of {count}");
    assert!(as_one >= 6 && wrong * 2 >= as_one, "{as_one}, {wrong}");
    assert!(conflicts * 2 >= as_one, "{as_one}, {conflicts}");
}

#[test]
fn a_steering_that_forgets_connections_is_found() {
    let goes_wrong = |seed: &u64| {
        let Some(whole) = generated(*seed) else { return false };
        let bug = Some(ShardingMutant::NoConnections);
        let found = sharding_with(&whole, bug).expect("a chain with a graph");
        found.verdict != Verdict::OneWorker
            && differs_from_one(&divide_as(whole.clone(), &found), &whole, *seed).is_some()
    };
    let mut seeds = 0..u64::from(braid_cases::at_least(60));
    assert!(seeds.any(|seed| goes_wrong(&seed)), "no chain goes wrong");
}

#[test]
fn functions_with_state_by_connection_are_divided() {
    for body in [
        "on data { match { stream.len > 3 B => reset \"long\"; else => forward; } }",
        "state n: u32 per biflow = 0; on data { n += 1; if n > most { bypass; } }",
        "state n: u32 per flow = 0; on data { n += 1; if n > most { reset \"n\"; } }
         on close { delete n; }",
        "state n: u32 per biflow = 0, idle 1 s; on open { n = 1; } on expire n { emit SEEN { n: n }; }",
    ] {
        let found = found(body);
        assert_eq!(found.verdict, Verdict::Split, "{body}: {found:?}");
        assert!(found.tables.iter().all(|one| one.placement == Placement::Local), "{found:?}");
        assert!(found.entries[0].by.contains("connection"), "{found:?}");
    }
}

#[test]
fn messages_name_functions_and_tables() {
    for (body, why) in [
        (
            "state by: u32 per inet.src = 0; on open { by += 1; if by > most { reset \"by\"; } }",
            "f.by: packets from lan change entries by (ip.src), which does not decide their worker",
        ),
        (
            "state all: u32 global = 0; on open { all += 1; emit SEEN { n: all }; }",
            "f.all: all packets use its only entry",
        ),
    ] {
        let found = found(body);
        assert_eq!(found.verdict, Verdict::OneWorker, "{body}: {found:?}");
        assert!(found.why_not.iter().any(|text| text.starts_with(why)), "{found:?}");
        assert_eq!(found.tables.len(), 1, "{found:?}");
    }
    // A function in front gives connections new ends.
    let text = "
        nf turn() { match {
          has ip and has tcp => {
            ip.src = ip.src & 255.255.255.0;
            ip.dst = ip.dst & 255.255.255.0;
            tcp.sport = tcp.sport ^ tcp.dport;
            tcp.dport = tcp.sport;
            output;
          }
          else => output;
        } }
        stream nf ids() { on data { forward; } }
        chain c { ids = ids(); path turn() <-> ids; }";
    let found = sharding(&chain(text)).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::OneWorker, "{found:?}");
    assert!(found.why_not[0].starts_with("the connections of ids: packets from"), "{found:?}");
}

/// Bytes of the other direction may come with a packet, so keys of both directions count.
#[test]
fn the_opposite_direction_counts() {
    let text = "
        stream nf f() {
          state by: u32 per inet.src = 0;
          on data { by += 1; if by > 3 { reset \"by\"; } }
        }
        chain c { interface in; interface out; f = f(); path in -> f -> out; link f.left -> in; }";
    let verdict = |bug| sharding_with(&chain(text), bug).expect("a chain with a graph").verdict;
    assert_eq!(verdict(None), Verdict::OneWorker);
    assert_eq!(verdict(Some(ShardingMutant::OneWay)), Verdict::Split);
}

/// The worker that publishes an event must have the connection that the event names.
#[test]
fn events_that_steer_are_published_where_the_connection_is() {
    let text = |emit: &str| {
        format!(
            "event STEER extends FLOW {{ }}
             nf tell() {{ match {{ has l4 => {{ emit STEER {{ {emit} }}; output; }} else => output; }} }}
             stream nf f() {{ on STEER {{ reset \"ordered\"; }} }}
             chain c {{ interface lan {{ behind 10.0.0.0/8 }} interface wan;
               f = f(); path lan <-> tell() <-> f <-> wan; }}"
        )
    };
    let found =
        |emit: &str, bug| sharding_with(&chain(&text(emit)), bug).expect("a chain with a graph");
    for emit in ["", "src: inet.dst, dst: inet.src, sport: inet.dport, dport: inet.sport"] {
        let found = found(emit, None);
        assert_eq!(found.verdict, Verdict::Split, "{emit}: {found:?}");
        assert!(found.entries[0].by.contains("connection"), "{found:?}");
    }
    // The worker follows from an address alone, which the flow has in common with the packet.
    for emit in ["dport: 80", "sport: inet.dport, dport: inet.sport"] {
        let by_address = found(emit, None);
        assert_eq!(by_address.verdict, Verdict::Split, "{emit}: {by_address:?}");
        assert!(by_address.entries[0].by.contains("address"), "{by_address:?}");
    }
    let emit = "src: 10.0.0.1, dst: 192.0.2.1";
    let sound = found(emit, None);
    assert_eq!(sound.verdict, Verdict::OneWorker, "{sound:?}");
    assert!(sound.why_not[0].starts_with("the connections of f: "), "{sound:?}");
    let bug = Some(ShardingMutant::OrdersIgnored);
    assert_eq!(found(emit, bug).verdict, Verdict::Split);
}

/// Programs for events of TCP do not run for other packets, which the stack gets for alerts.
#[test]
fn functions_with_alerts_and_data_are_divided() {
    let source = "stream nf f(rules: signatures) {
          state n: u32 per biflow = 0;
          on data { if tcp.dport == 80 { n += 1; } }
          on alert { if n > 3 { reset \"alert\"; } }
          on close { delete n; }
        }
        chain c { interface lan { behind 10.0.0.0/8 } interface wan;
          path lan <-> f(rules: signatures(\"f.rules\")) <-> wan; }";
    let files = [("f.rules".to_owned(), "alert udp any any -> any any (sid:1;)".to_owned())];
    let chain = harness::compile(source, &files.into(), Form::AsWritten).expect("compiles");
    let found = sharding(&Chain { workers: 4, ..chain }).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::Split, "{found:?}");
}

#[test]
fn counts_are_summed_and_limits_have_portions() {
    let whole = chain(&alone("state n: u32 global = 0; on open { n += 1; }"));
    let (chain_of_sums, found) = divide(whole).expect("a chain with a graph");
    assert_eq!(found.tables[0].placement, Placement::Summed, "{found:?}");
    assert_eq!(chain_of_sums.nodes[0].model.state[0].sums, [Sum::Add]);
    let whole = chain(&alone(
        "state all: size global = 0 B, portions (limit);
         on data { all += stream.len; if all > limit { reset \"all\"; } }",
    ));
    let (divided, found) = divide(whole).expect("a chain with a graph");
    assert_eq!(found.tables[0].placement, Placement::Portions, "{found:?}");
    let streams = &divided.nodes[0].model.streams;
    let mut ops = streams.iter().flat_map(|(_, program)| &program.blocks).flat_map(|one| &one.ops);
    assert!(ops.any(|op| matches!(op, Op::Bin { op: BinOp::Div, .. })), "{streams:?}");
}

#[test]
fn thresholds_of_signatures_are_an_assumption() {
    let assumed = |threshold: &str| {
        let source = "chain c { interface lan { behind 10.0.0.0/8 } interface wan;
            look = signature_ids(rules: signatures(\"look.signatures\"));
            path lan <-> look <-> wan; }";
        let rule = format!("alert tcp any any -> any any (content:\"x\"; {threshold} sid:1;)");
        let files = [("look.signatures".to_owned(), rule)].into();
        let chain = harness::compile(source, &files, Form::AsWritten).expect("compiles");
        let (_, found) = divide(chain).expect("a chain with a graph");
        assert_eq!(found.verdict, Verdict::Split);
        found.assumes
    };
    assert_eq!(assumed(""), <[String; 0]>::default());
    let counted = assumed("threshold: type limit, track by_src, count 1, seconds 60;");
    assert_eq!(counted.len(), 1, "{counted:?}");
    assert!(counted[0].starts_with("no threshold of look's signatures"), "{counted:?}");
}
