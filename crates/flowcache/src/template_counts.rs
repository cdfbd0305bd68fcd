//! Classes of records: what those of a template have counted, and whether they are outdated, since something has changed
//! that all of them rested on beside state.
//!
//! Nothing happens to an outdated record at that moment, however many there are: whoever takes records passes it by,
//! and it ends when another one of its flow takes its place, when any other one needs room, or, if its flow has been
//! silent for a while, when it is met by a search that goes on a little at a time.

/// All templates, by number.
#[derive(Debug, Default)]
pub(crate) struct TemplateCounts {
    all: Vec<Template>,
    /// Outdated ones without records.
    empty: Vec<u32>,
    /// Outdated records.
    outdated: usize,
    /// Where the search goes on: wide records come behind narrow ones.
    next: usize,
}

/// A template.
#[derive(Clone, Copy, Debug, Default)]
struct Template {
    /// Packets and bytes of its records, but for those that records have counted themselves.
    counts: (u64, u64),
    /// Records that there are.
    records: u32,
    is_outdated: bool,
}

impl TemplateCounts {
    fn get(&mut self, template: u32) -> &mut Template {
        let at = template as usize;
        if self.all.len() <= at {
            self.all.resize(at + 1, Template::default());
        }
        &mut self.all[at]
    }

    /// Adds to what a template has counted.
    pub(crate) fn count(&mut self, template: u32, packets: u32, bytes: u32) {
        let counts = &mut self.get(template).counts;
        counts.0 += u64::from(packets);
        counts.1 += u64::from(bytes);
    }

    /// A record of a template is made.
    pub(crate) fn join(&mut self, template: u32) {
        self.get(template).records += 1;
    }

    /// A record of a template has ended.
    pub(crate) fn leave(&mut self, template: u32) {
        let one = self.get(template);
        one.records -= 1;
        if one.is_outdated {
            let is_empty = one.records == 0;
            self.outdated -= 1;
            self.empty.extend(is_empty.then_some(template));
        }
    }

    pub(crate) fn is_outdated(&self, template: u32) -> bool {
        self.all.get(template as usize).is_some_and(|template| template.is_outdated)
    }

    /// The dependencies of a template's records beside state have changed.
    pub(crate) fn outdate(&mut self, template: u32) {
        let one = self.get(template);
        let records = one.records;
        if !std::mem::replace(&mut one.is_outdated, true) {
            self.outdated += records as usize;
            // No record that ends later has to ask for memory.
            self.empty.reserve(self.all.len() - self.empty.len());
            self.empty.extend((records == 0).then_some(template));
        }
    }

    /// An outdated template without records, which begins anew, and the packets and bytes that its
    /// records have counted.
    pub(crate) fn renew(&mut self) -> Option<(u32, (u64, u64))> {
        let template = self.empty.pop()?;
        let before = std::mem::take(self.get(template));
        Some((template, before.counts))
    }

    /// Whether there are outdated records.
    pub(crate) fn has_outdated(&self) -> bool {
        self.outdated > 0
    }

    /// The position at which the search for outdated records goes on, among so many.
    pub(crate) fn next(&mut self, all: usize) -> usize {
        let at = self.next;
        self.next = (at + 1) % all;
        at
    }

    /// Packets and bytes of each template, without those that records still have.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        self.all.iter().map(|template| template.counts).collect()
    }
}
