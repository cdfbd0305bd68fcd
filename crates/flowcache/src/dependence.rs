//! What a value of a specialised program depends on.

use crate::guard::Number;

/// What a value depends on, beside the dependencies of its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dependence {
    /// Nothing.
    Fixed,
    /// It is a number in the packet, shifted down by `shift`, plus `add`.
    Number { number: Number, shift: u32, add: i64 },
    /// It is a number in the packet, shifted down, of which guards can only ask for the very bits.
    Bits { number: Number, shift: u32 },
    /// It is what a slot of an entry (by number among those that were found) holds, plus `packets`, plus
    /// `bytes` times the bytes on the wire; whether it wraps where it would not fit, once anything was added.
    Slot { entry: usize, slot: u32, packets: i64, bytes: u32, wraps: Option<bool> },
    /// It is the time.
    Time,
    /// It is computed for each packet: its number in [`crate::dynamic::Dynamic`].
    Dynamic(u8),
    /// Anything else.
    Packet,
}
