//! Tests the live driver with devices in memory.

mod support;

use braid_io::{Ethernet, MemorySink, Port, Unreceived, Unsent};
use braid_ir::chain::{Chain, Change, Control, OwnAddress, TooLong};
use braid_ir::engine::{Counters, Engine};
use braid_ir::model::ParamId;
use braid_packet::{Field, Link, Shape, build_fresh};
use braid_packet::{Frame, Packet, Pool};
use braid_runtime::live::{Attached, Clock, Flags, Limits, Live, Ports};
use braid_runtime::{Engines, RunError, Sinks, Summary};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Around, Fake, Loader, chain, drive, fake, lan_wan, through, udp};

/// The frames that a device has sent.
type Sent = Arc<Mutex<Vec<Vec<u8>>>>;

/// The result of one read of a device. After the last step, reads give nothing.
enum Step {
    Frames(usize),
    Bytes(Vec<u8>),
    Packets(Vec<Packet>),
    Lost(Unreceived),
    Vanished,
}

struct Device {
    steps: VecDeque<Step>,
    sent: Sent,
    refuses: Option<Unsent>,
    mtu: u32,
    /// A socket to wait for that never becomes ready.
    socket: UnixDatagram,
}

impl Port for Device {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        match self.steps.pop_front() {
            None => Ok(0),
            Some(Step::Frames(count)) => {
                let packet = udp(0, ("10.0.0.1", 1), ("192.0.2.1", 2));
                for _ in 0..count {
                    let mut frame = pool.take().unwrap();
                    assert!(frame.push(packet.data()));
                    frames.push(frame);
                }
                Ok(count)
            }
            Some(Step::Bytes(bytes)) => {
                frames.push(Frame::of(&bytes));
                Ok(1)
            }
            Some(Step::Packets(packets)) => {
                frames.extend(packets.iter().map(|packet| Frame::of(packet.data())));
                Ok(packets.len())
            }
            Some(Step::Lost(why)) => {
                lost(why);
                Ok(1)
            }
            Some(Step::Vanished) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        for (place, frame) in frames.drain(..).enumerate() {
            match self.refuses {
                Some(why) => lost(place, why),
                None => self.sent.lock().unwrap().push(frame.bytes().to_vec()),
            }
            pool.put(frame);
        }
    }

    fn overrun(&mut self) -> u64 {
        3
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn ethernet(&self) -> Option<Ethernet> {
        Some(Ethernet { mac: MAC, mtu: self.mtu })
    }
}

/// The MAC address of all devices, and that of a host on their links.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// A device, and the packets that are sent by it.
fn device(interface: u16, steps: Vec<Step>, refuses: Option<Unsent>) -> (Attached, Sent) {
    let sent = Sent::default();
    let socket = UnixDatagram::unbound().unwrap();
    let device =
        Device { steps: steps.into(), sent: Arc::clone(&sent), refuses, mtu: 1500, socket };
    (Attached { interface, name: format!("device {interface}"), port: Box::new(device) }, sent)
}

fn pool() -> Pool {
    Pool::new(256, 2048).unwrap()
}

/// A run of a chain that passes all packets through.
fn live<'a>(clock: Clock) -> Live<'a> {
    Live::new(lan_wan(), fake(), clock)
}

/// Gives a run of one worker these devices.
fn with<'a>(live: Live<'a>, attached: impl Into<Vec<Attached>>) -> Live<'a> {
    live.ports(Ports { pool: pool(), attached: attached.into() })
}

/// Runs a chain that passes all packets through.
fn run(devices: Vec<Attached>, limits: Limits) -> Result<Summary, RunError> {
    let live = live(Clock::start()).limits(limits);
    drive(with(live, devices), &mut Around::default()).result
}

fn after(packets: u64) -> Limits {
    Limits { packets: Some(packets), time: Some(Duration::from_secs(20)) }
}

