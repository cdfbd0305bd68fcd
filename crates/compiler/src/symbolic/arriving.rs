//! The fields of packets as they enter a program, for analyses of programs.

use super::cells::{Place, place};
use super::headers::Entering;
use braid_ir::model::Word;
use braid_packet::Field;

/// A field of the packets that enter a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arriving {
    /// The same value in all packets.
    Const(Word),
    /// The content of this field, which programs load.
    Cell(Field),
}

/// A field of packets with exactly these headers. `None` if the packets lack the field, or if it is
/// only a part of what programs load.
pub(crate) fn arriving(field: Field, presence: u128) -> Option<Arriving> {
    let mut entering = Entering::new(presence);
    if !entering.has_field(field) {
        return None;
    }
    match place(field, &mut entering.headers()).ok()? {
        Place::Const(word) => Some(Arriving::Const(word)),
        Place::Cell(cell, 0) => Some(Arriving::Cell(cell)),
        Place::Cell(..) | Place::Halves(_) => None,
    }
}
