//! Builds a grid within limits of time and memory.

use super::{Cell, Grid, Group, LAST, Row};
use crate::flat::{Flat, FlatSet};
use crate::packed::{Entry, NONE, Range};
use crate::sparse::Sparse;
use std::collections::{BTreeSet, HashMap};

/// How the rules are divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// One table of cells.
    Table,
    /// By the number of ranks that rules cover. Rules with up to this many sources make one group,
    /// other rules with up to this many destinations a second, and all other rules a table.
    Split(u32),
}

/// The most cells of a table.
const TABLE_CELLS: usize = 1 << 22;

/// How much a grid may still cost to build.
struct Budget {
    /// Rules that may be looked at.
    steps: u64,
    /// Cells and entries of lists.
    items: usize,
}

/// The rows of a group before they get their places.
struct Rows {
    /// The first rank of each run of ranks, in order, and the row of the run.
    runs: Vec<(u32, u32)>,
    rows: Vec<Vec<Cell>>,
}

/// Ranks grouped by the set of ranges that contain them.
struct RankGroups {
    /// The first rank of each run of ranks, in order, and the group of the run.
    runs: Vec<(u32, u32)>,
    count: usize,
}

struct Builder<'a> {
    flat: &'a FlatSet,
    budget: Budget,
    /// The most rules of a list.
    longest: usize,
    lists: HashMap<Vec<Entry>, u32>,
    entries: Vec<Entry>,
}

type Side = fn(&Flat) -> Range<u32>;

impl Grid {
    /// Builds the structure for these rules; `None` if it would take too much time or memory, or if
    /// a list would have more rules than `longest`.
    #[must_use]
    pub fn new(flat: &FlatSet, plan: Plan, longest: usize) -> Option<Self> {
        let count = flat.rules.len();
        let budget =
            Budget { steps: 4_000_000 + 400 * count as u64, items: 1_000_000 + 60 * count };
        let mut builder =
            Builder { flat, budget, longest, lists: HashMap::new(), entries: Vec::new() };
        let groups = builder.groups(plan)?;
        Some(Self { services: flat.services.clone(), entries: builder.entries, groups })
    }
}

