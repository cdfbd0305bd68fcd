//! The dependency of a value in a specialised program: the source of its differences between the
//! packets of a flow.

use crate::guard::Number;
use braid_packet::Field;

/// The dependency of a value, besides the dependencies of the whole record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueDependency {
    /// The value depends on nothing.
    Fixed,
    /// The value is a number in the packet, shifted right by `shift`, plus `add`.
    Number { number: Number, shift: u32, add: i64 },
    /// The value is a number in the packet, shifted right by `shift`. A guard can only compare
    /// these bits for equality.
    Bits { number: Number, shift: u32 },
    /// The value is a number in the packet that fills whole bytes, plus an amount that is the same
    /// for all packets of the flow, modulo the number's width. `was` is the number in this packet.
    Relative { origin: Origin, was: u32 },
    /// The value is the content of a slot, plus `packets`, plus `bytes` times the packet's bytes on
    /// the wire. `entry` is the entry's number among the entries that were found. `wraps` is `None`
    /// before anything was added. Afterwards it says whether the sum wraps at the slot's width or
    /// saturates.
    Slot { entry: usize, slot: u32, packets: i64, bytes: u32, wraps: Option<bool> },
    /// The value is the time.
    Time,
    /// The record computes the value for each packet, as the value with this number in
    /// [`crate::dynamic::Dynamic`].
    Dynamic(u8),
    /// The value depends on anything else.
    Packet,
}

/// The place of a number in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// In the packet's first bytes, at the same place in all packets of the flow.
    First(Number),
    /// A field whose place differs between packets of the flow.
    Field(Field),
}
