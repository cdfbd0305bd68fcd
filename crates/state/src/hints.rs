//! Lookup hints: the entry that a packet finds first remembers the entries found after it, by the
//! same program or by the next function's.
//!
//! The keys of a packet's later lookups mostly follow from the first entry that it found (SNF's
//! properties of stateful functions). So the first entry keeps where the entries behind it were last
//! time. A later lookup looks there first. If an entry is there and has the whole key that is looked
//! for, it is what the index would give, since no two entries of a table have the same key.
//! Otherwise the index is asked, and its answer is kept.
//!
//! A hint says nothing about whether an entry exists: it may be wrong in any way.

use crate::memory::lengthen;
use crate::table::Table;
use std::hint::black_box;

/// Entries that are kept with a first one.
const WIDTH: usize = 16;
/// The value of `found` before a run has found anything.
const FIRST: usize = usize::MAX;

/// Numbers of the entries that were found behind a first one, in order: one cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(64))]
struct Row([u32; WIDTH]);

/// The hints kept with the entries of a table.
#[derive(Clone, Default, Debug)]
struct Rows {
    /// By [`Table::line`]. Only as long as entries have been first in a run that found more.
    all: Vec<Row>,
    /// The tables in which the next entries were found, for any row.
    tables: Vec<usize>,
}

/// The hints of all tables, and the state of the packet's run that uses them.
#[derive(Debug)]
pub(crate) struct Hints {
    /// How many entries the run has found behind the first one, or [`FIRST`].
    found: usize,
    /// The first entry: its table and its row there.
    first: (usize, usize),
    /// A copy of that row.
    row: Row,
    /// By table.
    rows: Vec<Rows>,
    /// Lookups to come: table and hash.
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

    /// A packet's run begins: it has found nothing yet.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.found = FIRST;
    }

    /// The number of the entry that the run likely finds next.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<u32> {
        self.row.0.get(self.found).copied()
    }

    /// The run has found the entry that the hint said.
    #[inline(always)]
    pub(crate) fn confirm(&mut self) {
        self.found = self.found.wrapping_add(1);
    }

    /// The run has found an entry by the index: the hint for it is kept.
    #[inline(always)]
    pub(crate) fn learn(&mut self, at: usize, table: &Table, place: u32) {
        match self.found {
            FIRST => self.start(at, table.line(place), || table.number(place) as u32),
            found if found < WIDTH => self.keep(at, table.number(place) as u32),
            _ => {}
        }
    }

    /// The run has found its first entry. If nothing is kept with it, it is likely looked up again.
    fn start(&mut self, table: usize, line: usize, number: impl Fn() -> u32) {
        self.found = 0;
        self.first = (table, line);
        let row = self.rows[table].all.get(line).copied();
        self.row = row.unwrap_or_else(|| Row([number(); WIDTH]));
    }

    /// The run has found another entry, elsewhere than last time.
    fn keep(&mut self, table: usize, number: u32) {
        let (first, line) = self.first;
        let rows = &mut self.rows[first];
        if rows.all.len() <= line {
            lengthen(&mut rows.all, line + 1, Row::default());
            rows.all[line] = self.row;
        }
        rows.all[line].0[self.found] = number;
        if rows.tables.len() <= self.found {
            rows.tables.resize(self.found + 1, table);
        }
        rows.tables[self.found] = table;
        self.found += 1;
    }

    /// A run that looks up a key with this hash first will come soon.
    #[inline(always)]
    pub(crate) fn prefetch(&mut self, at: usize, table: &Table, hash: u64) {
        black_box(table.touch(hash));
        self.ahead.push((at, hash));
    }

    /// Fetches the entries that the runs to come will likely find first, then those that they will
    /// find behind. The cache misses of each pass wait together.
    pub(crate) fn fetch(&mut self, tables: &[Table]) {
        let mut sum = 0;
        for (at, hash) in &mut self.ahead {
            // From here on, the line of the first entry.
            let line = match tables[*at].guess(*hash) {
                Some(place) => {
                    let table = &tables[*at];
                    sum ^= table.head(place);
                    table.line(place)
                }
                None => usize::MAX,
            };
            sum ^= self.rows[*at].all.get(line).map_or(0, |row| row.0[0].into());
            *hash = line as u64;
        }
        for (at, line) in &self.ahead {
            let rows = &self.rows[*at];
            let Some(row) = rows.all.get(*line as usize) else { continue };
            for (number, table) in row.0.iter().zip(&rows.tables) {
                sum ^= tables[*table].head_at(*number);
            }
        }
        self.ahead.clear();
        black_box(sum);
    }
}
