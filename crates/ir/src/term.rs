//! The ends of blocks.

use crate::ids::{BlockId, PortId, QueueId, ReasonId, RowId, ValueId};

/// A packet's destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dest {
    /// Onward in the packet's direction.
    Onward,
    /// Back against the packet's direction.
    Back,
    /// To a port.
    Port(PortId),
}

/// The end of a block. A `row` is the place in the source where the packet's fate was decided.
/// Drops are accounted under it. Only `Count` and faults add to the counters of rows.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "each variant's description says what its parts are")]
pub enum Term {
    /// Continues in a later block.
    Jump(Target),
    /// Continues in one of two later blocks.
    Branch { cond: ValueId, yes: Target, no: Target },
    /// The packet leaves by these ports, in order. All but the last get copies.
    Output { ports: Vec<Dest>, row: RowId },
    /// The packet is dropped.
    Drop { reason: ReasonId, row: RowId },
    /// The packet ends here intentionally (answered, absorbed).
    Consume { row: RowId },
    /// The packet waits in a queue for a delay (ns). Then this function runs on it again, with
    /// `pkt.held` set. If the queue is full, the program continues in `full`.
    Hold { queue: QueueId, delay: ValueId, row: RowId, full: Target },
    /// This function runs again on the current packet. This can happen 8 times. One more is a
    /// fault.
    Resubmit { row: RowId },
    /// The connection ends: both ends get a RST, and its packets are dropped for this reason. Only
    /// in programs for events of TCP connections, and in handlers of stream functions: there, this
    /// holds for the flow that the event names, from its next packet on.
    Reset { reason: ReasonId, row: RowId },
    /// The connection goes on without further events for this function. Where it can stand, and
    /// what it holds for, is as for `Reset`.
    Bypass { row: RowId },
    /// The function takes the connection's events again, after `Bypass`. Only in handlers of stream
    /// functions.
    Resume { row: RowId },
    /// The end of a program that decides about no packet, or that lets a connection go on.
    Return,
}

/// A jump's destination, with the values for the block's parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// The block.
    pub block: BlockId,
    /// One value for each of its parameters.
    pub args: Vec<ValueId>,
}
