//! Bursts: packets that arrived together, the unit in which packets move.

use crate::frame::{Frame, Pool};
use crate::layout::Layout;
use crate::link::Link;
use crate::packet::Packet;
use std::ops::Range;

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
/// An engine leaves packets in their places and sets for each one the interface by which it leaves.
/// The bytes of a packet that does not leave have no meaning afterwards.
#[derive(Debug, Default)]
pub struct Burst {
    /// The packets, and behind them empty packets, which are places for later packets.
    places: Vec<Packet>,
    /// The number of packets.
    count: usize,
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
            places: (0..BURST).map(|_| Packet::empty(Link::Ethernet)).collect(),
            count: 0,
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
            places: vec![packet],
            count: 1,
            layouts: vec![Layout::default()],
            parsed: 0,
            reached: Vec::with_capacity(1),
        }
    }

    /// Whether no further packet fits.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count >= BURST
    }

    /// Adds a packet, whose `ingress` says where it enters. The burst must not be full.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        debug_assert!(!self.is_full(), "a burst has a limit");
        match self.places.get_mut(self.count) {
            Some(place) => *place = packet,
            None => self.places.push(packet),
        }
        self.count += 1;
    }

    /// Adds a packet of `wire_len` bytes; `bytes` are the captured ones. The limits are those of
    /// [`Packet::snapped`]. The bytes are in a frame of the pool if they fit and one is free. Makes
    /// the packet in its place, because moving it right after it was made takes longer than making
    /// it.
    #[inline(always)]
    pub fn add(&mut self, link: Link, time_ns: u64, bytes: &[u8], wire_len: u32, pool: &mut Pool) {
        debug_assert!(!self.is_full(), "a burst has a limit");
        if self.count == self.places.len() {
            self.grow();
        }
        if let Some(place) = self.places.get_mut(self.count) {
            place.hold(link, time_ns, bytes, wire_len, pool);
        }
        self.count += 1;
    }

    /// Adds a packet that is a frame with all bytes from the wire, and enters at an interface.
    /// Leaves an empty frame behind. As [`Self::add`], makes the packet in its place.
    #[inline(always)]
    pub fn add_frame(&mut self, ingress: u16, time_ns: u64, frame: &mut Frame) {
        debug_assert!(!self.is_full(), "a burst has a limit");
        if self.count == self.places.len() {
            self.grow();
        }
        if let Some(place) = self.places.get_mut(self.count) {
            place.be_frame(ingress, time_ns, frame);
        }
        self.count += 1;
    }

    /// Adds a place for a packet.
    #[cold]
    fn grow(&mut self) {
        self.places.push(Packet::empty(Link::Ethernet));
    }

    /// The packets.
    #[must_use]
    #[inline]
    pub fn packets(&self) -> &[Packet] {
        self.places.get(..self.count).unwrap_or_default()
    }

    /// The packets, to be changed.
    #[inline]
    pub fn packets_mut(&mut self) -> &mut [Packet] {
        self.parsed = 0;
        self.places.get_mut(..self.count).unwrap_or_default()
    }

    /// The last packet, to be changed.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut Packet> {
        let last = self.count.checked_sub(1)?;
        self.parsed = self.parsed.min(last);
        self.places.get_mut(last)
    }

    /// Finds the headers of all packets that were added since the last call.
    #[inline]
    pub fn parse(&mut self) {
        if self.layouts.len() < self.count {
            self.layouts.resize(self.count, Layout::default());
        }
        let packets = self.places.get(..self.count).unwrap_or_default();
        let new = packets.iter().zip(&mut self.layouts).skip(self.parsed);
        for (packet, layout) in new {
            packet.parse_to(layout);
        }
        self.parsed = self.count;
    }

    /// The packets, their headers and, to be filled, where they leave. Finds the headers that are
    /// not yet known, and forgets all of them for later calls: the caller may change the packets.
    #[inline]
    pub fn parts(&mut self) -> (&mut [Packet], &mut [Layout], &mut Vec<Reached>) {
        self.parse();
        self.parsed = 0;
        let packets = self.places.get_mut(..self.count).unwrap_or_default();
        let layouts = self.layouts.get_mut(..self.count).unwrap_or_default();
        (packets, layouts, &mut self.reached)
    }

    /// The packets and their headers. The caller must not change what the headers depend on.
    pub fn parsed(&mut self) -> (&mut [Packet], &[Layout]) {
        self.parse();
        let packets = self.places.get_mut(..self.count).unwrap_or_default();
        (packets, self.layouts.get(..self.count).unwrap_or_default())
    }

    /// Takes the packets out, one after the other, each with its place. An engine uses this to let
    /// packets leave by themselves.
    pub fn take_each(&mut self, mut take: impl FnMut(usize, Packet)) {
        let (packets, _, reached) = self.parts();
        reached.clear();
        for (at, packet) in packets.iter_mut().enumerate() {
            take(at, packet.take());
            reached.push(Reached::Ended);
        }
    }

    /// Removes the packets for which `choose` gives a reason, and passes each one on with its
    /// reason. `choose` may change everything except the headers.
    pub fn remove<T>(
        &mut self,
        mut choose: impl FnMut(&mut Packet, &Layout) -> Option<T>,
        mut give: impl FnMut(T, Packet),
    ) {
        self.parse();
        let mut kept = 0;
        for at in 0..self.count {
            let (Some(packet), Some(layout)) = (self.places.get_mut(at), self.layouts.get(at))
            else {
                break;
            };
            if let Some(reason) = choose(packet, layout) {
                give(reason, packet.take());
                continue;
            }
            if kept < at {
                self.places.swap(kept, at);
                self.layouts.swap(kept, at);
            }
            kept += 1;
        }
        (self.count, self.parsed) = (kept, kept);
    }

    /// Visits the packets from a place on, until `visit` returns false. Each layout must be its
    /// packet's afterwards.
    pub fn visit(&mut self, from: usize, mut visit: impl FnMut(&mut Packet, &mut Layout) -> bool) {
        self.parse();
        let packets = self.places.get_mut(from..self.count).unwrap_or_default();
        let layouts = self.layouts.get_mut(from..).unwrap_or_default();
        for (packet, layout) in packets.iter_mut().zip(layouts) {
            if !visit(packet, layout) {
                return;
            }
        }
    }

    /// Moves some packets to the end of another burst, and leaves empty ones in their places.
    pub fn give(&mut self, range: Range<usize>, to: &mut Burst) {
        let packets = self.places.get_mut(range).unwrap_or_default();
        packets.iter_mut().for_each(|packet| to.push(packet.take()));
    }

    /// Takes all packets out.
    pub fn drain(&mut self) -> impl Iterator<Item = Packet> {
        let all = std::mem::take(&mut self.count);
        self.reached.clear();
        self.parsed = 0;
        self.places.get_mut(..all).unwrap_or_default().iter_mut().map(Packet::take)
    }

    /// Takes all packets out that an engine has processed, each with the end of its walk.
    pub fn drain_reached(&mut self) -> impl ExactSizeIterator<Item = (Packet, Reached)> {
        let all = std::mem::take(&mut self.count);
        self.parsed = 0;
        let packets = self.places.get_mut(..all).unwrap_or_default();
        packets.iter_mut().map(Packet::take).zip(self.reached.drain(..))
    }

    /// Removes the last packet.
    pub fn pop(&mut self) -> Option<Packet> {
        self.count = self.count.checked_sub(1)?;
        self.parsed = self.parsed.min(self.count);
        self.places.get_mut(self.count).map(Packet::take)
    }

    /// The packets that leave in their places, each with its interface and its place.
    pub fn leaving(&mut self) -> impl Iterator<Item = (usize, u16, &mut Packet)> {
        let packets = self.places.get_mut(..self.count).unwrap_or_default();
        let all = packets.iter_mut().zip(&self.reached).enumerate();
        all.filter_map(|(at, (packet, reached))| match reached {
            Reached::Interface(interface) => Some((at, *interface, packet)),
            Reached::Ended => None,
        })
    }

    /// Removes all packets. Their frames return to their pools.
    pub fn clear(&mut self) {
        self.drain().for_each(drop);
    }

    /// Removes all packets. Frames of `pool` return to it at once.
    #[inline]
    pub fn recycle(&mut self, pool: &mut Pool) {
        let all = std::mem::take(&mut self.count);
        self.reached.clear();
        self.parsed = 0;
        let packets = self.places.get_mut(..all).unwrap_or_default();
        packets.iter_mut().for_each(|packet| packet.recycle(pool));
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
    fn packets_that_are_removed_come_back_and_the_others_stay_in_order() {
        let mut burst = Burst::new();
        (0..6).for_each(|byte| burst.push(packet(byte)));
        let mut gone = Vec::new();
        let choose = |packet: &mut Packet, layout: &Layout| {
            packet.ingress = 7;
            let stays = layout.has(Header::Eth) && packet.time_ns % 3 == 1;
            (!stays).then_some(10 * packet.time_ns)
        };
        burst.remove(choose, |reason, packet| gone.push((reason, packet.time_ns)));
        let times: Vec<u64> = burst.packets().iter().map(|packet| packet.time_ns).collect();
        assert_eq!((times, gone), (vec![1, 4], vec![(0, 0), (20, 2), (30, 3), (50, 5)]));
        let (packets, layouts, _) = burst.parts();
        assert!(packets.iter().zip(layouts).all(|(p, l)| p.parse() == *l && p.ingress == 7));
    }

    #[test]
    fn visit_ends_where_it_is_told_and_may_change_packets() {
        let mut burst = Burst::new();
        (0..6).for_each(|byte| burst.push(packet(byte)));
        let mut seen = Vec::new();
        burst.visit(2, |packet, layout| {
            seen.push(packet.time_ns);
            packet.push_vlan(1);
            packet.parse_to(layout);
            packet.time_ns < 4
        });
        assert_eq!(seen, [2, 3, 4]);
        let (packets, layouts, _) = burst.parts();
        assert!(packets.iter().zip(layouts).all(|(packet, layout)| packet.parse() == *layout));
    }

    #[test]
    fn packets_given_to_another_burst_stay_in_order() {
        let (mut burst, mut other) = (Burst::new(), Burst::of(0, packet(9)));
        (0..6).for_each(|byte| burst.push(packet(byte)));
        burst.give(1..3, &mut other);
        burst.give(5..6, &mut other);
        let times = |burst: &Burst| burst.packets().iter().map(|p| p.time_ns).collect::<Vec<_>>();
        assert_eq!(times(&other), [9, 1, 2, 5]);
        assert_eq!(burst.packets()[0], packet(0));
        assert!(burst.packets()[1].data().is_empty());
    }

    #[test]
    fn frames_become_packets_in_places_of_others() {
        let mut burst = Burst::new();
        burst.push(packet(1));
        let packet = &mut burst.packets_mut()[0];
        (packet.mark, packet.held, packet.backward, packet.wire_len) = (1, true, true, 99);
        packet.tags.insert("tag".into(), 1);
        burst.clear();
        let mut frame = Frame::of(&[5; 60]);
        burst.add_frame(4, 7, &mut frame);
        assert!(frame.is_empty());
        let mut expected = Packet::new(Link::Ethernet, 7, [5; 60]);
        expected.ingress = 4;
        assert_eq!(burst.packets(), [expected]);
    }

    #[test]
    fn packets_are_made_new_in_places_of_others() {
        let mut pool = Pool::new(1, 256).unwrap();
        let mut burst = Burst::new();
        for round in 0..3 {
            // The second packet finds no frame free, and the third one would not fit into it.
            for (len, wire_len) in [(9, 4), (9, 12), (300, 300)] {
                let bytes = vec![7; len];
                burst.add(Link::RawIp, round, &bytes, wire_len, &mut pool);
                let expected = Packet::snapped(Link::RawIp, round, &bytes, wire_len);
                assert_eq!(burst.packets().last(), Some(&expected));
            }
            let packet = &mut burst.packets_mut()[1];
            (packet.mark, packet.held, packet.backward, packet.ingress) = (1, true, true, 3);
            packet.tags.insert("tag".into(), 1);
            burst.recycle(&mut pool);
            assert!(burst.packets().is_empty());
        }
        let frame = pool.take().expect("the frame has returned");
        assert!(pool.take().is_none());
        drop(frame);
        burst.add(Link::RawIp, 9, &[7; 300], 0, &mut pool);
        assert_eq!(burst.packets()[0].data(), [7; 300]);
    }
}