fn lost(counters: &Counters) -> Vec<(&str, u64)> {
    counters.lost.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn packets_go_from_device_to_device() {
    let (lan, to_lan) = device(0, vec![Step::Frames(1), Step::Frames(3)], None);
    let (wan, to_wan) = device(1, vec![Step::Frames(2)], None);
    let done = run(vec![lan, wan], after(6)).unwrap();
    assert_eq!((to_lan.lock().unwrap().len(), to_wan.lock().unwrap().len()), (2, 4));
    assert_eq!(done.counters.packets_in, 6);
    assert_eq!(done.counters.out, [(0, 2), (1, 4)].into());
    assert_eq!(done.warnings.len(), 2, "each device dropped frames: {:?}", done.warnings);
}

#[test]
fn frames_that_are_not_read_or_sent_are_lost_by_name() {
    let steps = vec![Step::Lost(Unreceived::Offload), Step::Frames(2)];
    let (lan, _) = device(0, steps, None);
    let (wan, _) = device(1, vec![Step::Frames(1)], Some(Unsent::TooLong));
    let done = run(vec![lan, wan], after(4)).unwrap();
    assert_eq!(done.counters.packets_in, 4);
    assert_eq!(done.counters.out, [(0, 1)].into());
    assert_eq!(lost(&done.counters), [("received_offload", 1), ("send_too_long", 2)]);
    let text = done.warnings.join("\n");
    assert!(text.contains("ethtool -K DEVICE gro off") && text.contains("MTU"), "{text}");
}

#[test]
fn changes_that_the_engine_refuses_are_told_and_the_run_goes_on() {
    let mut engine = Fake::new(through);
    engine.refuse_control = true;
    let (lan, to_lan) = device(0, vec![], None);
    let (wan, _) = device(1, vec![Step::Frames(2)], None);
    let clock = Clock::start();
    let change = Control {
        time_ns: clock.start_ns(),
        node: 0,
        param: ParamId(0),
        change: Change::RemoveRule(7),
        line: Some(3),
    };
    let engine: Box<dyn Engine> = Box::new(engine);
    let live = Live::new(lan_wan(), engine, clock).limits(after(2)).control([change]);
    let mut around = Around::default();
    let done = drive(with(live, [lan, wan]), &mut around).result.unwrap();
    assert_eq!(to_lan.lock().unwrap().len(), 2);
    assert_eq!(around.told, "line Some(3): there is no rule 7\n");
    let lines: Vec<_> = done.refused.iter().map(|refused| refused.line).collect();
    assert_eq!(lines, [Some(3)]);
}

#[test]
fn established_flows_come_first_if_asked() {
    let from = |ports: Range<u16>| ports.map(|port| udp(0, ("10.0.0.1", port), ("192.0.2.1", 2)));
    // Ten flows begin. Then many new flows join them.
    let mut steps = vec![Step::Packets(from(0..10).collect())];
    steps.extend((1..=5).map(|turn| {
        let new = 1_000 * turn;
        Step::Packets(from(new..new + 90).chain(from(0..10)).collect())
    }));
    let (lan, _) = device(0, steps, None);
    let (wan, to_wan) = device(1, vec![], None);
    let live = live(Clock::start()).limits(after(510)).established_first(true);
    let done = drive(with(live, [lan, wan]), &mut Around::default()).result.unwrap();
    // 256 packets of new flows can wait.
    assert_eq!(lost(&done.counters), [("new_flow_refused", 5 * 90 - 256)]);
    assert!(done.counters.balanced());
    let ports = |frame: &Vec<u8>| u16::from_be_bytes([frame[34], frame[35]]);
    let left: Vec<_> = to_wan.lock().unwrap().iter().map(ports).collect();
    assert_eq!(left.len(), 60 + 256);
    assert!(left.iter().take(60).all(|port| *port < 10), "{left:?}");
    assert!(
        left.iter().skip(60).eq((1..)
            .flat_map(|t| 1_000 * t..1_000 * t + 90)
            .take(256)
            .collect::<Vec<u16>>()
            .iter())
    );
}

#[test]
fn copies_of_what_was_sent_are_written_in_order() {
    let (lan, _) = device(0, vec![Step::Frames(100)], None);
    let (wan, to_wan) = device(1, vec![Step::Frames(3)], None);
    let (mut all, mut from_lan) = (MemorySink::default(), MemorySink::default());
    let live = live(Clock::start()).limits(after(103));
    let live = live.sinks(Sinks::default().output("all", None, &mut all).output(
        "lan",
        Some(0),
        &mut from_lan,
    ));
    drive(with(live, [lan, wan]), &mut Around::default()).result.unwrap();
    assert_eq!(
        (all.packets.len(), from_lan.packets.len(), to_wan.lock().unwrap().len()),
        (103, 3, 100)
    );
    assert!(all.packets.is_sorted_by_key(|packet| packet.time_ns));
    assert!(all.packets.iter().take(100).map(|packet| packet.data()).eq(&*to_wan.lock().unwrap()));
}

#[test]
fn copies_of_what_was_not_sent_are_not_written() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (wan, _) = device(1, vec![Step::Frames(1)], Some(Unsent::QueueFull));
    let mut all = MemorySink::default();
    let live = live(Clock::start()).limits(after(3));
    let live = with(live.sinks(Sinks::default().output("all", None, &mut all)), [lan, wan]);
    drive(live, &mut Around::default()).result.unwrap();
    assert_eq!(all.packets.len(), 1);
}

