//! The generator: chooses the flow of the next packet, and makes its bytes.

use super::endpoints::{Endpoints, Ends};
use super::life::{self, Segment};
use super::options::{MAX_FLOWS, MAX_PACKETS, MAX_RATE, Options};
use super::size::flow_sizes;
use crate::arrivals::Clock;
use crate::random::Random;
use crate::{Error, Progress, Traffic, later};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Link addresses of clients and servers: locally administered, so that no device owns them.
const MACS: [u128; 2] = [0x0200_0000_0001, 0x0200_0000_0002];
/// Bytes of the Ethernet header, which the IP header and the TCP or UDP header follow.
const ETHERNET: usize = 14;
const WINDOW: u128 = 0xffff;
/// Length of the bytes from which payloads are cut, each at another offset.
const PATTERN: usize = 1 << 14;

/// Synthetic flows.
pub struct Flows {
    ends: Endpoints,
    flows: Vec<Flow>,
    /// The place of each flow's next train in the run, and the flow.
    trains: BinaryHeap<Reverse<(u64, u32)>>,
    /// The flow of the current train, and the number of its packets still to come.
    train: (u32, u32),
    clock: Clock,
    random: Random,
    pattern: Vec<u8>,
    options: Options,
    given: u64,
    begun: u64,
}

/// The state of a flow.
struct Flow {
    size: u32,
    sent: u32,
    /// Next sequence numbers of client and server.
    next: [u32; 2],
}

impl Flows {
    /// Plans all flows.
    ///
    /// # Errors
    /// When the options contradict each other or a limit.
    pub fn new(options: Options) -> Result<Self, Error> {
        check(&options).map_err(Error::Options)?;
        let ends = Endpoints::new(&options)?;
        let sizes = flow_sizes(options.flows, options.packets, options.tail);
        let mut flows = Vec::with_capacity(sizes.len());
        let mut trains = Vec::with_capacity(sizes.len());
        for (flow, size) in (0..).zip(sizes) {
            trains
                .push(Reverse((place(0, trains_of(size, options.train), ends.phase(flow)), flow)));
            flows.push(Flow { size, sent: 0, next: ends.sequence(flow) });
        }
        let mut random = Random::new(options.seed, 0);
        let pattern = (0..PATTERN).map(|_| b'a' + random.below(26) as u8).collect();
        let clock = Clock::new(options.arrivals, options.rate as f64, Random::new(options.seed, 1));
        Ok(Self {
            ends,
            flows,
            trains: BinaryHeap::from(trains),
            train: (0, 0),
            clock,
            random,
            pattern,
            options,
            given: 0,
            begun: 0,
        })
    }

    /// The flow of the next packet: the flow of the current train, or of the train that is due.
    fn next_flow(&mut self) -> Option<u32> {
        if let (flow, left @ 1..) = self.train {
            self.train = (flow, left - 1);
            return Some(flow);
        }
        let Reverse((_, flow)) = self.trains.pop()?;
        let state = self.flows.get(flow as usize)?;
        let count = self.options.train.min(state.size - state.sent);
        self.train = (flow, count - 1);
        let sent = state.sent + count;
        if sent < state.size {
            let (number, all) =
                (sent / self.options.train, trains_of(state.size, self.options.train));
            self.trains.push(Reverse((place(number, all, self.ends.phase(flow)), flow)));
        }
        Some(flow)
    }

    fn packet(&mut self, number: u32, time_ns: u64) -> Option<Packet> {
        let ends = self.ends.of(number);
        let flow = self.flows.get_mut(number as usize)?;
        let segment = match ends.tcp {
            true => life::tcp(flow.sent, flow.size, self.options.replies_ppm),
            false => life::udp(flow.sent, self.options.replies_ppm),
        };
        let v6 = self.options.from.is_v6();
        let headers = ETHERNET + if v6 { 40 } else { 20 } + if ends.tcp { 20 } else { 8 };
        let frame = usize::from(self.options.size.draw(&mut self.random));
        let data = if segment.data { frame.saturating_sub(headers) } else { 0 };
        let offset = self.given as usize % (PATTERN - usize::from(super::size::MOST));
        let payload = self.pattern.get(offset..offset + data)?;
        let (me, peer) = if segment.back { (1, 0) } else { (0, 1) };
        let (seq, ack) = (flow.next[me], flow.next[peer]);
        flow.next[me] = seq.wrapping_add(segment.advance(data as u32));
        self.begun += u64::from(flow.sent == 0);
        flow.sent += 1;
        build(ends, segment, v6, (seq, ack), payload, time_ns)
    }
}

