//! The admission filter: it decides which flows are worth a record.
#![expect(
    clippy::indexing_slicing,
    reason = "`place` returns a row of `rows`, and `way` a number below `WAYS`"
)]

use braid_state::prefetch;

/// Counts how often packets of each flow arrive, approximately and in little memory. An arrival is
/// called a meeting. The filter admits a flow at a certain meeting, at first the fourth, then at
/// each meeting whose number is a larger power of two, up to 128. From there on, it admits about
/// every 128th meeting. So scans and single packets cost little, and the cache rarely retries flows
/// that cannot have a record. The cache raises the number of the first admitting meeting while
/// records do not pay ([`crate::payback`]).
///
/// A flow belongs to one row. A row holds [`WAYS`] flows, with 12 bits of each flow's hash. It is
/// half a cache line and is compared as a whole. When a row is full, a new flow takes the way of a
/// flow that was met once. If there is no such flow, the filter lowers the count of one flow. So
/// the counts of inactive flows decay.
///
/// The filter starts small, so that it stays in the processor's caches. When too many flows find
/// their rows full, the filter grows to its largest size. The stored bits of a flow's hash do not
/// determine its row in the larger filter, so the filter keeps its old rows for a while: a flow
/// moves, with its count, when it is met again.
pub(super) struct Filter {
    rows: Vec<Row>,
    /// The rows from before the filter grew. Empty before, and some time after.
    old: Vec<Row>,
    /// Number of searches in the old rows until they are dropped.
    searches: usize,
    /// The largest number of rows.
    most: usize,
    /// How many flows found their rows full.
    crowded: usize,
    /// The count at which a flow is first admitted, and the value of this count at the beginning.
    first: Met,
    start: Met,
    /// The number of meetings of flows that had been met at least 8 times.
    often: u64,
    /// The number of meetings of flows that had been met before.
    pub(super) again: u64,
}

/// The number of flows in a row.
const WAYS: usize = 16;
/// The initial number of rows.
const ROWS: usize = 1 << 12;
/// Number of searches in the old rows for each flow that has room in them.
const SEARCHES: usize = 8;

/// The flows of a row, in 16 bits each: the upper 12 bits hold the tag, the lower 4 the count
/// ([`Met`]).
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Row([u16; WAYS]);

/// The place of a flow: its row, its tag, and the way at which the search for a flow to replace
/// starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    row: usize,
    tag: u16,
    from: u32,
}

/// A count of meetings: the exact number up to 8, then 9 for about 16 meetings, 10 for 32, 11 for
/// 64 and 12 for 128. 0 means that the way is empty.
type Met = u8;
/// The largest count. It stands for 128 meetings or more.
const MOST: Met = 12;
/// The count of a flow that the next meeting admits, whatever the first admitting count is.
const EXPECTED: Met = 13;
/// The least first admitting count: a flow's second packet.
const EARLIEST: Met = 2;
/// The largest first admitting count: about 64 meetings.
const LATEST: Met = 11;

const TAG: u16 = 0xfff0;
const TIMES: u16 = 0x000f;
/// A tag that no flow has.
const NO_TAG: u16 = 0x0fff;

/// The first way among these bits, if there is one.
#[inline(always)]
fn way(ways: u16) -> Option<usize> {
    (ways != 0).then(|| ways.trailing_zeros() as usize % WAYS)
}

impl Row {
    /// A row without flows.
    const EMPTY: Row = Row([NO_TAG << 4; WAYS]);

    /// The ways whose 16 bits equal `is` under a mask, as bits.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the result has a bit for each of the 16 ways"
    )]
    fn ways(&self, mask: u16, is: u16) -> u16 {
        use safe_arch::{cmp_eq_mask_i16_m128i, m128i, move_mask_i8_m128i, pack_i16_to_i8_m128i};
        let [low, high] = *self.0.as_chunks::<8>().0 else { return 0 };
        let splat = |value| m128i::from([value; 8]);
        let same = |half| cmp_eq_mask_i16_m128i(m128i::from(half) & splat(mask), splat(is));
        move_mask_i8_m128i(pack_i16_to_i8_m128i(same(low), same(high))) as u16
    }

    /// The ways whose 16 bits equal `is` under a mask, as bits.
    #[cfg(not(target_arch = "x86_64"))]
    fn ways(&self, mask: u16, is: u16) -> u16 {
        let same = self.0.iter().map(|flow| u16::from(flow & mask == is));
        same.rev().fold(0, |ways, same| ways << 1 | same)
    }

    /// The way of the flow with this tag.
    #[inline(always)]
    fn find(&self, tag: u16) -> Option<usize> {
        way(self.ways(TAG, tag << 4))
    }

    /// The first way, beginning at `from`, of a flow that was met this often.
    #[inline(always)]
    fn met(&self, times: Met, from: u32) -> Option<usize> {
        let ways = self.ways(TIMES, times.into()).rotate_right(from);
        way(ways).map(|way| (way + from as usize) % WAYS)
    }

    #[inline(always)]
    fn times(&self, way: usize) -> Met {
        (self.0[way] & TIMES) as Met
    }

    #[inline(always)]
    fn set(&mut self, way: usize, tag: u16, times: Met) {
        self.0[way] = tag << 4 | u16::from(times);
    }

    /// Adds a flow, unless all other flows of the row were met several times. Returns whether the
    /// row had room.
    #[inline(never)]
    fn add(&mut self, place: Place, times: Met) -> bool {
        let free = self.met(0, 0);
        match free.or_else(|| self.met(1, place.from)) {
            Some(way) => self.set(way, place.tag, times),
            None => {
                let way = place.from as usize % WAYS;
                match self.times(way) {
                    EXPECTED => self.set(way, self.0[way] >> 4, 1),
                    _ => self.0[way] -= 1,
                }
            }
        }
        free.is_some()
    }
}

