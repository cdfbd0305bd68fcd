//! The findings of a specialisation: the dependencies of values, and everything that the record
//! will hold.

use crate::absences::Keys;
use crate::bindings::Binding;
use crate::bound::Counters;
use crate::entry_use::EntryUse;
use crate::guard::Guards;
use crate::headers::Added;
use crate::host::Cut;
use crate::mutants::Mutants;
use crate::obstacle::Obstacle;
use crate::path::Path;
use crate::prefix::Prefix;
use crate::recording::{Recording, Source};
use crate::value_dependency::ValueDependency;
use braid_ir::model::{ValueId, Word};
use braid_ir::values::Values;
use braid_packet::Bits;
use braid_packet::rewrite::{Outline, Retag, WIDE, WIDE_BYTES, Window};
use braid_state::{Handle, TableRef};
use std::sync::Arc;

/// The least weight of the lookups on a part of a path that has a record of its own. Measured: a
/// packet that takes such a record loses as much time as this many lookups in tables take.
pub const LEAST_IN_PART: u32 = 8;

/// The findings of a specialisation. They stay until the next specialisation, which reuses the
/// memory.
pub(crate) struct Findings {
    /// The dependencies of values, by number.
    pub(crate) dependencies: Vec<ValueDependency>,
    /// The packet as each copy of it was sent.
    pub(crate) copies: Vec<Image>,
    /// Values that equal bits of the key.
    pub(crate) keys: Vec<(ValueId, Bits)>,
    pub(crate) guards: Guards,
    pub(crate) mutants: Mutants,
    pub(crate) path: Path,
    pub(crate) bytes: Window<WIDE>,
    pub(crate) sums: [u16; 2],
    /// Entries that the run has found, each once, with the use that each packet has of it.
    pub(crate) depends_on: Vec<(Handle, EntryUse)>,
    /// The entries that the record depends on.
    pub(crate) handles: Vec<Handle>,
    /// Slots that the run has assigned.
    pub(crate) put: Vec<Put>,
    pub(crate) asked: Asked,
    /// Keys for which the run has found no entry.
    pub(crate) absent: Keys,
    /// The number of lookups by programs, plus the number of native functions on the path.
    pub(crate) lookups: u32,
    /// The weight of these lookups.
    pub(crate) weight: u32,
    /// The number of steps that programs have executed.
    pub(crate) steps: u32,
    pub(crate) counters: Counters,
    /// The work of native functions for each packet.
    pub(crate) bindings: Vec<Binding>,
    /// Headers whose presence matters to programs.
    pub(crate) care: u128,
    /// Arguments of a jump.
    pub(crate) args: Vec<(Word, ValueDependency, Source)>,
    /// The script of the path.
    pub(crate) recording: Recording,
    /// A program that the last run needed and that did not exist, and whether there is room for
    /// such programs.
    pub(crate) wanted: Option<Cut>,
    pub(crate) may_want: bool,
    /// The script up to the place where the path of the record ends.
    pub(crate) prefix: Option<Prefix>,
    /// Whether the path is a part of the packets' path.
    pub(crate) is_part: bool,
    /// Unused uses of entries, kept for their memory.
    pub(crate) spare: Vec<EntryUse>,
}

/// The lookups of the current program, by the values that make up their keys. A value and the state
/// do not change during a specialisation, so equal keys give equal results.
#[derive(Default)]
pub(crate) struct Asked {
    parts: Vec<ValueId>,
    /// The table, the end of the key's values in `parts`, and the number of the entry in
    /// `depends_on` (`None` if there was no entry).
    all: Vec<(TableRef, usize, Option<usize>)>,
}

impl Asked {
    pub(crate) fn push(&mut self, table: TableRef, parts: &[ValueId], found: Option<usize>) {
        self.parts.extend_from_slice(parts);
        self.all.push((table, self.parts.len(), found));
    }

    /// The result of an earlier lookup in this table by a key made of the same values, if there was
    /// one.
    #[expect(clippy::indexing_slicing, reason = "the ends of keys are positions in `parts`")]
    pub(crate) fn get(
        &self,
        table: TableRef,
        parts: &[ValueId],
        confuses: bool,
    ) -> Option<Option<usize>> {
        let is_it = |(one, end, _): &&(TableRef, usize, _)| {
            *one == table && (confuses || self.parts[..*end].ends_with(parts))
        };
        self.all.iter().find(is_it).map(|(_, _, found)| *found)
    }

    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.all.clear();
    }
}

/// A slot that the run has assigned.
#[derive(Clone, Copy)]
pub(crate) struct Put {
    /// The entry's number in `depends_on`.
    pub(crate) entry: usize,
    pub(crate) slot: u32,
    /// The value for this packet, its dependency and its source.
    pub(crate) value: Word,
    pub(crate) dependency: ValueDependency,
    pub(crate) source: Source,
}

