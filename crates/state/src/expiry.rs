//! The expiry of entries of a table: the times at which they are due, and the queue of the next ones.

use crate::deadlines::{Item, Times};
use crate::table::{Table, exists};

impl Table {
    /// The time (ns) at which the group of the root at this place expires, if no packet finds it
    /// after `seen`. `None` if it never expires.
    pub(crate) fn deadline(&self, place: u32, seen: u64) -> Option<u64> {
        let Times { idle, hard, tick } = self.limits.times;
        let idle = idle.and_then(|idle| seen.checked_add(idle));
        let hard = hard.and_then(|hard| self.cold(place).created_ns.checked_add(hard));
        idle.into_iter().chain(hard).min()?.div_ceil(tick).checked_mul(tick)
    }

    /// Whether the group of the root at this place expires by `due`, which is a multiple of the
    /// tick. So this needs no rounding.
    #[inline]
    fn is_due(&self, place: u32, due: u64) -> bool {
        let Times { idle, hard, .. } = self.limits.times;
        let is_over = |time: u64, after| time.checked_add(after).is_some_and(|at| at <= due);
        idle.is_some_and(|idle| is_over(self.last_seen(place), idle))
            || hard.is_some_and(|hard| is_over(self.cold(place).created_ns, hard))
    }

    /// Queues the entry at a place. Returns the time at which it is due (ns).
    #[inline]
    pub(crate) fn schedule(&mut self, place: u32) -> Option<u64> {
        let item = self.item(place, self.last_seen(place))?;
        self.queue.as_mut()?.push(item);
        Some(item.0)
    }

    /// The queued item for the entry at a place, which was last seen at `seen` (ns). `None` if the
    /// entry is never due.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a place has 32 bits, so its number has no more"
    )]
    fn item(&self, place: u32, seen: u64) -> Option<Item> {
        let due = self.deadline(place, seen)?;
        Some((due, self.cold(place).id, self.number(place) as u32))
    }

    /// Takes the first item out of the queue. Returns the place if its entry is due at the item's
    /// time. Otherwise queues the entry again. `last_used` gives the time at which the dependents of
    /// the entry with a number were last used.
    #[inline]
    pub(crate) fn take_due(&mut self, last_used: impl Fn(u32) -> Option<u64>) -> Option<u32> {
        let (due, id, number) = self.queue.as_mut()?.pop()?;
        let place = self.place(number as usize);
        if let Some(seen) = last_used(number) {
            self.renew_number(number, seen);
        }
        if !exists(self.head(place)) {
            return None;
        }
        // If the item was made for an earlier entry of the place, the present entry is queued
        // again, because it has its own turn among equal times.
        if self.cold(place).id == id && self.is_due(place, due) {
            return Some(place);
        }
        self.schedule(place);
        None
    }

    /// Opens the first slot of the queue. Queues each entry of the slot again with its current
    /// deadline. `last_used` is as for [`Table::take_due`].
    #[inline(never)]
    pub(crate) fn open_slot(&mut self, last_used: impl Fn(u32) -> Option<u64>) {
        let Some(mut queue) = self.queue.take() else { return };
        queue.open(|number| {
            let place = self.place(number as usize);
            let seen = self.last_seen(place).max(last_used(number).unwrap_or(0));
            exists(self.head(place)).then(|| self.item(place, seen)).flatten()
        });
        self.queue = Some(queue);
    }

    /// Computes all deadlines again after a change of time-outs or tick.
    pub(crate) fn reschedule(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.clear(&self.limits.times);
            let all: Vec<u32> = self.places().collect();
            for place in all {
                self.schedule(place);
            }
        }
    }
}