#[test]
fn packets_that_leave_where_no_device_is_are_lost() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let done = run(vec![lan], after(2)).unwrap();
    assert_eq!(lost(&done.counters), [("no_device", 2)]);
    assert!(done.counters.out.is_empty() && done.counters.balanced());
}

#[test]
fn time_goes_on_while_nothing_arrives() {
    let engine = Fake::new(through);
    let advanced = Arc::clone(&engine.advanced);
    let clock = Clock::start();
    let limits = Limits { time: Some(Duration::from_millis(60)), packets: None };
    let engine: Box<dyn Engine> = Box::new(engine);
    let live = Live::new(lan_wan(), engine, clock).limits(limits);
    drive(with(live, [device(0, vec![], None).0]), &mut Around::default()).result.unwrap();
    let times = advanced.lock().unwrap();
    assert!(times.len() >= 3, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!(times.iter().all(|time| (clock.start_ns()..=clock.now_ns()).contains(time)));
}

#[test]
fn packets_leave_their_queues_on_time_while_nothing_arrives() {
    let advances = |releases_after| {
        let engine = Fake { releases_after, ..Fake::new(through) };
        let advanced = Arc::clone(&engine.advanced);
        let limits = Limits { time: Some(Duration::from_millis(300)), packets: None };
        let engine: Box<dyn Engine> = Box::new(engine);
        let live = Live::new(lan_wan(), engine, Clock::start()).limits(limits);
        drive(with(live, [device(0, vec![], None).0]), &mut Around::default()).result.unwrap();
        advanced.lock().unwrap().len()
    };
    // Without such packets, the run looks every 10 ms.
    assert!((3..=40).contains(&advances(None)));
    assert!(advances(Some(200_000)) > 100);
    assert!((3..=40).contains(&advances(Some(1_000_000_000))));
}

#[test]
fn workers_run_their_own_packets_wherever_these_arrive() {
    let chain = Chain { workers: 2, ..lan_wan() };
    let packets: Vec<_> =
        (1..=40).map(|port| udp(0, ("10.0.0.1", port), ("192.0.2.1", 2))).collect();
    let (mut own, mut ports) = ([Vec::new(), Vec::new()], Vec::new());
    for packet in &packets {
        let worker = chain.worker(packet, &packet.parse());
        own[usize::from(worker)].push(packet.data().to_vec());
    }
    assert!(own.iter().all(|packets| packets.len() > 10), "{own:?}");
    // All packets arrive at the first worker.
    let all = packets.iter().map(|packet| Step::Bytes(packet.data().to_vec()));
    let mut sent = Vec::new();
    for steps in [all.collect(), Vec::new()] {
        let (lan, _) = device(0, steps, None);
        let (wan, to_wan) = device(1, Vec::new(), None);
        ports.push(Ports { pool: pool(), attached: vec![lan, wan] });
        sent.push(to_wan);
    }
    let engines = Engines::new(&chain, |_| Ok::<_, String>(fake())).unwrap();
    let live = Live::new(chain, engines, Clock::start()).limits(after(40));
    let live = ports.into_iter().fold(live, Live::ports);
    let done = drive(live, &mut Around::default()).result.unwrap();
    assert_eq!((done.counters.packets_in, done.counters.out), (40, [(1, 40)].into()));
    assert_eq!(sent.iter().map(|sent| sent.lock().unwrap().clone()).collect::<Vec<_>>(), own);
}

#[test]
fn stop_ends_it_at_once() {
    let live = with(live(Clock::start()), [device(0, vec![Step::Frames(1)], None).0]);
    let (stop, other) = (AtomicBool::new(true), AtomicBool::new(false));
    let flags = Flags { stop: &stop, show: &other, reload: &other };
    let done = live.run(&mut Around::default(), flags).unwrap().result.unwrap();
    assert_eq!(done.counters.packets_in, 0);
}

#[test]
fn device_that_has_gone_is_named() {
    let (wan, _) = device(1, vec![Step::Vanished], None);
    let error = run(vec![wan], after(1)).unwrap_err().to_string();
    assert!(error.starts_with("device 1: "), "{error}");
}

#[test]
fn state_is_saved_every_so_often_even_if_nothing_arrives() {
    let limits = Limits { time: Some(Duration::from_millis(300)), packets: None };
    let live = live(Clock::start()).limits(limits).save_every(Duration::from_millis(50));
    let mut around = Around::default();
    drive(with(live, [device(0, Vec::new(), None).0]), &mut around).result.unwrap();
    assert!((2..=6).contains(&around.saved), "{}", around.saved);
}

/// Runs for a short time with devices at both interfaces and with these flags: show the results,
/// load the chain again. Returns the messages to the user, and the chain at the end.
fn flagged(show: bool, reload: bool, next: Option<Chain>) -> (String, Arc<Chain>) {
    let limits = Limits { time: Some(Duration::from_millis(200)), packets: None };
    let devices = [0, 1].map(|interface| device(interface, Vec::new(), None).0);
    let live = with(live(Clock::start()).limits(limits), devices);
    let load = |next: Chain| Box::new(move || (next.clone(), fake().into())) as Loader;
    let mut around = Around { next: next.map(load), ..Around::default() };
    let [stop, show, reload] = [false, show, reload].map(AtomicBool::new);
    let done = live.run(&mut around, Flags { stop: &stop, show: &show, reload: &reload }).unwrap();
    done.result.unwrap();
    (around.told, done.chain)
}

#[test]
fn results_are_shown_while_the_run_goes_on() {
    assert_eq!(flagged(true, false, None).0, "test: 0 packets");
}

#[test]
fn chain_that_is_loaded_again_takes_over() {
    let next = chain(&[("wan", &[]), ("dmz", &[]), ("lan", &[10])]);
    let (told, ran) = flagged(false, true, Some(next.clone()));
    assert!(told.starts_with("braid: the chain was loaded again; packets waited "), "{told}");
    assert_eq!(ran.interfaces, next.interfaces);
}

#[test]
fn chain_stays_when_another_one_cannot_take_over() {
    let other = Chain { name: "other".into(), ..lan_wan() };
    for (next, why) in [
        (None, "it does not compile"),
        (Some(other), "the change renames the chain `test` to `other`"),
        (Some(chain(&[("lan", &[10])])), "it has no interface `wan`, which device 1 needs"),
    ] {
        let (told, ran) = flagged(false, true, next);
        assert_eq!(told, format!("braid: the chain stays as it is: {why}\n"));
        assert_eq!(ran.interfaces, lan_wan().interfaces);
    }
}

/// The number of packets that entered where they arrived, and the number of packets that did not.
type Entered = Arc<[AtomicU64; 2]>;

/// `lan` and `wan` for two workers, in this order or in the other one, with engines that count
/// packets.
fn in_order(is_lan_first: bool, entered: &Entered) -> (Chain, Engines) {
    let mut interfaces: [(&str, &[u8]); 2] = [("lan", &[10]), ("wan", &[])];
    if !is_lan_first {
        interfaces.reverse();
    }
    let chain = Chain { workers: 2, ..chain(&interfaces) };
    let engines = Engines::new(&chain, |_| {
        let entered = Arc::clone(entered);
        let engine = Fake::new(move |ingress, packet| {
            let is_from_lan = packet.get(&packet.parse(), Field::IpSrc) < Some(11 << 24);
            let is_wrong = (ingress == 0) != (is_from_lan == is_lan_first);
            entered[usize::from(is_wrong)].fetch_add(1, Ordering::Relaxed);
            through(ingress, packet)
        });
        Ok::<_, String>(Box::new(engine))
    });
    (chain, engines.unwrap())
}

#[test]
fn packets_enter_where_they_arrived_while_interfaces_change_their_numbers() {
    let entered = Entered::default();
    // All packets arrive at the first worker, which passes about half of them on.
    let from = |host: &'static str| {
        let packets = move |first: u16| {
            (0..4)
                .map(|port| udp(0, (host, 1 + (first + port) % 4_000), ("192.0.2.1", 2)))
                .collect()
        };
        (0..30_000).map(|burst: u16| Step::Packets(packets(burst))).collect()
    };
    let mut ports = Vec::new();
    for [lan, wan] in [[from("10.0.0.1"), from("198.51.100.1")], [Vec::new(), Vec::new()]] {
        let attached = vec![device(0, lan, None).0, device(1, wan, None).0];
        ports.push(Ports { pool: pool(), attached });
    }
    let (chain, engines) = in_order(true, &entered);
    let live = Live::new(chain, engines, Clock::start()).limits(after(240_000));
    let live = ports.into_iter().fold(live, Live::ports);
    let (loads, counted) = (Arc::<AtomicU64>::default(), Arc::clone(&entered));
    let load = {
        let loads = Arc::clone(&loads);
        move || in_order(loads.fetch_add(1, Ordering::Relaxed) % 2 == 1, &counted)
    };
    let mut around = Around { next: Some(Box::new(load)), ..Around::default() };
    let [stop, show, reload] = [const { AtomicBool::new(false) }; 3];
    let is_over = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                reload.store(true, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let done = live.run(&mut around, Flags { stop: &stop, show: &show, reload: &reload });
        is_over.store(true, Ordering::Relaxed);
        done.unwrap()
    });
    done.result.unwrap();
    assert!(loads.load(Ordering::Relaxed) > 10, "{loads:?}: {}", around.told);
    let [right, wrong] = [0, 1].map(|at| entered[at].load(Ordering::Relaxed));
    assert_eq!(wrong, 0, "beside {right}, after {loads:?} changes");
    assert!(right > 120_000, "{right}");
}

