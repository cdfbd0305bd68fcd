//! Traffic that exercises functions: flows between addresses and ports that the chain's interfaces
//! and parameters name, flows between other addresses, their later packets, and replies to packets
//! that left the chain.

use braid_externs::Rng;
use braid_externs::patterns::Matcher;
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine, Event, Outputs};
use braid_ir::model::{Kind, ParamTy};
use braid_ir::value::{ParamValue, RuleAddrs};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};
use std::collections::VecDeque;

/// The number of flows, and of packets that left, that the source remembers.
const REMEMBERED: usize = 64;
/// The most values of each kind to take from parameters.
const MOST: usize = 256;
/// The time between packets (ns).
const STEP_NS: u64 = 3_000_000;

/// Runs a chain under generated traffic, and shows each packet before it enters.
pub fn drive(
    chain: &Chain,
    engine: &mut dyn Engine,
    packets: u32,
    mut show: impl FnMut(u16, &Packet),
) {
    let mut traffic = Traffic::new(chain);
    for _ in 0..packets {
        let (interface, packet) = traffic.next();
        show(interface, &packet);
        let mut left = Left::default();
        engine.packet(interface, packet, &mut left);
        left.0.into_iter().for_each(|(interface, packet)| traffic.left(interface, packet));
    }
}

/// The packets that left.
#[derive(Default)]
struct Left(Vec<(u16, Packet)>);

impl Outputs for Left {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push((interface, packet));
    }

    fn event(&mut self, _event: Event) {}
}

/// A source of packets for a chain.
struct Traffic {
    rng: Rng,
    now: u64,
    interfaces: u16,
    /// IPv4 addresses behind each interface.
    behind: Vec<Vec<u128>>,
    addresses: Vec<u128>,
    ports: Vec<u128>,
    texts: Vec<Vec<u8>>,
    flows: VecDeque<Flow>,
    left: VecDeque<(u16, Packet)>,
}

#[derive(Clone, Copy)]
struct Flow {
    interface: u16,
    shape: Shape,
    src: u128,
    dst: u128,
    sport: u128,
    dport: u128,
}

