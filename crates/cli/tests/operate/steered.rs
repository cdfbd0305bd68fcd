//! The kernel gives packets to their workers, so that workers hardly pass any on.

use std::time::{Duration, Instant};

use braid_io::{PacketPort, Port, wait};
use braid_packet::frame::FRAME;
use braid_packet::{Field, Frame, Link, Packet, Pool, Shape, build_fresh};

use crate::common::{Folder, command, ended};
use crate::site::{PATIENCE, Site, site};
use crate::world::Space;

/// Port translation: the workers have shares of the public ports, to which replies come.
const CHAIN: &str = "\
chain steered {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  n = napt(public: 203.0.113.1);
  path lan <-> n <-> wan;
}
";

/// The number of flows of each protocol.
const FLOWS: u16 = 50;

/// A packet from a host to a server.
fn packet(shape: Shape, flow: u16) -> Packet {
    let fields = [
        (Field::IpSrc, 0x0a00_0000 + u128::from(flow)),
        (Field::L4Sport, 4000),
        (Field::IpDst, 0xc000_0201),
        (Field::L4Dport, 80),
    ];
    build_fresh(Link::Ethernet, 0, shape, &fields, b"hello").expect("built")
}

/// The answer to a packet, as its receiver sends it.
fn answer(packet: &Packet) -> Packet {
    let (mut answer, layout) = (packet.clone(), packet.parse());
    for [from, to] in [
        [Field::IpSrc, Field::IpDst],
        [Field::IpDst, Field::IpSrc],
        [Field::L4Sport, Field::L4Dport],
        [Field::L4Dport, Field::L4Sport],
    ] {
        let value = packet.get(&layout, from).expect("a field of TCP and UDP");
        assert!(answer.set(&layout, to, value));
    }
    answer
}

/// Sends packets at one end. Returns what comes out at the other end.
#[track_caller]
fn carry(from: &mut PacketPort, to: &mut PacketPort, packets: &[Packet]) -> Vec<Packet> {
    let mut pool = Pool::new(1_024, FRAME).expect("memory");
    let mut frames = packets.iter().map(|packet| Frame::of(packet.data())).collect();
    from.send(&mut pool, &mut frames, &mut |_, why| panic!("not sent: {why:?}"));
    let (mut found, end) = (Vec::new(), Instant::now() + PATIENCE);
    while found.len() < packets.len() {
        assert!(Instant::now() < end, "{} of {} arrived", found.len(), packets.len());
        let mut frames = Vec::new();
        to.receive(&mut pool, &mut frames, &mut |why| panic!("lost: {why:?}")).unwrap();
        let packet = |frame: Frame| Packet::new(Link::Ethernet, 0, frame.bytes());
        found.extend(frames.into_iter().map(packet));
        wait([to.descriptor()].into_iter(), Duration::from_millis(10)).unwrap();
    }
    found
}

/// What the workers have read, and what they have passed on, in all.
fn counts(site: &Site) -> (Vec<u64>, u64) {
    let status = site.json("status");
    let workers = status["workers"].as_array().expect("workers");
    let sum = |name: &str| workers.iter().map(|one| one[name].as_u64().unwrap()).collect();
    let passed_on: Vec<u64> = sum("passed_on");
    (sum("packets"), passed_on.iter().sum())
}

/// Sends packets of many flows to the servers, and their answers back. All workers read some of
/// them, and pass none on.
#[track_caller]
fn expect_steered(site: &mut Site) {
    let (read, passed_on) = counts(site);
    let packets: Vec<_> = [Shape::Tcp4, Shape::Udp4]
        .into_iter()
        .flat_map(|shape| (0..FLOWS).map(move |flow| packet(shape, flow)))
        .collect();
    for packets in packets.chunks(50) {
        let translated = carry(&mut site.lan, &mut site.wan, packets);
        let answers: Vec<_> = translated.iter().map(answer).collect();
        carry(&mut site.wan, &mut site.lan, &answers);
    }
    let (after, passed_on_after) = counts(site);
    let each: Vec<u64> = after.iter().zip(read).map(|(after, before)| after - before).collect();
    assert_eq!(each.iter().sum::<u64>(), 4 * u64::from(FLOWS), "{each:?}");
    assert!(each.iter().all(|read| *read > u64::from(FLOWS / 2)), "{each:?}");
    assert_eq!(passed_on_after - passed_on, 0, "{each:?}");
}