/// The packet as a function sent a copy of it: all changes to the packet up to then.
#[derive(PartialEq)]
pub(crate) struct Image {
    pub(crate) head: [u8; WIDE_BYTES],
    pub(crate) mask: [u8; WIDE_BYTES],
    pub(crate) ttl: u8,
    pub(crate) added: Vec<Added>,
    pub(crate) vlans: Retag,
    pub(crate) tags: Vec<(Arc<str>, Word)>,
    pub(crate) outer: usize,
}

impl Findings {
    pub(crate) fn new() -> Self {
        Self {
            dependencies: Vec::new(),
            copies: Vec::new(),
            keys: Vec::new(),
            guards: Guards::default(),
            mutants: Mutants::default(),
            path: Path::new(),
            bytes: [0; WIDE],
            sums: [0; 2],
            depends_on: Vec::new(),
            handles: Vec::new(),
            put: Vec::new(),
            asked: Asked::default(),
            absent: Keys::default(),
            lookups: 0,
            weight: 0,
            steps: 0,
            counters: Counters::default(),
            bindings: Vec::new(),
            care: 0,
            args: Vec::new(),
            recording: Recording::default(),
            wanted: None,
            may_want: true,
            prefix: None,
            is_part: false,
            spare: Vec::new(),
        }
    }

    /// Starts a specialisation for packets of an entry, with an outline.
    pub(crate) fn start(&mut self, entry: u32, outline: Outline) {
        self.copies.clear();
        self.guards.0.clear();
        self.path.start(entry, outline);
        for (_, mut one) in self.depends_on.drain(..) {
            one.clear();
            self.spare.push(one);
        }
        self.put.clear();
        self.counters.start();
        self.absent.clear();
        self.bindings.clear();
        (self.lookups, self.weight, self.steps, self.care) = (0, 0, 0, 0);
    }

    /// Why a record would save no time. `None` if it would save time.
    pub(crate) fn loss(&self) -> Option<Obstacle> {
        // Measured: machine code executes about this many steps in the time that a record needs for
        // its dynamic values.
        let least = 12 + 2 * self.path.dynamic.size();
        match (self.lookups, self.path.dynamic.size()) {
            (0, _) => Some(Obstacle::OnlyRoutes),
            _ if self.is_part && self.weight < LEAST_IN_PART => Some(Obstacle::ShortPart),
            (_, 0) => None,
            _ if self.steps >= least => None,
            _ => Some(Obstacle::TooDynamic),
        }
    }

    /// Counts a lookup of this weight.
    pub(crate) fn looks_up(&mut self, weight: u32) {
        self.lookups += 1;
        self.weight += weight;
    }

    /// Starts a program that has this number of values.
    pub(crate) fn enter(&mut self, values: usize) {
        if self.dependencies.len() < values {
            self.dependencies.resize(values, ValueDependency::Packet);
        }
        self.keys.clear();
        self.asked.clear();
        self.recording.enter(values);
    }

    /// Marks a value as equal to another one, if that one equals bits of the key.
    pub(crate) fn is_key_of(&mut self, value: ValueId, of: ValueId) {
        let key = self.keys.iter().find(|(known, _)| *known == of).copied();
        self.keys.extend(key.map(|(_, bits)| (value, bits)));
    }

    /// Pins a value: it decides about the path, or becomes a part of the record template.
    pub(crate) fn pin(&mut self, values: &Values<'_>, id: ValueId) {
        self.recording.pin(id, values.get(id));
    }

    #[expect(clippy::indexing_slicing, reason = "each value of a program has a dependency")]
    pub(crate) fn dependency(&self, id: ValueId) -> ValueDependency {
        self.dependencies[id.index()]
    }

    #[expect(clippy::indexing_slicing, reason = "each value of a program has a dependency")]
    pub(crate) fn set_dependency(&mut self, id: ValueId, dependency: ValueDependency) {
        self.dependencies[id.index()] = dependency;
    }

    #[expect(clippy::indexing_slicing, reason = "each value of a program has a dependency")]
    pub(crate) fn is_fixed(&self, id: ValueId) -> bool {
        matches!(self.dependencies[id.index()], ValueDependency::Fixed)
    }

    /// Sets a value that depends on nothing.
    pub(crate) fn know(&mut self, values: &mut Values<'_>, id: ValueId, value: Word) {
        values.set(id, value);
        self.set_dependency(id, ValueDependency::Fixed);
        self.recording.set_source(id, Source::Constant);
    }
}
