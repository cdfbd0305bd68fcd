//! The expiry of entries of a table: the times at which they are due, and the queue of the next
//! ones.
#![expect(clippy::indexing_slicing, reason = "each place has cold data")]

use crate::table::{Table, exists};

impl Table {
    /// The time (ns) at which the group of the root at this place expires, if no packet finds it
    /// after `seen`. `None` if it never expires.
    pub(crate) fn deadline(&self, place: u32, seen: u64) -> Option<u64> {
        self.limits.times.deadline(self.cold(place).created_ns, seen)
    }

    /// Queues the entry at a place, which was last seen at `seen`. `number` is the place's number.
    /// Returns the time at which the entry is due (ns).
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place has 32 bits, so its number has no more"
    )]
    pub(crate) fn schedule(&mut self, number: usize, seen: u64) -> Option<u64> {
        let cold = &mut self.cold[number];
        let due = self.limits.times.deadline(cold.created_ns, seen)?;
        self.queue.as_mut()?.push((due, cold.id, number as u32), cold);
        Some(due)
    }

    /// As [`Table::schedule`], for an entry that begins at `now`. Returns `None` also if the store
    /// knows of an entry of this table that is due at the same time.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place has 32 bits, so its number has no more"
    )]
    pub(crate) fn schedule_new(&mut self, number: usize, now: u64) -> Option<u64> {
        let (queue, cold) = (self.queue.as_mut()?, &mut self.cold[number]);
        if !cold.is_queued && queue.push_like_latest(number as u32, now) {
            cold.is_queued = true;
            return None;
        }
        self.schedule_another(number as u32, now)
    }

    /// As [`Table::schedule_new`], for the first new entry with its deadline.
    #[inline(never)]
    fn schedule_another(&mut self, number: u32, now: u64) -> Option<u64> {
        let cold = &mut self.cold[number as usize];
        let due = self.limits.times.deadline(now, now)?;
        self.queue.as_mut()?.push_new((due, cold.id, number), &self.limits.times, cold);
        Some(due)
    }

    /// Takes the first item out of the queue if it is due at this time (`Queue::pop`). Returns the
    /// number of its place if the entry there is due then, too. Otherwise queues the entry again,
    /// and returns `Some(None)`. `last_used` gives the time at which the dependents of the entry
    /// with a number were last used.
    #[inline(always)]
    #[expect(clippy::option_option, reason = "an item without a due entry is not the last one")]
    pub(crate) fn take_due(
        &mut self,
        due: u64,
        last_used: impl Fn(u32) -> Option<u64>,
    ) -> Option<Option<usize>> {
        let (_, id, number) = self.queue.as_mut()?.pop(due)?;
        let cold = &mut self.cold[number as usize];
        cold.is_queued = false;
        let (created, is_it) = (cold.created_ns, cold.id == id);
        if let Some(seen) = last_used(number) {
            self.renew_number(number, seen);
        }
        let place = self.place(number as usize);
        if !exists(self.head(place)) {
            return Some(None);
        }
        let (number, seen) = (number as usize, self.last_seen(place));
        // If the item was made for an earlier entry of the place, the present entry is queued
        // again, because it has its own turn among equal times.
        if is_it && self.limits.times.is_over(created, seen, due) {
            return Some(Some(number));
        }
        self.schedule(number, seen);
        Some(None)
    }

    /// Opens the first slot of the queue. Queues each entry of the slot again with its current
    /// deadline. `last_used` is as for [`Table::take_due`].
    #[inline(never)]
    pub(crate) fn open_slot(&mut self, last_used: impl Fn(u32) -> Option<u64>) {
        let Self { queue: Some(queue), cold, hot, stride, seen_at, limits, .. } = self else {
            return;
        };
        let (hot, stride, seen_at, times) = (&*hot, *stride, *seen_at, limits.times);
        let place = move |number: u32| (number as usize).wrapping_mul(stride);
        let fetch = move |number| hot.prefetch(place(number));
        queue.open(&times, cold, fetch, move |number, cold| {
            let place = place(number);
            if !exists(hot.word(place)) {
                return None;
            }
            let seen = hot.word(place.wrapping_add(seen_at));
            let seen = last_used(number).map_or(seen, |used| used.max(seen));
            times.over_at(cold.created_ns, seen)
        });
    }

    /// Computes all deadlines again after a change of time-outs or tick.
    pub(crate) fn reschedule(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.clear(&self.limits.times, &mut self.cold);
            let all: Vec<u32> = self.places().collect();
            for place in all {
                self.schedule(self.number(place), self.last_seen(place));
            }
        }
    }
}