/// The limit that the options break, if any.
fn check(options: &Options) -> Result<(), String> {
    let within = |what: &str, value: u64, most: u64| match value {
        0 => Err(format!("{what} must be at least 1")),
        value if value > most => Err(format!("{what}: {value} is more than the most, {most}")),
        _ => Ok(()),
    };
    within("--flows", options.flows, MAX_FLOWS)?;
    within("--packets", options.packets, MAX_PACKETS)?;
    within("--rate", options.rate, MAX_RATE)?;
    within("--trains", u64::from(options.train), MAX_PACKETS)?;
    if options.packets < options.flows {
        return Err(format!(
            "{} flows need at least as many packets, and --packets is {}",
            options.flows, options.packets
        ));
    }
    if options.tail.is_some_and(|index| !(0.01..=100.0).contains(&index)) {
        return Err("--tail must be from 0.01 (heaviest) to 100 (lightest)".to_owned());
    }
    if options.replies_ppm > 1_000_000 {
        return Err("--replies must be from 0 to 1".to_owned());
    }
    Ok(())
}

fn trains_of(size: u32, train: u32) -> u32 {
    size.div_ceil(train.max(1))
}

/// The place of train number `number` of `all` trains in the run, as a fraction of 2^63. Trains are
/// evenly spaced; the first comes a random part of a space after the start.
fn place(number: u32, all: u32, phase: u32) -> u64 {
    let spaces = u128::from(number) << 32 | u128::from(phase);
    ((spaces << 31) / u128::from(all.max(1))) as u64
}

fn build(
    ends: Ends,
    segment: Segment,
    v6: bool,
    (seq, ack): (u32, u32),
    payload: &[u8],
    time_ns: u64,
) -> Option<Packet> {
    let shape = match (ends.tcp, v6) {
        (true, false) => Shape::Tcp4,
        (true, true) => Shape::Tcp6,
        (false, false) => Shape::Udp4,
        (false, true) => Shape::Udp6,
    };
    let (src, dst) = match segment.back {
        false => (ends.client, ends.server),
        true => (ends.server, ends.client),
    };
    let addresses = if v6 { [Field::Ip6Src, Field::Ip6Dst] } else { [Field::IpSrc, Field::IpDst] };
    let ack = if segment.acknowledges() { u128::from(ack) } else { 0 };
    let fields = [
        (Field::EthSrc, MACS[usize::from(segment.back)]),
        (Field::EthDst, MACS[usize::from(!segment.back)]),
        (addresses[0], src.0),
        (addresses[1], dst.0),
        (Field::IpDf, 1),
        (Field::L4Sport, u128::from(src.1)),
        (Field::L4Dport, u128::from(dst.1)),
        (Field::TcpFlags, u128::from(segment.flags)),
        (Field::TcpSeq, u128::from(seq)),
        (Field::TcpAck, ack),
        (Field::TcpWindow, WINDOW),
    ];
    let packet = build_fresh(Link::Ethernet, time_ns, shape, &fields, payload)?;
    let least = usize::from(super::size::LEAST);
    if packet.data().len() >= least {
        return Some(packet);
    }
    let mut data = packet.data().to_vec();
    data.resize(least, 0);
    Some(Packet::new(Link::Ethernet, time_ns, data))
}

impl Traffic for Flows {
    fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        let Some(flow) = self.next_flow() else { return Ok(None) };
        let time_ns = later(self.options.start_ns, self.clock.next_ns())?;
        let packet = self.packet(flow, time_ns);
        self.given += 1;
        Ok(packet)
    }

    fn flows(&self) -> Option<u64> {
        Some(self.begun)
    }

    fn progress(&self) -> Progress {
        Progress { done: self.given, total: self.options.packets }
    }
}
