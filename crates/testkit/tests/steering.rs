//! Tests that the BPF programs of steerings choose the workers that the steerings choose. The
//! kernel runs the programs, so the tests need root. Where they cannot run, they say so and pass.

use braid_compiler::sharding::divide;
use braid_io::Filter;
use braid_io::{Device, PacketPort, Port, Share, Steer};
use braid_ir::chain::Chain;
use braid_ir::model::ParamId;
use braid_ir::steering::{self, By, Of, Part, Side, Steering};
use braid_ir::value::IntervalSet;
use braid_packet::frame::FRAME;
use braid_packet::{Field, Frame, Link, Packet, Pool};
use braid_runtime::steering_program;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::packet::packet;
use braid_testkit::record::Stimulus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use world::spaces;

#[path = "../../io/tests/devices/world.rs"]
#[allow(dead_code, reason = "the tests of devices use all of it")]
mod world;

/// Number of stimuli of each chain.
const STIMULI: usize = 200;

/// What a program chose for well-formed packets.
#[derive(Default, Debug)]
struct Choices {
    right: usize,
    undecided: usize,
    /// Packets for which it chose another worker.
    wrong: Vec<String>,
}

/// The program for an interface. `None` where the rule has none.
fn load(steering: &Steering, interface: u16, workers: u16) -> Option<Filter> {
    let program = steering_program(steering, interface, workers)?;
    assert!(program.len() < 2000, "{} instructions", program.len());
    Some(Filter::load(&program).unwrap_or_else(|why| panic!("{steering:?}: {why}")))
}

/// Whether the kernel runs programs here. Says so if not.
fn may_run() -> bool {
    let program = steering_program(&Steering::by_connection(), 0, 2).expect("a program");
    let runs = Filter::load(&program).and_then(|filter| filter.run(&[0; 60]));
    if let Err(why) = &runs {
        eprintln!("NOT RUN: BPF programs need root: {why}");
    }
    runs.is_ok()
}

impl Choices {
    /// Runs a program for a packet whose worker is known.
    fn add(&mut self, filter: &Filter, packet: &Packet, owner: u16, workers: u16) {
        let is_malformed = packet.parse().malformed().is_some();
        let length = packet.data().len();
        let is_whole = length == packet.wire_len as usize;
        // Test runs take a page, less what the kernel needs in front of the frame and behind it.
        if packet.link != Link::Ethernet || !is_whole || length > 3_000 {
            return;
        }
        let Ok(chosen) = filter.run(packet.data()) else {
            // Test runs refuse frames that are too short for their headers.
            assert!(is_malformed || length < 15, "refused: {:02x?}", packet.data());
            return;
        };
        assert!(chosen <= workers.into(), "{chosen} of {workers}");
        if is_malformed {
            return;
        }
        if chosen == u32::from(owner) {
            self.right += 1;
        } else if chosen == u32::from(workers) {
            self.undecided += 1;
        } else {
            self.wrong.push(format!("{chosen} instead of {owner}: {:02x?}", packet.data()));
        }
    }

    /// The choices of the programs of `by` for packets that belong where `chain` steers them.
    fn of(chain: &Chain, by: &Steering, packets: &[Packet]) -> Self {
        let mut choices = Self::default();
        let mut filters = BTreeMap::new();
        for packet in packets {
            let interface = packet.ingress;
            let load = || load(by, interface, chain.workers);
            let Some(filter) = filters.entry(interface).or_insert_with(load) else { continue };
            let owner = chain.worker(packet, &packet.parse());
            choices.add(filter, packet, owner, chain.workers);
        }
        choices
    }
}

/// Packets that a generated test would send through the chain.
fn packets(chain: &Chain, seed: u64) -> Vec<Packet> {
    let (stimuli, _) = recorded(chain, seed, STIMULI);
    let packet = |stimulus| match stimulus {
        Stimulus::Packet(interface, mut packet) => {
            packet.ingress = interface;
            Some(packet)
        }
        _ => None,
    };
    stimuli.into_iter().filter_map(packet).collect()
}

