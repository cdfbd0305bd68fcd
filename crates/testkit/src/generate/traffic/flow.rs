//! Flows: two ends and the progress of their conversation.

use super::{payload, values};
use crate::generate::{Boundaries, Rng};
use crate::packet::{Eth, Icmp, Ip, Layer, Spec, Tcp, TcpOption, Udp};
use braid_ir::chain::Interface;
use braid_ir::value::{Rule, RuleAddrs};

/// A regular TCP conversation: who sends (true: the opener), and with which flags.
const TALK: &[(bool, u8)] = &[
    (true, 0x02),
    (false, 0x12),
    (true, 0x10),
    (true, 0x18),
    (false, 0x18),
    (false, 0x10),
    (true, 0x11),
    (false, 0x11),
    (true, 0x10),
];

/// The addresses and ports of a packet.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) v6: bool,
    pub(super) src: u128,
    pub(super) dst: u128,
    pub(super) sport: u16,
    pub(super) dport: u16,
}

impl Ends {
    /// The ends of an answer.
    pub(super) fn turned(self) -> Self {
        let Self { v6, src, dst, sport, dport } = self;
        Self { v6, src: dst, dst: src, sport: dport, dport: sport }
    }
}

/// A flow.
pub(super) struct Flow {
    /// The interface where the first end's packets enter.
    pub(super) interface: u16,
    v6: bool,
    proto: u8,
    src: u128,
    dst: u128,
    sport: u16,
    dport: u16,
    /// The position in `TALK`.
    phase: usize,
    /// The next sequence numbers of both ends.
    seq: [u32; 2],
}

impl Flow {
    /// A flow that enters at this interface.
    pub(super) fn new(
        rng: &mut Rng,
        boundaries: &Boundaries,
        interfaces: &[Interface],
        interface: u16,
    ) -> Self {
        let v6 = rng.one_in(4);
        let proto = match rng.below(20) {
            0..10 => 6,
            10..16 => 17,
            16..19 => {
                if v6 {
                    58
                } else {
                    1
                }
            }
            _ => rng.byte(),
        };
        let other = interfaces.get((usize::from(interface) + 1) % interfaces.len().max(1));
        let own = interfaces.get(usize::from(interface));
        let mut flow = Self {
            interface,
            v6,
            proto,
            src: values::address(rng, boundaries, own, v6),
            dst: values::address(rng, boundaries, other, v6),
            sport: values::port(rng, boundaries),
            dport: values::port(rng, boundaries),
            phase: 0,
            seq: [rng.word(), rng.word()],
        };
        if !boundaries.rules.is_empty() && rng.one_in(2) {
            let rule = rng.pick(&boundaries.rules).clone();
            flow.aim(rng, &rule);
        }
        flow
    }

    /// The ends of packets from the first end.
    pub(super) fn ends(&self) -> Ends {
        let Self { v6, src, dst, sport, dport, .. } = *self;
        Ends { v6, src, dst, sport, dport }
    }

    /// Takes values that a rule matches. Most of them are at the rule's edges, and some are just
    /// outside.
    fn aim(&mut self, rng: &mut Rng, rule: &Rule) {
        match rule.addrs {
            Some(RuleAddrs::V4 { src, dst }) => {
                self.v6 = false;
                self.src = edge(rng, (src.0.into(), src.1.into()), u32::MAX.into());
                self.dst = edge(rng, (dst.0.into(), dst.1.into()), u32::MAX.into());
            }
            Some(RuleAddrs::V6 { src, dst }) => {
                self.v6 = true;
                self.src = edge(rng, src, u128::MAX);
                self.dst = edge(rng, dst, u128::MAX);
            }
            None => {}
        }
        self.sport = edge_port(rng, rule.sport);
        self.dport = edge_port(rng, rule.dport);
        let (value, mask) = rule.proto;
        if mask != 0 {
            self.proto = value & mask | rng.byte() & !mask;
        }
        if rule.tcp_flags.1 != 0 && rng.one_in(2) {
            self.proto = 6;
        }
    }

    /// Whether the first end regularly sends next. Sometimes the answer is wrong on purpose.
    pub(super) fn next_is_forward(&self, rng: &mut Rng) -> bool {
        let proper =
            if self.proto == 6 { TALK[self.phase.min(TALK.len() - 1)].0 } else { rng.one_in(2) };
        proper != rng.one_in(8)
    }

