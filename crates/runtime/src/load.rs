//! Loads: the unit in which packets go from the reader to the engine and on to the writer.

use crate::stray::Strays;
use braid_ir::engine::{Event, Outputs};
use braid_packet::{Burst, Packet, Pool};

/// A burst with the engine's outputs for it.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) burst: Burst,
    /// The number of packets that were read for this burst.
    pub(crate) read: u64,
    /// The packets that enter nowhere. They are not in the burst.
    pub(crate) strays: Strays,
    /// The bytes of the inputs that were read so far, and the bytes of all inputs.
    pub(crate) progress: (u64, u64),
    /// The packets that left by themselves, in order.
    beside: Vec<Beside>,
    /// The place of the packet from which the next outputs come.
    place: usize,
    pub(crate) events: Vec<Event>,
}

/// A packet that left by itself.
struct Beside {
    /// It leaves before the packet at this place of the burst, or instead of it.
    place: usize,
    interface: u16,
    packet: Packet,
}

impl Load {
    /// A load with memory for a whole burst.
    pub(crate) fn new() -> Self {
        Self { burst: Burst::new(), ..Self::default() }
    }

    /// Makes the load empty. Frames of `pool` return to it.
    pub(crate) fn reset(&mut self, pool: &mut Pool) {
        self.burst.recycle(pool);
        if let Some(stray) = self.strays.take_first() {
            pool.put(stray.into_frame());
        }
        self.beside.clear();
        self.events.clear();
        (self.read, self.place) = (0, 0);
    }

    /// Gives each packet that leaves, in order.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, mut give: impl FnMut(u16, &mut Packet)) {
        if self.beside.is_empty() {
            for (_, interface, packet) in self.burst.leaving() {
                give(interface, packet);
            }
            self.place = 0;
        } else {
            self.deliver_all(&mut give);
        }
    }

    /// As [`Self::deliver`], if packets have left by themselves. Apart from it, so that the
    /// frequent case is one short loop.
    #[cold]
    fn deliver_all(&mut self, give: &mut dyn FnMut(u16, &mut Packet)) {
        self.each_leaving(give);
        self.beside.clear();
        self.place = 0;
    }

    /// Visits each packet that leaves, in order.
    pub(crate) fn each_leaving(&mut self, mut visit: impl FnMut(u16, &mut Packet)) {
        let mut beside = self.beside.iter_mut().peekable();
        for (place, interface, packet) in self.burst.leaving() {
            while let Some(one) = beside.next_if(|one| one.place <= place) {
                visit(one.interface, &mut one.packet);
            }
            visit(interface, packet);
        }
        beside.for_each(|one| visit(one.interface, &mut one.packet));
    }

    /// Takes over the packets that left another load, behind all packets that left this one.
    pub(crate) fn take(&mut self, other: &mut Load) {
        let (beside, place) = (&mut self.beside, usize::MAX);
        other.deliver(|interface, packet| {
            let packet = std::mem::replace(packet, Packet::empty(packet.link));
            beside.push(Beside { place, interface, packet });
        });
        self.events.append(&mut other.events);
        other.burst.clear();
    }

    /// The burst, and the rest of the load as the outputs of an engine.
    pub(crate) fn parts(&mut self) -> (&mut Burst, Gathered<'_>) {
        let Self { burst, beside, place, events, .. } = self;
        (burst, Gathered { beside, place, events })
    }
}

/// Collects the packets and events that leave beside a burst.
pub(crate) struct Gathered<'a> {
    beside: &'a mut Vec<Beside>,
    place: &'a mut usize,
    events: &'a mut Vec<Event>,
}

impl Outputs for Gathered<'_> {
    fn at(&mut self, place: usize) {
        *self.place = place;
    }

    fn packet(&mut self, interface: u16, packet: Packet) {
        self.beside.push(Beside { place: *self.place, interface, packet });
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Link, Reached};

    fn packet(time_ns: u64) -> Packet {
        Packet::new(Link::Ethernet, time_ns, [0; 4])
    }

    #[test]
    fn packets_that_leave_by_themselves_come_before_the_packet_they_come_from() {
        let mut load = Load::new();
        (0..3).for_each(|at| load.burst.push(packet(at)));
        load.burst.reached = vec![Reached::Interface(0), Reached::Ended, Reached::Interface(2)];
        let (_, mut gathered) = load.parts();
        gathered.packet(9, packet(10));
        gathered.at(1);
        gathered.packet(9, packet(11));
        gathered.at(2);
        gathered.packet(9, packet(12));
        let mut all = Load::new();
        all.take(&mut load);
        let mut seen = Vec::new();
        all.deliver(|interface, packet| seen.push((interface, packet.time_ns)));
        assert_eq!(seen, [(9, 10), (0, 0), (9, 11), (9, 12), (2, 2)]);
        assert!(load.burst.packets().is_empty());
    }
}
