//! What waits for its time: entries that expire, and held packets.

use super::instance::Instance;
use super::table::EntryRef;
use braid_ir::model::{QueueId, StateId};
use braid_packet::Packet;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The expiry times of entries, in the order in which they are due. An entry has an item if it
/// lives with no other and has a time-out. The time may be too early, because a packet may have
/// found the entry since. The entry is checked again when its item is due.
#[derive(Default)]
pub(super) struct Expiries {
    due: BTreeSet<Expiry>,
    /// The item of each entry, by the entry's number.
    by_entry: HashMap<u64, Expiry>,
}

/// (deadline, function, table, creation, shard). There is one item for each entry, so the type is
/// small. A u16 can hold the shard, because there are at most as many shards as workers.
pub(super) type Expiry = (u64, u16, StateId, u64, u16);

impl Expiries {
    /// Records when an entry expires.
    pub(super) fn schedule(
        &mut self,
        instance: &Instance,
        node: u16,
        shard: usize,
        root: EntryRef,
    ) {
        if let Some(deadline) = instance.deadline(root, shard) {
            let expiry = (deadline, node, root.state, root.id, shard as u16);
            self.due.insert(expiry);
            self.by_entry.insert(root.id, expiry);
        }
    }

    /// The item that is due next.
    pub(super) fn first(&self) -> Option<Expiry> {
        self.due.first().copied()
    }

    /// Removes an entry that has ended. The number of items is therefore bounded by the tables.
    pub(super) fn cancel(&mut self, id: u64) {
        if let Some(expiry) = self.by_entry.remove(&id) {
            self.due.remove(&expiry);
        }
    }

    /// The lengths of both collections.
    #[cfg(test)]
    pub(super) fn lens(&self) -> (usize, usize) {
        (self.due.len(), self.by_entry.len())
    }

    /// Removes all entries of a function.
    pub(super) fn forget(&mut self, node: u16) {
        self.due.retain(|expiry| expiry.1 != node);
        self.by_entry.retain(|_, expiry| expiry.1 != node);
    }
}

/// A held packet.
pub(super) struct Held {
    pub(super) packet: Packet,
    /// Number of function visits so far.
    pub(super) hops: u32,
    pub(super) worker: u16,
}

/// Held packets: by (time, function, queue, order of arrival).
pub(super) type Waiting = BTreeMap<(u64, u16, QueueId, u64), Held>;
