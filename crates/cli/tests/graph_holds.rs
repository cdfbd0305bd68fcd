//! Tests that service graphs have the results of their chains. The test makes random chains of
//! small functions. It carries out each graph step by step (copies, branches in any order, merge
//! operations), with the reference engine for each function alone. It compares the packet, the
//! counters and the state of every function with the reference engine for the whole chain. The
//! engine `parallel` must have the same results.

use braid_compiler::parallel::chain::{Path, paths};
use braid_compiler::parallel::stages::stages;
use braid_engine::{Compiled, Options};
use braid_externs::Rng;
use braid_ir::chain::{Chain, Sink, Source};
use braid_ir::engine::{Engine, Event, Outputs};
use braid_ir::model::{LEFT, PortId, RIGHT};
use braid_ir::residual::Extent;
use braid_ir::service_graph::Part;
use braid_ir::service_graph::{Extent as CopyExtent, Fork, Node, Operation, Verdict};
use braid_lang::{Loader, compile};
use braid_packet::{Field, Header, Link, Packet, Shape, build_fresh};
use braid_reference::Reference;
use braid_runtime::parallel;
use std::collections::BTreeMap;

/// Small functions that read, write, tag, drop, count and change headers, some of them on some
/// paths only.
const FUNCTIONS: &str = "
nf count() { state n: u64 per flow = 0; match { has inet => { n += 1; output; } else => output; } }
nf ports() { state n: u32 per l4.dport = 0; match { has l4 => { n += 1; output; } else => output; } }
nf acl() { match { ip.src == 10.0.0.3 => drop \"no\"; else => output; } }
nf limit() { state n: u32 per ip.dst = 0; match {
  has ip and n > 9 => drop \"many\"; has ip => { n += 1; output; } else => output; } }
nf ttl() { match { has ip and ip.ttl > 3 => { ip.ttl -= 1; output; } else => output; } }
nf fixed() { match { l4.dport < 3 => { inet.ttl = 9; output; } else => output; } }
nf mark() { match { has ip and l4.dport == 1 => { ip.dscp = 10; output; } else => output; } }
nf ecn() { match { has ip and l4.sport == 1 => { ip.ecn = 3; output; } else => output; } }
nf tos() { match { ip.src == 10.0.0.1 => { ip.tos = 7; output; } else => output; } }
nf dnat() { match { forward and has ip and has l4 => { ip.dst = 192.0.2.9; l4.dport = 4; output; }
  else => output; } }
nf snat() { match { ip.src == 10.0.0.1 => { ip.src = 203.0.113.1; output; } else => output; } }
nf window() { match { has tcp => { tcp.window = 99; output; } else => output; } }
nf dye() { tag colour: u8; match { l4.sport == 2 => { colour = 5; output; } else => output; } }
nf dyed() { tag colour: u8; match { colour == 5 => drop \"dyed\"; else => output; } }
nf over() { tag colour: u8; match { l4.dport == 2 => { colour = 6; output; } else => output; } }
nf tag_on() { match { has eth and l4.sport == 3 => { push vlan(7); output; } else => output; } }
nf tag_off() { match { has vlan => { pop vlan; output; } else => output; } }
nf retag() { match { vlan.id == 7 => { vlan.id = 8; output; } else => output; } }
nf class() { match { vlan.id == 7 => { vlan.pcp = 2; output; } else => output; } }
nf long() { match { pkt.len > 60 => drop \"long\"; else => output; } }
nf look(p: patterns) { match { payload matches p => drop \"seen\"; else => output; } }
nf sum() { state n: u32 per ip.checksum = 0; match { has ip => { n += 1; output; } else => output; } }
";

const NAMES: [&str; 22] = [
    "count", "ports", "acl", "limit", "ttl", "fixed", "mark", "ecn", "tos", "dnat", "snat",
    "window", "dye", "dyed", "over", "tag_on", "tag_off", "retag", "class", "long", "look", "sum",
];

/// A random generator that repeats.
struct Random(Rng);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(u128::try_from(bound).unwrap())).unwrap()
    }
}

struct Files;

impl Loader for Files {
    fn read(&self, _: &str, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"\"bad\"\n".to_vec())
    }
}

/// A chain of these functions between `lan` and `wan`.
fn chain(names: &[&str], policy: &str) -> Chain {
    let instance = |(at, name): (usize, &&str)| {
        let args = if *name == "look" { "p: patterns(\"p\")" } else { "" };
        format!("f{at} = {name}({args});\n")
    };
    let instances: String = names.iter().enumerate().map(instance).collect();
    let path: Vec<String> = (0..names.len()).map(|at| format!("f{at}")).collect();
    let text = format!(
        "{FUNCTIONS}\nchain c {{ interface lan {{ behind 10.0.0.0/8 }} interface wan;\n{instances}\
         path lan <-> {} <-> wan;\n{policy} }}",
        path.join(" <-> ")
    );
    let compiled = compile(("c.braid", &text), &[], &Files);
    let found: Vec<_> = compiled.diagnostics.iter().map(|d| format!("{d:?}")).collect();
    compiled.unit.unwrap_or_else(|| panic!("{found:?}\n{text}")).chains.remove(0)
}

/// The packets that left, by interface.
#[derive(Default)]
struct Left(Vec<(u16, Packet)>);

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push((interface, packet));
    }

    fn event(&mut self, _: Event) {}
}

/// The functions of a chain, each in a chain of its own at its original position.
struct Apart {
    engines: Vec<Reference>,
    random: Random,
}

impl Apart {
    fn new(chain: &Chain, random: Random) -> Self {
        let alone = |at: usize| {
            let node = u16::try_from(at).unwrap();
            let mut only = chain.clone();
            let joint = |interface: u16, port: PortId| {
                let (inside, outside) = (Sink::Port(node, port), Sink::Interface(interface));
                [(Source::Interface(interface), inside), (Source::Port(node, port), outside)]
            };
            only.links = [joint(0, LEFT), joint(1, RIGHT)].concat();
            only.priorities.clear();
            Reference::new(only).unwrap()
        };
        Self { engines: (0..chain.nodes.len()).map(alone).collect(), random }
    }

    /// Runs a function on a packet. The result is `None` if it drops the packet.
    fn function(&mut self, node: usize, backward: bool, packet: Packet) -> Option<Packet> {
        let mut left = Left::default();
        self.engines[node].packet(u16::from(backward), packet, &mut left);
        assert!(left.0.len() <= 1);
        left.0.pop().map(|(interface, packet)| {
            assert_eq!(interface, u16::from(!backward), "these functions send onward only");
            packet
        })
    }

    /// Runs a part of a graph on a packet. `nodes` are the positions in the chain of the path's
    /// functions.
    fn run(
        &mut self,
        part: &Node,
        nodes: &[usize],
        backward: bool,
        packet: Packet,
    ) -> Option<Packet> {
        match part {
            Node::Function(function) => self.function(nodes[*function], backward, packet),
            Node::Sequence(parts) => parts
                .iter()
                .try_fold(packet, |packet, part| self.run(part, nodes, backward, packet)),
            Node::Parallel(fork) => self.fork(fork, nodes, backward, packet),
        }
    }

    /// Branches that share a version see each other's writes to it, in any order. A graph must be
    /// right for every order.
    fn fork(
        &mut self,
        fork: &Fork,
        nodes: &[usize],
        backward: bool,
        packet: Packet,
    ) -> Option<Packet> {
        let mut versions: BTreeMap<u32, Packet> = [(fork.merge.into, packet.clone())].into();
        for copy in &fork.copies {
            assert_eq!(copy.from, fork.merge.into);
            versions.insert(copy.to, copied(&packet, copy.extent));
        }
        let mut order: Vec<usize> = (0..fork.branches.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.random.below(at + 1));
        }
        let (mut dropped, mut verdicts) = (false, BTreeMap::new());
        for at in order {
            let branch = &fork.branches[at];
            let sees = versions[&branch.version].clone();
            let mut out = self.run(&branch.node, nodes, backward, sees);
            if let Node::Function(function) = branch.node {
                verdicts.insert(function, out.is_some());
            }
            dropped |= out.is_none();
            if let Some(out) = &mut out {
                // Tags that other branches have set on the same version in the meantime stay.
                versions.insert(branch.version, out.clone());
            }
        }
        match &fork.merge.verdict {
            Verdict::AnyDrops(_) if dropped => return None,
            // In these chains the function that wins may drop.
            Verdict::FirstThatMayDrop(functions) if !verdicts[&functions[0]] => return None,
            // Here, too, and the functions that yield drop nothing.
            Verdict::BetweenOrFirst { .. } if dropped => return None,
            _ => {}
        }
        let mut merged = versions.remove(&fork.merge.into)?;
        let kept = merged.clone();
        for operation in &fork.merge.operations {
            apply(operation, &packet, &kept, &versions, &mut merged);
        }
        Some(merged)
    }
}

fn copied(packet: &Packet, extent: CopyExtent) -> Packet {
    let mut copy = packet.clone();
    if extent == CopyExtent::Headers {
        let headers = packet.parse().payload_offset().min(packet.data().len());
        let data = packet.data()[..headers].to_vec();
        copy = Packet::snapped(packet.link, packet.time_ns, data, packet.wire_len);
        copy.tags.clone_from(&packet.tags);
    }
    copy
}

/// The value of a part of a packet.
fn value(packet: &Packet, part: &Part) -> Option<u128> {
    match part {
        Part::Field(field) => packet.get(&packet.parse(), *field),
        Part::Tag(name) => Some(packet.tags.get(name.as_str()).copied().unwrap_or(0)),
        _ => panic!("{part} is not written here"),
    }
}

/// Carries out an operation. A part counts as written if it has changed.
fn apply(
    operation: &Operation,
    before: &Packet,
    kept: &Packet,
    versions: &BTreeMap<u32, Packet>,
    merged: &mut Packet,
) {
    match operation {
        Operation::Modify { part, from, unless, .. } => {
            let new = value(&versions[from], part);
            let wrote = new != value(before, part);
            let yields = !unless.is_empty() && value(kept, part) != value(before, part);
            let (true, false, Some(new)) = (wrote, yields, new) else { return };
            match part {
                Part::Field(field) => {
                    let layout = merged.parse();
                    merged.set(&layout, *field, new);
                }
                Part::Tag(name) => {
                    merged.tags.insert(name.as_str().into(), new);
                }
                _ => {}
            }
        }
        Operation::Add { from, .. } => {
            if tags(&versions[from]) > tags(before) {
                let from = &versions[from];
                let id = from.get(&from.parse(), Field::VlanId).unwrap();
                merged.push_vlan(u16::try_from(id).unwrap());
            }
        }
        Operation::Remove { .. } => {
            if versions.values().any(|version| tags(version) < tags(before)) {
                merged.pop_vlan();
            }
        }
    }
}

/// The number of VLAN tags.
fn tags(packet: &Packet) -> usize {
    let layout = packet.parse();
    usize::from(layout.has(Header::Vlan)) + usize::from(layout.has(Header::Vlan2))
}

fn traffic(random: &mut Random, at: u64) -> (u16, Packet) {
    let backward = random.below(3) == 0;
    let mut inside = u128::from(0x0a00_0001_u32) + random.below(4) as u128;
    let mut outside = u128::from(0xc000_0201_u32) + random.below(3) as u128;
    if backward {
        std::mem::swap(&mut inside, &mut outside);
    }
    let port = |random: &mut Random| random.below(5) as u128;
    let payload: &[u8] = [&b"x"[..], b"bad", b"a longer payload than others"][random.below(3)];
    let ends = [(Field::IpSrc, inside), (Field::IpDst, outside)];
    let (sport, dport) = (port(random), port(random));
    let packet = match random.below(3) {
        0 => {
            let ports = [(Field::TcpSport, sport), (Field::TcpDport, dport)];
            build_fresh(Link::Ethernet, at, Shape::Tcp4, &[ends, ports].concat(), payload)
        }
        1 => {
            let ports = [(Field::UdpSport, sport), (Field::UdpDport, dport)];
            build_fresh(Link::Ethernet, at, Shape::Udp4, &[ends, ports].concat(), payload)
        }
        _ => build_fresh(Link::Ethernet, at, Shape::Icmp, &ends, payload),
    };
    let mut packet = packet.unwrap();
    if random.below(4) == 0 {
        packet.push_vlan(7);
    }
    (u16::from(backward), packet)
}

/// The chain in stages on threads.
fn staged(chain: &Chain) -> Box<dyn Engine> {
    let make = |chain: Chain| -> Result<Box<dyn Engine>, std::io::Error> {
        Ok(Box::new(Compiled::new(chain, Extent::Chain, Options::default()).unwrap()))
    };
    parallel::engine(chain, &stages(chain, 8), parallel::Options::default(), make).unwrap()
}

/// Compares the graphs of a chain with the chain. Returns the number of functions that the
/// equivalent lengths save.
fn compare(names: &[&str], policy: &str, seed: u64) -> usize {
    let chain = chain(names, policy);
    let paths: Vec<Path> = paths(&chain).unwrap();
    let shown =
        |path: &Path| path.graph.root.text(&|f| names[place(&path.functions[f])].to_owned());
    let mut whole = Reference::new(chain.clone()).unwrap();
    let mut apart = Apart::new(&chain, Random(Rng::new(seed * 2 + 1)));
    let mut staged = staged(&chain);
    let mut random = Random(Rng::new(seed * 77 + 5));
    for at in 0..60 {
        let (ingress, packet) = traffic(&mut random, (at + 1) * 1_000_000);
        let path = &paths[usize::from(ingress)];
        let nodes: Vec<usize> = path.functions.iter().map(|name| place(name)).collect();
        let mut left = Left::default();
        whole.packet(ingress, packet.clone(), &mut left);
        let mut of_stages = Left::default();
        staged.packet(ingress, packet.clone(), &mut of_stages);
        let sent = |left: &Left| left.0.iter().map(|(to, p)| (*to, p.clone())).collect::<Vec<_>>();
        assert_eq!(sent(&of_stages), sent(&left), "packet {at} of {names:?} in stages");
        let mut packet = packet;
        packet.backward = path.backward;
        let graph = apart.run(&path.graph.root, &nodes, path.backward, packet);
        let bytes = |packet: &Packet| (packet.data().to_vec(), packet.wire_len);
        let expected = left.0.pop().map(|(_, packet)| bytes(&packet));
        assert_eq!(
            graph.as_ref().map(bytes),
            expected,
            "packet {at} of {names:?}: {}",
            shown(path)
        );
    }
    let (counters, state) = (whole.counters(), whole.state());
    assert_eq!((staged.counters(), staged.state()), (whole.counters(), whole.state()));
    for (node, engine) in apart.engines.iter().enumerate() {
        let what = format!("{} in {names:?}: {}", names[node], shown(&paths[0]));
        assert_eq!(engine.counters().nodes[node], counters.nodes[node], "{what}");
        let number = u16::try_from(node).unwrap();
        let of = |state: &[braid_ir::engine::StateEntry]| {
            state.iter().filter(|entry| entry.node == number).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(&engine.state()), of(&state), "{what}");
    }
    paths.iter().map(|path| path.functions.len() - path.graph.equivalent_length).sum()
}

/// The position of an instance in the chain.
fn place(instance: &str) -> usize {
    instance[1..].parse().unwrap()
}

#[test]
fn graphs_of_random_chains_do_what_the_chains_do() {
    let mut random = Random(Rng::new(20_171_017));
    let mut saved = 0;
    for seed in 0..braid_cases::at_least(300).into() {
        let length = 2 + random.below(5);
        // Each function appears once. A part counts as written if it has changed, so no two
        // functions may write the same value.
        let mut left = NAMES.to_vec();
        let names: Vec<&str> =
            (0..length).map(|_| left.swap_remove(random.below(left.len()))).collect();
        saved += compare(&names, "", seed);
    }
    assert!(saved > 200, "{saved} functions need not wait: too few to show anything");
}

#[test]
fn graphs_with_priority_do_what_the_chains_do() {
    for (seed, names) in [
        ["acl", "ttl", "count"],
        ["acl", "dnat", "count"],
        ["long", "limit", "sum"],
        ["acl", "tos", "mark"],
    ]
    .iter()
    .enumerate()
    {
        let saved = compare(names, "policy { Priority(f0 > f1); }", u64::try_from(seed).unwrap());
        assert!(saved >= 2, "{names:?}");
    }
}

#[test]
fn graphs_with_priority_at_a_distance_do_what_the_chains_do() {
    for (seed, names) in [
        ["acl", "ttl", "mark", "count"],
        ["acl", "limit", "tos", "sum"],
        ["long", "dnat", "fixed", "ports"],
        ["acl", "tag_on", "window", "count"],
        ["acl", "dye", "over", "dyed"],
    ]
    .iter()
    .enumerate()
    {
        let saved = compare(names, "policy { Priority(f0 > f2); }", u64::try_from(seed).unwrap());
        assert!(saved >= 2, "{names:?}");
    }
}
