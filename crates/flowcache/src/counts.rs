//! What records have counted, and what each may still count.

use crate::slab::{Hot, Slabs};
use std::collections::HashMap;

/// The counts that records do not hold themselves.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Where the count of bytes of each record with bounds began ([`crate::fuel`]).
    fuel: HashMap<u32, u32>,
    /// Packets and bytes that each record has counted and given away, if anyone asked for that.
    totals: Option<HashMap<u32, (u64, u64)>>,
}

impl Counts {
    /// A record has this number that has counted nothing yet.
    pub(crate) fn start(&mut self, number: u32) {
        if let Some(all) = &mut self.totals {
            all.remove(&number);
        }
    }

    /// A record has ended.
    pub(crate) fn end(&mut self, number: u32) {
        self.fuel.remove(&number);
    }

    /// From now on, the packets and bytes that each record has counted are kept.
    pub(crate) fn keep_totals(&mut self) {
        self.totals.get_or_insert_default();
    }

    /// What a record has counted and given away.
    pub(crate) fn total(&self, number: u32) -> (u64, u64) {
        self.totals.as_ref().and_then(|all| all.get(&number)).copied().unwrap_or_default()
    }

    /// A record gives away what it has counted.
    #[inline]
    pub(crate) fn give(&mut self, number: u32, packets: u32, bytes: u32) {
        let Some(all) = &mut self.totals else { return };
        let total = all.entry(number).or_default();
        total.0 += u64::from(packets);
        total.1 += u64::from(bytes);
    }

    /// A record with what it has counted since that was given away last.
    pub(crate) fn counted(&self, slabs: &Slabs, number: u32) -> Hot {
        let mut hot = slabs.hot(number).clone();
        if let Some(from) = self.fuel.get(&number) {
            hot.bytes = hot.bytes.wrapping_sub(*from);
        }
        hot
    }

    /// What a record has counted was given away. What it may still count stays.
    pub(crate) fn count_anew(&mut self, slabs: &mut Slabs, number: u32) {
        let hot = slabs.hot_mut(number);
        hot.packets = 0;
        match self.fuel.get_mut(&number) {
            Some(from) => *from = hot.bytes,
            None => hot.bytes = 0,
        }
    }

    /// A record with bounds, which has counted nothing, may count packets of so many bytes in all.
    pub(crate) fn fill(&mut self, slabs: &mut Slabs, number: u32, bytes: u32) {
        let from = u32::MAX - bytes;
        self.fuel.insert(number, from);
        slabs.hot_mut(number).bytes = from;
    }

    /// What a record may still count is not known any more.
    pub(crate) fn drain(&mut self, slabs: &mut Slabs, number: u32) {
        if self.fuel.contains_key(&number) {
            self.fill(slabs, number, 0);
        }
    }
}
