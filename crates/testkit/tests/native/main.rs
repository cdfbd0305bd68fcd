//! Tests native functions in chains: all engines agree, recordings of functions match their
//! actions, and the five functions behave like the library's models.

mod ahead;
mod balance;
mod effects;
mod in_stages;
mod isolated;
mod priority;
mod relays;
mod servers;
mod workers;

use braid_engine::{
    Compiled, FlowTable, NoRecording, Obstacle, Options, PacketPath, Reached, Reason, Splice,
    Stopped, Taken,
};
use braid_io::{CaptureWriter, PacketSink as _, Precision};
use braid_ir::chain::Chain;
use braid_ir::engine::{Event, Outputs};
use braid_ir::residual::Extent;
use braid_native::bridge as native;
use braid_native::{Checks, Instance, Payload};
use braid_packet::{Field, Header, Packet};
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, ENGINES, Form};
use braid_testkit::packet::packet;
use braid_testkit::record::{Output, Stimulus, step};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const STIMULI: usize = 400;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a C file to a shared library.
fn library(source: &str) -> String {
    harness::c_library(source, env!("CARGO_TARGET_TMPDIR"))
}

fn files() -> BTreeMap<String, String> {
    let rules = "drop proto tcp to 10.0.0.0/8 port 25\ndrop from 10.0.0.7/32\ndefault pass\n";
    let signatures = "1 \"GET /evil\"\n2 \"attack\" nocase\n3 /cmd=[a-z]+;/\n";
    let routes = "10.0.0.0/8 0\n0.0.0.0/0 1\n";
    let files = [
        ("some.rules", rules),
        ("none.rules", "drop from 10.0.0.0/8\ndefault pass\n"),
        ("some.routes", routes),
        ("signatures.txt", signatures),
    ];
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

fn compile(source: &str) -> Chain {
    let chain = harness::compile(source, &files(), Form::AsWritten);
    chain.unwrap_or_else(|errors| panic!("{errors}"))
}

/// The five functions, in the form of declarations in a chain file.
const FIVE: &str = r#"
native nf ids5(signatures: patterns, block: bool = false) from "five" function ids;
native nf maglev5(vip: ip4, servers: backends<ip4>, idle: duration = 2 s, flows: u32 = 6)
    from "five" function maglev;
native nf ipfilter5(filter: rules) from "five" function ipfilter;
native nf monitor5(idle: duration = 2 s, flows: u32 = 6) from "five" function monitor;
native nf mazunat5(public: ip4, ports: pool<port>, idle: duration = 3 s, mappings: u32 = 5)
    from "five" function mazunat;
native nf defragment(memory: size = 2 KB, timeout: duration = 2 s) from "ip";
"#;

const INTERFACES: &str = "interface lan { behind 10.0.0.0/8 } interface wan;";

fn five(chain: &str) -> Chain {
    compile(&format!("{FIVE}\nchain c {{ {INTERFACES} {chain} }}"))
}

/// A chain of the libpcap program from `examples/native`, as a function.
fn synwatch(limit: u32) -> Chain {
    let library = library("examples/native/synwatch_braid.c");
    compile(&format!(
        r#"native nf synwatch(limit: u32) from "{library}";
        chain c {{ {INTERFACES} path lan <-> synwatch(limit: {limit}) <-> wan; }}"#
    ))
}

/// Chains of native functions, alone and between models.
fn chains() -> Vec<Chain> {
    let good = library("crates/native/tests/c/good.c");
    let c = format!(
        r#"native nf limiter(limit: u32, flows: u32 = 5, idle: duration = 1 s) from "{good}";
        native nf dos() from "{good}";
        native nf tunnel() from "{good}";
        native nf clock() from "{good}";
        chain c {{ {INTERFACES} path lan <-> monitor() <-> limiter(limit: 3) <-> dos() <-> tunnel() <-> clock() <-> wan; }}"#
    );
    vec![
        compile(&c),
        synwatch(3),
        five(
            "path lan <-> monitor5() <-> napt(public: 203.0.113.1, ports: 1024..1030) \
             <-> ids5(signatures: patterns(\"signatures.txt\")) <-> wan;",
        ),
        five(
            "workers 3; path lan <-> ipfilter(filter: rules(\"some.rules\")) <-> ipfilter5(filter: \
             rules(\"some.rules\")) <-> mazunat5(public: 203.0.113.1, ports: 1024..1030) <-> wan;",
        ),
        five(
            "path lan <-> maglev5(vip: 192.0.2.4, servers: [10.0.4.1, 10.0.4.2, 10.0.4.3]) <-> \
             stateful_firewall(ok: rules(\"some.rules\"), connections: 6) <-> wan;",
        ),
        five(
            "path lan <-> defragment() <-> napt(public: 203.0.113.1) <-> monitor5() <-> \
             defragment() <-> wan;",
        ),
    ]
}

/// A chain of functions. One of them adds and removes headers.
fn wrapped(functions: &str) -> Chain {
    let good = library("crates/native/tests/c/good.c");
    let path = format!("path lan <-> {functions} <-> wan;");
    compile(&format!(r#"native nf wrap() from "{good}"; chain c {{ {INTERFACES} {path} }}"#))
}

/// Chains in which native functions record their actions, each with the least number of packets of
/// four runs that use records.
fn fused() -> Vec<(Chain, u64)> {
    let good = library("crates/native/tests/c/good.c");
    let c = format!(
        r#"native nf limiter(limit: u32, flows: u32 = 50, idle: duration = 9 s) from "{good}";
        native nf dos() from "{good}";
        chain c {{ {INTERFACES} path lan <-> monitor() <-> limiter(limit: 6) <-> dos() <-> wan; }}"#
    );
    let filter = "ipfilter5(filter: rules(\"some.rules\"))";
    let maglev = "maglev5(vip: 192.0.2.4, servers: [10.0.4.1, 10.0.4.2, 10.0.4.3])";
    let mazunat = "mazunat5(public: 203.0.113.1, ports: 1024..1060, mappings: 30, idle: 60 s)";
    let router = "router(table: routes(\"some.routes\"), hops: [{ mac: 02:00:00:00:00:01, neighbour: \
                  02:00:00:01:00:01, left: true }, { mac: 02:00:00:00:00:02, neighbour: \
                  02:00:00:01:00:02, left: false }], left: 10.0.0.200, right: 192.0.2.200)";
    let ids = "ids5(signatures: patterns(\"signatures.txt\"))";
    let monitor = "monitor5(idle: 60 s, flows: 100)";
    let path =
        |functions: &[&str]| five(&format!("path lan <-> {} <-> wan;", functions.join(" <-> ")));
    // Most traffic goes to the load balancer's address if that is the only one behind `wan`.
    let balanced = |functions: &[&str]| {
        let wan = "interface wan { behind 192.0.2.4 }";
        let path = format!("path lan <-> {} <-> wan;", functions.join(" <-> "));
        compile(&format!(
            "{FIVE}\nchain c {{ interface lan {{ behind 10.0.0.0/8 }} {wan} {path} }}"
        ))
    };
    vec![
        (compile(&c), 200),
        (wrapped("wrap()"), 200),
        (wrapped("napt(public: 203.0.113.9, ports: 2000..2050) <-> wrap()"), 100),
        (path(&[filter]), 200),
        (path(&[router, filter, "monitor()"]), 250),
        (balanced(&["monitor()", maglev, router]), 100),
        (path(&[monitor]), 300),
        (path(&[router, monitor, mazunat, monitor, router]), 300),
        (path(&[ids, "napt(public: 203.0.113.9, ports: 2000..2050)", filter]), 150),
        (balanced(&[monitor, filter, maglev]), 10),
        (path(&[router, ids, mazunat, "stateful_firewall(ok: rules(\"some.rules\"))"]), 400),
        (path(&[monitor, router, "ipfilter5(filter: rules(\"none.rules\"))", "monitor()"]), 80),
    ]
}

#[test]
fn records_reach_across_native_functions() {
    for (at, (chain, least)) in fused().into_iter().enumerate() {
        let mut hits = 0;
        for seed in 0..braid_cases::at_least(4).into() {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let engines = ENGINES.iter().filter(|engine| engine.has_records());
            for engine in engines.filter(|engine| seed == 0 || !engine.has_machine_code()) {
                let found = engine.check(&chain, &stimuli, &expected);
                assert!(found.is_ok(), "{at}, seed {seed}: {}", found.unwrap_err());
                let mut fused = engine.compiled(&chain);
                assert!(engine.difference_of(&mut fused, &stimuli, &expected).is_none());
                hits += fused.flows().map_or(0, |flows| flows.hits);
            }
        }
        println!("{at}: {hits} hits");
        assert!(hits >= least, "{at}: only {hits} hits");
    }
}

/// Discards outputs.
struct Nobody;

impl Outputs for Nobody {
    fn packet(&mut self, _: u16, _: Packet) {}
    fn event(&mut self, _: Event) {}
}

/// The paths of packets of one flow, and the flow table after them.
fn paths(chain: &Chain, packets: &[&str]) -> (Vec<PacketPath>, FlowTable) {
    let options = Options { eager: true, ..Options::fused() };
    let engine = Compiled::new(chain.clone(), Extent::Chain, options);
    let mut engine = engine.unwrap_or_else(|why| panic!("{why}"));
    let path = |(at, text): (usize, &&str)| {
        let packet = packet(text).at(at as u64 * 1_000_000);
        let path = engine.packet_by_path(0, packet, &mut Nobody);
        path.expect("records are made")
    };
    let paths = packets.iter().enumerate().map(path).collect();
    (paths, engine.flow_table().expect("records"))
}

#[test]
fn paths_and_flows_name_native_functions() {
    let packets = ["udp 10.0.0.1:1000 > 192.0.2.1:53 \"question\""; 4];
    let signatures = "signatures: patterns(\"signatures.txt\")";
    let blocking = format!("path lan <-> monitor5() <-> ids5({signatures}, block: true) <-> wan;");
    // A function that may drop packets by their payload records nothing, so a record ends there.
    let (found, table) = paths(&five(&blocking), &packets);
    assert!(found[2..].iter().all(|path| path.taken == Taken::Hit && path.part), "{found:?}");
    assert_eq!(table.templates[0].onward.map(|onward| onward.point.node), Some(1));
    let telling = format!("path lan <-> monitor5() <-> ids5({signatures}) <-> wan;");
    let (found, table) = paths(&five(&telling), &packets);
    assert!(found[2..].iter().all(|path| path.taken == Taken::Hit));
    assert!(matches!(found[2].why, Some(Reason::Made)) && found[3].why.is_none());
    let natives = table.templates[0].path.natives();
    let natives: Vec<_> = natives.map(|one| (one.node, one.state.clone(), one.guards)).collect();
    assert_eq!(natives, [(0, vec![Payload::Ignore], 0), (1, vec![Payload::Read], 0)]);
    assert_eq!(table.templates[0].reached, Reached::Interface(1));
    let (_, table) = paths(&wrapped("monitor() <-> wrap()"), &packets);
    let put_in = |bytes: &[u8]| Splice::In { at: 14, bytes: bytes.into() };
    let splices = &table.templates[0].path.effects.splices;
    assert_eq!(*splices, [put_in(&[0xde, 0xad, 0xbe, 0xef]), put_in(&[0xca, 0xfe])]);
    let (found, table) = paths(&wrapped("wrap() <-> monitor()"), &packets);
    assert!(found[2..].iter().all(|path| path.taken == Taken::Hit && path.part), "{found:?}");
    assert_eq!(table.templates[0].onward.map(|onward| onward.point.node), Some(1));
}

#[test]
fn engines_are_equal_on_chains_with_native_functions() {
    for chain in chains() {
        for seed in braid_cases::seeds(4) {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            for engine in ENGINES.iter().filter(|engine| seed == 0 || !engine.has_machine_code()) {
                let found = engine.check(&chain, &stimuli, &expected);
                assert!(found.is_ok(), "{} seed {seed}: {}", chain.name, found.unwrap_err());
            }
        }
    }
}

/// A chain that compares native functions with their recordings.
fn checked(mut chain: Chain) -> Chain {
    for node in &mut chain.nodes {
        if let Some(native) = &mut Arc::make_mut(&mut node.model).native {
            native.reference.checks = Checks { records: true, observe: true };
        }
    }
    chain
}

#[test]
fn functions_do_what_they_recorded() {
    for chain in chains() {
        let chain = checked(chain);
        for seed in braid_cases::seeds(4) {
            let mut engine = harness::reference(&chain);
            for stimulus in recorded(&chain, seed, STIMULI).0 {
                step(engine.as_mut(), &stimulus);
            }
            let problems: Vec<_> =
                engine.problems().iter().map(|(node, noted)| format!("{node}: {noted}")).collect();
            assert_eq!(problems, [""; 0], "{}, seed {seed}", chain.name);
        }
    }
}

/// Runs one of the five functions on packets by its recordings where possible, and directly. Both
/// must give the same result.
#[test]
fn records_do_what_functions_do() {
    let signatures = "path lan <-> ids5(signatures: patterns(\"signatures.txt\")) <-> wan;";
    let vip = "path lan <-> maglev5(vip: 192.0.2.4, servers: [10.0.4.1, 10.0.4.2]) <-> wan;";
    let public = "path lan <-> mazunat5(public: 203.0.113.1, ports: 1024..1030) <-> wan;";
    let filter = "path lan <-> ipfilter5(filter: rules(\"some.rules\")) <-> wan;";
    let mut replayed = 0;
    for text in [signatures, vip, public, filter, "path lan <-> monitor5() <-> wan;"] {
        let chain = five(text);
        let node = &chain.nodes[0];
        for seed in 0..braid_cases::at_least(4).into() {
            let made =
                || native::instances(node, 1, None).expect("an instance").remove(0).expect("one");
            let (mut function, mut by_record) = (made(), made());
            for stimulus in recorded(&chain, seed, STIMULI).0 {
                let Stimulus::Packet(interface, mut packet) = stimulus else { continue };
                packet.backward = interface == 1;
                replayed += both(&mut function, &mut by_record, packet);
            }
            let outputs = [&mut function, &mut by_record].map(Instance::take_outputs);
            assert_eq!(outputs[0], outputs[1]);
            let shown = [&function, &by_record].map(Instance::report);
            assert_eq!(shown[0], shown[1], "{text}");
        }
    }
    assert!(replayed > 500, "only {replayed} packets ran by records");
}

/// Whether the packet ran by a recording.
fn both(function: &mut Instance, by_record: &mut Instance, packet: Packet) -> usize {
    let (now, mut a, mut b) = (packet.time_ns, packet.clone(), packet);
    let verdict = function.packet(&mut a, now);
    let replayed = by_record.replay(&mut b, now);
    let found = replayed.map_or_else(|| by_record.packet(&mut b, now), Ok);
    assert_eq!(verdict, found);
    assert_eq!(a, b);
    usize::from(replayed.is_some())
}

/// Whether a packet is of a kind that the five functions handle. As in the paper, ICMP and
/// fragments are excluded. So are packets from hosts on the left to the public address, because the
/// model turns them back to the host behind it.
fn is_plain(interface: u16, packet: &Packet) -> bool {
    let layout = packet.parse();
    let is = |field| packet.get(&layout, field) == Some(1);
    let icmp = [Header::Icmp, Header::Icmp6, Header::Quoted];
    let public = u128::from(u32::from_be_bytes([203, 0, 113, 1]));
    let turns_back = interface == 0 && packet.get(&layout, Field::IpDst) == Some(public);
    !icmp.iter().any(|header| layout.has(*header))
        && !turns_back
        && !is(Field::PktFragment)
        && !is(Field::PktTruncated)
}

/// The packets among outputs, without events.
fn packets(outputs: Vec<Output>) -> Vec<Output> {
    outputs.into_iter().filter(|output| matches!(output, Output::Packet(..))).collect()
}

#[test]
fn the_five_do_what_the_models_do() {
    let pairs = [
        ("monitor5()", "monitor(idle: 2 s, flows: 6)"),
        ("ipfilter5(filter: rules(\"some.rules\"))", "ipfilter(filter: rules(\"some.rules\"))"),
        (
            "maglev5(vip: 192.0.2.4, servers: [10.0.4.1, 10.0.4.2, 10.0.4.3])",
            "maglev(vip: 192.0.2.4, backends: [10.0.4.1, 10.0.4.2, 10.0.4.3], idle: 2 s, flows: 6)",
        ),
        (
            "mazunat5(public: 203.0.113.1, ports: 1024..1030)",
            "napt(public: 203.0.113.1, ports: 1024..1030, idle: 3 s, mappings: 5)",
        ),
        (
            "ids5(signatures: patterns(\"signatures.txt\"), block: true)",
            "ids(signatures: patterns(\"signatures.txt\"), scope: rules(\"all.rules\"), block: true)",
        ),
    ];
    let mut files = files();
    files.insert("all.rules".to_owned(), "default pass\n".to_owned());
    for (code, model) in pairs {
        let chain = |function: &str| {
            let text =
                format!("{FIVE}\nchain c {{ {INTERFACES} path lan <-> {function} <-> wan; }}");
            harness::compile(&text, &files, Form::AsWritten)
                .unwrap_or_else(|errors| panic!("{errors}"))
        };
        let (code, model) = (chain(code), chain(model));
        let mut reasons: BTreeSet<String> = BTreeSet::new();
        for seed in 0..braid_cases::at_least(6).into() {
            let [mut ours, mut theirs] = [&code, &model].map(harness::reference);
            for (at, stimulus) in recorded(&model, seed, STIMULI).0.iter().enumerate() {
                let Stimulus::Packet(interface, packet) = stimulus else { continue };
                if is_plain(*interface, packet) {
                    let found = packets(step(ours.as_mut(), stimulus));
                    let expected = packets(step(theirs.as_mut(), stimulus));
                    assert_eq!(
                        found, expected,
                        "{} seed {seed} packet {at}",
                        model.nodes[0].model.name
                    );
                }
            }
            let drops = [&ours, &theirs].map(|engine| {
                let drops = engine.counters().drops;
                drops.into_iter().fold(BTreeMap::new(), |mut all, ((.., reason), count)| {
                    *all.entry(reason).or_insert(0) += count;
                    all
                })
            });
            assert_eq!(drops[0], drops[1], "{} seed {seed}", model.nodes[0].model.name);
            reasons.extend(drops[0].keys().cloned());
            assert_eq!(ours.problems(), []);
        }
        println!("{}: drops for {reasons:?}", model.nodes[0].model.name);
    }
}

#[test]
fn page_shows_how_little_a_port_takes() {
    let differ = Command::new("diff")
        .args(["-u", "--label", "synwatch.c", "--label", "synwatch_braid.c"])
        .args(["synwatch.c", "synwatch_braid.c"])
        .current_dir(root().join("examples/native"))
        .output()
        .expect("diff");
    let text = String::from_utf8(differ.stdout).expect("text");
    let page = std::fs::read_to_string(root().join("docs/native.md")).expect("the page");
    assert!(page.contains(&format!("```diff\n{text}```\n")), "the page has another one:\n{text}");
    let changed = text.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).count();
    assert!((1..30).contains(&changed), "{changed} lines");
}

/// The function outputs the packets that the program copies.
#[test]
fn port_does_what_the_program_does() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("synwatch");
    let source = root().join("examples/native/synwatch.c");
    let built = Command::new("cc").arg(source).arg("-o").arg(&program).arg("-lpcap").output();
    if !built.is_ok_and(|built| built.status.success()) {
        println!("left out: no libpcap to build the program with");
        return;
    }
    let (given, copied) = (folder.join("given.pcap"), folder.join("copied.pcap"));
    let packets = example(&given);
    let run = Command::new(&program).arg(&given).arg(&copied).arg("2").output().expect("it runs");
    assert!(run.status.success());
    let (expected, ..) = braid_io::read_all(&std::fs::read(&copied).expect("a copy"));
    let mut engine = harness::reference(&synwatch(2));
    let mut found = Vec::new();
    for packet in &packets {
        let outputs = step(engine.as_mut(), &Stimulus::Packet(0, packet.clone()));
        found.extend(outputs.into_iter().filter_map(|output| match output {
            Output::Packet(_, packet) => Some(packet.data().to_vec()),
            _ => None,
        }));
    }
    let expected: Vec<_> = expected.into_iter().map(|packet| packet.data().to_vec()).collect();
    assert!(found.len() < packets.len(), "some are refused");
    assert_eq!(found, expected);
}

/// The packets of an example, which are also written as an uncompressed capture.
fn example(plain: &Path) -> Vec<Packet> {
    let packets = root().join("examples/captures/domain-client.pcap.gz");
    let (packets, ..) = braid_io::read_all(&std::fs::read(packets).expect("an example"));
    let mut writer = CaptureWriter::create(plain, Precision::Micro).expect("a file");
    packets.iter().try_for_each(|packet| writer.write_packet(packet)).expect("it is written");
    writer.finish().expect("it is written");
    packets
}

/// The first function of the page compiles and runs.
#[test]
fn page_starts_with_a_function_that_runs() {
    let page = std::fs::read_to_string(root().join("docs/native.md")).expect("the page");
    let block = |start: &str| {
        let (_, rest) = page.split_once(&format!("```{start}")).expect("a block");
        rest.split_once("\n```\n").expect("its end").0.to_owned()
    };
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first.c");
    std::fs::write(&source, block("c\n")).expect("a file");
    let built = library(&source.display().to_string());
    let declared = block("text\nnative nf first_hundred");
    let chain = format!("native nf first_hundred{declared}").replace("first.so", &built);
    let chain = compile(&chain);
    let (stimuli, expected) = recorded(&chain, 1, STIMULI);
    for engine in ENGINES.iter().filter(|engine| !engine.has_machine_code()) {
        let found = engine.check(&chain, &stimuli, &expected);
        assert!(found.is_ok(), "{}", found.unwrap_err());
    }
}
