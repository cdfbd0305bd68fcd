//! The dependence of a value in a specialised program.

use crate::guard::Number;

/// The dependence of a value, besides the dependencies of its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dependence {
    /// The value depends on nothing.
    Fixed,
    /// The value is a number in the packet, shifted down by `shift`, plus `add`.
    Number { number: Number, shift: u32, add: i64 },
    /// The value is a number in the packet, shifted down. Guards can only ask for exactly these
    /// bits.
    Bits { number: Number, shift: u32 },
    /// The value is the content of a slot of an entry, plus `packets`, plus `bytes` times the bytes
    /// on the wire. `entry` is the entry's number among the entries that were found. Once anything
    /// was added, `wraps` says whether the sum wraps where it would not fit.
    Slot { entry: usize, slot: u32, packets: i64, bytes: u32, wraps: Option<bool> },
    /// The value is the time.
    Time,
    /// The record computes the value for each packet. This is its number in
    /// [`crate::dynamic::Dynamic`].
    Dynamic(u8),
    /// The value depends on anything else.
    Packet,
}
