//! The life of a connection: what its ends send, in order, from the first SYN to the segments that
//! arrive after the end.

use crate::generate::traffic::flow::Ends;
use crate::generate::traffic::{payload, values};
use crate::generate::{Boundaries, Rng};
use crate::packet::{Eth, Ip, Layer, Spec, Tcp, TcpOption};
use std::collections::VecDeque;

const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// The sides of a connection: the one that opens it, and the other one.
const OPENER: usize = 0;
const OTHER: usize = 1;

/// What a side sends.
#[derive(Clone, Copy)]
enum Sending {
    /// A segment with these flags. Data goes with PSH.
    New(u8),
    /// The side's last segment with a FIN, if it sent one, or its last segment.
    FinAgain,
    /// Any segment that the side has sent.
    Late,
}

/// A connection.
pub(super) struct Connection {
    /// The interfaces where packets of both sides enter.
    places: [u16; 2],
    /// The ends of the packets that each side sends. A chain that translates addresses shows other
    /// ones to the other side.
    ends: [Ends; 2],
    /// The next sequence numbers of both sides.
    seq: [u32; 2],
    /// Whether segments have timestamps.
    is_timed: bool,
    acts: VecDeque<(usize, Sending)>,
    /// The segments that each side has sent, and the position of the last FIN among them.
    sent: [Vec<Spec>; 2],
    fins: [Option<usize>; 2],
}

impl Connection {
    /// A connection that opens between these ends.
    pub(super) fn open(rng: &mut Rng, places: [u16; 2], ends: Ends) -> Self {
        Self {
            places,
            ends: [ends, ends.turned()],
            seq: [rng.word(), rng.word()],
            is_timed: rng.one_in(3),
            acts: life(rng).into(),
            sent: Default::default(),
            fins: [None; 2],
        }
    }

    /// The next connection of the same opener. Mostly it has the same 5-tuple.
    pub(super) fn again(self, rng: &mut Rng, boundaries: &Boundaries) -> Self {
        let mut ends = self.ends[OPENER];
        match rng.below(5) {
            0 => ends.sport = ends.sport.wrapping_add(1),
            1 => ends.dport = values::port(rng, boundaries),
            _ => {}
        }
        // Until a packet of the new connection has left, the other side knows the old addresses.
        let other = self.ends[OTHER];
        let new = Self::open(rng, self.places, ends);
        Self { ends: [ends, other], ..new }
    }

    /// The interface where the opener's packets enter.
    pub(super) fn place(&self) -> u16 {
        self.places[OPENER]
    }

    /// Whether the connection has nothing more to send.
    pub(super) fn is_over(&self) -> bool {
        self.acts.is_empty()
    }

    /// A packet of the opener has left at an interface with these ends.
    pub(super) fn left(&mut self, interface: u16, ends: Ends) {
        (self.places[OTHER], self.ends[OTHER]) = (interface, ends.turned());
    }

    /// The next packet, and the interface where it enters. A few packets are lost before they
    /// enter, and a few enter twice.
    pub(super) fn packet(&mut self, rng: &mut Rng, boundaries: &Boundaries) -> (u16, Spec) {
        if self.acts.len() > 1 && rng.one_in(16) {
            self.acts.pop_front();
        }
        let twice = rng.one_in(16);
        let next = if twice { self.acts.front().copied() } else { self.acts.pop_front() };
        let (side, act) = next.unwrap_or((OPENER, Sending::New(ACK)));
        let all = &self.sent[side];
        let old = match act {
            Sending::New(_) => None,
            Sending::FinAgain => self.fins[side].and_then(|at| all.get(at)).or(all.last()),
            Sending::Late => all.get(rng.below(all.len())),
        };
        let spec = match (old, act) {
            (Some(old), _) => old.clone(),
            (None, Sending::New(flags)) => self.segment(rng, boundaries, side, flags),
            (None, _) => self.segment(rng, boundaries, side, ACK),
        };
        (self.places[side], spec)
    }

