//! Tests of the sharding analysis. The table in `docs/sharding.md` is derived anew. Generated
//! traffic runs through the reference engine with one shard for each worker; the test searches for
//! an entry that packets of two workers use.

use braid_compiler::sharding::{Placement, Sharding, Verdict, sharding};
use braid_externs::Rng;
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Event, Outputs};
use braid_ir::model::{StateId, Word};
use braid_ir::steering::{By, Of, Part, Side, Steering};
use braid_lang::diag::codes;
use braid_lang::{Loader, compile};
use braid_packet::{Field, FlowKey, Link, NewPayload, Packet, Shape, build_fresh, build_new};
use braid_reference::Reference;
use braid_reference::trace::{Observer, StateAccess, StateWhat};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The functions of the library with arguments for a chain of one function.
const ARGUMENTS: [(&str, &str); 46] = [
    ("bridge", ""),
    ("cgnat", "public: [203.0.113.1]"),
    ("connection_limiter", ""),
    ("connection_log", ""),
    ("dhcp_guard", ""),
    ("dns_guard", ""),
    (
        "esp_gateway",
        "own: 192.0.2.1, sites: [{ gateway: 192.0.2.2, spi: 7 }], networks: routes(\"routes\"), \
         sending: keys(\"all.keys\"), receiving: keys(\"all.keys\")",
    ),
    ("forwarder", ""),
    (
        "gtpu_gateway",
        "own: 192.0.2.1, sessions: [{ peer: 192.0.2.2, teid: 1 }], first_address: 10.45.0.1",
    ),
    ("hash_load_balancer", "vip: 192.0.2.1, servers: [192.0.2.2, 192.0.2.3]"),
    ("heavy_hitter", ""),
    ("http_filter", "sites: { \"*.ads.example\" }, paths: patterns(\"web.patterns\")"),
    ("http_log", ""),
    ("http_tls_blocker", "sites: { \"*.ads.example\" }"),
    ("ids", "signatures: patterns(\"web.patterns\"), scope: rules(\"all.rules\")"),
    ("ipfilter", "filter: rules(\"all.rules\")"),
    ("l3_load_balancer", "vip: 192.0.2.1, servers: [192.0.2.2, 192.0.2.3]"),
    ("l4_load_balancer", "vip: 192.0.2.1, port: 80, servers: [{ addr: 192.0.2.2, port: 80 }]"),
    (
        "l7_load_balancer",
        "vip: 192.0.2.1, key: 7, servers: [{ addr: 192.0.2.2, port: 80 }], \
         groups: [{ first: 0, count: 1 }], rules: patterns(\"web.patterns\")",
    ),
    ("maglev", "vip: 192.0.2.1, backends: [192.0.2.2, 192.0.2.3]"),
    ("monitor", ""),
    ("mss_clamp", ""),
    ("napt", "public: 203.0.113.1"),
    ("napt_ftp", "public: 203.0.113.1"),
    ("nat64", "public: 203.0.113.1"),
    ("policer", "rate: 1 Gbit/s"),
    ("port_knocking", ""),
    ("port_scan_detector", ""),
    ("quarantine", ""),
    ("rate_limiter", "rate: 1 Gbit/s"),
    (
        "router",
        "table: routes(\"routes\"), hops: [{ mac: 02:00:00:00:00:01, \
         neighbour: 02:00:00:00:00:02, left: false }], left: 10.0.0.1, right: 198.51.100.1",
    ),
    ("signature_ids", "rules: signatures(\"web.signatures\")"),
    ("source_rate_limiter", "rate: 1 Gbit/s"),
    ("srtcm", "cir: 1 Gbit/s"),
    ("stateful_firewall", "ok: rules(\"all.rules\")"),
    ("stateless_firewall", "allow: rules(\"all.rules\")"),
    ("static_bridge", "left_hosts: { 02:00:00:00:00:01 }, right_hosts: { 02:00:00:00:00:02 }"),
    ("static_nat", "inside: 10.0.0.0, outside: 203.0.113.0, mask: 255.255.255.0"),
    ("static_nat_ftp", "inside: 10.0.0.0, outside: 203.0.113.0, mask: 255.255.255.0"),
    ("stream_ids", "signatures: patterns(\"web.patterns\")"),
    ("syn_flood", ""),
    ("syn_proxy", "key: 7"),
    ("trtcm", "cir: 1 Gbit/s, pir: 2 Gbit/s"),
    ("vlan_gateway", "vlan: 7"),
    ("vxlan_gateway", "own: 192.0.2.1, vni: 42, peers: [192.0.2.2]"),
    ("zones", ""),
];

