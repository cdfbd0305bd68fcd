//! Classes of records: what those of a class have counted, and whether they are outdated, since something has changed
//! that all of them rested on beside state.
//!
//! Nothing happens to an outdated record at that moment, however many there are: whoever takes records passes it by,
//! and it ends when another one of its flow takes its place, when any other one needs room, or, if its flow has been
//! silent for a while, when it is met by a search that goes on a little at a time.

use crate::shelf::{Body, IS_WIDE};
use crate::store::Store;

/// Records that the search looks at, at a time.
const AT_A_TIME: usize = 2;

/// How long an outdated record that is met by the search must not have been taken to end (ns).
const SILENT_NS: u64 = 10_000_000_000;

/// All classes, by number.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
    /// Outdated ones without records.
    empty: Vec<u32>,
    /// Outdated records.
    outdated: usize,
    /// Where the search goes on: wide records come behind narrow ones.
    next: usize,
}

/// A class.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    /// Packets and bytes of its records, but for those that records have counted themselves.
    counts: (u64, u64),
    /// Records that there are.
    records: u32,
    is_outdated: bool,
}

impl Classes {
    fn get(&mut self, class: u32) -> &mut Class {
        let at = class as usize;
        if self.all.len() <= at {
            self.all.resize(at + 1, Class::default());
        }
        &mut self.all[at]
    }

    /// Adds to what a class has counted.
    pub(crate) fn count(&mut self, class: u32, packets: u32, bytes: u32) {
        let counts = &mut self.get(class).counts;
        counts.0 += u64::from(packets);
        counts.1 += u64::from(bytes);
    }

    /// A record of a class is made.
    pub(crate) fn join(&mut self, class: u32) {
        self.get(class).records += 1;
    }

    /// A record of a class has ended.
    pub(crate) fn leave(&mut self, class: u32) {
        let one = self.get(class);
        one.records -= 1;
        if one.is_outdated {
            let is_empty = one.records == 0;
            self.outdated -= 1;
            self.empty.extend(is_empty.then_some(class));
        }
    }

    pub(crate) fn is_outdated(&self, class: u32) -> bool {
        self.all.get(class as usize).is_some_and(|class| class.is_outdated)
    }
}

impl Store {
    /// What the records of a class rested on beside state has changed.
    pub fn outdate_class(&mut self, class: u32) {
        let classes = &mut self.records.classes;
        let one = classes.get(class);
        let records = one.records;
        if !std::mem::replace(&mut one.is_outdated, true) {
            classes.outdated += records as usize;
            // No record that ends later has to ask for memory.
            classes.empty.reserve(classes.all.len() - classes.empty.len());
            classes.empty.extend((records == 0).then_some(class));
        }
    }

    /// An outdated class of which there is no record any more, and the packets and bytes that its records have
    /// counted: it begins anew.
    pub fn renew_class(&mut self) -> Option<(u32, (u64, u64))> {
        let class = self.records.classes.empty.pop()?;
        let before = std::mem::take(self.records.classes.get(class));
        Some((class, before.counts))
    }

    /// Whether there are outdated records.
    #[must_use]
    pub fn has_outdated_records(&self) -> bool {
        self.records.classes.outdated > 0
    }

    /// Whether the records of a class are outdated.
    #[must_use]
    pub fn is_class_outdated(&self, class: u32) -> bool {
        self.records.classes.is_outdated(class)
    }

    /// Ends outdated records of flows that have been silent for a while: of a few next ones, so that all have been
    /// looked at after a time. Costs nothing if there are none.
    #[inline]
    pub fn sweep_records(&mut self, now: u64) {
        if self.has_outdated_records() {
            self.sweep(now);
        }
    }

    #[inline(never)]
    fn sweep(&mut self, now: u64) {
        let narrow = self.records.narrow.all.len();
        let all = narrow + self.records.wide.all.len();
        for _ in 0..AT_A_TIME {
            let at = self.records.classes.next;
            self.records.classes.next = (at + 1) % all;
            let number =
                if at < narrow { at as u32 } else { at.wrapping_sub(narrow) as u32 | IS_WIDE };
            let Body { seen, class, .. } = *self.records.body(number);
            if self.is_class_outdated(class) && now.saturating_sub(seen) > SILENT_NS {
                self.end_record(number);
            }
        }
    }

    /// Packets and bytes that records of each class have counted since it has its number.
    #[must_use]
    pub fn record_counts(&self) -> Vec<(u64, u64)> {
        let all = self.records.classes.all.iter();
        let mut counts: Vec<_> = all.map(|class| class.counts).collect();
        let taken = self.records.numbers().filter(|one| self.records.body(*one).packets > 0);
        for Body { class, packets, bytes, .. } in taken.map(|one| self.records.counted(one)) {
            // A record has its class from the start.
            let Some(count) = counts.get_mut(class as usize) else { continue };
            count.0 += u64::from(packets);
            count.1 += u64::from(bytes);
        }
        counts
    }
}
