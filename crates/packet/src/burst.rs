//! Bursts: packets that arrived together, the unit in which packets move.

use crate::frame::Pool;
use crate::layout::Layout;
use crate::packet::Packet;

/// The largest number of packets in a burst.
pub const BURST: usize = 64;

/// The end of a packet's walk through a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// It leaves by this interface.
    Interface(u16),
    /// It was dropped, consumed or lost, waits in a queue, or has left by itself.
    Ended,
}

/// Up to [`BURST`] packets, each with the interface where it enters, in the order of their arrival.
///
/// An engine leaves packets in their places and says where each one leaves. The bytes of a packet
/// that does not leave have no meaning afterwards.
#[derive(Debug, Default)]
pub struct Burst {
    packets: Vec<Packet>,
    /// The packets' headers. Valid for the packets in front of `parsed`.
    layouts: Vec<Layout>,
    parsed: usize,
    /// Where the packets leave. Empty until an engine has processed the burst.
    pub reached: Vec<Reached>,
}

impl Burst {
    /// A burst without packets, with memory for [`BURST`] of them.
    #[must_use]
    pub fn new() -> Self {
        Self {
            packets: Vec::with_capacity(BURST),
            layouts: vec![Layout::default(); BURST],
            parsed: 0,
            reached: Vec::with_capacity(BURST),
        }
    }

    /// A burst of one packet that enters at an interface.
    #[must_use]
    pub fn of(ingress: u16, mut packet: Packet) -> Self {
        packet.ingress = ingress;
        Self {
            packets: vec![packet],
            layouts: vec![Layout::default()],
            parsed: 0,
            reached: Vec::with_capacity(1),
        }
    }

