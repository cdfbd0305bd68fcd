//! The counts of each record, and the amount that it may still count.

use crate::slab::{Hot, Slabs};
use foldhash::HashMap;

/// Counts that are not in the records themselves.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// For each record with bounds: the start value of its byte counter ([`crate::fuel`]).
    fuel: HashMap<u32, u32>,
    /// The packets and bytes that each record has counted and handed over, after a call of
    /// [`Counts::keep_totals`].
    totals: Option<HashMap<u32, (u64, u64)>>,
}

impl Counts {
    /// Prepares for a new record with this number, which has counted nothing.
    pub(crate) fn start(&mut self, number: u32) {
        if let Some(all) = &mut self.totals {
            all.remove(&number);
        }
    }

    /// Removes the fuel of a record that has ended.
    pub(crate) fn end(&mut self, number: u32) {
        self.fuel.remove(&number);
    }

    /// From now on, keeps the packets and bytes that each record has counted.
    pub(crate) fn keep_totals(&mut self) {
        self.totals.get_or_insert_default();
    }

    /// The counts that a record has handed over.
    pub(crate) fn total(&self, number: u32) -> (u64, u64) {
        self.totals.as_ref().and_then(|all| all.get(&number)).copied().unwrap_or_default()
    }

    /// Adds the counts that a record hands over to its total.
    #[inline]
    pub(crate) fn give(&mut self, number: u32, packets: u32, bytes: u32) {
        let Some(all) = &mut self.totals else { return };
        let total = all.entry(number).or_default();
        total.0 += u64::from(packets);
        total.1 += u64::from(bytes);
    }

    /// A record's hot part with only the counts that it has not handed over yet.
    pub(crate) fn counted(&self, slabs: &Slabs, number: u32) -> Hot {
        let mut hot = slabs.hot(number).clone();
        if let Some(from) = self.fuel.get(&number) {
            hot.bytes = hot.bytes.wrapping_sub(*from);
        }
        hot
    }

    /// Resets the counts of a record that has handed them over. Its fuel stays.
    pub(crate) fn count_anew(&mut self, slabs: &mut Slabs, number: u32) {
        let hot = slabs.hot_mut(number);
        hot.packets = 0;
        match self.fuel.get_mut(&number) {
            Some(from) => *from = hot.bytes,
            None => hot.bytes = 0,
        }
    }

    /// Gives fuel for `bytes` bytes to a record that has bounds and has counted nothing.
    pub(crate) fn fill(&mut self, slabs: &mut Slabs, number: u32, bytes: u32) {
        let from = u32::MAX - bytes;
        self.fuel.insert(number, from);
        slabs.hot_mut(number).bytes = from;
    }

    /// Takes the rest of a record's fuel away, because it may be too much now.
    pub(crate) fn drain(&mut self, slabs: &mut Slabs, number: u32) {
        if self.fuel.contains_key(&number) {
            self.fill(slabs, number, 0);
        }
    }
}