#[test]
fn packets_come_to_their_workers_also_after_devices_have_failed() {
    let folder = Folder::new();
    folder.write("chain.braid", CHAIN);
    site!(site, folder, &["--workers", "3"]);
    expect_steered(&mut site);
    for device in ["lan0", "wan0"] {
        site.inside().ip(&format!("link set {device} down"));
        site.until("the device is down", |site| {
            let status = site.json("status");
            status["devices"].as_array().unwrap().iter().any(|device| device["state"] == "down")
        });
        site.inside().ip(&format!("link set {device} up"));
        up(&mut site);
    }
    expect_steered(&mut site);
    site.make_lan_again();
    up(&mut site);
    expect_steered(&mut site);
    site.ask("stop").code(0);
    let ended = site.end().code(0);
    assert_eq!(ended.err.matches("a BPF program steers").count(), 2, "{}", ended.err);
}

#[test]
fn workers_pass_on_what_the_program_no_longer_knows() {
    let folder = Folder::new();
    folder.write("chain.braid", CHAIN);
    site!(site, folder, &["--workers", "3"]);
    // These ports were all in the share of the first worker. Now each worker has a third of them.
    site.ask("set n.ports 2000..2299").code(0);
    let packets: Vec<_> = (0..FLOWS).map(|flow| packet(Shape::Tcp4, flow)).collect();
    let translated = carry(&mut site.lan, &mut site.wan, &packets);
    assert_eq!(counts(&site).1, 0);
    let answers: Vec<_> = translated.iter().map(answer).collect();
    carry(&mut site.wan, &mut site.lan, &answers);
    let port = |packet: &Packet| packet.get(&packet.parse(), Field::L4Dport).expect("a port");
    let others = answers.iter().filter(|answer| port(answer) >= 2100).count();
    assert!(others > 0);
    assert_eq!(counts(&site).1, others as u64);
    site.ask("stop").code(0);
    site.end().code(0);
}

/// Waits until the devices are up for all workers.
fn up(site: &mut Site) {
    site.until("the devices are up", |site| {
        let status = site.json("status");
        let workers = status["workers"].as_array().unwrap();
        workers
            .iter()
            .flat_map(|one| one["devices"].as_array().unwrap())
            .all(|d| d["state"] == "up")
    });
}

#[test]
fn run_without_bpf_says_that_the_kernels_hash_steers() {
    let setting = std::fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled");
    let (Some(space), false) = (Space::new(), setting.is_ok_and(|value| value.trim() == "0"))
    else {
        eprintln!("NOT RUN: it needs root, and BPF that only root may use");
        return;
    };
    space.ip("link add lan0 type veth peer name lan1");
    let folder = Folder::new();
    folder.write("chain.braid", CHAIN);
    let braid = command().get_program().to_owned();
    let output = space.within(|| {
        let mut run = std::process::Command::new("setpriv");
        run.args(["--bounding-set", "-bpf,-sys_admin"]).arg(braid).current_dir(folder.path(""));
        run.args(["run", "chain.braid", "--workers", "2", "--for", "100ms"]);
        run.args(["--if", "lan=af_packet:lan0", "wan=memory"]).output()
    });
    let Ok(output) = output else {
        eprintln!("NOT RUN: it needs setpriv");
        return;
    };
    let said =
        "af_packet:lan0 (the kernel's hash steers: BPF is not permitted, see `braid doctor`)";
    ended(&output).code(0).warns(said);
}