/// `wan` is a host on its link.
fn lan_and_host() -> Chain {
    let mut chain = lan_wan();
    let address = "192.0.2.9".parse().unwrap();
    chain.interfaces[1].addresses = vec![OwnAddress { address, prefix_len: 24 }];
    chain
}

fn number(mac: [u8; 6]) -> u128 {
    mac.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The answer of the host 192.0.2.1, to which all packets go.
fn answer() -> Vec<u8> {
    let fields = [
        (Field::EthDst, number(MAC)),
        (Field::EthSrc, number(HOST)),
        (Field::ArpOp, 2),
        (Field::ArpSha, number(HOST)),
        (Field::ArpSpa, 0xc000_0201),
        (Field::ArpTha, number(MAC)),
        (Field::ArpTpa, 0xc000_0209),
    ];
    build_fresh(Link::Ethernet, 0, Shape::Arp, &fields, &[]).unwrap().data().to_vec()
}

fn is_arp(frame: &[u8]) -> bool {
    frame[12..14] == [8, 6]
}

/// A run of that chain between these devices.
fn host<'a>(lan: Attached, wan: Attached, limits: Limits) -> Live<'a> {
    with(Live::new(lan_and_host(), fake(), Clock::start()).limits(limits), [lan, wan])
}

#[test]
fn packets_wait_for_their_next_hop_and_are_copied_as_they_are_sent() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (wan, to_wan) = device(1, vec![Step::Bytes(answer())], None);
    let mut all = MemorySink::default();
    let live = host(lan, wan, after(3)).sinks(Sinks::default().output("all", None, &mut all));
    let done = drive(live, &mut Around::default()).result.unwrap();
    let sent = to_wan.lock().unwrap();
    let packets: Vec<_> = sent.iter().filter(|frame| !is_arp(frame)).collect();
    assert_eq!(packets.len(), 2);
    assert!(packets.iter().all(|frame| frame[..12] == [HOST, MAC].concat()));
    assert!(all.packets.iter().map(|packet| packet.data()).eq(packets));
    assert_eq!((done.counters.packets_in, done.counters.out), (2, [(1, 2)].into()));
}