/// The files that the chains name.
struct Files;

impl Loader for Files {
    fn read(&self, path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        let text = match path.rsplit_once('.') {
            Some((_, "rules")) => "default pass\n",
            Some((_, "patterns")) => "1 \"attack\"\n",
            Some((_, "keys" | "signatures")) => "",
            _ => "0.0.0.0/0 0\n",
        };
        Ok(text.into())
    }
}

fn chains(text: &str) -> Vec<Chain> {
    let library: Vec<_> = braid_nfs::all().iter().map(|nf| (nf.name, nf.source)).collect();
    let compiled = compile(("chain.braid", text), &library, &Files);
    let found: Vec<String> =
        compiled.diagnostics.iter().map(|found| format!("{found}\n")).collect();
    compiled.unit.unwrap_or_else(|| panic!("{}\n{text}", found.concat())).chains
}

fn derive(text: &str) -> (Chain, Sharding) {
    let chain = chains(text).remove(0);
    let found = sharding(&chain).expect("a chain with a graph");
    (chain, found)
}

fn alone(name: &str, arguments: &str) -> (Chain, Sharding) {
    let side = match name {
        "zones" => "interface second; link second <-> f.second;",
        _ => "",
    };
    derive(&format!(
        "chain alone {{ interface left; interface right; f = {name}({arguments}); \
         path left <-> f <-> right; {side} }}"
    ))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The steering and the placements of the tables, as cells of a row.
fn cells(found: &Sharding) -> String {
    let verdict = match found.verdict {
        Verdict::Stateless => "no state",
        Verdict::Split => "divided",
        Verdict::OneWorker => "one worker",
    };
    let rules: Vec<String> =
        found.entries.iter().map(|rule| format!("{}: {}", rule.interface, rule.by)).collect();
    let rules = match found.verdict {
        Verdict::Split => rules.join("; "),
        Verdict::Stateless => "any".to_owned(),
        Verdict::OneWorker => found.why_not.join("; "),
    };
    let table = |placement: Placement| {
        let of = found.tables.iter().filter(|table| table.placement == placement);
        let names: Vec<&str> = of.map(|table| &*table.table).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.dedup();
        (!names.is_empty()).then(|| format!("{}: {}", placement.word(), names.join(", ")))
    };
    let placements = [
        Placement::Local,
        Placement::Replicated,
        Placement::Summed,
        Placement::Turns,
        Placement::Own,
        Placement::Portions,
        Placement::Owner,
    ];
    let placements: Vec<String> = placements.into_iter().filter_map(table).collect();
    format!("{verdict} | {rules} | {} |", placements.join("; "))
}

/// The functions of Maestro's paper: what its published programs do, and the function of the
/// library that stands for each.
const NINE: [(&str, &str, &str); 9] = [
    ("forwarder (NOP)", "shares nothing: any fields", "forwarder"),
    ("static bridge", "shares nothing: any fields", "static_bridge"),
    ("learning bridge", "locks", "bridge"),
    ("policer", "shares nothing: destination address of packets to hosts", "policer"),
    (
        "firewall",
        "shares nothing: addresses and ports, exchanged in the other direction",
        "stateful_firewall",
    ),
    ("NAT", "shares nothing: the server's address", "napt"),
    (
        "connection limiter",
        "shares nothing: source and destination address of packets to servers",
        "connection_limiter",
    ),
    (
        "port-scan detector",
        "shares nothing: source address of packets from outside",
        "port_scan_detector",
    ),
    ("load balancer", "locks", "maglev"),
];

#[test]
fn the_table_of_the_documents_is_true() {
    let mut text = "\n| chain | verdict | steering | tables |\n|---|---|---|---|\n".to_owned();
    for (name, arguments) in ARGUMENTS {
        let _ = writeln!(text, "| {name} | {}", cells(&alone(name, arguments).1));
    }
    for name in ["branch", "datacentre", "demo", "edge", "nfd", "pass_through", "router"] {
        let file = root().join("examples").join(name).with_extension("braid");
        let source = std::fs::read_to_string(file).expect("an example");
        let _ = writeln!(text, "| examples/{name} | {}", cells(&derive(&source).1));
    }
    text.push('\n');
    let mut nine =
        "\n| function | Maestro | in Braid | what Braid derives |\n|---|---|---|---|\n".to_owned();
    for (function, maestro, name) in NINE {
        let (_, arguments) = ARGUMENTS.iter().find(|(of, _)| *of == name).expect("a function");
        let cells = cells(&alone(name, arguments).1);
        let [verdict, rules, ..] = cells.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{cells}")
        };
        let _ = writeln!(nine, "| {function} | {maestro} | `{name}` | {verdict}: {rules} |");
    }
    nine.push('\n');
    check_page("the table", &text);
    check_page("the nine", &nine);
}

