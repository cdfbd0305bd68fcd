//! Equivalence classes of addresses and their cross product, whose cells have short lists of rules.
//!
//! The structure is like recursive flow classification (Gupta and McKeown, 1999) up to the point
//! where source and destination are known. Their ranks select a cell. A cell has the list of rules
//! that match both addresses, best first, without the rules whose service an earlier rule of the
//! list covers. Few rules have both addresses in common, whatever the size of the set. Therefore a
//! list is tried in order: ports and protocol need no search structure at all.
//!
//! A table of all cells grows with the product of the numbers of equivalence classes. Therefore
//! larger sets are divided by how many addresses a rule covers, as in CutSplit (Li et al., 2018).
//! Rules with few sources are found by their source: each source has a row of intervals of
//! destinations. Rules with few destinations are found the other way round. The few rules that are
//! wide on both sides are found in a table of cells.

pub mod build;

use crate::flat::Query;
use crate::packed::{Ask, Entry, NONE, Service};
use crate::sparse::{self, Sparse};

/// The structure.
#[derive(Clone, Debug)]
pub struct Grid {
    services: Vec<Service>,
    /// Lists of rules, one after the other.
    entries: Vec<Entry>,
    groups: Vec<Group>,
}

const LAST: u32 = 1 << 31;

/// A group of the rules.
#[derive(Clone, Debug)]
enum Group {
    /// Rows of cells. The rank of the source (or destination) selects the row; the rank of the
    /// other address selects the cell.
    Rows { by_src: bool, rows: Vec<Row>, cells: Vec<Cell> },
    /// A table of lists. The rank of the source gives the start of the row, and the rank of the
    /// destination gives the column.
    Table { rows: Vec<u32>, columns: Vec<u32>, lists: Vec<u32> },
    /// The same for a table that is mostly empty.
    Sparse(Sparse),
}

/// The place of a row's cells.
#[derive(Clone, Copy, Default, Debug)]
struct Row {
    start: u32,
    len: u32,
}

/// An interval of ranks. It ends where the next cell starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cell {
    from: u32,
    /// The start of its list, or [`NONE`].
    list: u32,
}

impl Grid {
    /// The number of the first rule that matches a packet with addresses of these ranks, or
    /// [`NONE`].
    #[must_use]
    #[inline(always)]
    pub fn find(&self, src: u32, dst: u32, ask: &Ask) -> u32 {
        // Most grids have only this group.
        match self.groups.as_slice() {
            [Group::Sparse(sparse)] => self.first_of(sparse.cell(src, dst), ask, NONE),
            _ => self.find_in_groups(Query { src, dst, ask: *ask }),
        }
    }

    #[inline(never)]
    fn find_in_groups(&self, query: Query) -> u32 {
        let mut best = NONE;
        for group in &self.groups {
            if let Group::Sparse(sparse) = group {
                best = self.first_of(sparse.cell(query.src, query.dst), &query.ask, best);
                continue;
            }
            let list = group.list(&query);
            if list != NONE {
                best = self.first(list, query.ask, best);
            }
        }
        best
    }

    /// The same as [`Self::first`], for the list of a cell.
    #[inline(always)]
    #[expect(
        clippy::indexing_slicing,
        reason = "entries have the numbers of services of the same set"
    )]
    fn first_of(&self, cell: Option<&sparse::Cell>, ask: &Ask, best: u32) -> u32 {
        let Some(cell) = cell else { return best };
        let Entry { service, rule } = cell.first;
        if rule >= best {
            best
        } else if self.services[(service & !LAST) as usize].matches(ask) {
            rule
        } else if service & LAST != 0 {
            best
        } else {
            self.first(cell.list.saturating_add(1), *ask, best)
        }
    }

    /// The first rule of a list that matches, if it comes before `best`; otherwise `best`.
    #[inline(never)]
    #[expect(
        clippy::indexing_slicing,
        reason = "cells have the starts of lists, whose entries have numbers of services"
    )]
    fn first(&self, list: u32, ask: Ask, best: u32) -> u32 {
        for entry in &self.entries[list as usize..] {
            if entry.rule >= best {
                break;
            }
            if self.services[(entry.service & !LAST) as usize].matches(&ask) {
                return entry.rule;
            }
            if entry.service & LAST != 0 {
                break;
            }
        }
        best
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        let groups = self.groups.iter().map(|group| match group {
            Group::Rows { rows, cells, .. } => rows.len() * 8 + cells.len() * 8,
            Group::Table { rows, columns, lists } => (rows.len() + columns.len() + lists.len()) * 4,
            Group::Sparse(sparse) => sparse.memory(),
        });
        self.services.len() * size_of::<Service>() + self.entries.len() * 8 + groups.sum::<usize>()
    }
}

impl Group {
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "each rank has a row or column, and each row has its cells in the array"
    )]
    fn list(&self, query: &Query) -> u32 {
        match self {
            Self::Rows { by_src, rows, cells } => {
                let (first, second) =
                    if *by_src { (query.src, query.dst) } else { (query.dst, query.src) };
                let row = rows[first as usize];
                let cells = &cells[row.start as usize..][..row.len as usize];
                let Some(mut at) = cells.first() else { return NONE };
                let (mut base, mut size) = (0, cells.len());
                while size > 1 {
                    let half = size / 2;
                    let middle = &cells[base + half];
                    if middle.from <= second {
                        (base, at) = (base + half, middle);
                    }
                    size -= half;
                }
                at.list
            }
            Self::Table { rows, columns, lists } => {
                let (row, column) = (rows[query.src as usize], columns[query.dst as usize]);
                lists[row as usize + column as usize]
            }
            Self::Sparse(sparse) => {
                sparse.cell(query.src, query.dst).map_or(NONE, |cell| cell.list)
            }
        }
    }
}
