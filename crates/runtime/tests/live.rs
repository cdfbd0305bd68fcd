//! Tests the live driver with devices in memory.

mod support;

use braid_io::{MemorySink, Port, Unreceived, Unsent};
use braid_ir::engine::Counters;
use braid_packet::{Frame, Pool};
use braid_runtime::live::{Attached, Clock, Limits, Live};
use braid_runtime::{RunError, Summary};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use support::{Fake, lan_wan, through, udp};

/// The result of one read of a device. After the last step, reads give nothing.
enum Step {
    Frames(usize),
    Lost(Unreceived),
    Vanished,
}

struct Device {
    steps: VecDeque<Step>,
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
    refuses: Option<Unsent>,
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
                None => self.sent.borrow_mut().push(frame.bytes().to_vec()),
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
}

/// A device, and the packets that are sent by it.
fn device(
    interface: u16,
    steps: Vec<Step>,
    refuses: Option<Unsent>,
) -> (Attached, Rc<RefCell<Vec<Vec<u8>>>>) {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let socket = UnixDatagram::unbound().unwrap();
    let device = Device { steps: steps.into(), sent: Rc::clone(&sent), refuses, socket };
    (Attached { interface, name: format!("device {interface}"), port: Box::new(device) }, sent)
}

fn pool() -> Pool {
    Pool::new(256, 2048).unwrap()
}

/// Runs a chain that passes all packets through.
fn run(devices: Vec<Attached>, limits: Limits) -> Result<Summary, RunError> {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let live = Live::new(&chain, &mut engine, Clock::start(), pool()).limits(limits);
    devices.into_iter().fold(live, Live::device).run(&AtomicBool::new(false))
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
    assert_eq!((to_lan.borrow().len(), to_wan.borrow().len()), (2, 4));
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
fn copies_of_what_was_sent_are_written_in_order() {
    let (lan, _) = device(0, vec![Step::Frames(100)], None);
    let (wan, to_wan) = device(1, vec![Step::Frames(3)], None);
    let (chain, mut engine) = (lan_wan(), Fake::new(through));
    let (mut all, mut from_lan) = (MemorySink::default(), MemorySink::default());
    let live = Live::new(&chain, &mut engine, Clock::start(), pool()).limits(after(103));
    let live = live.output("all", None, &mut all).output("lan", Some(0), &mut from_lan);
    live.device(lan).device(wan).run(&AtomicBool::new(false)).unwrap();
    assert_eq!((all.packets.len(), from_lan.packets.len(), to_wan.borrow().len()), (103, 3, 100));
    assert!(all.packets.is_sorted_by_key(|packet| packet.time_ns));
    assert!(all.packets.iter().take(100).map(|packet| packet.data()).eq(&*to_wan.borrow()));
}

#[test]
fn copies_of_what_was_not_sent_are_not_written() {
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (wan, _) = device(1, vec![Step::Frames(1)], Some(Unsent::QueueFull));
    let (chain, mut engine, mut all) = (lan_wan(), Fake::new(through), MemorySink::default());
    let live = Live::new(&chain, &mut engine, Clock::start(), pool()).limits(after(3));
    let live = live.output("all", None, &mut all).device(lan).device(wan);
    live.run(&AtomicBool::new(false)).unwrap();
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
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let clock = Clock::start();
    let limits = Limits { time: Some(Duration::from_millis(60)), packets: None };
    let live = Live::new(&chain, &mut engine, clock, pool())
        .device(device(0, vec![], None).0)
        .limits(limits);
    live.run(&AtomicBool::new(false)).unwrap();
    let times = &engine.advanced;
    assert!(times.len() >= 3, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert!(times.iter().all(|time| (clock.start_ns()..=clock.now_ns()).contains(time)));
}

#[test]
fn stop_ends_it_at_once() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let live = Live::new(&chain, &mut engine, Clock::start(), pool());
    let live = live.device(device(0, vec![Step::Frames(1)], None).0);
    assert_eq!(live.run(&AtomicBool::new(true)).unwrap().counters.packets_in, 0);
}

#[test]
fn device_that_has_gone_is_named() {
    let (wan, _) = device(1, vec![Step::Vanished], None);
    let error = run(vec![wan], after(1)).unwrap_err().to_string();
    assert!(error.starts_with("device 1: "), "{error}");
}

#[test]
fn work_is_done_every_so_often_even_if_nothing_arrives() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let mut seen = Vec::new();
    let (lan, _) = device(0, vec![Step::Frames(2)], None);
    let (wan, _) = device(1, Vec::new(), None);
    let limits = Limits { time: Some(Duration::from_millis(200)), packets: None };
    Live::new(&chain, &mut engine, Clock::start(), pool())
        .limits(limits)
        .every(Duration::from_millis(20), |engine| seen.push(engine.counters().packets_in))
        .device(lan)
        .device(wan)
        .run(&AtomicBool::new(false))
        .unwrap();
    assert!((2..=10).contains(&seen.len()), "{seen:?}");
    assert_eq!(seen.last(), Some(&2));
}
