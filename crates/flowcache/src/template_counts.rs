//! The counts of each template's records, and whether the records are outdated: a parameter that
//! all of them depend on has changed.
//!
//! Marking a template as outdated takes the same time for any number of records, because the
//! records themselves do not change. No packet takes them any more. An outdated record ends when a
//! new record of its flow replaces it, or when any new record needs its room. It also ends when the
//! search for outdated records finds that it has not been taken for a while. The search looks at a
//! few records at a time.

/// All templates, by number.
#[derive(Debug, Default)]
pub(crate) struct TemplateCounts {
    all: Vec<Template>,
    /// Outdated templates without records.
    empty: Vec<u32>,
    /// The number of outdated records.
    outdated: usize,
    /// The position at which the search for outdated records continues. The positions of wide
    /// records follow those of narrow ones.
    next: usize,
}

/// A template.
#[derive(Clone, Copy, Debug, Default)]
struct Template {
    /// Packets and bytes that the template's records have handed over.
    counts: (u64, u64),
    /// The number of its records.
    records: u32,
    is_outdated: bool,
}

impl TemplateCounts {
    #[expect(clippy::indexing_slicing, reason = "`resize` has made the vector long enough")]
    fn get(&mut self, template: u32) -> &mut Template {
        let at = template as usize;
        if self.all.len() <= at {
            self.all.resize(at + 1, Template::default());
        }
        &mut self.all[at]
    }

    /// Adds to the counts of a template.
    pub(crate) fn count(&mut self, template: u32, packets: u32, bytes: u32) {
        let counts = &mut self.get(template).counts;
        counts.0 += u64::from(packets);
        counts.1 += u64::from(bytes);
    }

    /// Counts a new record of a template.
    pub(crate) fn join(&mut self, template: u32) {
        self.get(template).records += 1;
    }

    /// Counts the end of a record of a template.
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

    /// Marks a template as outdated: a parameter that its records depend on has changed.
    pub(crate) fn outdate(&mut self, template: u32) {
        let one = self.get(template);
        let records = one.records;
        if !std::mem::replace(&mut one.is_outdated, true) {
            self.outdated += records as usize;
            // Reserves now, because the end of a record must not allocate memory.
            self.empty.reserve(self.all.len() - self.empty.len());
            self.empty.extend((records == 0).then_some(template));
        }
    }

    /// Takes the number of an outdated template without records, so that another template can use
    /// it. Returns the number, and the packets and bytes that the template's records have counted.
    pub(crate) fn renew(&mut self) -> Option<(u32, (u64, u64))> {
        let template = self.empty.pop()?;
        let before = std::mem::take(self.get(template));
        Some((template, before.counts))
    }

    /// Whether there are outdated records.
    pub(crate) fn has_outdated(&self) -> bool {
        self.outdated > 0
    }

    /// The next of `all` positions for the search for outdated records.
    pub(crate) fn next(&mut self, all: usize) -> usize {
        let at = self.next;
        self.next = (at + 1) % all;
        at
    }

    /// Packets and bytes of each template, without the counts that records have not handed over
    /// yet.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        self.all.iter().map(|template| template.counts).collect()
    }
}
