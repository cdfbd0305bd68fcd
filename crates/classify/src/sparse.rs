//! A table whose cells are mostly empty, in little memory: its rows lie over each other.
//!
//! Each row is shifted so that its cells fall on free places (first fit, the fullest rows first;
//! Tarjan and Yao, "Storing a sparse table", 1979). A cell names its row, so that a lookup is one
//! access to one array.

use crate::packed::Entry;
use crate::packed::NONE;

/// A cell that is not empty.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub struct Cell {
    /// The shift of its row. No other row has the same shift.
    row: u32,
    /// The start of its list.
    pub list: u32,
    /// The first rule of the list.
    pub first: Entry,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// By rank of the source: the shift of its row.
    rows: Vec<u32>,
    /// By rank of the destination: its column.
    columns: Vec<u32>,
    /// All rows over each other, up to the last possible cell of a row.
    cells: Vec<Cell>,
}

/// An empty place. No row has this shift.
const EMPTY: Cell = Cell { row: u32::MAX, list: 0, first: Entry { service: 0, rule: 0 } };

/// The number of shifts that are tried in all. Each row has an equal share of the tries. If none of
/// them fits, the row goes behind all others.
const TRIES: usize = 1 << 22;

/// Tables with at most this many cells are small in either form.
const SMALL: usize = 4096;

/// In larger tables, at most one cell in this many is not empty.
const SPARSE: usize = 6;

/// Cells of a row by their columns.
type Row = Vec<(usize, Cell)>;

impl Sparse {
    /// Builds a sparse table from a table of lists. `rows` has the start of each rank's row in it,
    /// `columns` the column of each rank, and `entries` the lists. `None` if a sparse table would
    /// not save enough.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "`order` and `rows` have numbers of rows")]
    pub fn new(
        (lists, width): (&[u32], usize),
        (rows, columns): (&[u32], &[u32]),
        entries: &[Entry],
    ) -> Option<Self> {
        let width = width.max(1);
        let some = lists.iter().filter(|list| **list != NONE).count();
        if some > SMALL && some > lists.len() / SPARSE {
            return None;
        }
        let cell = |list: u32| Some(Cell { row: 0, list, first: *entries.get(list as usize)? });
        let row = |lists: &[u32]| -> Row {
            let cells = lists.iter().map(|list| cell(*list)).enumerate();
            cells.filter_map(|(column, cell)| Some((column, cell?))).collect()
        };
        let all: Vec<Row> = lists.chunks(width).map(row).collect();
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|row| std::cmp::Reverse(all[*row].len()));
        let tries = (TRIES / all.len().max(1)).max(4);
        let mut layers = Layers { cells: Vec::new(), taken: Vec::new(), from: 0, tries };
        let mut shifts = vec![0; all.len()];
        for row in order {
            shifts[row] = layers.put(&all[row])?;
        }
        // The columns after the last cell are empty.
        layers.cells.resize(layers.taken.len() + width, EMPTY);
        let rows = rows.iter().map(|start| shifts[*start as usize / width]).collect();
        Some(Self { rows, columns: columns.to_vec(), cells: layers.cells })
    }

    /// The cell for these ranks, unless it is empty.
    #[must_use]
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "each rank has a row or column, and `cells` reaches a width past the last row"
    )]
    pub fn cell(&self, src: u32, dst: u32) -> Option<&Cell> {
        let (row, column) = (self.rows[src as usize], self.columns[dst as usize]);
        let cell = &self.cells[row as usize + column as usize];
        (cell.row == row).then_some(cell)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        (self.rows.len() + self.columns.len()) * 4 + size_of_val(self.cells.as_slice())
    }
}

/// The rows that have a place already.
struct Layers {
    cells: Vec<Cell>,
    /// Whether a row has this shift.
    taken: Vec<bool>,
    /// Shifts before this one are not tried.
    from: usize,
    /// The number of shifts that are tried for a row.
    tries: usize,
}

impl Layers {
    /// Adds a row and returns its shift.
    #[expect(clippy::indexing_slicing, reason = "the vectors are resized to have the places")]
    fn put(&mut self, row: &Row) -> Option<u32> {
        let behind = self.cells.len().max(self.taken.len());
        let mut tries = (self.from..behind).take(self.tries);
        let shift = tries.find(|shift| self.fits(row, *shift)).unwrap_or(behind);
        self.from = self.from.max(shift.saturating_sub(self.tries / 2));
        let number = u32::try_from(shift).ok()?;
        for (column, cell) in row {
            let place = shift + column;
            if self.cells.len() <= place {
                self.cells.resize(place + 1, EMPTY);
            }
            self.cells[place] = Cell { row: number, ..*cell };
        }
        if self.taken.len() <= shift {
            self.taken.resize(shift + 1, false);
        }
        self.taken[shift] = true;
        Some(number)
    }

    fn fits(&self, row: &Row, shift: usize) -> bool {
        let is_free = |place: usize| self.cells.get(place).is_none_or(|cell| cell.row == EMPTY.row);
        !self.taken.get(shift).copied().unwrap_or(false)
            && row.iter().all(|(column, _)| is_free(shift + column))
    }
}

#[cfg(test)]
mod tests {
    use super::{NONE, SMALL, Sparse};
    use crate::packed::Entry;

    const fn entry(rule: u32) -> Entry {
        Entry { service: 0, rule }
    }

    const ENTRIES: [Entry; 3] = [entry(10), entry(11), entry(12)];

    /// Lists of a table of 9 columns. The first column is empty.
    fn table(rows: usize, list: impl Fn(usize, usize) -> u32) -> Vec<u32> {
        let cells = (0..rows * 9).map(|place| (place / 9, place % 9));
        cells.map(|(row, column)| if column == 0 { NONE } else { list(row, column) }).collect()
    }

    #[test]
    fn cells_are_those_of_the_table() {
        // From empty rows to full ones. Each pattern occurs more than once.
        let kinds: [fn(usize, usize) -> u32; 3] = [
            |row, column| if row % 9 > column { (row + column) as u32 % 3 } else { NONE },
            |row, column| if row % 8 == column { 1 } else { NONE },
            |_, _| NONE,
        ];
        for list in kinds {
            let lists = table(200, list);
            let rows: Vec<u32> = (0..200).map(|row| row * 9).collect();
            let columns: Vec<u32> = (0..9).collect();
            let sparse = Sparse::new((&lists, 9), (&rows, &columns), &ENTRIES).unwrap();
            for (place, list) in lists.iter().enumerate() {
                let cell = sparse.cell(place as u32 / 9, place as u32 % 9);
                let first = cell.map(|cell| cell.first);
                assert_eq!(cell.map_or(NONE, |cell| cell.list), *list, "{place}");
                assert_eq!(first, ENTRIES.get(*list as usize).copied());
            }
        }
    }

    #[test]
    fn large_full_tables_are_refused() {
        let lists = table(SMALL, |_, _| 0);
        let rows: Vec<u32> = (0..SMALL as u32).map(|row| row * 9).collect();
        assert!(Sparse::new((&lists, 9), (&rows, &[0]), &ENTRIES).is_none());
    }
}