/// A generated chain with any rules of steering.
fn drawn(seed: u64) -> Option<Chain> {
    let drawn = any(seed);
    let unit = harness::unit("test.braid", &drawn.source, &drawn.files, Form::AsWritten);
    let unit = unit.unwrap_or_else(|errors| panic!("seed {seed}\n{drawn}\n{errors}"));
    let chain = unit.chains.into_iter().next_back().expect("a chain");
    let is_native = chain.nodes.iter().any(|node| node.model.native.is_some());
    let workers = 2 + u16::try_from(seed % 7).expect("small");
    (!is_native).then(|| harness::over_workers(Chain { workers, ..chain }))
}

#[test]
fn programs_choose_the_workers_of_generated_steerings() {
    if !may_run() {
        return;
    }
    let (mut right, mut undecided) = (0, 0);
    for seed in budget::seeds(budget::PAIRS / 4) {
        let Some(chain) = drawn(seed) else { continue };
        let found = Choices::of(&chain, &chain.steering, &packets(&chain, seed));
        assert!(found.wrong.is_empty(), "seed {seed}: {:?}\n{found:#?}", chain.steering);
        right += found.right;
        undecided += found.undecided;
    }
    println!("{right} packets decided, {undecided} left to the workers");
    let is_much = right > 1000 || budget::is_asked();
    assert!(right > 20 * undecided && is_much, "{right} decided, {undecided} not");
}

#[test]
fn programs_choose_the_workers_of_divided_chains() {
    if !may_run() {
        return;
    }
    let (mut pools, mut right) = (0, 0);
    for (name, chain) in harness::library_chains().expect("the library's chains compile") {
        let (chain, _) = divide(Chain { workers: 5, ..chain }).expect("a chain with a graph");
        if chain.workers == 1 {
            continue;
        }
        pools += chain.steering.entries.iter().filter(|by| matches!(by, By::Pool(..))).count();
        let interfaces = 0..u16::try_from(chain.interfaces.len()).expect("few");
        for interface in interfaces {
            assert!(steering_program(&chain.steering, interface, 5).is_some(), "{name}");
        }
        for seed in budget::seeds(4) {
            let found = Choices::of(&chain, &chain.steering, &packets(&chain, seed));
            assert!(found.wrong.is_empty(), "{name}, seed {seed}: {found:#?}");
            right += found.right;
        }
    }
    assert!(pools > 0 && (right > 1000 || budget::is_asked()), "{pools} pools, {right} packets");
}

