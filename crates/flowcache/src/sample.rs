//! How many packets are looked at for records: fewer while nearly all are of flows that were never met before.

/// Packets that are looked at until it is decided how to go on.
const MANY: usize = 128;
/// The same where few are looked at, and how many are left out before at least.
const FEW: usize = 32;
const LEFT_OUT: usize = 64;
/// One of so many packets at least is of a flow that was met before where records are worth looking for: at fewer,
/// that takes longer than it saves.
const AMONG: u64 = 16;

/// Which packets are looked at. Where hardly any is of a flow that was met before (a scan, a flood), a quarter is: those
/// show when flows come again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Packets that are left out next, and those that are looked at behind them.
    out: usize,
    some: usize,
    /// Of those, how many were by now.
    looked: usize,
    /// Of all that were looked at before, those of flows that had been met.
    again: u64,
    /// By this, some more are left out, now more and now fewer: flows that come in turn are met all the same.
    turn: u32,
}

impl Sample {
    pub(super) fn new() -> Self {
        Self { out: 0, some: MANY, looked: 0, again: 0, turn: 0 }
    }

    /// Whether so many next packets are looked at. Of those that were by now, so many were of flows that had been met
    /// before.
    #[inline]
    pub(super) fn takes(&mut self, packets: usize, again: u64) -> bool {
        if self.looked >= self.some {
            let is_new = (again - self.again) * AMONG < self.looked as u64;
            // Up to as many again.
            let turn = self.turn.wrapping_add(0x9e37_79b9);
            let more = (turn >> 16) as usize % LEFT_OUT;
            let (out, some) = if is_new { (LEFT_OUT + more, FEW) } else { (0, MANY) };
            *self = Self { out, some, looked: 0, again, turn };
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
    use super::Sample;

    /// What is done with packets that come in parts of a size.
    struct Run {
        sample: Sample,
        part: usize,
        again: u64,
    }

    impl Run {
        fn new(part: usize) -> Self {
            Self { sample: Sample::new(), part, again: 0 }
        }

        /// Of so many packets, those that are looked at; of each of these parts so many have been met before.
        fn looked_at(&mut self, packets: usize, again: u64) -> usize {
            let mut looked = 0;
            for _ in 0..packets / self.part {
                if self.sample.takes(self.part, self.again) {
                    looked += self.part;
                    self.again += again;
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
            // All are as soon as some of those that are come again.
            let all = run.looked_at(12_800, part.div_ceil(16) as u64);
            assert!(all > 12_800 - 2 * 128, "{all}");
        }
    }

    #[test]
    fn flows_that_come_in_turn_are_met_again() {
        // As many as parts that are left out and looked at, on average, and some others.
        for flows in [96_usize, 128, 256, 1_000, 1 << 14] {
            let (mut sample, mut met, mut again) = (Sample::new(), vec![false; flows], 0);
            let looked = (0..20 * flows.max(128)).filter(|at| {
                let takes = sample.takes(1, again);
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
}
