//! Shares: a burst is divided among workers, and each worker runs its share. The outputs of all
//! shares are put together in the order of a single engine.

use braid_ir::chain::Control;
use braid_ir::engine::{Engine, Event, Outputs};
use braid_packet::{Burst, Packet};
use std::sync::Arc;

/// The work of a worker on a part of the packets: its own packets of this part, in order.
#[derive(Default)]
pub(crate) struct Share {
    /// If the first packet of all is in this part but belongs to another worker: its time (ns).
    begins: Option<u64>,
    /// The changes before the first packet of the part.
    pub(crate) changes: Vec<Arc<Control>>,
    burst: Burst,
    /// The place of each packet in the whole burst.
    places: Vec<usize>,
    /// If the last packet of the part belongs to another worker: its time (ns).
    until: Option<u64>,
    outs: Vec<Out>,
    /// The changes that were refused, by their numbers, and the reasons.
    pub(crate) refused: Vec<(usize, Box<str>)>,
}

/// A packet or an event that left by itself.
struct Out {
    /// It left before the packet at this place of the share, or instead of it.
    place: usize,
    /// Whether it cannot come from that packet.
    is_due: bool,
    what: What,
}

/// A packet that left, with its interface, or an event.
pub(crate) enum What {
    Packet(u16, Packet),
    Event(Event),
}

impl What {
    /// The time at which it left.
    pub(crate) fn time_ns(&self) -> u64 {
        match self {
            What::Packet(_, packet) => packet.time_ns,
            What::Event(event) => event.time_ns,
        }
    }

    /// Gives it to `out`.
    pub(crate) fn give(self, out: &mut dyn Outputs) {
        match self {
            What::Packet(interface, packet) => out.packet(interface, packet),
            What::Event(event) => out.event(event),
        }
    }
}

impl Share {
    /// Makes the share empty.
    pub(crate) fn reset(&mut self) {
        self.burst.clear();
        self.places.clear();
        self.changes.clear();
        self.outs.clear();
        self.refused.clear();
        (self.begins, self.until) = (None, None);
    }

    /// Runs the worker's engine.
    pub(crate) fn run(&mut self, engine: &mut dyn Engine) {
        let mut out = Gathered { place: 0, is_due: true, outs: &mut self.outs };
        for (number, change) in self.changes.iter().enumerate() {
            if let Err(why) = engine.control(change, &mut out) {
                self.refused.push((number, why.into()));
            }
        }
        if let Some(time_ns) = self.begins {
            engine.begin(time_ns, &mut out);
        }
        out.is_due = false;
        engine.burst(&mut self.burst, &mut out);
        out.place = self.places.len();
        if let Some(time_ns) = self.until {
            engine.pass_time(time_ns, &mut out);
        }
    }
}

struct Gathered<'a> {
    place: usize,
    is_due: bool,
    outs: &'a mut Vec<Out>,
}

impl Gathered<'_> {
    fn push(&mut self, what: What) {
        self.outs.push(Out { place: self.place, is_due: self.is_due, what });
    }
}

impl Outputs for Gathered<'_> {
    fn at(&mut self, place: usize) {
        self.place = place;
    }

    fn packet(&mut self, interface: u16, packet: Packet) {
        self.push(What::Packet(interface, packet));
    }

    fn event(&mut self, event: Event) {
        self.push(What::Event(event));
    }
}

/// A burst whose packets are with the workers.
#[derive(Default)]
pub(crate) struct Divided {
    /// The worker and the time (ns) of each packet. The time does not go back.
    packets: Vec<(u16, u64)>,
}

impl Divided {
    /// Forgets everything about the burst before.
    pub(crate) fn reset(&mut self) {
        self.packets.clear();
    }

    /// Gives the next packet of the burst to a worker.
    #[expect(clippy::indexing_slicing, reason = "each worker has a share")]
    pub(crate) fn push(&mut self, shares: &mut [Share], worker: u16, packet: Packet) {
        let share = &mut shares[usize::from(worker)];
        share.places.push(self.packets.len());
        self.packets.push((worker, packet.time_ns));
        share.burst.push(packet);
    }

    /// Completes the shares of a part, which begins at a place of the burst. With `begins`, its
    /// first packet is the first of all.
    pub(crate) fn finish(&self, shares: &mut [Share], from: usize, begins: bool) {
        let ends = self.packets.get(from).zip(self.packets.last());
        let Some((&(first, begin), &(last, until))) = ends else { return };
        for (worker, share) in (0..).zip(shares) {
            share.begins = Some(begin).filter(|_| begins && worker != first);
            share.until = Some(until).filter(|_| worker != last);
        }
    }

    /// Puts the shares of a part together again. The packets return to the burst, and everything
    /// that left by itself goes to `out`, in the order of one engine. Work of several workers that
    /// is due at the same time comes in the order of the workers.
    pub(crate) fn unite(&self, shares: &mut [Share], burst: &mut Burst, out: &mut dyn Outputs) {
        let from = burst.packets().len();
        let mut all = Vec::new();
        for (worker, share) in shares.iter_mut().enumerate() {
            self.place(share, from, |place, is_due, what| {
                all.push(((place, !is_due, what.time_ns() * u64::from(is_due), worker), what));
            });
        }
        all.sort_by_key(|(order, _)| *order);
        for ((place, ..), what) in all {
            out.at(place);
            what.give(out);
        }
        let mut ended: Vec<_> =
            shares.iter_mut().map(|share| share.burst.drain_reached()).collect();
        let count = ended.iter().map(|packets| packets.len()).sum::<usize>();
        for (worker, _) in self.packets.iter().skip(from).take(count) {
            let next = ended.get_mut(usize::from(*worker)).and_then(Iterator::next);
            if let Some((packet, reached)) = next {
                burst.push(packet);
                burst.reached.push(reached);
            }
        }
    }

    /// Finds the place in the whole burst of everything that left a share, and whether it was due
    /// before the packet at this place. Due work runs before the first packet of its time, even if
    /// another worker has that packet.
    #[expect(
        clippy::indexing_slicing,
        reason = "places are of packets that the share or the burst has"
    )]
    fn place(&self, share: &mut Share, from: usize, mut give: impl FnMut(usize, bool, What)) {
        for Out { place, is_due, what } in share.outs.drain(..) {
            let before = place.checked_sub(1).map_or(from, |before| share.places[before] + 1);
            let time_ns = what.time_ns();
            let own = share.places.get(place).copied();
            match own.filter(|own| !is_due && self.packets[*own].1 <= time_ns) {
                Some(own) => give(own, false, what),
                None => {
                    let due = self.packets[from..].partition_point(|(_, time)| *time < time_ns);
                    give(before.max(from + due), true, what);
                }
            }
        }
    }
}