/// Packets, and whether the program for connections decides about them.
const ODD: &[(&str, bool)] = &[
    ("tcp 10.0.0.1:1234 > 192.0.2.2:80 S mss=1460 opt=010101", true),
    ("udp 10.0.0.1:1 > 10.0.0.2:2 ipopts=0101070400000000", true),
    ("udp 10.0.0.1:1 > 10.0.0.2:2 \"x\" pad=20", true),
    ("vlan 5 / udp 10.0.0.2:1 > 10.0.0.1:2", true),
    (
        "vlan 5 tpid=0x88a8 / vlan 7 / vlan 8 tpid=0x9100 / udp [2001:db8::1]:1 > [2001:db8::2]:2",
        true,
    ),
    ("vlan 1 / vlan 2 / vlan 3 / vlan 4 / udp 10.0.0.2:1 > 10.0.0.1:2", false),
    ("vlan 1 / arp request 10.0.0.1 > 10.0.0.2", true),
    ("mpls 5 / ip 10.0.0.1 > 10.0.0.2 proto=200 hex=00", true),
    ("ip 10.0.0.1 > 192.0.2.1 mf proto=17 hex=0001000200200000", true),
    ("ip 10.0.0.1 > 192.0.2.1 frag=4 proto=17 hex=0001000200200000", true),
    ("ip 10.0.0.1 > 192.0.2.1 / ah / tcp 9 > 5 S", true),
    ("ip 10.0.0.1 > 192.0.2.1 / esp spi=5", true),
    ("ip 10.0.0.1 > 192.0.2.1 / gre key=5 / udp 3.3.3.3:1 > 4.4.4.4:2", true),
    ("udp 10.0.0.1:99 > 10.0.0.2:4789 / vxlan 7 / eth 02:00:00:00:00:03 > 02:00:00:00:00:04", true),
    ("udp [2001:db8::2]:1 > [2001:db8::1]:1 ext=hop,route,dst \"x\"", true),
    ("udp [2001:db8::2]:1 > [2001:db8::1]:1 ext=hop,route,dst,dst,dst,dst,dst \"x\"", false),
    ("udp [2001:db8::2]:1 > [2001:db8::1]:1 fraghdr \"x\"", true),
    ("udp [2001:db8::2]:1 > [2001:db8::1]:1 mf \"xxxxxxxx\"", true),
    ("ip 2001:db8::2 > 2001:db8::1 frag=4 proto=17 hex=0001000200200000", true),
    ("ip 2001:db8::2 > 2001:db8::1 / ah / udp 7 > 9", true),
    ("ip 2001:db8::2 > 2001:db8::1 proto=59", true),
    ("icmp 10.0.0.2 > 10.0.0.1 echo-request id=5 seq=1", true),
    ("icmp 10.0.0.2 > 10.0.0.1 type=13 hex=000000000000000000000000", true),
    ("icmp6 2001:db8::2 > 2001:db8::1 echo-reply id=5 seq=1", true),
    ("icmp 10.0.0.9 > 10.0.0.1 unreachable cut=28 / udp 10.0.0.1:1 > 8.8.8.8:53", true),
    ("icmp 10.0.0.9 > 10.0.0.1 unreachable cut=28 / tcp 8.8.8.8:1 > 10.0.0.1:53", true),
    ("icmp 10.0.0.9 > 10.0.0.1 time-exceeded / icmp 10.0.0.1 > 8.8.8.8 echo-request id=9", true),
    ("icmp 10.0.0.9 > 10.0.0.1 time-exceeded / ip 10.0.0.1 > 8.8.8.8 proto=50 bytes=8", true),
    ("icmp 10.0.0.9 > 10.0.0.1 unreachable cut=22 pad=9 / udp 10.0.0.1:1 > 8.8.8.8:53", false),
    ("icmp 10.0.0.9 > 10.0.0.1 unreachable / udp 10.0.0.1:1 > 8.8.8.8:53 ipopts=01010101", false),
    ("icmp6 2001:db8::9 > 2001:db8::1 unreachable / udp [2001:db8::1]:1 > [2001:db8::2]:53", true),
    (
        "icmp6 2001:db8::9 > 2001:db8::1 unreachable / udp [2001:db8::1]:1 > [2001:db8::2]:53 ext=hop",
        false,
    ),
];

#[test]
fn programs_decide_about_nearly_all_that_is_parsed() {
    if !may_run() {
        return;
    }
    let steering = Steering { entries: Vec::new(), errors_follow: true };
    let plain = Steering::by_connection();
    for workers in [2, 3, 200] {
        let filters = [&steering, &plain].map(|by| load(by, 0, workers).expect("a program"));
        for (text, decides) in ODD {
            let packet = packet(text).at(0);
            let layout = packet.parse();
            assert_eq!(layout.malformed(), None, "{text}");
            let owner = steering.worker(&packet, &layout, 0, workers);
            let expected = if *decides { owner } else { workers };
            assert_eq!(filters[0].run(packet.data()).unwrap(), u32::from(expected), "{text}");
            let mut choices = Choices::default();
            let owner = plain.worker(&packet, &layout, 0, workers);
            choices.add(&filters[1], &packet, owner, workers);
            assert_eq!(choices.wrong, <[String; 0]>::default(), "{text}");
        }
    }
}