impl Traffic {
    fn new(chain: &Chain) -> Self {
        let behind = chain.interfaces.iter().map(|interface| {
            let all = interface.behind4.intervals();
            all.iter().flat_map(|&(lo, hi)| (0..4).map(move |n| hi.min(lo + n))).collect()
        });
        let mut traffic = Self {
            rng: Rng::new(chain.seed),
            now: 1_000_000_000,
            interfaces: u16::try_from(chain.interfaces.len()).unwrap_or(1).max(1),
            behind: behind.collect(),
            addresses: vec![0x0a00_0001, 0xc000_0201, 0xc633_6401, 0xcb00_7101],
            ports: vec![0, 22, 25, 53, 80, 443, 5000, 65_535],
            texts: vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), Vec::new()],
            flows: VecDeque::new(),
            left: VecDeque::new(),
        };
        for node in &chain.nodes {
            for (decl, value) in node.model.params.iter().zip(&node.params) {
                traffic.learn(&decl.ty, value);
            }
        }
        traffic.addresses.truncate(MOST);
        traffic.ports.truncate(MOST);
        traffic.texts.truncate(MOST);
        traffic
    }

    /// Takes over the values that a parameter contains.
    fn learn(&mut self, ty: &ParamTy, value: &ParamValue) {
        match (ty, value) {
            (ParamTy::Scalar(ty), ParamValue::Scalar(value)) => self.word(ty.kind, *value),
            (ParamTy::List(columns), ParamValue::List(rows)) => {
                for row in rows.iter().take(MOST) {
                    columns.iter().zip(row).for_each(|((_, ty), value)| self.word(ty.kind, *value));
                }
            }
            (ParamTy::Backends(columns), ParamValue::Backends(all)) => {
                for one in all.iter().take(MOST) {
                    let values = columns.iter().zip(&one.columns);
                    values.for_each(|((_, ty), value)| self.word(ty.kind, *value));
                }
            }
            (
                ParamTy::Set(ty) | ParamTy::Pool(ty, _),
                ParamValue::Set(set) | ParamValue::Pool(set),
            ) => {
                for (lo, hi) in set.intervals().iter().take(MOST) {
                    [*lo, *hi].into_iter().for_each(|value| self.word(ty.kind, value));
                }
            }
            (_, ParamValue::Rules(set)) => {
                for rule in set.rules.iter().take(MOST) {
                    self.ports.extend([rule.sport.0, rule.dport.0].map(u128::from));
                    if let Some(RuleAddrs::V4 { src, dst }) = rule.addrs {
                        self.addresses.extend([src.0, dst.0].map(u128::from));
                    }
                }
            }
            (_, ParamValue::Strings(set)) => {
                self.texts.extend(set.entries().into_iter().take(MOST))
            }
            (_, ParamValue::Patterns(set)) => {
                for pattern in set.patterns().iter().take(MOST) {
                    if let Matcher::Literal { bytes, .. } = &pattern.matcher {
                        self.texts.push(bytes.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn word(&mut self, kind: Kind, value: u128) {
        match kind {
            Kind::Ip4 => self.addresses.push(value),
            Kind::Port => self.ports.push(value),
            _ => {}
        }
    }

    /// Remembers a packet that has left the chain.
    fn left(&mut self, interface: u16, packet: Packet) {
        self.left.push_back((interface, packet));
        self.left.truncate(REMEMBERED);
    }

    /// The next packet, and the interface where it enters.
    fn next(&mut self) -> (u16, Packet) {
        self.now += STEP_NS;
        let draw = self.rng.below(10);
        if draw < 3
            && let Some(reply) =
                self.left.pop_front().and_then(|(at, packet)| self.reply(at, &packet))
        {
            return reply;
        }
        let known = self.flows.len();
        let at = usize::try_from(self.rng.below(known as u128)).unwrap_or(0);
        let flow = match self.flows.get(at).copied().filter(|_| draw < 8) {
            Some(flow) => flow,
            None => self.flow(),
        };
        let packet = self.packet(&flow);
        (flow.interface, packet)
    }

    fn pick(&mut self, of: &[u128]) -> u128 {
        let at = self.rng.below(of.len() as u128);
        usize::try_from(at).ok().and_then(|at| of.get(at)).copied().unwrap_or(1)
    }

    fn flow(&mut self) -> Flow {
        const SHAPES: [Shape; 8] = [
            Shape::Tcp4,
            Shape::Tcp4,
            Shape::Tcp4,
            Shape::Udp4,
            Shape::Udp4,
            Shape::Icmp,
            Shape::Tcp6,
            Shape::Udp6,
        ];
        let interface = u16::try_from(self.rng.below(self.interfaces.into())).unwrap_or(0);
        let own = self.behind.get(usize::from(interface)).cloned().unwrap_or_default();
        let (addresses, ports) = (self.addresses.clone(), self.ports.clone());
        let src = if own.is_empty() { self.pick(&addresses) } else { self.pick(&own) };
        let shape = SHAPES[usize::try_from(self.rng.below(8)).unwrap_or(0)];
        let flow = Flow {
            interface,
            shape,
            src,
            dst: self.pick(&addresses),
            sport: 1024 + self.rng.below(60_000),
            dport: self.pick(&ports),
        };
        self.flows.push_back(flow);
        if self.flows.len() > REMEMBERED {
            self.flows.pop_front();
        }
        flow
    }

    fn packet(&mut self, flow: &Flow) -> Packet {
        let ports = [(Field::L4Sport, flow.sport), (Field::L4Dport, flow.dport)];
        // SYN, SYN ACK, ACK, PSH ACK, FIN ACK, RST.
        let flags = self.pick(&[2, 18, 16, 24, 17, 4]);
        let mut fields = match flow.shape {
            Shape::Tcp4 | Shape::Udp4 | Shape::Icmp => {
                vec![(Field::IpSrc, flow.src), (Field::IpDst, flow.dst), (Field::IpTtl, 64)]
            }
            _ => vec![(Field::Ip6Src, flow.src), (Field::Ip6Dst, flow.dst), (Field::Ip6Ttl, 64)],
        };
        match flow.shape {
            Shape::Icmp => fields.extend([(Field::IcmpType, 8), (Field::IcmpId, flow.sport)]),
            Shape::Tcp4 | Shape::Tcp6 => {
                fields.extend(ports);
                fields.push((Field::TcpFlags, flags));
            }
            _ => fields.extend(ports),
        }
        let text = usize::try_from(self.rng.below(self.texts.len() as u128)).unwrap_or(0);
        let payload = self.texts.get(text).map_or(&[][..], Vec::as_slice);
        let built = build_fresh(Link::Ethernet, self.now, flow.shape, &fields, payload);
        built.unwrap_or_else(|| Packet::new(Link::Ethernet, self.now, Vec::new()))
    }

    /// The packet that answers a packet that left by an interface.
    fn reply(&mut self, interface: u16, packet: &Packet) -> Option<(u16, Packet)> {
        let mut reply = packet.clone();
        reply.time_ns = self.now;
        let layout = reply.parse();
        for a in [Field::EthSrc, Field::IpSrc, Field::Ip6Src, Field::L4Sport] {
            let Some(b) = a.opposite() else { continue };
            if let Some((one, other)) = reply.get(&layout, a).zip(reply.get(&layout, b)) {
                reply.set(&layout, a, other);
                reply.set(&layout, b, one);
            }
        }
        (!reply.data().is_empty()).then_some((interface, reply))
    }
}