/// Checks a part of the page, between the comments that begin and end it.
fn check_page(part: &str, text: &str) {
    let path = root().join("docs/sharding.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (begin, end) = (format!("<!-- {part}: "), format!("<!-- end of {part} -->"));
    let (before, rest) = page.split_once(&begin).expect("the start of the part");
    let (comment, rest) = rest.split_once(" -->\n").expect("the end of the comment");
    let (old, after) = rest.split_once(&end).expect("the end of the part");
    if std::env::var_os("BLESS").is_some() {
        let page = format!("{before}{begin}{comment} -->\n{text}{end}{after}");
        std::fs::write(&path, page).expect("the page can be written");
    } else {
        assert_eq!(old, text, "BLESS=1 rewrites docs/sharding.md");
    }
}

#[test]
fn the_table_has_the_whole_library() {
    let names: Vec<_> = ARGUMENTS.iter().map(|(name, _)| *name).collect();
    let library: Vec<_> = braid_nfs::all().iter().map(|nf| nf.name).collect();
    assert_eq!(names, library);
}

const WORKERS: u16 = 4;
const PACKETS: u64 = 6000;

/// Keeps the worker of each entry, and what two workers use.
#[derive(Default)]
struct Owners {
    worker: u16,
    entries: HashMap<(u16, StateId, Vec<Word>), u16>,
    conflicts: Vec<String>,
}

impl Observer for Owners {
    fn state(&mut self, node: u16, access: &StateAccess<'_>) {
        let entry = (node, access.state, access.key.to_vec());
        let owner = self.entries.get(&entry).copied();
        if access.key.is_empty() {
            return;
        }
        if owner.is_some_and(|owner| owner != self.worker)
            && !matches!(access.what, StateWhat::Ended)
        {
            self.conflicts.push(format!(
                "worker {}: {:?} of {owner:?}'s entry {entry:?}",
                self.worker, access.what
            ));
        }
        match access.what {
            StateWhat::Created(_) => {
                self.entries.insert(entry, self.worker);
            }
            StateWhat::Deleted | StateWhat::Ended => {
                self.entries.remove(&entry);
            }
            _ => {}
        }
    }
}

/// Keeps the packets that leave.
#[derive(Default)]
struct Left(Vec<(u16, Packet)>);

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push((interface, packet));
    }

    fn event(&mut self, _: Event) {}
}

/// The chain with a shard of every table for each worker.
fn sharded(chain: &Chain) -> Chain {
    let node = |node: &Node| {
        let mut model = (*node.model).clone();
        model.state.iter_mut().for_each(|decl| decl.sharded = true);
        Node { model: Arc::new(model), ..node.clone() }
    };
    Chain { workers: WORKERS, nodes: chain.nodes.iter().map(node).collect(), ..chain.clone() }
}

fn below(rng: &mut Rng, bound: Word) -> Word {
    rng.below(bound)
}

/// A packet of one of a few flows from hosts on the left to servers on the right.
fn request(rng: &mut Rng, time_ns: u64) -> Packet {
    let servers: [Word; 4] = [0xc0a8_7a03, 0xc000_0201, 0xc633_64c8, 0xc633_64c9];
    let ends = [
        (Field::IpSrc, 0x0a00_0001 + below(rng, 12)),
        (Field::IpDst, servers[usize::try_from(below(rng, 4)).expect("small")]),
    ];
    let ports =
        [below(rng, 6) + 2000, [53, 80, 88][usize::try_from(below(rng, 3)).expect("small")]];
    let (shape, more) = match below(rng, 3) {
        0 => {
            let flags = [0x02, 0x10, 0x11][usize::try_from(below(rng, 3)).expect("small")];
            let fields = [(Field::TcpSport, ports[0]), (Field::TcpDport, ports[1])];
            (Shape::Tcp4, [&fields[..], &[(Field::TcpFlags, flags)]].concat())
        }
        1 => (Shape::Udp4, vec![(Field::UdpSport, ports[0]), (Field::UdpDport, ports[1])]),
        _ => (Shape::Icmp, vec![(Field::IcmpType, 8), (Field::IcmpId, ports[0])]),
    };
    let fields = [&ends[..], &more[..]].concat();
    build_fresh(Link::Ethernet, time_ns, shape, &fields, b"payload").expect("an Ethernet frame")
}

