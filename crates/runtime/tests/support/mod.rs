//! A small engine, chains and packets for the tests.
#![allow(dead_code, reason = "each test program uses a part")]

use braid_io::MemorySource;
use braid_ir::chain::{Chain, Control, Interface, Malformed, Node, Sink, Source};
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_ir::steering::Steering;
use braid_ir::value::IntervalSet;
use braid_packet::{Burst, Field, Link, Packet, Shape, build_fresh};
use braid_runtime::live::{Done, Filter, Flags, Live, Operator, Traced};
use braid_runtime::{Engines, Input, RefusedChange, Summary};
use serde_json::{Value, json};
use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// An engine that calls a closure for each packet, and counts the packets that leave.
pub struct Fake<F> {
    pub handle: F,
    pub counters: Counters,
    /// The packets that entered, with their interfaces.
    pub entered: Vec<(u16, Packet)>,
    /// The times of control changes, with the number of packets before each.
    pub controls: Vec<(u64, usize)>,
    /// The times to which the engine was advanced.
    pub advanced: Arc<Mutex<Vec<u64>>>,
    pub refuse_control: bool,
    /// How long after each advance the next packet leaves a queue (ns).
    pub releases_after: Option<u64>,
}

impl<F: FnMut(u16, Packet) -> Vec<(u16, Packet)>> Fake<F> {
    pub fn new(handle: F) -> Self {
        Self {
            handle,
            counters: Counters::default(),
            entered: Vec::new(),
            controls: Vec::new(),
            advanced: Arc::default(),
            refuse_control: false,
            releases_after: None,
        }
    }
}

impl<F: FnMut(u16, Packet) -> Vec<(u16, Packet)>> Fake<F> {
    fn enter(&mut self, mut packet: Packet, out: &mut dyn Outputs) {
        // This lets tests compare packets that entered with packets that they have made.
        let ingress = std::mem::take(&mut packet.ingress);
        self.counters.packets_in += 1;
        self.entered.push((ingress, packet.clone()));
        let leaving = (self.handle)(ingress, packet);
        match leaving.len() as u64 {
            0 => self.counters.consumed += 1,
            n => self.counters.copied += n - 1,
        }
        for (interface, packet) in leaving {
            *self.counters.out.entry(interface).or_default() += 1;
            out.packet(interface, packet);
        }
    }
}

impl<F: FnMut(u16, Packet) -> Vec<(u16, Packet)> + Send> Engine for Fake<F> {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        burst.take_each(|_, packet| self.enter(packet, out));
    }

    fn advance(&mut self, time_ns: u64, _out: &mut dyn Outputs) {
        self.advanced.lock().unwrap().push(time_ns);
    }

    fn next_release(&self) -> Option<u64> {
        let last = self.advanced.lock().unwrap().last().copied().unwrap_or(0);
        self.releases_after.map(|after| last + after)
    }

    fn begin(&mut self, _time_ns: u64, _out: &mut dyn Outputs) {}

    fn control(&mut self, control: &Control, _out: &mut dyn Outputs) -> Result<(), String> {
        self.controls.push((control.time_ns, self.entered.len()));
        if self.refuse_control { Err("there is no rule 7".into()) } else { Ok(()) }
    }

    fn counters(&self) -> Counters {
        self.counters.clone()
    }

    fn state(&self) -> Vec<StateEntry> {
        Vec::new()
    }

    fn export(&mut self) -> Snapshot {
        Snapshot::default()
    }

    fn import(&mut self, _: Snapshot) -> Result<(), ImportError> {
        Ok(())
    }
}

/// Sends each packet to the other of two interfaces.
pub fn through(ingress: u16, packet: Packet) -> Vec<(u16, Packet)> {
    vec![(1 - ingress, packet)]
}

