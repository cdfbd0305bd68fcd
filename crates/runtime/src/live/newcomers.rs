//! Established flows first: while a worker has more packets than it can process, the packets of new
//! flows wait, and are lost if too many wait.

use braid_packet::{BURST, Burst, Layout, Packet, Pool};
use std::hash::{BuildHasher, RandomState};

/// The reason for which packets of new flows are lost.
pub(super) const NEW_FLOW_REFUSED: &str = "new_flow_refused";

/// The most packets that wait.
const WAITING: usize = 256;

/// Packets wait for at most this many turns, so that new flows begin under load, too.
const TURNS: u32 = 64;

/// The least time for which a flow without packets is remembered (ns); the longest is twice that.
const AGE_NS: u64 = 60_000_000_000;

/// The number of bits in which flows leave their marks. With 100,000 flows, one new flow of 40 meets
/// a mark of another flow, and does not wait.
const MARKS: usize = 1 << 22;

/// Knows the flows whose packets have been processed, and holds the packets of all others back.
pub(super) struct Newcomers {
    /// Marks of the flows seen in the current period, and in the one before.
    marks: [Vec<u64>; 2],
    /// When the current period began (ns).
    since_ns: u64,
    /// Nobody outside knows its key. So nobody can send packets that meet the marks of others.
    hasher: RandomState,
    /// With the hash of their flows, in the order of their arrival.
    waiting: Vec<(u64, Packet)>,
    /// The packets of this turn so far.
    seen: usize,
    /// The turns since packets began to wait.
    turns: u32,
}

impl Newcomers {
    pub(super) fn new() -> Self {
        Self {
            marks: [vec![0; MARKS / 64], vec![0; MARKS / 64]],
            since_ns: 0,
            hasher: RandomState::new(),
            waiting: Vec::with_capacity(WAITING),
            seen: 0,
            turns: 0,
        }
    }

    /// Leaves the packets of established flows in a burst. The others wait. Returns how many of them
    /// are lost because too many wait.
    pub(super) fn hold_back(&mut self, burst: &mut Burst, pool: &mut Pool, now_ns: u64) -> u64 {
        if now_ns.saturating_sub(self.since_ns) >= AGE_NS {
            self.marks.swap(0, 1);
            self.marks[0].fill(0);
            self.since_ns = now_ns;
        }
        self.seen += burst.packets().len();
        let mut hashes = Vec::new();
        let new = burst.retain(|packet, layout| {
            let Some(hash) = self.hash(packet, layout) else { return true };
            let is_established = self.is_marked(hash);
            if !is_established {
                hashes.push(hash);
            }
            is_established
        });
        let room = (WAITING - self.waiting.len()).min(new.len());
        let lost = new.len() - room;
        let mut new = hashes.into_iter().zip(new);
        self.waiting.extend(new.by_ref().take(room));
        new.for_each(|(_, packet)| pool.put(packet.into_frame()));
        lost as u64
    }

    /// The packets that need not wait any longer, at the end of a turn: all of them if the worker had
    /// less than a burst to do, or if they have waited long enough. Their flows are established.
    pub(super) fn admit(&mut self) -> Vec<Packet> {
        let is_loaded = std::mem::take(&mut self.seen) >= BURST;
        self.turns += 1;
        if self.waiting.is_empty() || (is_loaded && self.turns < TURNS) {
            return Vec::new();
        }
        self.turns = 0;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.iter().for_each(|(hash, _)| self.mark(*hash));
        let admitted = waiting.drain(..).map(|(_, packet)| packet).collect();
        self.waiting = waiting;
        admitted
    }

    /// Begins a turn. The packets that were admitted do not count.
    pub(super) fn begin_turn(&mut self) {
        self.seen = 0;
    }

    /// The hash of a packet's flow, the same in both directions. An error of ICMP belongs to the flow
    /// of the packet that it quotes. `None`: the packet has no flow.
    fn hash(&self, packet: &Packet, layout: &Layout) -> Option<u64> {
        let key = packet.quoted_flow_key(layout).or_else(|| packet.flow_key(layout))?;
        Some(self.hasher.hash_one(key.bidirectional()))
    }

    /// Whether a flow is established. If so, it is remembered from now on.
    fn is_marked(&mut self, hash: u64) -> bool {
        let (word, bit) = place(hash);
        if self.marks.iter().any(|marks| marks[word] & bit != 0) {
            self.marks[0][word] |= bit;
            return true;
        }
        false
    }

    fn mark(&mut self, hash: u64) {
        let (word, bit) = place(hash);
        self.marks[0][word] |= bit;
    }
}

/// The word and the bit of a mark.
fn place(hash: u64) -> (usize, u64) {
    let at = hash as usize % MARKS;
    (at / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_packet::{Field, Link, Shape, build_fresh};
    use std::ops::Range;

    const SECOND: u64 = 1_000_000_000;

    /// A burst of one packet of UDP from each of these ports; with `answers`, the other way round.
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

    /// How many packets of a burst go on, and how many are lost.
    fn held(newcomers: &mut Newcomers, mut burst: Burst, now_ns: u64) -> (usize, u64) {
        let mut pool = Pool::new(0, 2048).unwrap();
        let lost = newcomers.hold_back(&mut burst, &mut pool, now_ns);
        (burst.packets().len(), lost)
    }

    #[test]
    fn new_flows_wait_until_the_worker_has_time() {
        let mut newcomers = Newcomers::new();
        assert_eq!(held(&mut newcomers, burst(1..11, false), 0), (0, 0));
        assert_eq!(newcomers.admit().len(), 10);
        newcomers.begin_turn();
        // Both directions are established; other flows are not.
        assert_eq!(held(&mut newcomers, burst(1..11, false), 0), (10, 0));
        assert_eq!(held(&mut newcomers, burst(1..60, true), 0), (10, 0));
        assert!(newcomers.admit().is_empty(), "69 packets are more than a burst");
        assert_eq!(newcomers.admit().len(), 49);
    }

    #[test]
    fn new_flows_do_not_wait_for_ever() {
        let mut newcomers = Newcomers::new();
        held(&mut newcomers, burst(1..65, false), 0);
        assert_eq!(newcomers.admit().len(), 0);
        held(&mut newcomers, burst(100..101, false), 0);
        let admitted = (0..TURNS).map(|_| {
            held(&mut newcomers, burst(1000..1064, false), 0);
            newcomers.admit().len()
        });
        let admitted: Vec<_> = admitted.collect();
        assert_eq!(admitted.iter().position(|count| *count > 0), Some(TURNS as usize - 2));
    }

    #[test]
    fn too_many_new_packets_are_lost() {
        let mut newcomers = Newcomers::new();
        for first in [1, 101, 201, 301] {
            assert_eq!(held(&mut newcomers, burst(first..first + 64, false), 0), (0, 0));
        }
        assert_eq!(held(&mut newcomers, burst(401..404, false), 0), (0, 3));
    }

    #[test]
    fn flows_are_forgotten_when_no_packets_come() {
        let mut newcomers = Newcomers::new();
        held(&mut newcomers, burst(1..3, false), 0);
        assert_eq!(newcomers.admit().len(), 2);
        // The first flow goes on, the second one does not.
        assert_eq!(held(&mut newcomers, burst(1..2, false), 70 * SECOND), (1, 0));
        assert_eq!(held(&mut newcomers, burst(1..3, false), 140 * SECOND), (1, 0));
    }
}
