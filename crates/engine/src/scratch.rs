//! Memory that program runs reuse: packed keys and slots, the entries that a run has found, and its
//! events.

use braid_ir::engine::Event;
use braid_ir::model::{EventId, Word};
use braid_state::{Ended, Handle, TableRef};
use braid_streams::Answer;

/// Memory for packing keys and slots, and for entries that end.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) key: Vec<u64>,
    /// The parts of the last key of a flow, and the key as it was packed. All tables whose keys are
    /// flows pack them alike.
    pub(crate) flow: (Vec<Word>, Vec<u64>),
    pub(crate) slots: Vec<u64>,
    /// The parts of a key, or the arguments of a jump.
    pub(crate) parts: Vec<Word>,
    /// Values of slots.
    pub(crate) values: Vec<Word>,
    /// The values of a running program.
    pub(crate) words: Vec<Word>,
    /// The values of a program for an event of a TCP connection, which runs within a packet
    /// program.
    pub(crate) stream_words: Vec<Word>,
    /// The answer of the stack of a stream function, which has the packet already.
    pub(crate) answer: Option<Answer>,
    /// The slots and the key of an ended entry.
    pub(crate) ending: (Vec<Word>, Vec<Word>),
    /// The entries that an interrupted program has found, by table.
    pub(crate) found: Vec<(TableRef, Handle)>,
    pub(crate) ended: Ended,
    /// The events of the programs that have just run, if functions of the chain take events.
    pub(crate) published: Vec<Published>,
}

/// An event that a program has published, and that its handlers have not had yet.
pub(crate) struct Published {
    pub(crate) node: u16,
    /// The worker that ran the program.
    pub(crate) worker: u16,
    /// Its type. `None`: no function can take it.
    pub(crate) event: Option<EventId>,
    /// Its fields. Texts are 0.
    pub(crate) fields: Vec<Word>,
    /// The event for the outputs.
    pub(crate) made: Event,
}

/// The entries that the running program last found or assigned, for tables whose entries live with
/// entries of other tables.
pub(crate) struct Touched {
    /// The number of the run.
    pub(crate) run: u64,
    /// The number of the latest run.
    last: u64,
    /// By table: the entry, and the run that found it.
    entries: Vec<(u64, Handle)>,
}

impl Touched {
    /// Starts a run, which has found no entry yet.
    #[inline]
    pub(crate) fn start(&mut self) {
        self.last = self.last.wrapping_add(1);
        self.run = self.last;
    }

    /// For a store with this number of tables.
    pub(crate) fn new(tables: usize) -> Self {
        let none = (u64::MAX, Handle::from_bits(0));
        Self { run: 0, last: 0, entries: vec![none; tables] }
    }

    #[inline]
    pub(crate) fn set(&mut self, table: TableRef, entry: Handle) {
        if let Some(known) = self.entries.get_mut(table.to_bits() as usize) {
            *known = (self.run, entry);
        }
    }

    pub(crate) fn get(&self, table: TableRef) -> Option<Handle> {
        let (run, entry) = self.entries.get(table.to_bits() as usize)?;
        (*run == self.run).then_some(*entry)
    }
}
