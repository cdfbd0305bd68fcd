//! Observation of a run: the events of a packet's walk that `braid trace` prints.

use braid_ir::engine::{Fault, Watcher};
use braid_ir::model::{Dest, QueueId, RowId, StateId, Word};
use braid_packet::{Field, Header, Packet};

/// Receives the actions of functions on a packet, in order. By default, all methods do nothing.
pub trait Observer {
    /// A packet enters a function.
    fn visit(&mut self, _node: u16, _packet: &Packet) {}
    /// A packet enters a function, or a function runs on it again.
    fn enter(&mut self, _node: u16, _packet: &Packet) {}
    /// A function tests whether a header is present.
    fn has(&mut self, _node: u16, _header: Header, _present: bool) {}
    /// A function reads a field. `None`: its bytes were not captured.
    fn read(&mut self, _node: u16, _field: Field, _value: Option<Word>) {}
    /// A function writes a field.
    fn write(&mut self, _node: u16, _field: Field, _value: Word) {}
    /// Whether the observer wants the writes of native functions, which require a comparison of
    /// packets.
    fn compares(&self) -> bool {
        false
    }
    /// A function adds a VLAN tag with this id, or removes one.
    fn vlan(&mut self, _node: u16, _pushed: Option<u16>) {}
    /// A function accesses a table. This includes its timer and expiry programs.
    fn state(&mut self, _node: u16, _access: &StateAccess<'_>) {}
    /// A function sends a packet besides the current one: a packet that it built, or a copy.
    fn send(&mut self, _node: u16, _dest: Dest, _packet: &Packet, _created: bool) {}
    /// A packet leaves a function by a port: the current one, a copy, or a packet that the function
    /// built.
    fn output(&mut self, _node: u16, _packet: &Packet) {}
    /// The packet is counted at a row.
    fn count(&mut self, _node: u16, _row: RowId) {}
    /// The packet's fate in a function. Under `Priority`, each function reports its own verdict.
    /// The last `stands` reports the function whose verdict applies.
    fn verdict(&mut self, _node: u16, _verdict: &Verdict) {}
    /// Under `Priority`, the function whose verdict applies.
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
    /// The action on the table.
    pub what: StateWhat<'a>,
}

/// An action on a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateWhat<'a> {
    /// A test whether an entry exists, with the result.
    Exists(bool),
    /// A read of these slots, and whether there is an entry. Without an entry the slots are the
    /// default.
    Get(&'a [Word], bool),
    /// An assignment of these slots to an existing entry.
    Assigned(&'a [Word]),
    /// A new entry with these slots.
    Created(&'a [Word]),
    /// A refused assignment.
    Refused,
    /// A deletion.
    Deleted,
    /// An expiry or an eviction.
    Ended,
}

/// The packet's fate in a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It leaves by these ports.
    Output {
        /// The ports, in order.
        ports: Vec<Dest>,
        /// The row.
        row: RowId,
    },
    /// It is dropped.
    Drop {
        /// The reason.
        reason: String,
        /// The row.
        row: RowId,
    },
    /// It is consumed.
    Consume {
        /// The row.
        row: RowId,
    },
    /// It waits in a queue.
    Hold {
        /// The queue.
        queue: QueueId,
        /// The end of the wait (ns).
        until_ns: u64,
        /// The row.
        row: RowId,
    },
    /// It is dropped at row `fault`.
    Fault(Fault),
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Observer for Silent {}

/// Shows a watcher the packets between functions.
pub(crate) struct Between<'a>(pub(crate) &'a mut dyn Watcher);

impl Observer for Between<'_> {
    fn visit(&mut self, node: u16, packet: &Packet) {
        self.0.enters(node, packet);
    }

    fn output(&mut self, node: u16, packet: &Packet) {
        self.0.leaves(node, packet);
    }
}