    /// A new segment of a side.
    fn segment(&mut self, rng: &mut Rng, boundaries: &Boundaries, side: usize, flags: u8) -> Spec {
        let ends = self.ends[side];
        let body = match flags & PSH {
            0 => Vec::new(),
            _ => payload::random(rng, boundaries),
        };
        let mut tcp = Tcp::new(ends.sport, ends.dport);
        (tcp.flags, tcp.seq) = (flags, self.seq[side]);
        tcp.ack = if flags & ACK == 0 { 0 } else { self.seq[1 - side] };
        if flags & SYN != 0 {
            tcp.options =
                vec![TcpOption::Mss(1460), TcpOption::SackOk, TcpOption::Nop, TcpOption::Wscale(7)];
        }
        if self.is_timed && flags & RST == 0 {
            tcp.options.extend([TcpOption::Nop, TcpOption::Nop]);
            tcp.options.push(TcpOption::Ts(rng.word(), rng.word()));
        }
        let taken = u32::try_from(body.len()).unwrap_or(0) + u32::from(flags & (SYN | FIN) != 0);
        self.seq[side] = self.seq[side].wrapping_add(taken);
        let spec = spec(ends, tcp, body);
        if flags & FIN != 0 {
            self.fins[side] = Some(self.sent[side].len());
        }
        self.sent[side].push(spec.clone());
        spec
    }
}

/// All that both sides send.
fn life(rng: &mut Rng) -> Vec<(usize, Sending)> {
    let mut all = vec![
        (OPENER, Sending::New(SYN)),
        (OTHER, Sending::New(SYN | ACK)),
        (OPENER, Sending::New(ACK)),
    ];
    let most = *rng.pick(&[2, 6, 14]);
    talk(rng, &mut all, most);
    let (first, second) = if rng.one_in(3) { (OTHER, OPENER) } else { (OPENER, OTHER) };
    match rng.below(8) {
        // Both sides close at the same time.
        0 => {
            all.extend([first, second].map(|side| (side, Sending::New(FIN | ACK))));
            all.extend([first, second].map(|side| (side, Sending::New(ACK))));
        }
        1 => all.push((first, Sending::New(RST))),
        2 => all.push((first, Sending::New(RST | ACK))),
        // A side has closed when the other one resets.
        3 => all.extend([(first, Sending::New(FIN | ACK)), (second, Sending::New(RST))]),
        4 if rng.one_in(2) => {}
        // One side closes after the other.
        _ => {
            all.extend([(first, Sending::New(FIN | ACK)), (second, Sending::New(ACK))]);
            if rng.one_in(2) {
                for _ in 0..1 + rng.below(6) {
                    all.extend([(second, Sending::New(PSH | ACK)), (first, Sending::New(ACK))]);
                }
            }
            all.extend([(second, Sending::New(FIN | ACK)), (first, Sending::New(ACK))]);
        }
    }
    for _ in 0..rng.below(5) {
        let side = rng.below(2);
        all.push(match rng.below(6) {
            0..3 => (side, Sending::FinAgain),
            3 | 4 => (side, Sending::Late),
            _ => (side, Sending::New(RST)),
        });
    }
    all
}

/// Data and acknowledgements, up to `most` segments.
fn talk(rng: &mut Rng, all: &mut Vec<(usize, Sending)>, most: usize) {
    let mut side = OPENER;
    for _ in 0..rng.below(most + 1) {
        if rng.one_in(3) {
            side = 1 - side;
        }
        let flags = if rng.one_in(3) { ACK } else { PSH | ACK };
        all.push((side, if rng.one_in(12) { Sending::Late } else { Sending::New(flags) }));
    }
}

/// A TCP packet.
pub(super) fn spec(ends: Ends, tcp: Tcp, body: Vec<u8>) -> Spec {
    let ip = Ip::new(ends.v6, ends.src, ends.dst);
    let layers =
        vec![Layer::Eth(Eth::default()), Layer::Ip(ip), Layer::Tcp(tcp), Layer::Payload(body)];
    Spec { layers, ..Spec::default() }
}
