//! How entries end: with all that share their life.

use crate::store::{Store, TableRef};
use crate::table::NONE;
use braid_ir::model::StateId;
use std::ops::Range;

/// Why a group of entries ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    Expired,
    Evicted,
    Deleted,
}

/// Entries that ended together and whose `expire` programs have to run, in this order. An engine
/// keeps one for each depth at which it lets entries end; nothing is allocated once it has grown.
#[derive(Debug, Default)]
pub struct Ended {
    entries: Vec<Member>,
    words: Vec<u64>,
}

#[derive(Debug)]
struct Member {
    table: TableRef,
    node: u16,
    state: StateId,
    shard: u16,
    key: Range<usize>,
    slots: Range<usize>,
}

/// An entry that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedEntry<'a> {
    /// Its table.
    pub table: TableRef,
    /// The function.
    pub node: u16,
    /// The table, by number in the function.
    pub state: StateId,
    /// The shard in which it was created, where its program runs.
    pub shard: u16,
    /// Its packed key.
    pub key: &'a [u64],
    /// Its packed slots.
    pub slots: &'a [u64],
}

impl Ended {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in the order in which their programs run.
    pub fn entries(&self) -> impl Iterator<Item = EndedEntry<'_>> {
        self.entries.iter().map(|entry| EndedEntry {
            table: entry.table,
            node: entry.node,
            state: entry.state,
            shard: entry.shard,
            key: &self.words[entry.key.clone()],
            slots: &self.words[entry.slots.clone()],
        })
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.words.clear();
    }

    fn copy(&mut self, words: &[u64]) -> Range<usize> {
        let start = self.words.len();
        self.words.extend_from_slice(words);
        start..self.words.len()
    }
}

impl Store {
    /// Ends the group with this root. Those whose programs have to run are put into `ended`: the
    /// root first, then by table and creation.
    pub(crate) fn end_group(&mut self, root: usize, place: u32, cause: Cause, ended: &mut Ended) {
        self.group_ends(root, place);
        let mut members = std::mem::take(&mut self.members);
        let row = self.tables[root].site.row;
        let mut at = (root - row, place);
        loop {
            let table = &self.tables[row + at.0];
            members.push((at.0, table.cold(at.1).id, at.1));
            let (next, state) = table.next(at.1);
            if next == NONE {
                break;
            }
            at = (state as usize, next);
        }
        members[1..].sort_unstable();
        for (state, _, place) in members.drain(..) {
            self.end(row + state, place, cause, ended);
        }
        self.members = members;
    }

    fn end(&mut self, at: usize, place: u32, cause: Cause, ended: &mut Ended) {
        let table = &mut self.tables[at];
        match cause {
            Cause::Expired => table.counters.expired += 1,
            Cause::Evicted => table.counters.evicted += 1,
            Cause::Deleted => {}
        }
        if cause != Cause::Deleted && table.site.runs {
            let (key, slots) = (ended.copy(table.key(place)), ended.copy(table.slots(place)));
            ended.entries.push(Member {
                table: TableRef(at as u32),
                node: table.site.node,
                state: table.site.state,
                shard: table.creator(place),
                key,
                slots,
            });
        }
        table.remove(place, &self.hash);
    }
}