/// The answer to a packet: the opposite direction of its flow, or an ICMP error about it.
fn answer(rng: &mut Rng, packet: &Packet, time_ns: u64) -> Option<Packet> {
    let layout = packet.parse();
    if below(rng, 4) == 0 {
        let fields = [(Field::IcmpType, 3), (Field::IpSrc, 0xc633_6463)];
        let quote = NewPayload::Quote(64);
        return build_new(packet, Shape::Icmp, true, &fields, quote);
    }
    let key = FlowKey::of(packet, &layout)?.reversed();
    let ends = [(Field::IpSrc, key.src), (Field::IpDst, key.dst)];
    let (sport, dport) = (Word::from(key.sport), Word::from(key.dport));
    let (shape, more) = match key.proto {
        6 => {
            let flags = (Field::TcpFlags, 0x12);
            (Shape::Tcp4, vec![(Field::TcpSport, sport), (Field::TcpDport, dport), flags])
        }
        17 => (Shape::Udp4, vec![(Field::UdpSport, sport), (Field::UdpDport, dport)]),
        _ => (Shape::Icmp, vec![(Field::IcmpType, 0), (Field::IcmpId, dport)]),
    };
    build_fresh(Link::Ethernet, time_ns, shape, &[&ends[..], &more[..]].concat(), b"answer")
}

/// Entries that packets of two workers use under a steering, and the number of answers that
/// reached the left side.
fn conflicts(chain: &Chain, steering: &Steering, local: &[(u16, StateId)]) -> (Vec<String>, usize) {
    let chain = Chain { steering: steering.clone(), ..sharded(chain) };
    let mut engine = Reference::new(chain).expect("a chain that runs");
    let mut rng = Rng::new(7);
    let mut owners = Owners::default();
    let mut arrived = 0;
    for number in 0..PACKETS {
        let time_ns = (number + 1) * 1_000_000;
        let mut next = Some((0, request(&mut rng, time_ns)));
        while let Some((interface, packet)) = next.take() {
            owners.worker = steering.worker(&packet, &packet.parse(), interface, WORKERS);
            let mut left = Left::default();
            engine.trace(interface, packet, &mut left, &mut owners);
            for (interface, packet) in left.0 {
                if interface == 1 {
                    next = answer(&mut rng, &packet, time_ns).map(|packet| (1, packet));
                } else {
                    arrived += 1;
                }
            }
        }
    }
    let is_local = |text: &&String| {
        local.iter().any(|(node, state)| text.contains(&format!("({node}, {state:?}, ")))
    };
    (owners.conflicts.iter().filter(is_local).cloned().collect(), arrived)
}

/// The tables that belong to one worker each, by function and number.
fn local_tables(chain: &Chain, found: &Sharding) -> Vec<(u16, StateId)> {
    let mut tables = found.tables.iter();
    let mut local = Vec::new();
    for (number, node) in (0..).zip(&chain.nodes) {
        for state in 0..u32::try_from(node.model.state.len()).expect("few") {
            let table = tables.next().expect("a table for each declaration");
            if table.placement == Placement::Local {
                local.push((number, StateId(state)));
            }
        }
    }
    local
}

/// The chains that traffic runs through.
fn driven() -> Vec<(String, Chain, Sharding)> {
    let with = ["napt", "stateful_firewall", "l4_load_balancer", "monitor", "syn_flood", "maglev"];
    let alone = with.map(|name| {
        let (_, arguments) = ARGUMENTS.iter().find(|(of, _)| *of == name).expect("a function");
        let (chain, found) = alone(name, &arguments.replace("192.0.2.1", "192.168.122.3"));
        (name.to_owned(), chain, found)
    });
    let demo = std::fs::read_to_string(root().join("examples/demo.braid")).expect("an example");
    let (chain, found) = derive(&demo);
    alone.into_iter().chain([("demo".to_owned(), chain, found)]).collect()
}

