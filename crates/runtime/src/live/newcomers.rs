//! Established flows first: while a worker has more packets than it can process, the packets of new
//! flows wait, and are lost if too many wait.

use super::numbers::renumber;
use braid_packet::{BURST, Burst, Layout, Packet, Pool};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

/// The reason for which packets of new flows are lost.
pub(super) const NEW_FLOW_REFUSED: &str = "new_flow_refused";

/// The most packets that wait.
const WAITING: usize = 256;

/// Packets wait for at most this many turns, so that new flows begin under load, too.
const TURNS: u32 = 64;

/// The number of established flows, and of flows of one packet, that are remembered.
const ESTABLISHED: usize = 1 << 18;
const BEGUN: usize = 1 << 15;

/// Holds back the packets of flows that are not established. A flow is established with its second
/// packet, in either direction, if the first one was processed before. So a flood of packets that
/// each begin a flow establishes no flow.
pub(super) struct Newcomers {
    established: Recent,
    begun: Recent,
    /// Its key is secret, so no sender can choose flows that displace others.
    hasher: RandomState,
    /// With the hash of their flows, in the order of their arrival.
    waiting: Vec<(u64, Packet)>,
    /// The packets of this turn so far.
    seen: usize,
    /// The turns since packets were admitted.
    turns: u32,
}

/// Recently seen flows, by their hashes. If a bucket is full, its least recently seen flow is
/// forgotten.
struct Recent(Vec<[u32; WAYS]>);

/// The flows of a bucket: half a cache line.
const WAYS: usize = 8;

impl Newcomers {
    pub(super) fn new() -> Self {
        Self {
            established: Recent::new(ESTABLISHED),
            begun: Recent::new(BEGUN),
            hasher: RandomState::new(),
            waiting: Vec::with_capacity(WAITING),
            seen: 0,
            turns: 0,
        }
    }

    /// Leaves the packets of established flows in a burst. The other packets wait. Returns the
    /// number of packets that are lost because too many wait.
    pub(super) fn hold_back(&mut self, burst: &mut Burst, pool: &mut Pool) -> u64 {
        self.seen += burst.packets().len();
        let (mut waiting, mut lost) = (std::mem::take(&mut self.waiting), 0);
        let new = |packet: &mut Packet, layout: &Layout| {
            let hash = self.hash(packet, layout)?;
            (!self.is_established(hash)).then_some(hash)
        };
        burst.remove(new, |hash, packet| match waiting.len() < WAITING {
            true => waiting.push((hash, packet)),
            false => {
                lost += 1;
                pool.put(packet.into_frame());
            }
        });
        self.waiting = waiting;
        lost
    }

    /// The packets that need not wait any longer, at the end of a turn. These are all packets if
    /// the worker had less than a burst to process, if they have waited long enough, or if the run
    /// ends; otherwise there are none.
    pub(super) fn admit(&mut self, is_end: bool) -> Vec<Packet> {
        let is_loaded = std::mem::take(&mut self.seen) >= BURST;
        self.turns += 1;
        if is_loaded && self.turns < TURNS && !is_end {
            return Vec::new();
        }
        self.turns = 0;
        let admitted = self.waiting.drain(..).map(|(hash, packet)| {
            self.begun.put(hash);
            packet
        });
        admitted.collect()
    }

    /// Switches to the numbers that interfaces have in another chain.
    pub(super) fn renumber(&mut self, numbers: &BTreeMap<u16, u16>) {
        let waiting = self.waiting.iter_mut();
        waiting.for_each(|(_, packet)| renumber(&mut packet.ingress, numbers));
    }

    /// The hash of a packet's flow, the same in both directions. An error of ICMP belongs to the
    /// flow of the packet that it quotes. `None`: the packet has no flow.
    fn hash(&self, packet: &Packet, layout: &Layout) -> Option<u64> {
        let key = packet.quoted_flow_key(layout).or_else(|| packet.flow_key(layout))?;
        Some(self.hasher.hash_one(key.bidirectional()))
    }

    /// Whether a flow is established, or becomes established with this packet.
    fn is_established(&mut self, hash: u64) -> bool {
        self.established.find(hash) || {
            let has_begun = self.begun.find(hash);
            if has_begun {
                self.established.put(hash);
            }
            has_begun
        }
    }
}

impl Recent {
    /// Remembers about this many flows; a power of two.
    fn new(flows: usize) -> Self {
        Self(vec![[0; WAYS]; flows / WAYS])
    }