#[test]
fn all_fragments_are_copied_as_they_are_sent() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (mut wan, to_wan) = device(1, Vec::new(), None);
    wan.port = Box::new(Device {
        steps: [Step::Bytes(answer())].into(),
        sent: Arc::clone(&to_wan),
        refuses: None,
        mtu: 28,
        socket: UnixDatagram::unbound().unwrap(),
    });
    let mut chain = lan_and_host();
    chain.interfaces[1].too_long = TooLong::Fragment;
    let mut all = MemorySink::default();
    let live = with(Live::new(chain, fake(), Clock::start()).limits(after(3)), [lan, wan]);
    let live = live.sinks(Sinks::default().output("all", None, &mut all));
    let done = drive(live, &mut Around::default()).result.unwrap();
    let sent = to_wan.lock().unwrap();
    let fragments: Vec<_> = sent.iter().filter(|frame| !is_arp(frame)).collect();
    // 8 and 4 bytes of UDP behind an IPv4 header each.
    let mut lengths: Vec<_> = fragments.iter().map(|frame| frame.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [38, 38, 42, 42]);
    assert!(all.packets.iter().map(|packet| packet.data()).eq(fragments));
    assert_eq!((done.counters.packets_in, done.counters.out), (2, [(1, 2)].into()));
}