#[test]
fn no_two_workers_use_an_entry_under_the_derived_steering() {
    for (name, chain, found) in driven() {
        let steering = found.steering.as_ref().expect("a steering");
        let (conflicts, arrived) = conflicts(&chain, steering, &local_tables(&chain, &found));
        assert_eq!(conflicts.first(), None, "{name}: {} conflicts", conflicts.len());
        assert!(arrived > 500, "{name}: only {arrived} answers arrived");
    }
}

#[test]
fn traffic_finds_the_conflicts_of_a_wrong_steering() {
    let source = By::Part(Part { end: Side::Source, what: Of::Both });
    let wrong = Steering { entries: vec![source.clone(), source], errors_follow: true };
    for (name, chain, found) in driven() {
        if matches!(name.as_str(), "monitor" | "syn_flood" | "maglev") {
            continue;
        }
        let (conflicts, _) = conflicts(&chain, &wrong, &local_tables(&chain, &found));
        assert!(!conflicts.is_empty(), "{name}: no conflict is found");
    }
}

#[test]
fn a_chain_with_workers_that_cannot_share_it_is_an_error() {
    let entry = codes::CHAIN_NOT_DIVISIBLE.entry().expect("the code is in the catalogue");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("chain.braid");
    for (text, is_right) in [(entry.wrong, false), (entry.right, true)] {
        std::fs::write(&file, text).expect("a file");
        let check = Command::new(env!("CARGO_BIN_EXE_braid")).arg("check").arg(&file).output();
        let check = check.expect("braid runs");
        let said = String::from_utf8_lossy(&check.stderr);
        assert_eq!(check.status.success(), is_right, "{said}");
        assert_eq!(said.contains("[E0521]"), !is_right, "{said}");
    }
}

#[test]
fn only_sums_are_added_up() {
    let cases = [
        ("total + pkt.len", Placement::Summed),
        ("max(total, pkt.len)", Placement::Owner),
        ("total + total", Placement::Owner),
    ];
    for (value, placement) in cases {
        let (_, found) = derive(&format!(
            "nf f() {{ state total: size global = 0; total = {value}; output; }} \
             chain c {{ path f(); }}"
        ));
        assert_eq!(found.tables[0].placement, placement, "{value}: {found:?}");
    }
}

#[test]
fn limits_are_divided_only_where_the_function_says_so() {
    let cases = [
        ("", Placement::Owner),
        (", sharded", Placement::Own),
        (", portions (most)", Placement::Portions),
    ];
    for (option, placement) in cases {
        let (_, found) = derive(&format!(
            "nf f(most: u32) {{ state count: u32 global = 0{option}; \
             if count < most {{ count += 1; output; }} drop; }} \
             chain c {{ path f(most: 9); workers 4; }}"
        ));
        assert_eq!(found.tables[0].placement, placement, "{option}: {found:?}");
        assert_eq!(found.verdict == Verdict::OneWorker, option.is_empty());
        let says = found.tables[0].reason.contains("most divided by 4");
        assert_eq!(says, placement == Placement::Portions, "{}", found.tables[0].reason);
    }
}

#[test]
fn check_shows_how_a_chain_is_divided() {
    let check = Command::new(env!("CARGO_BIN_EXE_braid"))
        .args(["check", "--json", "--workers", "4"])
        .arg(root().join("examples/demo.braid"))
        .output()
        .expect("braid runs");
    let answer: serde_json::Value = serde_json::from_slice(&check.stdout).expect("JSON");
    let found = &answer["sharding"][0];
    assert_eq!(answer["workers"], 4);
    assert_eq!(found["verdict"], "split");
    assert_eq!(found["entries"][0]["by"], "hash of the source address and port");
    assert_eq!(found["pools"][0]["pool"], "ports");
}

#[test]
fn check_shows_only_the_chain_that_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("chains.braid");
    let text = "chain one { path monitor(); }\nchain two { path monitor(); }\n";
    std::fs::write(&file, text).expect("a file");
    let check = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
        command.args(["check", "--json", "--workers", "4"]).args(more).arg(&file);
        command.output().expect("braid runs")
    };
    let names = |more: &[&str]| -> Vec<String> {
        let output = check(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let all = answer["sharding"].as_array().expect("a list").iter();
        all.map(|one| one["chain"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&[]), ["one", "two"]);
    assert_eq!(names(&["--chain", "two"]), ["two"]);
    let wrong = check(&["--chain", "three"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no chain `three`"));
}