    /// The next packet in this direction.
    pub(super) fn packet(&mut self, rng: &mut Rng, boundaries: &Boundaries, forward: bool) -> Spec {
        let (src, dst) = if forward { (self.src, self.dst) } else { (self.dst, self.src) };
        let mut ip = Ip::new(self.v6, src, dst);
        ip.id = rng.word() & 0xffff;
        ip.df = rng.one_in(2);
        if rng.one_in(12) {
            ip.ttl = *rng.pick(&[0, 1, 2, 255]);
        }
        let mut layers = vec![Layer::Eth(Eth::default())];
        let (sport, dport) =
            if forward { (self.sport, self.dport) } else { (self.dport, self.sport) };
        let body = payload::random(rng, boundaries);
        match self.proto {
            6 => {
                let tcp = self.tcp(rng, forward, sport, dport, body.len());
                layers.extend([Layer::Ip(ip), Layer::Tcp(tcp)]);
            }
            17 => {
                let sum = if rng.one_in(8) { Some(0) } else { None };
                layers.extend([Layer::Ip(ip), Layer::Udp(Udp { sport, dport, len: None, sum })]);
            }
            1 | 58 if (self.proto == 58) == self.v6 => {
                let icmp = self.echo(rng, forward);
                layers.extend([Layer::Ip(ip), Layer::Icmp(icmp)]);
            }
            proto => {
                ip.proto = Some(proto);
                layers.push(Layer::Ip(ip));
            }
        }
        layers.push(Layer::Payload(body));
        let mut spec = Spec { layers, ..Spec::default() };
        if rng.one_in(25) {
            wrong_checksum(rng, &mut spec);
        }
        spec
    }

    fn tcp(&mut self, rng: &mut Rng, forward: bool, sport: u16, dport: u16, len: usize) -> Tcp {
        let mut tcp = Tcp::new(sport, dport);
        let (proper, flags) = TALK[self.phase.min(TALK.len() - 1)];
        tcp.flags = match rng.below(16) {
            0 => rng.byte(),
            1 => *rng.pick(&[0x02, 0x12, 0x04, 0x14, 0x01, 0x11, 0x10, 0x00, 0x3f, 0xc2]),
            _ => flags,
        };
        if proper == forward && self.phase < TALK.len() {
            self.phase += 1;
        } else if self.phase >= TALK.len() && rng.one_in(3) {
            self.phase = 0;
        }
        let own = usize::from(!forward);
        tcp.seq = self.seq[own];
        tcp.ack = if tcp.flags & 0x10 == 0 { 0 } else { self.seq[1 - own] };
        let taken = u32::try_from(len).unwrap_or(0) + u32::from(tcp.flags & 0x03 != 0);
        self.seq[own] = self.seq[own].wrapping_add(taken);
        tcp.window = rng.short();
        if tcp.flags & 0x02 != 0 {
            tcp.options =
                vec![TcpOption::Mss(rng.short()), TcpOption::SackOk, TcpOption::Wscale(7)];
        }
        if rng.one_in(6) {
            tcp.options.push(TcpOption::Ts(rng.word(), rng.word()));
        }
        tcp
    }

    fn echo(&self, rng: &mut Rng, forward: bool) -> Icmp {
        let kinds: [u8; 2] = if self.v6 { [128, 129] } else { [8, 0] };
        let kind = if rng.one_in(12) { rng.byte() } else { kinds[usize::from(!forward)] };
        let rest = u32::from(self.sport) << 16 | u32::from(rng.byte());
        Icmp { v6: self.v6, kind, code: 0, rest, cut: None, sum: None }
    }
}

/// A value of an interval. It is mostly one of the ends, and rarely just outside.
fn edge(rng: &mut Rng, (low, high): (u128, u128), max: u128) -> u128 {
    match rng.below(12) {
        0 => low.saturating_sub(1),
        1 => high.saturating_add(1).min(max),
        2..7 => low,
        7..10 => high,
        _ => low + (high - low) / 2,
    }
}

fn edge_port(rng: &mut Rng, (low, high): (u16, u16)) -> u16 {
    let value = edge(rng, (low.into(), high.into()), u16::MAX.into());
    u16::try_from(value).unwrap_or(0)
}

/// Makes a checksum wrong.
fn wrong_checksum(rng: &mut Rng, spec: &mut Spec) {
    let wrong = Some(rng.short());
    for layer in &mut spec.layers {
        match layer {
            Layer::Ip(ip) if rng.one_in(3) => ip.sum = wrong,
            Layer::Tcp(tcp) => tcp.sum = wrong,
            Layer::Udp(udp) => udp.sum = wrong,
            Layer::Icmp(icmp) => icmp.sum = wrong,
            _ => {}
        }
    }
}
