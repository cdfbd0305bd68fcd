//! Joined state: what was found first for a packet leads to what is found for it next, by the same program or by
//! the next function's.
//!
//! The keys of a packet's later lookups mostly follow from the entry that the first one found (SNF's
//! properties of stateful functions). So the first entry keeps, for those that runs found after it,
//! where they were last time. A later lookup looks there first: if there is an entry, and its whole key is
//! the one that is looked for, it is what the index would give, since no two entries of a table have the
//! same key. If not, the index is asked, and what it gives is kept.
//!
//! Nothing here says whether an entry exists: what is kept may be wrong in any way.

use crate::store::{Handle, Store, TableRef, handle};
use crate::words::lengthen;
use std::hint::black_box;

/// Entries that are kept with a first one.
const WIDTH: usize = 16;
/// Before a run has found anything.
const FIRST: usize = usize::MAX;

/// Numbers of the entries that were found behind a first one, in order: one cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C, align(64))]
struct Row([u32; WIDTH]);

/// What is kept with the entries of a table.
#[derive(Clone, Default, Debug)]
struct Rows {
    /// By [`crate::table::Table::line`]; no longer than entries have been first in a run that found more.
    all: Vec<Row>,
    /// The tables in which the next entries were found, of whatever row.
    tables: Vec<usize>,
}

/// What a packet's run has found, and what is kept of earlier ones.
#[derive(Debug)]
pub(crate) struct Joined {
    /// How many entries the run has found behind the first one, or [`FIRST`].
    found: usize,
    /// The first one: its table and its row there.
    first: (usize, usize),
    /// A copy of that row.
    row: Row,
    /// By table.
    rows: Vec<Rows>,
    /// Lookups that are to come: table and hash.
    ahead: Vec<(usize, u64)>,
}

impl Joined {
    pub(crate) fn new(tables: usize) -> Self {
        let rows = vec![Rows::default(); tables];
        Self { found: FIRST, first: (0, 0), row: Row::default(), rows, ahead: Vec::new() }
    }

    /// Bytes in use for a table.
    pub(crate) fn bytes(&self, table: usize) -> usize {
        self.rows.get(table).map_or(0, |rows| size_of_val(&*rows.all))
    }

    /// The run has found its first entry. If nothing is kept with that, it is likely looked up again.
    fn start(&mut self, table: usize, line: usize, number: impl Fn() -> u32) {
        self.found = 0;
        self.first = (table, line);
        let row = self.rows[table].all.get(line).copied();
        self.row = row.unwrap_or_else(|| Row([number(); WIDTH]));
    }

    /// The run has found another one, elsewhere than last time.
    fn learn(&mut self, table: usize, number: u32) {
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
}

impl Store {
    /// A packet's run begins: [`Store::find_joined`] has found nothing yet.
    #[inline]
    pub fn begin(&mut self) {
        self.joined.found = FIRST;
    }

    /// As [`Store::find_seen`], with the entry's packed slots, for runs that look up several entries: the
    /// first one that a run finds remembers the others. Inlined, so that a key's size is known.
    #[inline(always)]
    pub fn find_joined(
        &mut self,
        table: TableRef,
        key: &[u64],
        now: u64,
    ) -> Option<(Handle, &[u64])> {
        let at = table.0 as usize;
        if let Some(number) = self.joined.row.0.get(self.joined.found).copied()
            && let Some((place, head)) = self.tables[at].find_at(number, key)
        {
            self.joined.found += 1;
            self.see(at, head, now);
            return Some((handle(head, place), self.tables[at].slots(place)));
        }
        self.find_unaided(at, key, now)
    }

    /// The same where that takes no time: for small entries that live with none that was there before, if
    /// the entry is where it was last time. `None`, and nothing has happened, otherwise. More words than those of
    /// the slots may follow. Inlined, and cannot panic, so that it needs few instructions.
    #[inline(always)]
    pub fn find_again(
        &mut self,
        table: TableRef,
        key: &[u64],
        now: u64,
    ) -> Option<(Handle, &[u64])> {
        let number = *self.joined.row.0.get(self.joined.found)?;
        let table = self.tables.get_mut(table.0 as usize)?;
        let (head, slots) = table.see_at(number, key, now)?;
        self.joined.found = self.joined.found.wrapping_add(1);
        // A root's group is its own: its first word is its handle.
        Some((Handle::from_bits(head), slots))
    }

    /// Finds an entry by the index, and keeps it for next time.
    #[inline(always)]
    fn find_unaided(&mut self, at: usize, key: &[u64], now: u64) -> Option<(Handle, &[u64])> {
        let table = &self.tables[at];
        let (place, head) = table.find(self.hash.hash(key), key)?;
        match self.joined.found {
            FIRST => self.joined.start(at, table.line(place), || table.number(place) as u32),
            found if found < WIDTH => self.joined.learn(at, table.number(place) as u32),
            _ => {}
        }
        self.see(at, head, now);
        Some((handle(head, place), self.tables[at].slots(place)))
    }

    /// A run that will look this packed key up first is to come soon: begins to fetch what it will read.
    /// [`Store::fetch`] does the rest, for all that were told since it was called last.
    #[inline]
    pub fn ahead(&mut self, table: TableRef, key: &[u64]) {
        let (at, hash) = (table.0 as usize, self.hash.hash(key));
        black_box(self.tables[at].touch(hash));
        self.joined.ahead.push((at, hash));
    }

    /// Fetches the entries that runs which were told [`ahead`](Store::ahead) will likely find first, then
    /// those that they will find behind. The cache misses of each pass wait together.
    pub fn fetch(&mut self) {
        let mut sum = 0;
        for (at, hash) in &mut self.joined.ahead {
            // From here on, the line of the first entry.
            let line = match self.tables[*at].guess(*hash) {
                Some(place) => {
                    let table = &self.tables[*at];
                    sum ^= table.head(place);
                    table.line(place)
                }
                None => usize::MAX,
            };
            sum ^= self.joined.rows[*at].all.get(line).map_or(0, |row| row.0[0].into());
            *hash = line as u64;
        }
        for (at, line) in &self.joined.ahead {
            let rows = &self.joined.rows[*at];
            let Some(row) = rows.all.get(*line as usize) else { continue };
            for (number, table) in row.0.iter().zip(&rows.tables) {
                sum ^= self.tables[*table].head_at(*number);
            }
        }
        self.joined.ahead.clear();
        black_box(sum);
    }
}
