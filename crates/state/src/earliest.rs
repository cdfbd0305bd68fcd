//! Finds the table whose queue comes first, among many tables.

use crate::deadlines::First;
use braid_ir::model::StateId;

/// The place of a table's first item among those of all tables: the time, the rank, and the entry's
/// id. A smaller place comes first.
type Place = (u64, u64, u64);

/// The place of a table without items. No item has this rank.
const NEVER: Place = (u64::MAX, u64::MAX, u64::MAX);

/// The bit of a rank that tells entries from slots. Slots are opened before entries end.
const ENTRY: u64 = 1 << 63;

/// The tables with time-outs, each with the first item of its queue, as a tournament: each inner
/// node of a tree holds the winner of two others. A change of one table's item takes as many
/// comparisons as the tree has levels.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    tables: Vec<Contestant>,
    /// By node of the tree: the number of the table that wins there. Element 1 is the root, and the
    /// children of element n are elements 2n and 2n + 1. The last elements are the leaves, in the
    /// order of the tables.
    winners: Vec<u32>,
}

/// A table with time-outs.
#[derive(Clone, Copy, Debug)]
struct Contestant {
    place: Place,
    /// The number of the table in the store.
    table: usize,
    /// The order of the tables whose first items have equal times.
    rank: u64,
}

#[expect(
    clippy::indexing_slicing,
    reason = "callers use numbers that `new` has given, and each has a leaf"
)]
impl Earliest {
    /// For tables with time-outs: the number of each in the store, its function and its number
    /// there. No table has an item yet.
    #[expect(clippy::cast_possible_truncation, reason = "no memory holds 2^32 tables")]
    pub(crate) fn new(tables: impl Iterator<Item = (usize, u16, StateId)>) -> Self {
        let contestant = |(table, node, state): (usize, u16, StateId)| {
            let rank = u64::from(node) << 32 | u64::from(state.0);
            Contestant { place: NEVER, table, rank }
        };
        let tables: Vec<_> = tables.map(contestant).collect();
        let leaves = 0..tables.len() as u32;
        let winners = leaves.clone().map(|_| 0).chain(leaves).collect();
        let mut earliest = Self { tables, winners };
        (1..earliest.tables.len()).rev().for_each(|node| earliest.play(node));
        earliest
    }

    /// The numbers of the tables in the store.
    pub(crate) fn tables(&self) -> impl Iterator<Item = usize> + '_ {
        self.tables.iter().map(|one| one.table)
    }

    /// Sets the first item of a table.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, first: Option<First>) {
        let one = &mut self.tables[number];
        one.place = first.map_or(NEVER, |(due, id)| match id {
            Some(id) => (due, ENTRY | one.rank, id),
            None => (due, one.rank, 0),
        });
        let mut node = (self.tables.len() + number) / 2;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
    }

    /// Finds the winner of an inner node from those of its children.
    #[inline]
    fn play(&mut self, node: usize) {
        let [left, right] = [self.winners[2 * node], self.winners[2 * node + 1]];
        let place = |table: u32| self.tables[table as usize].place;
        self.winners[node] = if place(right) < place(left) { right } else { left };
    }

    /// The time of a table's first item. `u64::MAX` if it has none.
    #[inline]
    pub(crate) fn due(&self, number: usize) -> u64 {
        self.tables[number].place.0
    }

    /// The first item of all tables: its time, the number of its table in the store, and whether it
    /// is a slot that must be opened.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, usize, bool)> {
        // With a single table, the leaf is the root.
        let one = &self.tables[*self.winners.get(1)? as usize];
        let (due, rank, _) = one.place;
        (rank != NEVER.1).then_some((due, one.table, rank & ENTRY == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::Earliest;
    use braid_ir::model::StateId;

    /// As [`Earliest::first`], by a look at all items.
    fn first(items: &[Option<(u64, Option<u64>)>]) -> Option<(u64, usize, bool)> {
        let places = items.iter().enumerate();
        let places = places.filter_map(|(at, item)| {
            let (due, id) = (*item)?;
            Some((due, id.is_some(), at, id))
        });
        places.min().map(|(due, is_entry, at, _)| (due, 100 + at, !is_entry))
    }

    #[test]
    fn first_item_is_that_of_a_search_through_all_tables() {
        let mut random = braid_externs::Rng::new(1);
        for count in 0..20_usize {
            let tables = (0..count).map(|at| (100 + at, at as u16 / 2, StateId(at as u32 % 2)));
            let mut earliest = Earliest::new(tables);
            let mut items = vec![None; count];
            assert_eq!(earliest.first(), None);
            for _ in 0..if count == 0 { 0 } else { braid_cases::cases(500) } {
                let at = random.below(count as u128) as usize;
                items[at] = match random.below(8) {
                    0 => None,
                    1 => Some((u64::MAX, Some(u64::MAX))),
                    kind => {
                        let mut below = |bound| random.below(bound) as u64;
                        Some((below(5), (kind > 3).then(|| below(3))))
                    }
                };
                earliest.set(at, items[at]);
                assert_eq!(earliest.first(), first(&items), "{items:?}");
            }
        }
    }
}
