//! The counts of a record template's records, and whether these records are outdated. They are
//! outdated when something besides state has changed that all of them depend on.
//!
//! At that moment nothing happens to the records themselves, however many there are. No packet
//! takes them any more. An outdated record ends when another record of its flow takes its place, or
//! when any other record needs room. It also ends when its flow has been silent for a while and the
//! search for outdated records meets it. The search looks at a few records at a time.

/// All templates, by number.
#[derive(Debug, Default)]
pub(crate) struct TemplateCounts {
    all: Vec<Template>,
    /// Outdated templates without records.
    empty: Vec<u32>,
    /// The number of outdated records.
    outdated: usize,
    /// Where the search for outdated records goes on. Wide records come behind narrow ones.
    next: usize,
}

/// A template.
#[derive(Clone, Copy, Debug, Default)]
struct Template {
    /// Packets and bytes that its records have handed over.
    counts: (u64, u64),
    /// The number of its records.
    records: u32,
    is_outdated: bool,
}

impl TemplateCounts {
    #[expect(clippy::indexing_slicing, reason = "the vector is made long enough")]
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

    /// Counts a record of a template that has ended.
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

    /// Marks a template as outdated, because its records' dependencies besides state have changed.
    pub(crate) fn outdate(&mut self, template: u32) {
        let one = self.get(template);
        let records = one.records;
        if !std::mem::replace(&mut one.is_outdated, true) {
            self.outdated += records as usize;
            // A record that ends later must not allocate memory.
            self.empty.reserve(self.all.len() - self.empty.len());
            self.empty.extend((records == 0).then_some(template));
        }
    }

    /// Takes an outdated template that has no records, so that its number can be used again.
    /// Returns the number, and the packets and bytes that its records have counted.
    pub(crate) fn renew(&mut self) -> Option<(u32, (u64, u64))> {
        let template = self.empty.pop()?;
        let before = std::mem::take(self.get(template));
        Some((template, before.counts))
    }

    /// Whether there are outdated records.
    pub(crate) fn has_outdated(&self) -> bool {
        self.outdated > 0
    }

    /// The next position of the search for outdated records among `all` positions.
    pub(crate) fn next(&mut self, all: usize) -> usize {
        let at = self.next;
        self.next = (at + 1) % all;
        at
    }

    /// Packets and bytes of each template, without the counts that records still hold.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        self.all.iter().map(|template| template.counts).collect()
    }
}
