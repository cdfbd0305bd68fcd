//! Settles all records, so that the state can be copied. Until the copy is made, no packet takes a
//! record.

use crate::records::Records;
use crate::slab::Hot;
use braid_state::Tables;

impl Records {
    /// From now on, no packet takes a record, until [`Records::resume`]. All records stay.
    pub fn pause(&mut self) {
        self.paused.get_or_insert(0);
    }

    /// Packets take records again.
    pub fn resume(&mut self) {
        self.paused = None;
    }

    /// Whether no packet takes a record.
    #[must_use]
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Whether all records have settled, and no packet has taken one since.
    pub(crate) fn is_settled(&self) -> bool {
        self.paused.is_some_and(|next| next >= self.slabs().len())
    }

    /// Moves the counts of the next `most` records to their entries, which count as seen when the
    /// records were last taken. Returns whether all records have settled. The records must stay
    /// paused between two calls; otherwise the second call begins with the first record again.
    pub fn settle_some(&mut self, tables: &mut Tables, most: usize) -> bool {
        let first = self.paused.unwrap_or(0);
        let end = first.saturating_add(most).min(self.slabs().len());
        for position in first..end {
            let number = self.slabs().number(position);
            let Hot { template, seen, .. } = *self.hot(number);
            if template != Hot::ENDED && seen > 0 {
                self.settle(tables, number);
                for link in self.links(number) {
                    if let Some(one) = self.use_of(link) {
                        tables.renew(tables.group(one.table, link.place), seen);
                    }
                }
            }
        }
        if self.paused.is_some() {
            self.paused = Some(end);
        }
        end == self.slabs().len()
    }
}