impl Builder<'_> {
    fn groups(&mut self, plan: Plan) -> Option<Vec<Group>> {
        let (src, dst): (Side, Side) = (|rule| rule.src, |rule| rule.dst);
        let mut groups = Vec::new();
        let mut rest: Vec<&Flat> = self.flat.rules.iter().collect();
        if plan == Plan::Table && self.table_cells(&rest)? > TABLE_CELLS {
            return None;
        }
        if let Plan::Split(widest) = plan {
            for (by_src, first, second) in [(true, src, dst), (false, dst, src)] {
                let narrow = |rule: &&Flat| first(rule).1 - first(rule).0 < widest;
                let (some, others): (Vec<&Flat>, Vec<&Flat>) = rest.into_iter().partition(narrow);
                rest = others;
                if !some.is_empty() {
                    let rows = self.rows(&some, first, second)?;
                    let ranks = if by_src { self.flat.src_ranks } else { self.flat.dst_ranks };
                    groups.push(rows.in_rows(by_src, ranks));
                }
            }
        }
        if !rest.is_empty() {
            let rows = self.rows(&rest, src, dst)?;
            groups.push(if self.table_cells(&rest)? <= TABLE_CELLS {
                rows.in_table(&self.rank_groups(&rest, dst)?, self.flat, &self.entries)
            } else {
                rows.in_rows(true, self.flat.src_ranks)
            });
        }
        Some(groups)
    }

    /// Number of cells of a table for these rules.
    fn table_cells(&mut self, rules: &[&Flat]) -> Option<usize> {
        let src = self.rank_groups(rules, |rule| rule.src)?.count;
        let dst = self.rank_groups(rules, |rule| rule.dst)?.count;
        Some((src + 1) * (dst + 1))
    }

    /// Groups ranks by the set of ranges that contain them.
    fn rank_groups(&mut self, rules: &[&Flat], side: Side) -> Option<RankGroups> {
        let mut ranges: Vec<Range<u32>> = rules.iter().map(|rule| side(rule)).collect();
        ranges.sort_unstable();
        ranges.dedup();
        let mut ends = Vec::with_capacity(ranges.len() * 2);
        for (&(lo, hi), number) in ranges.iter().zip(0..) {
            ends.extend([(lo, true, number), (hi + 1, false, number)]);
        }
        ends.sort_unstable();
        let mut known: HashMap<Vec<usize>, u32> = HashMap::new();
        let (mut open, mut runs) = (BTreeSet::new(), Vec::new());
        for at in ends.chunk_by(|a, b| a.0 == b.0) {
            apply(&mut open, at);
            self.spend(open.len() as u64, 0)?;
            let next = u32::try_from(known.len()).ok()?;
            let group = *known.entry(open.iter().copied().collect()).or_insert(next);
            runs.extend(at.first().map(|end| (end.0, group)));
        }
        Some(RankGroups { runs, count: known.len() })
    }

    /// Builds a row for each set of rules that a rank on the first side has.
    #[expect(clippy::indexing_slicing, reason = "numbers are places in `members`")]
    fn rows(&mut self, rules: &[&Flat], first: Side, second: Side) -> Option<Rows> {
        let mut numbers: HashMap<Range<u32>, usize> = HashMap::new();
        let mut members: Vec<Vec<&Flat>> = Vec::new();
        let mut ends = Vec::new();
        for rule in rules {
            let number = *numbers.entry(first(rule)).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[number].push(rule);
        }
        for (&(lo, hi), &number) in &numbers {
            ends.extend([(lo, true, number), (hi + 1, false, number)]);
        }
        ends.sort_unstable();
        let mut known: HashMap<Vec<usize>, u32> = HashMap::new();
        let (mut rows, mut runs) = (Rows { runs: Vec::new(), rows: Vec::new() }, Vec::new());
        let mut open = BTreeSet::new();
        for at in ends.chunk_by(|a, b| a.0 == b.0) {
            apply(&mut open, at);
            self.spend(open.len() as u64, open.len())?;
            let key: Vec<usize> = open.iter().copied().collect();
            let row = match known.get(&key) {
                Some(row) => *row,
                None => {
                    let mut some: Vec<&Flat> =
                        key.iter().flat_map(|number| members[*number].iter().copied()).collect();
                    some.sort_unstable_by_key(|rule| rule.number);
                    rows.rows.push(self.row(&some, second)?);
                    let row = u32::try_from(rows.rows.len() - 1).ok()?;
                    known.insert(key, row);
                    row
                }
            };
            runs.extend(at.first().map(|end| (end.0, row)));
        }
        rows.runs = runs;
        Some(rows)
    }

    /// The cells for some rules (in order): intervals on the second side.
    #[expect(clippy::indexing_slicing, reason = "numbers are places in `rules`")]
    fn row(&mut self, rules: &[&Flat], second: Side) -> Option<Vec<Cell>> {
        let mut ends = Vec::with_capacity(rules.len() * 2);
        for (rule, number) in rules.iter().zip(0_usize..) {
            let (lo, hi) = second(rule);
            ends.extend([(lo, true, number), (hi + 1, false, number)]);
        }
        ends.sort_unstable();
        let mut cells: Vec<Cell> = Vec::new();
        if ends.first().is_some_and(|end| end.0 > 0) {
            cells.push(Cell { from: 0, list: NONE });
        }
        let mut open = BTreeSet::new();
        for at in ends.chunk_by(|a, b| a.0 == b.0) {
            apply(&mut open, at);
            let list = self.list(open.iter().map(|number| rules[*number]))?;
            if cells.last().is_none_or(|cell| cell.list != list) {
                cells.extend(at.first().map(|end| Cell { from: end.0, list }));
                self.spend(1, 1)?;
            }
        }
        Some(cells)
    }

    /// The list of these rules without the rules that earlier ones cover.
    fn list<'b>(&mut self, rules: impl Iterator<Item = &'b Flat>) -> Option<u32> {
        let services = &self.flat.services;
        let mut list: Vec<Entry> = Vec::new();
        let mut steps = 1;
        for rule in rules {
            let service = self.flat.service(rule);
            let covered = |entry: &Entry| {
                services.get(entry.service as usize).is_some_and(|other| other.covers(service))
            };
            steps += 1 + list.len() as u64;
            if !list.iter().any(covered) {
                if list.len() == self.longest {
                    return None;
                }
                list.push(Entry { service: rule.service, rule: rule.number });
                if service.covers_all() {
                    break;
                }
            }
        }
        self.spend(steps, 0)?;
        let Some(last) = list.last_mut() else { return Some(NONE) };
        last.service |= LAST;
        if let Some(start) = self.lists.get(&list) {
            return Some(*start);
        }
        self.spend(0, list.len())?;
        let start = u32::try_from(self.entries.len()).ok()?;
        self.entries.extend(&list);
        self.lists.insert(list, start);
        Some(start)
    }

    fn spend(&mut self, steps: u64, items: usize) -> Option<()> {
        self.budget.steps = self.budget.steps.checked_sub(steps)?;
        self.budget.items = self.budget.items.checked_sub(items)?;
        Some(())
    }
}

