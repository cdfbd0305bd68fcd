//! What became of the packets that were sent.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::packets::{Payload, is_right, read};

/// Of this many packets, one has its checksums verified.
const VERIFIED: u64 = 64;
/// The most source addresses that are kept.
const SOURCES: usize = 8;

/// Counts the packets of a run as they arrive.
pub struct Account {
    run: u16,
    /// A bit for each number that has arrived.
    seen: Vec<u64>,
    /// The number that each flow's next packet has at least, if packets stay in order.
    expected: Vec<u64>,
    latencies_ns: Vec<u64>,
    sums: Sums,
}

/// What was counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// Packets that arrived, each counted once.
    pub received: u64,
    /// Numbers that did not arrive.
    pub missing: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that arrived after a later packet of their flow.
    pub reordered: u64,
    /// Frames that are no packets of this run.
    pub foreign: u64,
    /// Packets with a wrong checksum, among those verified.
    pub wrong: u64,
    /// The bytes of received packets.
    pub bytes: u64,
    /// The first source addresses.
    pub sources: BTreeSet<Ipv4Addr>,
    /// The latency (ns) that 50, 99, 99.9 and 100 % of the received packets do not exceed.
    pub latency: Option<[u64; 4]>,
}

impl Account {
    /// For the packets of a run with this number of flows.
    pub fn new(run: u16, flows: u32) -> Self {
        let expected = vec![0; flows as usize];
        Self { run, seen: Vec::new(), expected, latencies_ns: Vec::new(), sums: Sums::default() }
    }

    /// Counts a frame that has arrived at this time. `numbers` were given out so far.
    pub fn arrived(&mut self, frame: &[u8], now_ns: u64, numbers: u64) {
        let is_ours = |payload: &Payload| payload.run == self.run && payload.number < numbers;
        let ours = read(frame).filter(|(_, payload)| is_ours(payload));
        let Some((source, payload)) = ours else {
            self.sums.foreign += 1;
            return;
        };
        if !self.is_first(payload.number) {
            self.sums.duplicates += 1;
            return;
        }
        self.sums.received += 1;
        self.sums.bytes += frame.len() as u64;
        if self.sums.sources.len() < SOURCES {
            self.sums.sources.insert(source);
        }
        if payload.number % VERIFIED == 0 && !is_right(frame) {
            self.sums.wrong += 1;
        }
        let flows = self.expected.len() as u64;
        let expected = &mut self.expected[(payload.number % flows) as usize];
        if payload.number < *expected {
            self.sums.reordered += 1;
        }
        *expected = payload.number.max(*expected);
        self.latencies_ns.push(now_ns.saturating_sub(payload.sent_ns));
    }

    /// The packets that have arrived so far, each counted once.
    pub fn received(&self) -> u64 {
        self.sums.received
    }

    /// Notes that this number has arrived. Returns whether it had not before.
    fn is_first(&mut self, number: u64) -> bool {
        let (place, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.seen.len() <= place {
            self.seen.resize(place + 1, 0);
        }
        let before = self.seen[place];
        self.seen[place] |= bit;
        before & bit == 0
    }

    /// What was counted, when this many numbers were given out.
    pub fn end(mut self, numbers: u64) -> Sums {
        // Counted from the bits, and not from what was received: a check of the account.
        let seen: u64 = self.seen.iter().map(|bits| u64::from(bits.count_ones())).sum();
        self.sums.missing = numbers.saturating_sub(seen);
        self.latencies_ns.sort_unstable();
        let count = self.latencies_ns.len();
        let percentile = |thousandths: usize| {
            let rank = (count * thousandths).div_ceil(1000).max(1);
            self.latencies_ns[rank - 1]
        };
        self.sums.latency = (count > 0).then(|| [500, 990, 999, 1000].map(percentile));
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::tests::{packet, packets};

    #[test]
    fn each_packet_is_counted_once() {
        let packets = packets(&[60]);
        let mut account = Account::new(packets.run(), 3);
        // 2 and 5 are of one flow; 1 is lost, 4 comes twice.
        for (number, now_ns) in [(0, 100), (5, 300), (2, 210), (4, 400), (4, 500), (3, 420)] {
            account.arrived(packet(&packets, number, 0).bytes(), now_ns, 66);
        }
        account.arrived(&[0; 60], 1, 66);
        account.arrived(packet(&packets, 66, 0).bytes(), 1, 66);
        let mut late = packet(&packets, 64, 0);
        // A byte of the checksum.
        late.bytes_mut()[41] ^= 1;
        account.arrived(late.bytes(), 600, 66);
        let sums = account.end(66);
        assert_eq!((sums.received, sums.duplicates, sums.reordered), (6, 1, 1));
        assert_eq!((sums.missing, sums.foreign, sums.wrong), (60, 2, 1));
        assert_eq!(sums.bytes, 360);
        assert_eq!(sums.sources.len(), 3);
        assert_eq!(sums.latency, Some([300, 600, 600, 600]));
    }

    #[test]
    fn packets_of_another_run_are_foreign() {
        let packets = packets(&[60]);
        let mut account = Account::new(packets.run().wrapping_add(1), 3);
        account.arrived(packet(&packets, 0, 0).bytes(), 1, 1);
        let sums = account.end(1);
        assert_eq!((sums.received, sums.foreign, sums.missing, sums.latency), (0, 1, 1, None));
    }
}
