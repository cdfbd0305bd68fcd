//! Lookup hints: the first entry that a packet finds remembers the entries that the packet finds
//! after it, in the same program or in the next function's.
//!
//! The keys of a packet's later lookups mostly follow from the first entry that it found (SNF's
//! properties of stateful functions). So the first entry keeps the places where the later entries
//! were last found. A later lookup first tries that place. If the entry there has the whole key, it
//! is the entry that the index would return, because no two entries of a table have the same key.
//! Otherwise the index is searched, and its result is kept.
//!
//! A hint never proves that an entry exists: it may be wrong in any way.

use crate::memory::{lengthen, prefetch};
use crate::table::Table;

/// The number of entries that are kept with a first entry.
const WIDTH: usize = 16;
/// The value of `found` before a run has found anything.
const FIRST: usize = usize::MAX;

/// The hints of a first entry: the numbers of the entries that were found after it, in order. A row
/// is one cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(64))]
struct Row([u32; WIDTH]);

/// The hints kept with the entries of a table.
#[derive(Clone, Default, Debug)]
struct Rows {
    /// The rows by the number of the first entry. The vector ends with the last row that was
    /// written.
    all: Vec<Row>,
    /// By position in a row: the table of the entry. All rows share this list.
    tables: Vec<usize>,
}

/// The hints of all tables, and the state of the current packet's run.
#[derive(Debug)]
pub(crate) struct Hints {
    /// The number of entries that the run has found after the first one, or [`FIRST`].
    found: usize,
    /// The first entry: its table, and its row in `rows`.
    first: (usize, usize),
    /// A copy of that row.
    row: Row,
    /// By table.
    rows: Vec<Rows>,
    /// Lookups to prefetch: table and hash of the key. During [`Hints::fetch`], the hash is
    /// replaced by the number of the first entry.
    ahead: Vec<(usize, u64)>,
}

impl Hints {
    pub(crate) fn new(tables: usize) -> Self {
        let rows = vec![Rows::default(); tables];
        Self { found: FIRST, first: (0, 0), row: Row::default(), rows, ahead: Vec::new() }
    }

    /// Bytes in use for a table.
    pub(crate) fn bytes(&self, table: usize) -> usize {
        self.rows.get(table).map_or(0, |rows| size_of_val(&*rows.all))
    }

    /// Starts a packet's run, which has found nothing yet.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.found = FIRST;
    }

    /// The number of the entry that the run probably finds next.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<u32> {
        self.row.0.get(self.found).copied()
    }

    /// Records that the run has found the hinted entry.
    #[inline(always)]
    pub(crate) fn confirm(&mut self) {
        self.found = self.found.wrapping_add(1);
    }

    /// Keeps a hint for an entry that the run has found through the index.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "places have 32 bits, and a place's number is not larger than the place"
    )]
    pub(crate) fn learn(&mut self, at: usize, table: &Table, place: u32) {
        match self.found {
            FIRST => self.start(at, table.number(place)),
            found if found < WIDTH => self.keep(at, table.number(place) as u32),
            _ => {}
        }
    }

    /// Starts the hints of a run with its first entry. If the entry has no hints, the run first
    /// guesses that it will find the same entry again.
    #[expect(clippy::indexing_slicing, reason = "`rows` has an element for each table")]
    #[expect(clippy::cast_possible_truncation, reason = "a place's number has 32 bits")]
    #[expect(clippy::unnecessary_lazy_evaluations, reason = "most packets need no new row")]
    fn start(&mut self, table: usize, number: usize) {
        self.found = 0;
        self.first = (table, number);
        let row = self.rows[table].all.get(number).copied();
        self.row = row.unwrap_or_else(|| Row([number as u32; WIDTH]));
    }

    /// Keeps a hint for a later entry of the run, because the existing hint was wrong.
    #[expect(
        clippy::indexing_slicing,
        reason = "`rows` has an element for each table, and `learn` calls this below `WIDTH`"
    )]
    fn keep(&mut self, table: usize, number: u32) {
        let (table_of_first, first) = self.first;
        let rows = &mut self.rows[table_of_first];
        if rows.all.len() <= first {
            lengthen(&mut rows.all, first + 1, Row::default());
            rows.all[first] = self.row;
        }
        rows.all[first].0[self.found] = number;
        if rows.tables.len() <= self.found {
            rows.tables.resize(self.found + 1, table);
        }
        rows.tables[self.found] = table;
        self.found += 1;
    }

    /// Prefetches the index for a run that will first look up a key with this hash.
    #[inline(always)]
    pub(crate) fn prefetch(&mut self, at: usize, table: &Table, hash: u64) {
        table.prefetch_lookup(hash);
        self.ahead.push((at, hash));
    }

    /// Prefetches the entries that the announced runs will probably find: first their first
    /// entries, then the later ones. The cache misses of each pass overlap.
    #[expect(clippy::indexing_slicing, reason = "lookups and hints name tables of this store")]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the first loop has replaced the hash by a number, which is a `usize`"
    )]
    pub(crate) fn fetch(&mut self, tables: &[Table]) {
        for (at, hash) in &mut self.ahead {
            // From here on, the second element is the number of the first entry.
            let first = match tables[*at].guess(*hash) {
                Some(place) => {
                    let table = &tables[*at];
                    table.prefetch(place);
                    table.number(place)
                }
                None => usize::MAX,
            };
            prefetch(self.rows[*at].all.get(first));
            *hash = first as u64;
        }
        for (at, first) in &self.ahead {
            let rows = &self.rows[*at];
            let Some(row) = rows.all.get(*first as usize) else { continue };
            for (number, table) in row.0.iter().zip(&rows.tables) {
                tables[*table].prefetch_number(*number);
            }
        }
        self.ahead.clear();
    }
}