/// A chain without functions. Each interface has IPv4 networks of eight bits behind it.
pub fn chain(interfaces: &[(&str, &[u8])]) -> Chain {
    let interface = |(name, networks): &(&str, &[u8])| {
        let network = |first: &u8| {
            let low = u128::from(*first) << 24;
            (low, low | 0xff_ffff)
        };
        Interface {
            name: (*name).into(),
            behind4: IntervalSet::new(networks.iter().map(network)),
            ..Interface::default()
        }
    };
    let numbers = 0..u16::try_from(interfaces.len()).unwrap();
    Chain {
        name: "test".into(),
        interfaces: interfaces.iter().map(interface).collect(),
        nodes: Vec::<Node>::new(),
        links: numbers.map(|at| (Source::Interface(at), Sink::Interface(at))).collect(),
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 0,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}

/// `lan` with 10.0.0.0/8 behind it, and `wan`.
pub fn lan_wan() -> Chain {
    chain(&[("lan", &[10]), ("wan", &[])])
}

pub fn addr(text: &str) -> u128 {
    u128::from(u32::from(text.parse::<Ipv4Addr>().unwrap()))
}

/// An address and a port.
pub type End<'a> = (&'a str, u16);

/// A UDP packet with four bytes of payload over Ethernet.
pub fn udp(time_ns: u64, from: End<'_>, to: End<'_>) -> Packet {
    let fields = [
        (Field::IpSrc, addr(from.0)),
        (Field::IpDst, addr(to.0)),
        (Field::UdpSport, from.1.into()),
        (Field::UdpDport, to.1.into()),
    ];
    build_fresh(Link::Ethernet, time_ns, Shape::Udp4, &fields, b"data").unwrap()
}

pub fn sources(packets: Vec<Packet>) -> Input {
    Input { name: "in.pcap".into(), interface: None, source: Box::new(MemorySource::new(packets)) }
}

/// The two ends of a UDP or TCP packet as text.
pub fn ends(packet: &Packet) -> String {
    let key = packet.flow_key(&packet.parse()).unwrap();
    let text = |addr: u128| Ipv4Addr::from(addr as u32);
    format!("{}:{} > {}:{}", text(key.src), key.sport, text(key.dst), key.dport)
}

/// The packets that entered an engine, as text with the interface's number.
pub fn entered<F>(engine: &Fake<F>) -> Vec<String> {
    engine.entered.iter().map(|(at, packet)| format!("{at} {}", ends(packet))).collect()
}

/// The program around a live run, for tests.
#[derive(Default)]
pub struct Around {
    /// The messages to the user.
    pub told: String,
    /// The number of snapshots to save.
    pub saved: usize,
    /// Loads the chain again.
    pub next: Option<Loader>,
}

/// Gives the next chain, with its engines.
pub type Loader = Box<dyn FnMut() -> (Chain, Engines)>;

impl Operator for Around {
    fn changes(&mut self, text: &str, _: &Chain) -> Result<Vec<Control>, String> {
        match text {
            "nothing" => Ok(Vec::new()),
            _ => Err(format!("`{text}` is no change")),
        }
    }

    fn filter(&mut self, _: &str) -> Result<Filter, String> {
        Ok(Filter::new(Box::new(Fake::new(through))))
    }

    fn traced(&mut self, number: u64, traced: Traced, _: bool) -> Result<Value, String> {
        Ok(json!({ "packet": number, "left": traced.left.len() }))
    }

    fn flows(
        &mut self,
        _: &Chain,
        _: Box<dyn Any + Send>,
        _: Option<&str>,
        _: bool,
    ) -> (Value, Option<usize>) {
        unreachable!("engines for tests have no flow records")
    }

    fn present(&mut self, chain: &Chain, so_far: &Summary) -> String {
        format!("{}: {} packets", chain.name, so_far.counters.packets_in)
    }

    fn refused(&mut self, changes: &[RefusedChange]) {
        for change in changes {
            self.told.push_str(&format!("line {:?}: {}\n", change.line, change.reason));
        }
    }

    fn tell(&mut self, text: &str) {
        self.told.push_str(text);
    }

    fn load(&mut self) -> Result<(Chain, Engines), String> {
        self.next.as_mut().map(|load| load()).ok_or_else(|| "it does not compile".to_owned())
    }

    fn save(&mut self, _: &Snapshot) {
        self.saved += 1;
    }
}

/// Runs until a limit or a client ends the run.
pub fn drive(live: Live<'_>, around: &mut Around) -> Done {
    let [stop, show, reload] = [const { AtomicBool::new(false) }; 3];
    live.run(around, Flags { stop: &stop, show: &show, reload: &reload }).unwrap()
}

/// An engine that passes all packets through.
pub fn fake() -> Box<dyn Engine> {
    Box::new(Fake::new(through))
}
