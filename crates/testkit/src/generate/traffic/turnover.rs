//! Generates connections that come and go. TCP connections between few hosts open, exchange a few
//! packets, and end: by FINs of both sides, with data behind one side's FIN (half-close), by an
//! RST, or in silence. Ends resend FINs, and old segments arrive late. Most 5-tuples open again. In
//! between, floods of SYNs come from hosts that never answer.

mod life;

use super::flow::{Ends, Flow};
use super::values;
use crate::convert::frame_of;
use crate::generate::{Boundaries, Rng};
use crate::packet::{Layer, Spec, Tcp, describe};
use crate::record::Output;
use braid_ir::chain::Interface;
use life::{Connection, SYN, spec};

/// Whether traffic of this seed mainly consists of such connections.
pub(super) fn is_drawn(seed: u64) -> bool {
    Rng::new(seed ^ 0x7475_726e_6f76_6572).one_in(4)
}

/// The connections, and the current flood.
pub(super) struct Turnover {
    open: Vec<Connection>,
    /// The position of the connection to which the last packet belongs, if its sender opened it.
    last: Option<usize>,
    /// Whether there are floods.
    floods: bool,
    flood: Option<Flood>,
}

/// SYNs to one address and port.
struct Flood {
    more: usize,
    interface: u16,
    to: Ends,
    /// Whether one host sends all SYNs, from different ports.
    is_one: bool,
}

impl Turnover {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self { open: Vec::new(), last: None, floods: rng.one_in(3), flood: None }
    }

    /// The next packet, and the interface where it enters. A new connection enters at `interface`.
    pub(super) fn packet(
        &mut self,
        rng: &mut Rng,
        boundaries: &Boundaries,
        (interfaces, interface): (&[Interface], u16),
    ) -> (u16, Spec) {
        self.last = None;
        if self.floods && self.flood.is_none() && rng.one_in(40) {
            let ends = Flow::new(rng, boundaries, interfaces, interface).ends();
            let more = 6 + rng.below(20);
            self.flood = Some(Flood { more, interface, to: ends, is_one: rng.one_in(3) });
        }
        if let Some(flood) = self.flood.as_mut().filter(|_| !rng.one_in(6)) {
            let next = (flood.interface, flood.syn(rng, boundaries));
            self.flood = self.flood.take().filter(|flood| flood.more > 0);
            return next;
        }
        if self.open.is_empty() || self.open.len() < 4 && rng.one_in(20) {
            let flow = Flow::new(rng, boundaries, interfaces, interface);
            let other = (usize::from(interface) + 1) % interfaces.len().max(1);
            let places = [interface, u16::try_from(other).unwrap_or(0)];
            self.open.push(Connection::open(rng, places, flow.ends()));
        }
        let at = rng.below(self.open.len());
        let connection = &mut self.open[at];
        let (place, spec) = connection.packet(rng, boundaries);
        self.last = (place == connection.place()).then_some(at);
        if connection.is_over() {
            let old = self.open.remove(at);
            self.last = None;
            if !rng.one_in(4) {
                self.open.push(old.again(rng, boundaries));
            }
        }
        (place, spec)
    }

    /// Records what left the chain for the last packet: answers go to the addresses that it had.
    pub(super) fn observe(&mut self, outputs: &[Output]) {
        let Some(connection) = self.last.and_then(|at| self.open.get_mut(at)) else { return };
        for output in outputs {
            if let Output::Packet(interface, packet) = output
                && let Some(ends) = ends_of(&describe(&frame_of(packet)))
            {
                connection.left(*interface, ends);
            }
        }
    }
}

impl Flood {
    /// The next SYN.
    fn syn(&mut self, rng: &mut Rng, boundaries: &Boundaries) -> Spec {
        self.more = self.more.saturating_sub(1);
        let mut ends = self.to;
        ends.sport = rng.short();
        if !self.is_one {
            ends.src = match rng.one_in(2) {
                true => values::address(rng, boundaries, None, ends.v6),
                false => ends.src ^ u128::from(rng.byte()),
            };
        }
        let tcp = Tcp { seq: rng.word(), flags: SYN, ..Tcp::new(ends.sport, ends.dport) };
        spec(ends, tcp, Vec::new())
    }
}

/// The ends of a TCP packet.
fn ends_of(spec: &Spec) -> Option<Ends> {
    let mut layers = spec.layers.iter();
    let ip = layers.find_map(|layer| match layer {
        Layer::Ip(ip) => Some(ip),
        _ => None,
    })?;
    match layers.next()? {
        Layer::Tcp(Tcp { sport, dport, .. }) => {
            Some(Ends { v6: ip.v6, src: ip.src, dst: ip.dst, sport: *sport, dport: *dport })
        }
        _ => None,
    }
}
