//! Generates traffic aimed at a chain's boundaries: new flows, their next packets, replies to
//! packets that left the chain, ICMP errors about them, fragments, malformed packets, rare packets,
//! and jumps of time. Depending on the seed, the traffic comes in trains, or from one direction for
//! a long time, or consists mainly of short connections.

mod answer;
mod control;
pub mod conversations;
mod exchange;
mod flow;
mod mangle;
mod payload;
mod time;
mod train;
mod tunnel;
mod turnover;
mod values;

use super::program::limits;
use super::{Boundaries, Rng};
use crate::convert::packet_of;
use crate::harness;
use crate::packet::{Layer, Spec};
use crate::record::{Output, Stimulus, Trace, step};
use braid_ir::chain::{Chain, Source};
use braid_packet::{Header, Packet};
use exchange::Exchange;
use flow::Flow;
use std::collections::VecDeque;
use train::Train;
use turnover::Turnover;

/// The number of flows that are remembered.
const FLOWS: usize = 24;
/// The number of leaving packets that are remembered.
const LEFT: usize = 16;

/// The identifier of most tags, in chains that depend on tags.
const TAG: u16 = 9;

/// A source of stimuli for a chain.
pub struct Traffic<'a> {
    chain: &'a Chain,
    boundaries: Boundaries,
    rng: Rng,
    now: u64,
    flows: VecDeque<Flow>,
    /// The interfaces and packets that left last.
    left: VecDeque<(u16, Packet)>,
    /// The remaining pieces of a fragmented packet.
    pending: VecDeque<(u16, Spec)>,
    /// Whether there are few flows with many packets.
    few: bool,
    /// Whether packets sometimes repeat at once.
    trains: bool,
    /// The current train of repeated packets.
    train: Option<Train>,
    /// The few hosts that exchange packets, if the traffic mainly consists of that.
    exchange: Option<Exchange>,
    /// The connections that come and go, if the traffic mainly consists of them.
    turnover: Option<Turnover>,
    /// Whether packets enter from one direction for some time.
    stays: bool,
    /// Number of further packets from one direction, and the interface where they enter.
    stay: (usize, u16),
    /// One of this number of possible changes of configuration is made.
    changes: usize,
    /// Whether there are many changes of configuration, with packets in trains around them.
    restless: bool,
    /// Whether packets come in a tunnel, which ends in the chain.
    tunnels: bool,
}

/// Makes `count` stimuli for a chain. The reference engine runs at the same time, so there are
/// replies to the packets that it lets out.
#[must_use]
pub fn stimuli(chain: &Chain, seed: u64, count: usize) -> Vec<Stimulus> {
    recorded(chain, seed, count).0
}

/// The same stimuli, and the trace of the reference engine on them.
#[must_use]
pub fn recorded(chain: &Chain, seed: u64, count: usize) -> (Vec<Stimulus>, Trace) {
    let mut engine = harness::reference(chain);
    let mut traffic = Traffic::new(chain, seed);
    let (mut stimuli, mut trace) = (Vec::new(), Trace::default());
    for _ in 0..count {
        let stimulus = traffic.next();
        let outputs = step(engine.as_mut(), &stimulus);
        traffic.observe(&outputs);
        stimuli.push(stimulus);
        trace.outputs.push(outputs);
    }
    trace.counters.push(engine.counters());
    trace.state = engine.state();
    (stimuli, trace)
}

impl<'a> Traffic<'a> {
    /// Traffic for a chain.
    #[must_use]
    pub fn new(chain: &'a Chain, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let restless = rng.one_in(3);
        let exchanges = limits::is_drawn(seed);
        let turns_over = !exchanges && turnover::is_drawn(seed);
        Self {
            chain,
            boundaries: Boundaries::of(chain),
            few: restless || rng.one_in(3),
            trains: restless || rng.one_in(2),
            train: None,
            exchange: exchanges.then(|| Exchange::draw(&mut rng)),
            turnover: turns_over.then(|| Turnover::draw(&mut rng)),
            stays: rng.one_in(2),
            stay: (0, 0),
            changes: *rng.pick(&[1, 8]),
            restless,
            tunnels: tunnel::ends_in(chain),
            rng,
            // The start time is not a multiple of any tick.
            now: 1_000_000_123,
            flows: VecDeque::new(),
            left: VecDeque::new(),
            pending: VecDeque::new(),
        }
    }

    /// Records the chain's outputs.
    pub fn observe(&mut self, outputs: &[Output]) {
        if let Some(turnover) = &mut self.turnover {
            turnover.observe(outputs);
        }
        for output in outputs {
            if let Output::Packet(interface, packet) = output {
                self.left.push_back((*interface, packet.clone()));
            }
        }
        while self.left.len() > LEFT {
            self.left.pop_front();
        }
    }

