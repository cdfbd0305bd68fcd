//! Which flows are worth a record: those that have been met before.

/// Which flows have been met before, as well as can be said in little room: a flow that is met for the
/// `first` time, and then twice, four times… as often, is admitted. So scans and single packets cost little, and flows
/// that cannot have a record are not tried over and over.
pub(super) struct Filter {
    places: Vec<[Met; WAYS]>,
    /// The meeting at which a flow is first admitted: a power of two.
    first: u8,
}

/// A flow that was met so many times.
#[derive(Clone, Copy)]
struct Met {
    tag: u8,
    times: u8,
}

/// Flows that have one place.
const WAYS: usize = 4;

impl Filter {
    /// For so many records: twice as many flows are told apart.
    pub(super) fn new(first: u8, records: usize) -> Self {
        // Not zero, so that the memory is there before the first packet.
        let none = Met { tag: u8::MAX, times: 0 };
        let places = (2 * records / WAYS).clamp(1 << 10, 1 << 20).next_power_of_two();
        Self { places: vec![[none; WAYS]; places], first }
    }

    /// Whether a flow is admitted when it is met for so many times.
    #[inline]
    fn admits(first: u8, times: u8) -> bool {
        times >= first && times.is_power_of_two()
    }

    /// Place, tag, and which other flow it drives out if need be.
    fn place(&self, hash: u64) -> (usize, u8, usize) {
        let place = (hash >> 40) as usize & (self.places.len() - 1);
        (place, (hash >> 32) as u8, (hash >> 62) as usize % WAYS)
    }

    /// Reads what meeting a flow will read. The result means nothing.
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u8 {
        let (place, ..) = self.place(hash);
        self.places[place][0].times
    }

    /// Whether a flow would be admitted if it were met now.
    pub(super) fn would_admit(&self, hash: u64) -> bool {
        let (place, tag, _) = self.place(hash);
        let met = self.places[place].iter().find(|met| met.tag == tag && met.times > 0);
        met.is_some_and(|met| Self::admits(self.first, met.times.saturating_add(1)))
    }

    /// A flow will be admitted when it is next met.
    pub(super) fn expect(&mut self, hash: u64) {
        let (place, tag, way) = self.place(hash);
        let ways = &mut self.places[place];
        let own = ways.iter().position(|met| met.tag == tag && met.times > 0);
        let free = || ways.iter().position(|met| met.times == 0);
        ways[own.or_else(free).unwrap_or(way)] = Met { tag, times: self.first - 1 };
    }

    /// A flow has a record now. Another one that it was confused with is met for the first time when it comes next: it
    /// would else see every other number only.
    pub(super) fn forget(&mut self, hash: u64) {
        let (place, tag, _) = self.place(hash);
        let met = self.places[place].iter_mut().find(|met| met.tag == tag);
        if let Some(met) = met {
            met.times = 0;
        }
    }

    /// A flow is met, unless it would thereby be admitted, and now `may` not be: whether it is, or would be.
    #[inline]
    pub(super) fn meets(&mut self, hash: u64, may: bool) -> bool {
        let (place, tag, way) = self.place(hash);
        let ways = &mut self.places[place];
        if let Some(met) = ways.iter_mut().find(|met| met.tag == tag && met.times > 0) {
            let times = met.times.saturating_add(1);
            let is_admitted = Self::admits(self.first, times);
            if may || !is_admitted {
                met.times = times;
            }
            return is_admitted;
        }
        let free = ways.iter().position(|met| met.times == 0);
        ways[free.unwrap_or(way)] = Met { tag, times: 1 };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

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
}