/// Opens and closes the ranges that start and end at one rank.
fn apply(open: &mut BTreeSet<usize>, at: &[(u32, bool, usize)]) {
    for (_, opens, number) in at {
        if *opens {
            open.insert(*number);
        } else {
            open.remove(number);
        }
    }
}

impl Rows {
    #[expect(clippy::indexing_slicing, reason = "the runs have numbers of rows")]
    fn in_rows(&self, by_src: bool, ranks: u32) -> Group {
        let mut cells = Vec::new();
        let places: Vec<Row> = self
            .rows
            .iter()
            .map(|row| {
                let start = u32::try_from(cells.len()).unwrap_or(u32::MAX);
                cells.extend(row);
                Row { start, len: u32::try_from(row.len()).unwrap_or(0) }
            })
            .collect();
        let rows = by_rank(&self.runs, ranks, Row::default(), |row| places[row]);
        Group::Rows { by_src, rows, cells }
    }

    /// The cells, with an empty row and an empty column before the first ones, for ranks without
    /// rules.
    #[expect(
        clippy::indexing_slicing,
        reason = "`lists` has a place for each group behind the start of a row"
    )]
    fn in_table(&self, rank_groups: &RankGroups, flat: &FlatSet, entries: &[Entry]) -> Group {
        let width = rank_groups.count + 1;
        let mut lists = vec![NONE; width];
        for row in &self.rows {
            let start = lists.len();
            lists.resize(start + width, NONE);
            for (rank, group) in &rank_groups.runs {
                let after = row.partition_point(|cell| cell.from <= *rank);
                lists[start + 1 + *group as usize] =
                    row.get(..after).and_then(<[_]>::last).map_or(NONE, |cell| cell.list);
            }
        }
        let at = |row: usize| u32::try_from((row + 1) * width).unwrap_or(0);
        let rows = by_rank(&self.runs, flat.src_ranks, 0, at);
        let columns = by_rank(&rank_groups.runs, flat.dst_ranks, 0, |group| {
            u32::try_from(group + 1).unwrap_or(0)
        });
        match Sparse::new((&lists, width), (&rows, &columns), entries) {
            Some(sparse) => Group::Sparse(sparse),
            None => Group::Table { rows, columns, lists },
        }
    }
}

/// The value of each rank, from the run that contains it.
fn by_rank<T: Copy>(runs: &[(u32, u32)], ranks: u32, none: T, row: impl Fn(usize) -> T) -> Vec<T> {
    let mut all = vec![none; ranks as usize];
    let ends = runs.iter().skip(1).map(|run| run.0).chain([ranks]);
    for ((start, number), end) in runs.iter().zip(ends) {
        if let Some(part) = all.get_mut(*start as usize..end as usize) {
            part.fill(row(*number as usize));
        }
    }
    all
}