    /// Makes the next stimulus.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> Stimulus {
        match self.next_bare() {
            Stimulus::Packet(0, packet) if self.tunnels && !self.rng.one_in(5) => {
                Stimulus::Packet(0, tunnel::around(&mut self.rng, packet))
            }
            stimulus => stimulus,
        }
    }

    /// Makes the next stimulus, with packets that are in no tunnel.
    fn next_bare(&mut self) -> Stimulus {
        if self.restless
            && self.rng.one_in(10)
            && let Some(stimulus) = self.change()
        {
            return stimulus;
        }
        if let Some(stimulus) = self.next_of_exchange() {
            return stimulus;
        }
        if let Some(stimulus) = self.next_of_turnover() {
            return stimulus;
        }
        if let Some(stimulus) = self.next_of_train() {
            return stimulus;
        }
        self.now = time::next(&mut self.rng, &self.boundaries, self.now);
        match self.rng.below(100) {
            0 => return Stimulus::Advance(self.now),
            1..=3 if self.rng.one_in(self.changes) => {
                if let Some(stimulus) = self.change() {
                    return stimulus;
                }
            }
            _ => {}
        }
        let (interface, spec) = self.packet_there();
        if self.trains && self.train.is_none() && self.rng.one_in(3) {
            let train = Train::draw(&mut self.rng, &self.boundaries, interface, &spec);
            self.train = Some(train);
        }
        let mut frame = spec.frame();
        if self.rng.one_in(25) {
            mangle::bytes(&mut self.rng, &mut frame);
        }
        if self.rng.one_in(40) {
            mangle::snap(&mut self.rng, &mut frame);
        }
        let time_ns = if self.rng.one_in(30) {
            self.now.saturating_sub(self.rng.range(1, 3_000_000_000))
        } else {
            self.now
        };
        Stimulus::Packet(interface, packet_of(&frame, time_ns))
    }

    /// The next packet of the exchange. `None` if there is no exchange, or if another stimulus
    /// comes first.
    fn next_of_exchange(&mut self) -> Option<Stimulus> {
        if self.rng.one_in(25) {
            return None;
        }
        let exchange = self.exchange.as_mut()?;
        self.now = match self.rng.below(50) {
            0 => time::next(&mut self.rng, &self.boundaries, self.now),
            _ => self.now.saturating_add(self.rng.range(0, 300_000)),
        };
        let (interface, spec) = exchange.packet(&mut self.rng);
        Some(Stimulus::Packet(interface, packet_of(&spec.frame(), self.now)))
    }

    /// The next packet of a connection that comes and goes. `None` if there are none, or if another
    /// stimulus comes first.
    fn next_of_turnover(&mut self) -> Option<Stimulus> {
        if self.turnover.is_none() || self.rng.one_in(8) {
            return None;
        }
        let interface = self.interface();
        let turnover = self.turnover.as_mut()?;
        self.now = match self.rng.below(40) {
            0 => time::next(&mut self.rng, &self.boundaries, self.now),
            _ => self.now.saturating_add(self.rng.range(0, 300_000)),
        };
        let (interface, mut spec) =
            turnover.packet(&mut self.rng, &self.boundaries, (&self.chain.interfaces, interface));
        if self.rng.one_in(16) {
            spec = self.dress(spec);
        }
        Some(Stimulus::Packet(interface, packet_of(&spec.frame(), self.now)))
    }

    /// The next packet of the train. `None` if there is no train, or if another stimulus comes
    /// first.
    fn next_of_train(&mut self) -> Option<Stimulus> {
        if self.rng.one_in(5) {
            return None;
        }
        let mut train = self.train.take()?;
        let (gap, interface, spec) = train.packet(&mut self.rng, &self.boundaries);
        self.now = self.now.saturating_add(gap);
        self.train = (!train.is_over()).then_some(train);
        Some(Stimulus::Packet(interface, packet_of(&spec.frame(), self.now)))
    }

    /// Makes a change of configuration.
    fn change(&mut self) -> Option<Stimulus> {
        let Self { rng, chain, boundaries, now, restless, .. } = self;
        control::change(rng, chain, boundaries, *now, *restless).map(Stimulus::Control)
    }

    /// A packet that enters at the interface of the current period. After some attempts any packet
    /// is taken.
    fn packet_there(&mut self) -> (u16, Spec) {
        let (mut more, mut there) = self.stay;
        if more == 0 {
            (more, there) = (4 + self.rng.below(60), self.interface());
        }
        self.stay = (more - 1, there);
        let mut made = self.packet();
        for _ in 0..6 {
            if !self.stays || made.0 == there {
                break;
            }
            made = self.packet();
        }
        made
    }

    fn packet(&mut self) -> (u16, Spec) {
        if let Some(next) = self.pending.pop_front() {
            return next;
        }
        let choice = if self.few { 32 + self.rng.below(68) } else { self.rng.below(100) };
        let made = match choice {
            0..35 => None,
            35..60 => self.next_of_flow(),
            60..78 => answer::reply(&mut self.rng, &self.left),
            78..84 => answer::error(&mut self.rng, &self.left, &self.boundaries),
            84..87 => Some((self.interface(), mangle::odd(&mut self.rng, &self.boundaries))),
            _ => self.flow_again(),
        };
        let (mut interface, spec) = made.unwrap_or_else(|| self.new_flow());
        if !self.is_linked(interface) {
            interface = self.interface();
        }
        let spec = self.dress(spec);
        if self.rng.one_in(16) { self.fragmented(interface, &spec) } else { (interface, spec) }
    }

    /// An interface. Mostly one where packets can enter.
    fn interface(&mut self) -> u16 {
        let count = self.chain.interfaces.len();
        let any = u16::try_from(self.rng.below(count)).unwrap_or(0);
        if self.is_linked(any) || self.rng.one_in(20) {
            return any;
        }
        let all = 0..u16::try_from(count).unwrap_or(u16::MAX);
        all.into_iter().find(|&at| self.is_linked(at)).unwrap_or(any)
    }

    /// Whether the interface has a link for entering packets.
    fn is_linked(&self, interface: u16) -> bool {
        self.chain.links.iter().any(|(from, _)| *from == Source::Interface(interface))
    }

    fn new_flow(&mut self) -> (u16, Spec) {
        let interface = self.interface();
        let mut flow =
            Flow::new(&mut self.rng, &self.boundaries, &self.chain.interfaces, interface);
        let spec = flow.packet(&mut self.rng, &self.boundaries, true);
        self.flows.push_back(flow);
        if self.flows.len() > FLOWS {
            self.flows.pop_front();
        }
        (interface, spec)
    }

    fn next_of_flow(&mut self) -> Option<(u16, Spec)> {
        // Mostly one of the last few flows, so that some conversations reach their end.
        let last = self.flows.len().saturating_sub(1);
        let recent = last.saturating_sub(self.rng.below(3));
        let at = if self.rng.one_in(3) { self.rng.below(self.flows.len()) } else { recent };
        let interfaces = self.chain.interfaces.len();
        let flow = self.flows.get_mut(at)?;
        let forward = flow.next_is_forward(&mut self.rng);
        let spec = flow.packet(&mut self.rng, &self.boundaries, forward);
        let own = flow.interface;
        let other = (usize::from(own) + 1) % interfaces.max(1);
        let back = u16::try_from(other).unwrap_or(0);
        Some((if forward { own } else { back }, spec))
    }

    /// Another packet from a flow's first end. One value of its headers is changed to a value
    /// beside a boundary.
    fn flow_again(&mut self) -> Option<(u16, Spec)> {
        let at = self.rng.below(self.flows.len());
        let flow = self.flows.get_mut(at)?;
        let interface = flow.interface;
        let mut spec = flow.packet(&mut self.rng, &self.boundaries, true);
        mangle::field(&mut self.rng, &self.boundaries, &mut spec);
        Some((interface, spec))
    }

    /// Sometimes adds a VLAN tag or IPv6 extension headers to a packet, or sets a header field to a
    /// value at a boundary.
    fn dress(&mut self, mut spec: Spec) -> Spec {
        let wanted = self.boundaries.headers.contains(&Header::Vlan);
        if self.rng.one_in(if wanted { 2 } else { 20 }) {
            let id = values::of_field(&mut self.rng, &self.boundaries, braid_packet::Field::VlanId);
            // Mostly the same identifier, so that packets of a flow are alike.
            let id = if wanted && !self.rng.one_in(4) { TAG.into() } else { id & 0xfff };
            spec = spec.vlan(u16::try_from(id).unwrap_or(TAG));
            if self.rng.one_in(4) {
                let id = if wanted { TAG } else { self.rng.short() & 0xfff };
                spec = spec.vlan(id);
            }
        }
        if self.rng.one_in(8) {
            mangle::extensions(&mut self.rng, &mut spec);
        }
        if self.rng.one_in(5) {
            mangle::field(&mut self.rng, &self.boundaries, &mut spec);
        }
        if self.rng.one_in(12) {
            spec.trailer = vec![0; self.rng.below(20)];
        }
        if self.rng.one_in(30) && matches!(spec.layers.first(), Some(Layer::Eth(_))) {
            spec.layers[0] = Layer::RawIp;
            spec.layers.retain(|layer| !matches!(layer, Layer::Vlan(_)));
        }
        spec
    }

    /// Cuts a packet into two or three pieces. The other pieces follow, sometimes in another order,
    /// and sometimes not all of them.
    fn fragmented(&mut self, interface: u16, spec: &Spec) -> (u16, Spec) {
        let v4 = spec.layers.iter().any(|layer| matches!(layer, Layer::Ip(ip) if !ip.v6));
        if !v4 {
            return (interface, spec.clone());
        }
        let size = if self.rng.one_in(3) { 8 } else { 24 };
        let mut pieces = spec.fragments(size);
        pieces.truncate(4);
        if self.rng.one_in(4) {
            pieces.reverse();
        }
        if self.rng.one_in(4) && pieces.len() > 1 {
            pieces.remove(self.rng.below(pieces.len()));
        }
        self.pending.extend(pieces.into_iter().map(|piece| (interface, piece)));
        self.pending.pop_front().unwrap_or((interface, spec.clone()))
    }
}