impl Filter {
    /// Creates a filter for this number of records. It can hold twice as many flows, within limits.
    pub(super) fn new(first: u8, records: usize) -> Self {
        let most = (2 * records / WAYS).clamp(1 << 8, 1 << 18).next_power_of_two();
        let rows = vec![Row::EMPTY; most.min(ROWS)];
        let (old, start) = (Vec::new(), first);
        Self { rows, old, searches: 0, most, crowded: 0, first, start, often: 0, again: 0 }
    }

    /// Whether flows are admitted later than at the beginning.
    pub(super) fn admits_late(&self) -> bool {
        self.first > self.start
    }

    /// From now on, a flow must be met about twice as often before it is admitted.
    pub(super) fn admit_later(&mut self) {
        self.first = if self.first < 8 { self.first * 2 } else { (self.first + 1).min(LATEST) };
    }

    /// From now on, a flow must be met about half as often before it is admitted.
    pub(super) fn admit_earlier(&mut self) {
        let first = if self.first > 8 { self.first - 1 } else { self.first / 2 };
        self.first = first.max(EARLIEST);
    }

    /// Adds a flow to its row, and enlarges the filter when too many flows found their rows full.
    fn add(&mut self, place: Place, times: Met) {
        if self.rows[place.row].add(place, times) {
            return;
        }
        self.crowded += 1;
        if self.crowded > self.rows.len() && self.rows.len() < self.most {
            self.searches = self.rows.len() * WAYS * SEARCHES;
            self.old = std::mem::replace(&mut self.rows, vec![Row::EMPTY; self.most]);
        }
    }

    /// The old row of a flow and the flow's way in it, if it was met before the filter grew and not
    /// since.
    fn find_old(&self, hash: u64, tag: u16) -> Option<(usize, usize)> {
        let row = (hash >> 40) as usize & self.old.len().checked_sub(1)?;
        Some((row, self.old[row].find(tag)?))
    }

    /// Moves a flow from its old row to its row. Returns its way there, if the row had room.
    fn moved(&mut self, hash: u64, place: Place) -> Option<usize> {
        let found = self.find_old(hash, place.tag);
        self.searches = self.searches.saturating_sub(1);
        if let Some((row, way)) = found {
            let times = self.old[row].times(way);
            self.old[row].set(way, NO_TAG, 0);
            self.add(place, times);
        }
        if self.searches == 0 {
            self.old = Vec::new();
        }
        found.and_then(|_| self.rows[place.row].find(place.tag))
    }

