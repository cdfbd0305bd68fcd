//! Tables that move: a store takes the tables of another store over, or copies its own.
#![expect(
    clippy::indexing_slicing,
    reason = "callers name functions of both stores that have the same tables"
)]

use crate::mutants::MoveMutant;
use crate::table::{Cold, Table};
use crate::tables::Tables;

/// Memory for a copy of tables.
#[derive(Debug, Default)]
pub struct Room(Vec<(Vec<u64>, Vec<Cold>)>);

/// Fills room with something other than zeros.
const COLD: Cold = Cold { created_ns: 1, id: 1 };

/// An array for this number of elements and a few more. The system provides its memory now, because it is
/// written to.
fn filled<T: Clone>(count: usize, with: T) -> Vec<T> {
    vec![with; count + count / 16 + 1024]
}

/// Whether the table is one of the function, or of any if none is named.
fn is_of(table: &Table, function: Option<u16>) -> bool {
    function.is_none_or(|function| table.site.node == function)
}

impl Tables {
    /// Takes over all entries and counters of functions from another store: pairs of a function
    /// here and a function there with the same tables ([`braid_ir::snapshot::staying`]). Limits
    /// stay those of this store. Nothing depends on entries of either store. The time does not
    /// depend on the number of entries that move, unless their time-outs change. The other store is
    /// of no further use.
    pub fn take_over(&mut self, old: &mut Tables, functions: &[(u16, u16)]) {
        if functions.is_empty() {
            return;
        }
        let mutants = self.mutants;
        let mut stays = vec![true; self.all.len()];
        for (node, from) in functions {
            let function = &self.functions[usize::from(*node)];
            let count = usize::from(function.shards) * function.model.state.len();
            let first = old.functions[usize::from(*from)].first;
            let tables = self.all[function.first..][..count].iter_mut();
            for (table, old) in tables.zip(&mut old.all[first..][..count]) {
                table.take_over(old, mutants);
            }
            stays[function.first..][..count].fill(false);
        }
        // What moves is found by the other store's hash.
        if !mutants.has(MoveMutant::HashKept) {
            std::mem::swap(&mut self.hash, &mut old.hash);
        }
        let left = self.all.iter_mut().zip(stays).filter(|(_, stays)| *stays);
        left.for_each(|(table, _)| table.rehash(&self.hash));
        if !mutants.has(MoveMutant::IdsRepeat) {
            self.ids = self.ids.max(old.ids);
        }
        self.find_next();
    }

    /// Makes the memory for a copy ([`Tables::copy`]), on any thread.
    pub fn room(&self, function: Option<u16>) -> impl FnOnce() -> Room + Send + use<> {
        let size = |table: &Table| match is_of(table, function) {
            true => (table.hot.len(), table.cold.len()),
            false => (0, 0),
        };
        let sizes: Vec<_> = self.all.iter().map(size).collect();
        || Room(sizes.into_iter().map(|(hot, cold)| (filled(hot, 1), filled(cold, COLD))).collect())
    }

    /// A copy from which the entries of all functions, or of one, can be read. Nothing can be found
    /// in it, and nothing ends. Most of the time that a copy takes goes into new memory, so it takes
    /// a fraction of that time if there is room ([`Tables::room`]).
    #[must_use]
    pub fn copy(&self, Room(mut room): Room, function: Option<u16>) -> Self {
        let mut copy = Self::empty(self.hash.clone());
        copy.functions.clone_from(&self.functions);
        room.resize_with(self.all.len(), Default::default);
        let tables = self.all.iter().zip(room);
        let copies = tables.map(|(table, room)| match is_of(table, function) {
            true => table.copy(room),
            false => table.emptied(),
        });
        copy.all = copies.collect();
        copy
    }

    /// Whether the store has this mutant.
    #[must_use]
    pub fn has_mutant(&self, mutant: MoveMutant) -> bool {
        self.mutants.has(mutant)
    }

    /// Gives the store a mutant.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: MoveMutant) {
        self.mutants.active = Some(mutant);
    }
}
