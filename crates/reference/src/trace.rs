//! Watching a run: what `braid trace` is told of a packet's walk.

use braid_ir::engine::Fault;
use braid_ir::model::{Dest, QueueId, RowId, StateId, Word};
use braid_packet::{Field, Header, Packet};

/// Is told what functions do with a packet, in order. All methods do nothing by default.
pub trait Observer {
    /// A packet enters a function (or a function runs on it anew).
    fn enter(&mut self, _node: u16, _packet: &Packet) {}
    /// A function asks whether a header is present.
    fn has(&mut self, _node: u16, _header: Header, _present: bool) {}
    /// A function reads a field; `None` when its bytes were not captured.
    fn read(&mut self, _node: u16, _field: Field, _value: Option<Word>) {}
    /// A function writes a field.
    fn write(&mut self, _node: u16, _field: Field, _value: Word) {}
    /// Whether it wants to know what native functions write, which takes a comparison of packets.
    fn compares(&self) -> bool {
        false
    }
    /// A function adds a VLAN tag with this id, or removes one.
    fn vlan(&mut self, _node: u16, _pushed: Option<u16>) {}
    /// A function (also a timer's or expiry program of it) accesses a table.
    fn state(&mut self, _node: u16, _access: &StateAccess<'_>) {}
    /// A function sends a packet beside the current one: one that it built, or a copy.
    fn send(&mut self, _node: u16, _dest: Dest, _packet: &Packet, _created: bool) {}
    /// The packet is counted at a row.
    fn count(&mut self, _node: u16, _row: RowId) {}
    /// What becomes of the packet in a function. Among functions under `Priority` each tells its
    /// own verdict; the last `stands` says whose holds.
    fn verdict(&mut self, _node: u16, _verdict: &Verdict) {}
    /// The function among several under `Priority` whose verdict holds.
    fn stands(&mut self, _node: u16) {}
    /// A packet leaves by an interface.
    fn leave(&mut self, _interface: u16, _packet: &Packet) {}
    /// A packet is lost for this reason.
    fn lost(&mut self, _reason: &str) {}
}

/// An access to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateAccess<'a> {
    /// The table.
    pub state: StateId,
    /// The key.
    pub key: &'a [Word],
    /// What was done.
    pub what: StateWhat<'a>,
}

/// What was done to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateWhat<'a> {
    /// Looked whether an entry exists.
    Exists(bool),
    /// Read: these slots, and whether there is an entry (else they are the default).
    Get(&'a [Word], bool),
    /// Assigned these slots to an entry that existed.
    Assigned(&'a [Word]),
    /// Created an entry with these slots.
    Created(&'a [Word]),
    /// An assignment was refused.
    Refused,
    /// Deleted.
    Deleted,
    /// Expired or was evicted.
    Ended,
}

/// What becomes of a packet in a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Leaves by these ports.
    Output {
        /// Where to, in order.
        ports: Vec<Dest>,
        /// The row.
        row: RowId,
    },
    /// Dropped.
    Drop {
        /// Why.
        reason: String,
        /// The row.
        row: RowId,
    },
    /// Consumed.
    Consume {
        /// The row.
        row: RowId,
    },
    /// Waits in a queue.
    Hold {
        /// The queue.
        queue: QueueId,
        /// Until when (ns).
        until_ns: u64,
        /// The row.
        row: RowId,
    },
    /// Dropped at row `fault`.
    Fault(Fault),
}

/// An observer that looks away.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Observer for Silent {}
