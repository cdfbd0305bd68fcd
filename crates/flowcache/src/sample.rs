//! Samples packets: while the search for records costs more than records save, the cache looks for
//! the records of only some packets.

/// The number of packets that the cache looks at before it decides again.
const MANY: usize = 128;
/// During sampling: the number of packets that the cache looks at before it decides again, and the
/// least number of packets that it leaves out before them.
const FEW: usize = 32;
const LEFT_OUT: usize = 64;
/// The largest of these least numbers. The number doubles as long as packets take few records.
const MOST_LEFT_OUT: usize = 1024;
/// The search for records saves time if at least one packet in this number belongs to a known flow,
/// one that the filter has met before.
const AMONG: u64 = 16;

/// What the cache has seen so far of the packets that it looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Packets that took records.
    pub(super) hits: u64,
    /// Packets of known flows, hits included.
    pub(super) again: u64,
    /// If records have not paid lately: the number of lookups that a record replaces.
    pub(super) lookups: Option<u64>,
}

/// Decides which packets the cache looks at. While nearly all packets belong to new flows (a scan,
/// a flood), it looks at about a quarter of them. While flows come and go so fast that few packets
/// take records, it looks at fewer and fewer. These packets show when known flows send again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The number of packets to leave out next, and the number of packets to look at after them.
    out: usize,
    some: usize,
    /// The number of the latter packets that the cache has looked at so far.
    looked: usize,
    /// The least number of packets that were left out last.
    least: usize,
    /// What had been seen at the last decision.
    seen: Seen,
    /// Varies the number of packets that are left out, so that flows that send in a fixed order do
    /// not stay unseen.
    turn: u32,
}

impl Sample {
    pub(super) fn new() -> Self {
        Self { out: 0, some: MANY, looked: 0, least: 0, seen: Seen::default(), turn: 0 }
    }

    /// Whether the cache looks at the next `packets` packets.
    #[inline]
    pub(super) fn takes(&mut self, packets: usize, seen: Seen) -> bool {
        if self.looked >= self.some {
            let looked = self.looked as u64;
            let is_new = (seen.again - self.seen.again) * AMONG < looked;
            let hits = seen.hits - self.seen.hits;
            // Measured: the search for a record takes as long as two lookups of a program. A packet
            // that takes a record saves the program's lookups and about as much time as two more.
            let is_idle = seen.lookups.is_some_and(|lookups| hits * (lookups + 2) < 2 * looked);
            let least = match self.least {
                0 => LEFT_OUT,
                least if is_idle => (2 * least).min(MOST_LEFT_OUT),
                least => least,
            };
            // The number of left-out packets varies by a factor of up to two.
            let turn = self.turn.wrapping_add(0x9e37_79b9);
            let more = (turn >> 16) as usize % least;
            let (out, some, least) =
                if is_new || is_idle { (least + more, FEW, least) } else { (0, MANY, 0) };
            *self = Self { out, some, looked: 0, least, seen, turn };
        }
        let is_looked_at = self.out == 0;
        match is_looked_at {
            true => self.looked += packets,
            false => self.out = self.out.saturating_sub(packets),
        }
        is_looked_at
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_LEFT_OUT, Sample, Seen};

    /// A test in which packets come in parts of one size.
    struct Run {
        sample: Sample,
        part: usize,
        seen: Seen,
    }

    impl Run {
        fn new(part: usize) -> Self {
            Self { sample: Sample::new(), part, seen: Seen::default() }
        }

        /// Offers this number of packets in parts. In each part, `again` packets belong to known
        /// flows. Returns the number of packets that the cache looked at.
        fn looked_at(&mut self, packets: usize, again: u64) -> usize {
            let mut looked = 0;
            for _ in 0..packets / self.part {
                if self.sample.takes(self.part, self.seen) {
                    looked += self.part;
                    self.seen.again += again;
                }
            }
            looked
        }
    }

    #[test]
    fn quarter_is_looked_at_while_flows_are_new() {
        for part in [1, 32] {
            let mut run = Run::new(part);
            assert_eq!(run.looked_at(128, 0), 128);
            let quarter = run.looked_at(12_800, 0);
            assert!((2_600..=3_400).contains(&quarter), "{quarter}");
            // The cache looks at all packets as soon as some of the flows are known.
            let all = run.looked_at(12_800, part.div_ceil(16) as u64);
            assert!(all > 12_800 - 2 * 128, "{all}");
        }
    }

    #[test]
    fn flows_that_come_in_turn_are_met_again() {
        // Some of these numbers of flows equal the average number of packets of a turn: left out
        // and looked at.
        for flows in [96_usize, 128, 256, 1_000, 1 << 14] {
            let (mut sample, mut met, mut again) = (Sample::new(), vec![false; flows], 0);
            let looked = (0..20 * flows.max(128)).filter(|at| {
                let takes = sample.takes(1, Seen { again, ..Seen::default() });
                again += u64::from(takes && std::mem::replace(&mut met[at % flows], true));
                takes
            });
            let (looked, all) = (looked.count(), 20 * flows.max(128));
            assert!(looked > all * 9 / 10, "{looked} of {all}");
        }
    }

    #[test]
    fn few_that_come_again_by_chance_change_nothing() {
        let mut run = Run::new(32);
        let quarter = run.looked_at(128_128, 1);
        assert!((26_000..=34_000).contains(&quarter), "{quarter}");
    }

    #[test]
    fn few_packets_are_looked_at_while_few_take_records() {
        let mut run = Run::new(32);
        run.seen.lookups = Some(1);
        // All packets belong to known flows, and none takes a record.
        run.looked_at(12_800, 32);
        let looked = run.looked_at(128_000, 32);
        let least = 128_000 * 32 / (2 * MOST_LEFT_OUT + 32);
        assert!((least..2 * least).contains(&looked), "{looked}");
        // Nearly all packets take records from now on.
        let before = run.seen;
        for _ in 0..400 {
            if run.sample.takes(32, run.seen) {
                (run.seen.again, run.seen.hits) = (run.seen.again + 32, run.seen.hits + 28);
            }
        }
        assert!(run.seen.hits - before.hits > 28 * 300, "{:?}", run.seen);
        // A record that replaces ten lookups pays even if only some packets take records.
        run.seen.lookups = Some(10);
        for _ in 0..400 {
            assert!(run.sample.takes(32, run.seen));
            (run.seen.again, run.seen.hits) = (run.seen.again + 32, run.seen.hits + 8);
        }
    }
}