#[test]
fn ports_of_a_device_get_the_packets_that_a_program_chooses() {
    spaces!(here, there);
    here.join("va", &there, "vb");
    let steering = Steering { entries: Vec::new(), errors_follow: true };
    let by_tag = everywhere(2, &By::Field(Field::VlanId));
    for steering in [steering, by_tag] {
        let program = steering_program(&steering, 0, 3);
        let unused: Steer = Arc::new(|_| unreachable!("the kernel steers"));
        let mut pools = [(); 3].map(|()| Pool::new(1_024, FRAME).expect("memory"));
        let device = Device::Packet("vb".into());
        let open = |(pool, share)| device.open(pool, share).expect("a veth device");
        let shares = Share::all(3, &unused, program);
        let mut ports: Vec<_> = there.within(|| pools.iter_mut().zip(shares).map(open).collect());
        let mut from = here.within(|| PacketPort::open("va")).expect("a veth device");
        let packets = ODD.iter().map(|(text, _)| packet(text).at(0)).collect::<Vec<_>>();
        let mut frames = packets.iter().map(|packet| Frame::of(packet.data())).collect();
        from.send(&mut pools[0], &mut frames, &mut |_, why| panic!("not sent: {why:?}"));
        let (mut count, end) = (0, Instant::now() + Duration::from_secs(10));
        while count < packets.len() {
            assert!(Instant::now() < end, "{count} of {} arrived", packets.len());
            for ((number, port), pool) in (0..).zip(&mut ports).zip(&mut pools) {
                let mut frames = Vec::new();
                port.receive(pool, &mut frames, &mut |why| panic!("{why:?}")).expect("readable");
                for frame in frames {
                    let at = packets.iter().position(|packet| packet.data() == frame.bytes());
                    let at = at.expect("a packet that was sent");
                    let owner = steering.worker(&packets[at], &packets[at].parse(), 0, 3);
                    // One tag is beside the frame, so the program may decide about more.
                    if ODD[at].1 || !steering.entries.is_empty() {
                        assert_eq!(number, owner, "{}", ODD[at].0);
                    }
                    count += 1;
                }
            }
        }
    }
}

#[test]
fn programs_look_into_sessions_of_pppoe() {
    if !may_run() {
        return;
    }
    let steering = Steering::by_connection();
    let filter = load(&steering, 0, 7).expect("a program");
    for (text, kind) in [
        ("udp 10.0.0.1:1 > 10.0.0.2:2", 0x0021_u16),
        ("udp [2001:db8::1]:1 > [2001:db8::2]:2", 0x0057),
        ("udp 10.0.0.1:1 > 10.0.0.2:2", 0xc021),
    ] {
        let inside = packet(text).at(0).data().to_vec();
        let length = u16::try_from(inside.len() - 14 + 2).expect("short");
        let [session, length, kind] = [5, length, kind].map(u16::to_be_bytes);
        let pppoe = [&[0x88, 0x64, 0x11, 0], &session[..], &length, &kind];
        let data = [&inside[..12], &pppoe.concat(), &inside[14..]].concat();
        let packet = Packet::new(Link::Ethernet, 0, data);
        let owner = steering.worker(&packet, &packet.parse(), 0, 7);
        assert_eq!(filter.run(packet.data()).unwrap(), u32::from(owner), "{text}");
    }
}

/// A steering with the same rule for this number of interfaces.
fn everywhere(interfaces: usize, by: &By) -> Steering {
    Steering { entries: vec![by.clone(); interfaces], errors_follow: false }
}

#[test]
fn program_of_another_rule_is_found() {
    if !may_run() {
        return;
    }
    let part = |end, what| By::Part(Part { end, what });
    let rules = [
        By::Connection,
        part(Side::Source, Of::Both),
        part(Side::Destination, Of::Both),
        part(Side::Source, Of::Address),
        part(Side::Destination, Of::Port),
        By::Field(Field::EthSrc),
        By::Field(Field::VlanId),
    ];
    let (_, chain) = harness::library_chains().expect("chains").swap_remove(0);
    let chain = Chain { workers: 4, ..chain };
    let packets = packets(&chain, 1);
    for right in &rules {
        let steered =
            Chain { steering: everywhere(chain.interfaces.len(), right), ..chain.clone() };
        for by in &rules {
            let found = Choices::of(&steered, &everywhere(chain.interfaces.len(), by), &packets);
            assert_eq!(found.wrong.is_empty(), by == right, "{right:?} by {by:?}");
        }
    }
}

#[test]
fn rules_that_are_too_deep_or_too_long_have_no_program() {
    let steering = |by| Steering { entries: vec![by], errors_follow: true };
    assert!(steering_program(&steering(By::Field(Field::VxlanVni)), 0, 2).is_none());
    let pool = |count: u128| steering::Pool {
        node: 0,
        param: ParamId(0),
        members: IntervalSet::new((0..count).map(|at| (10 * at, 10 * at))),
    };
    let by = |count| By::Pool(Part { end: Side::Source, what: Of::Port }, pool(count));
    assert!(steering_program(&steering(by(64)), 0, 2).is_some());
    assert!(steering_program(&steering(by(65)), 0, 2).is_none());
}
