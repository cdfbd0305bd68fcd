//! The key extractors of a chain. A chain of models has one for each program. A chain with native
//! functions has one for each entry point and header shape.

use crate::host::Programs;
use crate::key::{KeyExtractor, OPEN, Steered};
use braid_ir::chain::Chain;
use braid_ir::model::Op;
use braid_ir::residual::{HeaderMask, Point, Residual, What};
use braid_packet::rewrite::Outline;
use braid_packet::{Header, Layout};

/// The largest number of entries. Packets of further header shapes have no records.
const MOST_ENTRIES: usize = 512;

/// The start of a specialisation.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// The specialisation starts with a program and must end in it, or behind a tunnel that begins
    /// in it. The key has only the bits that this program reads.
    Program(usize),
    /// The specialisation starts at a point. The key has all bits that the packets of a flow have
    /// in common, because any function may read them.
    Point(Point),
}

/// An entry point of the chain, for packets of one header shape.
#[derive(Debug)]
struct Entry {
    point: Point,
    shape: HeaderMask,
    extractor: KeyExtractor,
}

/// All key extractors.
#[derive(Debug)]
pub(crate) struct Extractors {
    /// By program. `None` before the extractor is made, and for programs that are as fast without
    /// records.
    programs: Vec<Option<KeyExtractor>>,
    /// Whether the chain has native functions or stream functions. The keys then have all bits that
    /// the packets of a flow have in common.
    pub(crate) is_open: bool,
    /// The entries of a chain with native functions, and the number of the entry that was used
    /// last.
    entries: Vec<Entry>,
    last_entry: usize,
    /// Whether programs without lookups have extractors, too.
    eager: bool,
    /// The fields that decide the workers of packets, if the engine acts as several workers.
    pub(crate) steered: Option<Steered>,
}

impl Extractors {
    pub(crate) fn new(chain: &Chain, eager: bool) -> Self {
        Self {
            programs: Vec::new(),
            is_open: chain.nodes.iter().any(|node| node.model.is_opaque()),
            entries: Vec::new(),
            last_entry: 0,
            eager,
            steered: Steered::of(chain),
        }
    }

    /// Makes the extractors of programs that have none yet.
    #[inline(always)]
    pub(crate) fn add(&mut self, programs: &impl Programs) {
        if self.programs.len() < programs.count() {
            self.add_new(programs);
        }
    }

    #[inline(never)]
    fn add_new(&mut self, programs: &impl Programs) {
        for number in self.programs.len()..programs.count() {
            let residual = programs.residual(number);
            let pays = residual.filter(|residual| self.eager || looks_up(residual));
            let steered = self.steered.as_ref();
            let extractor = pays.map(|residual| KeyExtractor::of(residual, steered));
            self.programs.push(extractor);
        }
    }

    /// Replaces the extractor of a program by one whose keys have all bits that the packets of a
    /// flow have in common.
    pub(crate) fn make_whole(&mut self, number: u32, programs: &impl Programs) {
        let residual = programs.residual(number as usize);
        if let (Some(extractor), Some(residual)) =
            (self.programs.get_mut(number as usize), residual)
        {
            *extractor = Some(KeyExtractor::open(residual.shape, self.steered.as_ref()));
        }
    }

    /// The extractor of a program.
    #[inline(always)]
    pub(crate) fn program(&self, number: usize) -> Option<&KeyExtractor> {
        self.programs.get(number)?.as_ref()
    }

    /// The extractor with this number, which belongs to a program or to an entry.
    pub(crate) fn get(&self, number: u32) -> Option<&KeyExtractor> {
        match number.checked_sub(OPEN) {
            Some(entry) => self.entries.get(entry as usize).map(|entry| &entry.extractor),
            None => self.program(number as usize),
        }
    }

    /// The extractor with this number, for changes.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut KeyExtractor> {
        match number.checked_sub(OPEN) {
            Some(entry) => self.entries.get_mut(entry as usize).map(|entry| &mut entry.extractor),
            None => self.programs.get_mut(number as usize)?.as_mut(),
        }
    }

    /// The number of the entry for packets with these headers at a point. A new entry is added if
    /// there is room and if packets with these headers can have records.
    #[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST_ENTRIES` entries")]
    pub(crate) fn entry(&mut self, point: Point, layout: &Layout) -> Option<u32> {
        let presence = layout.presence();
        let is_it = |entry: &Entry| entry.point == point && entry.shape.fits(presence);
        let last = Some(self.last_entry).filter(|last| self.entries.get(*last).is_some_and(is_it));
        let known = last.or_else(|| self.entries.iter().position(is_it));
        if known.is_none() {
            if self.entries.len() == MOST_ENTRIES || Outline::of(layout).is_none() {
                return None;
            }
            let passing = Header::bits(Header::PASSING);
            let shape = HeaderMask { care: !passing, present: presence & !passing };
            let extractor = KeyExtractor::open(shape, self.steered.as_ref());
            self.entries.push(Entry { point, shape, extractor });
        }
        self.last_entry = known.unwrap_or(self.entries.len() - 1);
        Some(OPEN + self.last_entry as u32)
    }

    /// The start of a specialisation for packets whose keys come from the extractor with this
    /// number.
    pub(crate) fn start(&self, number: u32) -> Option<Start> {
        match self.is_open {
            true => {
                let entry = self.entries.get(number.wrapping_sub(OPEN) as usize)?;
                Some(Start::Point(entry.point))
            }
            false => Some(Start::Program(number as usize)),
        }
    }

    /// The point and the shape of the packets of the extractor with this number.
    pub(crate) fn place(
        &self,
        number: u32,
        programs: &impl Programs,
    ) -> Option<(Point, HeaderMask)> {
        if let Some(entry) = number.checked_sub(OPEN) {
            let Entry { point, shape, .. } = self.entries.get(entry as usize)?;
            return Some((*point, *shape));
        }
        let residual = programs.residual(number as usize)?;
        self.program(number as usize).map(|_| (residual.point, residual.shape))
    }

    /// Removes the extractors of programs, because the programs will be replaced.
    pub(crate) fn clear(&mut self) {
        self.programs.clear();
    }
}

/// Whether a program looks anything up besides routes, or ends a tunnel, behind which other
/// programs may look something up. Any other program is as fast as the search for a record.
fn looks_up(residual: &Residual) -> bool {
    let mut steps = residual.blocks.iter().flat_map(|block| &block.steps);
    steps.any(|step| match &step.what {
        What::Find { .. } | What::Classify { .. } => true,
        What::Op(op) => matches!(
            op,
            Op::Extern { .. }
                | Op::Patterns { .. }
                | Op::FindPatterns { .. }
                | Op::InStrings { .. }
                | Op::StateSet { .. }
                | Op::StatePut { .. }
                | Op::StateDelete { .. }
                | Op::Decapsulate { .. }
        ),
        _ => false,
    })
}