#[test]
fn packets_that_still_wait_at_the_end_are_lost() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (wan, to_wan) = device(1, Vec::new(), None);
    let done = drive(host(lan, wan, after(2)), &mut Around::default()).result.unwrap();
    assert_eq!(lost(&done.counters), [("no_neighbour", 2)]);
    assert!(done.counters.out.is_empty());
    assert!(to_wan.lock().unwrap().iter().all(|frame| is_arp(frame)));
}

#[test]
fn error_about_a_packet_that_is_too_long_enters_where_the_packet_left() {
    let (lan, to_lan) = device(0, vec![Step::Frames(1)], None);
    let (mut wan, sent) = device(1, Vec::new(), None);
    let socket = UnixDatagram::unbound().unwrap();
    wan.port = Box::new(Device { steps: [].into(), sent, refuses: None, mtu: 28, socket });
    let limits = Limits { time: Some(Duration::from_millis(50)), packets: None };
    let done = drive(host(lan, wan, limits), &mut Around::default()).result.unwrap();
    assert_eq!(lost(&done.counters), [("too_long_answered", 1)]);
    assert_eq!((done.counters.packets_in, done.counters.out), (2, [(0, 1)].into()));
    let error = &to_lan.lock().unwrap()[0];
    // From 192.0.2.9 to 10.0.0.1: fragmentation needed, 28 bytes at most.
    assert_eq!(error[26..36], [192, 0, 2, 9, 10, 0, 0, 1, 3, 4]);
    assert_eq!(error[38..42], [0, 0, 0, 28]);
    assert!(done.warnings.iter().all(|warning| !warning.contains("MTU")), "{:?}", done.warnings);
}