    /// The count after one more meeting, and whether this meeting admits the flow.
    #[inline(always)]
    fn next(&self, met: Met) -> (Met, bool) {
        match met {
            EXPECTED => (self.start, true),
            0..8 => (met + 1, met + 1 >= self.first && (met + 1).is_power_of_two()),
            // The count rises with a probability, so that each step takes about as many meetings as
            // all steps before it. The largest count stays, and admits as rarely as the step before
            // it.
            _ => {
                let chance = self.often.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let is_next = chance & ((1 << (met - 5)) - 1) == 0;
                let next = (met + u8::from(is_next)).min(MOST);
                (next, is_next && next >= self.first)
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a tag is at most `NO_TAG`")]
    fn place(&self, hash: u64) -> Place {
        let row = (hash >> 40) as usize & (self.rows.len() - 1);
        let tag = (hash >> 28 & u64::from(NO_TAG)).min(u64::from(NO_TAG - 1)) as u16;
        Place { row, tag, from: (hash >> 60) as u32 }
    }

    /// Prefetches the row of a flow.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(self.rows.get(self.place(hash).row));
    }

    /// Whether a flow would be admitted if it were met now.
    pub(super) fn would_admit(&self, hash: u64) -> bool {
        let Place { row, tag, .. } = self.place(hash);
        let row = &self.rows[row];
        let old = || self.find_old(hash, tag).map(|(row, way)| self.old[row].times(way));
        let times = row.find(tag).map(|way| row.times(way)).or_else(old);
        times.is_some_and(|times| self.next(times).1)
    }

    /// Sets a flow's count so that its next meeting admits it.
    pub(super) fn expect(&mut self, hash: u64) {
        let place = self.place(hash);
        let row = &mut self.rows[place.row];
        match row.find(place.tag) {
            Some(way) => row.set(way, place.tag, EXPECTED),
            None => self.add(place, EXPECTED),
        }
    }

    /// Removes a flow that has got a record. The filter may confuse the flow with another one that
    /// has the same tag. The other flow then starts from its first meeting and is admitted as
    /// usual.
    pub(super) fn forget(&mut self, hash: u64) {
        let Place { row, tag, .. } = self.place(hash);
        let row = &mut self.rows[row];
        if let Some(way) = row.find(tag) {
            row.set(way, NO_TAG, 0);
        }
    }

    /// Counts a meeting of a flow, and returns whether it admits the flow. If `may` is false, an
    /// admitting meeting is not counted, so that the next meeting admits the flow, too.
    #[inline(always)]
    pub(super) fn meets(&mut self, hash: u64, may: bool) -> bool {
        let place = self.place(hash);
        match self.rows[place.row].find(place.tag) {
            Some(way) => self.meets_again(place, way, may),
            None => self.meets_other(hash, place, may),
        }
    }

    /// Counts a meeting of a flow that is not in its row.
    #[inline(never)]
    fn meets_other(&mut self, hash: u64, place: Place, may: bool) -> bool {
        if !self.old.is_empty()
            && let Some(way) = self.moved(hash, place)
        {
            return self.meets_again(place, way, may);
        }
        self.add(place, 1);
        false
    }

    /// Counts a meeting of a flow in its row.
    #[inline(always)]
    fn meets_again(&mut self, place: Place, way: usize, may: bool) -> bool {
        self.again += 1;
        let met = self.rows[place.row].times(way);
        let (next, is_admitted) = self.next(met);
        if may || !is_admitted {
            self.rows[place.row].set(way, place.tag, next);
            self.often += u64::from((8..=MOST).contains(&met));
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use braid_externs::rng::{GAMMA, mix};

    /// A well-mixed hash.
    fn hash(number: u64) -> u64 {
        mix(number.wrapping_add(1).wrapping_mul(GAMMA))
    }

    #[test]
    fn flows_that_the_filter_confuses_are_both_admitted() {
        let mut filter = Filter::new(4, 1000);
        let (one, other) = (7 << 32, 7 << 32 | 1);
        assert_eq!(filter.place(one), filter.place(other));
        let mut waiting = vec![one, other];
        let mut met = 0;
        while !waiting.is_empty() && met < 100 {
            met += 1;
            let hash = waiting[met % waiting.len()];
            if filter.meets(hash, true) {
                filter.forget(hash);
                waiting.retain(|waits| *waits != hash);
            }
        }
        assert!(met <= 2 * 4, "{met}");
    }

    #[test]
    fn flow_is_admitted_when_it_has_been_met_twice_as_often_as_before() {
        for first in [2, 4] {
            let mut filter = Filter::new(first, 1000);
            let mut admitted = Vec::new();
            for time in 1..=4000 {
                let would = filter.would_admit(hash(7));
                assert!(!would || filter.meets(hash(7), false));
                if filter.meets(hash(7), true) {
                    assert!(would);
                    admitted.push(time);
                }
            }
            let (exact, about) = admitted.split_at(if first == 2 { 3 } else { 2 });
            assert_eq!(exact, &[2, 4, 8][3 - exact.len()..]);
            assert!(about.iter().zip([16, 32, 64, 128]).all(|(at, about)| at / 3 < about));
            // The others come about 128 meetings apart.
            assert!((15..60).contains(&about.len()), "{about:?}");
        }
    }

    #[test]
    fn flows_are_admitted_later_and_earlier_when_told_so_but_expected_flows_at_once() {
        let mut filter = Filter::new(4, 1000);
        let mut number = 0;
        // The mean number of meetings of a flow until it is first admitted.
        let mut first = |filter: &mut Filter| {
            let mut meetings = 0;
            for _ in 0..200 {
                number += 1;
                meetings += (1..).find(|_| filter.meets(hash(number), true)).unwrap();
                filter.forget(hash(number));
                filter.expect(hash(number));
                assert!(filter.would_admit(hash(number)) && filter.meets(hash(number), true));
                filter.forget(hash(number));
            }
            f64::from(meetings) / 200.0
        };
        for about in [4.0, 8.0, 16.0, 32.0, 64.0] {
            let mean = first(&mut filter);
            assert!((0.8 * about..1.25 * about).contains(&mean), "{about}: {mean}");
            filter.admit_later();
        }
        assert!(first(&mut filter) < 80.0, "not later than about the 64th meeting");
        for _ in 0..10 {
            filter.admit_earlier();
        }
        assert_eq!(first(&mut filter), 2.0, "not earlier than the second meeting");
    }

    /// The percentage of flows that are admitted by the fourth round. Each round meets all flows
    /// once, in another order. There are `flows_in_row` flows for each row.
    fn admitted(flows_in_row: u64) -> u64 {
        let mut filter = Filter::new(4, 8 << 10);
        let flows = flows_in_row * filter.rows.len() as u64;
        let mut waits = vec![true; flows as usize];
        for round in 1..=4 {
            for step in 0..flows {
                // Each round has another order.
                let flow = (step * (2 * round * 7919 + 1) + round) % flows;
                if waits[flow as usize] && filter.meets(hash(flow), true) {
                    filter.forget(hash(flow));
                    waits[flow as usize] = false;
                }
            }
        }
        waits.iter().filter(|waits| !**waits).count() as u64 * 100 / flows
    }

    #[test]
    fn most_flows_are_admitted_by_the_fourth_time_while_there_is_room() {
        let shares = [8, 16, 32].map(admitted);
        assert!(shares[0] >= 99 && shares[1] >= 75 && shares[2] >= 20, "{shares:?}");
    }

    #[test]
    fn there_is_more_room_when_flows_do_not_fit() {
        let mut filter = Filter::new(4, 1 << 20);
        let mut rows = vec![filter.rows.len()];
        let meet = |filter: &mut Filter, flows: u64| {
            (0..flows).filter(|flow| filter.meets(hash(*flow), true)).count() as u64
        };
        for flows in [20_000, 40_000, 200_000, 1_000_000] {
            for _ in 0..3 {
                meet(&mut filter, flows);
            }
            rows.push(filter.rows.len());
        }
        assert_eq!(rows, [1 << 12, 1 << 12, 1 << 12, 1 << 17, 1 << 17]);
        // A fifth was met more often than the other flows.
        assert!(meet(&mut filter, 1_000_000) > 790_000);
    }

    #[test]
    fn flows_keep_their_counts_when_the_filter_grows() {
        let mut grown = 0;
        for seed in 0..braid_cases::at_least(8).into() {
            let (mut filter, flows) = (Filter::new(4, 1 << 20), 50_000_u64);
            let mut waits = vec![true; flows as usize];
            for _ in 0..6 {
                for flow in 0..flows {
                    let hash = hash(flow | seed << 40);
                    if waits[flow as usize] && filter.meets(hash, true) {
                        filter.forget(hash);
                        waits[flow as usize] = false;
                    }
                }
            }
            grown += u32::from(filter.rows.len() > 1 << 12);
            // A filter that started again from empty would let half of the flows wait.
            let wait = waits.iter().filter(|waits| **waits).count();
            assert!(wait < 1_000, "{seed}: {wait} flows wait");
        }
        assert!(grown > 0, "no filter has grown");
    }

    #[test]
    fn old_rows_are_dropped_after_a_while() {
        let mut filter = Filter::new(4, 1 << 20);
        (0..200_000).for_each(|flow| assert!(!filter.meets(hash(flow), true)));
        assert!(!filter.old.is_empty());
        let flow = (0..200_000).find(|flow| {
            let hash = hash(*flow);
            filter.find_old(hash, filter.place(hash).tag).is_some()
        });
        let flow = hash(flow.unwrap());
        assert!(!filter.would_admit(flow) && !filter.meets(flow, true));
        assert!(filter.find_old(flow, filter.place(flow).tag).is_none());
        (0..1_000_000).for_each(|flow| assert!(!filter.meets(hash(flow | 1 << 40), true)));
        assert!(filter.old.is_empty());
    }

    #[test]
    fn scan_makes_no_records_and_leaves_room_for_flows_that_come_again() {
        let mut filter = Filter::new(4, 8 << 10);
        let mut scan = (0..).map(|flow: u64| hash(flow | 1 << 40));
        let admitted = scan.by_ref().take(400_000).filter(|flow| filter.meets(*flow, true)).count();
        assert!(admitted <= 3, "{admitted}");
        // Now a thousand flows come in turn, each after twenty flows of the scan.
        let mut others = 0;
        for round in 0..12_000 {
            for flow in scan.by_ref().take(20) {
                filter.meets(flow, true);
            }
            let flow = hash(round % 1000);
            if filter.meets(flow, true) {
                filter.forget(flow);
                others += 1;
            }
        }
        assert!(others > 500, "{others}");
    }
}