    /// Whether no further packet fits.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.len() >= BURST
    }

    /// Adds a packet, whose `ingress` says where it enters. The burst must not be full.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        debug_assert!(!self.is_full(), "a burst has a limit");
        self.packets.push(packet);
    }

    /// The packets.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// The packets, to be changed.
    #[inline]
    pub fn packets_mut(&mut self) -> &mut [Packet] {
        self.parsed = 0;
        &mut self.packets
    }

    /// Finds the headers of all packets that were added since the last call.
    #[inline]
    pub fn parse(&mut self) {
        if self.layouts.len() < self.packets.len() {
            self.layouts.resize(self.packets.len(), Layout::default());
        }
        let new = self.packets.iter().zip(&mut self.layouts).skip(self.parsed);
        for (packet, layout) in new {
            packet.parse_to(layout);
        }
        self.parsed = self.packets.len();
    }

    /// The packets, their headers and, to be filled, where they leave. Finds the headers that are
    /// not yet known, and forgets all of them for later calls: the caller may change the packets.
    #[inline]
    pub fn parts(&mut self) -> (&mut [Packet], &mut [Layout], &mut Vec<Reached>) {
        self.parse();
        self.parsed = 0;
        let layouts = self.layouts.get_mut(..self.packets.len()).unwrap_or_default();
        (&mut self.packets, layouts, &mut self.reached)
    }

    /// Takes the packets out, one after the other, each with its place. So an engine can let them
    /// leave by themselves.
    pub fn take_each(&mut self, mut take: impl FnMut(usize, Packet)) {
        let (packets, _, reached) = self.parts();
        reached.clear();
        for (at, packet) in packets.iter_mut().enumerate() {
            take(at, std::mem::replace(packet, Packet::empty(packet.link)));
            reached.push(Reached::Ended);
        }
    }

    /// Keeps the packets for which `keeps` is true. It may change what is not in the headers. Returns
    /// the others.
    pub fn retain(&mut self, mut keeps: impl FnMut(&mut Packet, &Layout) -> bool) -> Vec<Packet> {
        self.parse();
        let mut gone = Vec::new();
        let mut kept = 0;
        for at in 0..self.packets.len() {
            let (Some(packet), Some(layout)) = (self.packets.get_mut(at), self.layouts.get(at))
            else {
                break;
            };
            if !keeps(packet, layout) {
                gone.push(std::mem::replace(packet, Packet::empty(packet.link)));
                continue;
            }
            if kept < at {
                self.packets.swap(kept, at);
                self.layouts.swap(kept, at);
            }
            kept += 1;
        }
        self.packets.truncate(kept);
        self.parsed = kept;
        gone
    }

    /// Takes all packets out.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> {
        self.reached.clear();
        self.parsed = 0;
        self.packets.drain(..)
    }

    /// Takes all packets out that an engine has processed, each with the end of its walk.
    pub fn drain_reached(&mut self) -> impl ExactSizeIterator<Item = (Packet, Reached)> {
        self.parsed = 0;
        self.packets.drain(..).zip(self.reached.drain(..))
    }

    /// Removes the last packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop();
        self.parsed = self.parsed.min(self.packets.len());
        packet
    }

    /// The packets that leave in their places, each with its interface and its place.
    pub fn leaving(&mut self) -> impl Iterator<Item = (usize, u16, &mut Packet)> {
        let all = self.packets.iter_mut().zip(&self.reached).enumerate();
        all.filter_map(|(at, (packet, reached))| match reached {
            Reached::Interface(interface) => Some((at, *interface, packet)),
            Reached::Ended => None,
        })
    }

    /// Removes all packets. Their frames return to their pools.
    pub fn clear(&mut self) {
        drop(self.drain());
    }

    /// Removes all packets. Frames of `pool` return to it at once.
    #[inline]
    pub fn recycle(&mut self, pool: &mut Pool) {
        self.drain().for_each(|packet| pool.put(packet.into_frame()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Link};

    fn packet(byte: u8) -> Packet {
        Packet::new(Link::Ethernet, byte.into(), [byte; 20])
    }

    #[test]
    fn headers_are_found_once_and_again_after_an_engine() {
        let mut burst = Burst::new();
        burst.push(packet(1));
        burst.parse();
        burst.push(packet(2));
        let (packets, layouts, _) = burst.parts();
        assert_eq!((packets.len(), layouts.len()), (2, 2));
        assert!(layouts.iter().all(|layout| layout.has(Header::Eth)));
        layouts.fill(Layout::default());
        let (_, layouts, _) = burst.parts();
        assert!(layouts.iter().all(|layout| layout.has(Header::Eth)));
    }

    #[test]
    fn packets_that_leave_are_named_with_their_places() {
        let mut burst = Burst::new();
        (1..4).for_each(|byte| burst.push(packet(byte)));
        burst.reached = vec![Reached::Interface(7), Reached::Ended, Reached::Interface(8)];
        let leaving = burst.leaving().map(|(at, to, packet)| (at, to, packet.time_ns));
        assert_eq!(leaving.collect::<Vec<_>>(), [(0, 7, 1), (2, 8, 3)]);
    }

    #[test]
    fn packets_that_are_not_kept_come_back_and_the_others_stay_in_order() {
        let mut burst = Burst::new();
        (0..6).for_each(|byte| burst.push(packet(byte)));
        let gone = burst.retain(|packet, layout| {
            packet.ingress = 7;
            layout.has(Header::Eth) && packet.time_ns % 3 == 1
        });
        let times = |packets: &[Packet]| packets.iter().map(|p| p.time_ns).collect::<Vec<_>>();
        assert_eq!((times(burst.packets()), times(&gone)), (vec![1, 4], vec![0, 2, 3, 5]));
        let (packets, layouts, _) = burst.parts();
        assert!(packets.iter().zip(layouts).all(|(p, l)| p.parse() == *l && p.ingress == 7));
    }

    #[test]
    fn recycled_frames_can_be_taken_again() {
        let mut pool = Pool::new(1, 256).unwrap();
        let mut burst = Burst::new();
        for _ in 0..3 {
            let frame = pool.take().unwrap();
            burst.push(Packet::in_frame(Link::Ethernet, 0, frame, 0));
            burst.push(packet(1));
            burst.recycle(&mut pool);
        }
        assert!(burst.packets().is_empty());
    }
}