    /// Whether a flow is remembered. If so, it becomes the most recently seen one.
    fn find(&mut self, hash: u64) -> bool {
        let (bucket, tag) = self.place(hash);
        let Some(at) = bucket.iter().position(|one| *one == tag) else { return false };
        #[expect(clippy::indexing_slicing, reason = "`at` is a place in the bucket")]
        bucket[..=at].rotate_right(1);
        true
    }

    /// Remembers a flow.
    fn put(&mut self, hash: u64) {
        let (bucket, tag) = self.place(hash);
        bucket.rotate_right(1);
        bucket[0] = tag;
    }

    /// The bucket of a flow, and its mark there; 0 marks a free place.
    #[expect(clippy::indexing_slicing, reason = "the remainder is below the number of buckets")]
    #[expect(clippy::cast_possible_truncation, reason = "some bits of the hash are enough")]
    fn place(&mut self, hash: u64) -> (&mut [u32; WAYS], u32) {
        let bucket = hash as usize % self.0.len();
        (&mut self.0[bucket], (hash >> 32) as u32 | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Field, Link, Shape, build_fresh};
    use std::ops::Range;

    /// A burst of one UDP packet from each of these ports; with `answers`, to these ports.
    fn burst(ports: Range<u16>, answers: bool) -> Burst {
        let mut burst = Burst::new();
        for port in ports {
            let (mut from, mut to) = ((0x0a00_0001, u128::from(port)), (0xc000_0201, 53));
            if answers {
                std::mem::swap(&mut from, &mut to);
            }
            let fields = [
                (Field::IpSrc, from.0),
                (Field::IpDst, to.0),
                (Field::UdpSport, from.1),
                (Field::UdpDport, to.1),
            ];
            burst.push(build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, &[]).unwrap());
        }
        burst
    }

    /// The number of packets of a burst that go on, and the number of lost ones.
    fn held(newcomers: &mut Newcomers, mut burst: Burst) -> (usize, u64) {
        let mut pool = Pool::new(0, 2048).unwrap();
        let lost = newcomers.hold_back(&mut burst, &mut pool);
        (burst.packets().len(), lost)
    }

    #[test]
    fn new_flows_wait_until_the_worker_has_time() {
        let mut newcomers = Newcomers::new();
        assert_eq!(held(&mut newcomers, burst(1..11, false)), (0, 0));
        assert_eq!(newcomers.admit(false).len(), 10);
        // The second packets establish the flows, in both directions.
        assert_eq!(held(&mut newcomers, burst(1..60, true)), (10, 0));
        assert_eq!(held(&mut newcomers, burst(1..11, false)), (10, 0));
        assert!(newcomers.admit(false).is_empty(), "69 packets are more than a burst");
        assert_eq!(newcomers.admit(false).len(), 49);
    }

    #[test]
    fn new_flows_do_not_wait_for_ever() {
        let mut newcomers = Newcomers::new();
        assert_eq!(newcomers.admit(false).len(), 0);
        let admitted = (0..TURNS).map(|_| {
            held(&mut newcomers, burst(1..65, false));
            newcomers.admit(false).len()
        });
        let admitted: Vec<_> = admitted.collect();
        assert_eq!(admitted.iter().position(|count| *count > 0), Some(TURNS as usize - 1));
        held(&mut newcomers, burst(100..164, false));
        assert_eq!(newcomers.admit(true).len(), 64, "the end waits for nobody");
    }

    #[test]
    fn too_many_new_packets_are_lost() {
        let mut newcomers = Newcomers::new();
        for first in [1, 101, 201, 301] {
            assert_eq!(held(&mut newcomers, burst(first..first + 64, false)), (0, 0));
        }
        assert_eq!(held(&mut newcomers, burst(401..404, false)), (0, 3));
    }

    #[test]
    fn flows_of_one_packet_push_no_established_flow_out() {
        let mut newcomers = Newcomers::new();
        for _ in 0..2 {
            held(&mut newcomers, burst(1..11, false));
            newcomers.admit(true);
        }
        let many = 10 * ESTABLISHED as u64;
        (0..many).for_each(|flow| newcomers.begun.put(newcomers.hasher.hash_one(flow)));
        assert_eq!(held(&mut newcomers, burst(1..12, false)), (10, 0));
    }

    #[test]
    fn what_was_seen_last_is_remembered() {
        let mut recent = Recent::new(WAYS);
        // All of one bucket.
        (1..=9).for_each(|flow| recent.put(flow << 33));
        assert!(!recent.find(1 << 33), "the oldest one");
        assert!(recent.find(2 << 33));
        recent.put(10 << 33);
        assert!(recent.find(2 << 33) && !recent.find(3 << 33));
    }
}
