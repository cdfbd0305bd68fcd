//! Changes of a packet's VLAN tags, made at once.

use crate::wire::{ethernet, vlan};

/// VLAN tags that packets of a flow lose and get.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Retag {
    /// How many tags the packets lose, the outermost first.
    pub lost: usize,
    /// The bytes of the tags that the packets get, the outermost first.
    pub got: Vec<u8>,
}

impl Retag {
    /// How many bytes a packet grows by. Negative when it shrinks.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the few tags of a packet are short")]
    pub fn longer(&self) -> i32 {
        self.got.len() as i32 - (self.lost * vlan::LEN) as i32
    }

    /// Maps an offset in the packet with its new tags to the offset before the change. `None` for a
    /// byte of a new tag.
    #[must_use]
    pub fn origin(&self, at: usize) -> Option<usize> {
        match at.checked_sub(ethernet::TYPE) {
            None => Some(at),
            Some(behind) if behind < self.got.len() => None,
            Some(_) => Some(at - self.got.len() + self.lost * vlan::LEN),
        }
    }
}
