//! Moves and copies of tables: a store takes over the tables of another store, or copies its own.
#![expect(
    clippy::indexing_slicing,
    reason = "callers name functions of both stores that have the same tables"
)]

use crate::cold::{COLD, Cold};
use crate::mutants::MoveMutant;
use crate::table::Table;
use crate::tables::Tables;

/// Memory for a copy of tables.
#[derive(Debug, Default)]
pub struct Room(Vec<(Vec<u64>, Vec<Cold>)>);

/// An array for this number of elements and a few more. The function writes to the array, so that
/// the system provides the memory now.
fn filled<T: Clone>(count: usize, with: T) -> Vec<T> {
    vec![with; count + count / 16 + 1024]
}

/// Whether the table belongs to this function. Without a function, every table does.
fn is_of(table: &Table, function: Option<u16>) -> bool {
    function.is_none_or(|function| table.site.node == function)
}

impl Tables {
    /// Takes over all entries and counters of functions from another store. `functions` are pairs
    /// of a function here and a function there with the same tables
    /// ([`braid_ir::snapshot::staying`]). The limits of this store stay. Nothing may depend on
    /// entries of either store. The call takes the same time for any number of entries, unless
    /// their time-outs change. The other store must not be used afterwards.
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
        // The entries that move are found by the other store's hash.
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

    /// A copy from which the entries of all functions, or of one, can be read. Lookups in it find
    /// nothing, and nothing ends. Most of the cost of a copy is new memory, so it is much faster
    /// with memory from [`Tables::room`].
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
    pub fn use_mutant(&mut self, mutant: MoveMutant) {
        self.mutants.active = Some(mutant);
    }
}
