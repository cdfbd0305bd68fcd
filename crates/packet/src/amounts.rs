//! Relative writes: a masked rewrite adds amounts to numbers of a packet, such as its sequence
//! number. The checksums follow each packet's change (RFC 1624), because a sum that wraps changes
//! its bytes by another amount.

use crate::checksum::{self, Delta};
use crate::field::{Field, Where};
use crate::layout::Layout;
use crate::place::{number, place};
use crate::wire::ipv4;

/// The largest number of fields to which a masked rewrite adds amounts.
pub const MOST_ADDS: usize = 8;

/// A field to which a masked rewrite adds an amount, modulo the field's width. The field fills
/// whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Add {
    /// The field.
    pub field: Field,
    /// The offset of the amount in the new bytes of the rewrite. It is a big-endian number with the
    /// length of the field.
    pub from: u8,
    /// The checksum that follows the change.
    pub follows: Follows,
}

/// The checksum that covers a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Follows {
    /// None.
    Nothing,
    /// The IPv4 header's checksum.
    Ip,
    /// The transport checksum.
    Transport,
}

/// The fields to which a masked rewrite adds amounts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Adds([Option<Add>; MOST_ADDS]);

impl Adds {
    /// No field.
    pub const NONE: Adds = Adds([None; MOST_ADDS]);

    /// Whether there is no field.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        matches!(self.0, [None, ..])
    }

    /// Adds a field. Returns false if there are too many.
    #[must_use]
    pub fn push(&mut self, add: Add) -> bool {
        let free = self.0.iter_mut().find(|one| one.is_none());
        free.map(|free| *free = Some(add)).is_some()
    }

    /// The fields, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Add> {
        self.0.iter().copied().flatten()
    }
}

impl Field {
    /// The number of bytes that the field fills: 2 or 4. `None` for other fields and for fields
    /// whose place depends on headers.
    #[must_use]
    pub fn whole_bytes(self) -> Option<u8> {
        match self.info().place {
            Where::Bits(bits) if bits.shift == 0 && bits.width == 8 * bits.len => {
                matches!(bits.len, 2 | 4).then_some(bits.len)
            }
            _ => None,
        }
    }
}

/// Adds amounts to fields of a packet with this layout, and updates the checksums. `amounts` holds
/// the new bytes of the rewrite.
#[inline(never)]
pub(crate) fn add_all(layout: &Layout, data: &mut [u8], adds: &Adds, amounts: &[u8]) {
    for add in adds.iter() {
        // A packet without the field stays as it is.
        let _changed = add_one(layout, data, add, amounts);
    }
}

fn add_one(layout: &Layout, data: &mut [u8], add: Add, amounts: &[u8]) -> Option<()> {
    let place = place(layout, add.field)?;
    let amount = amounts.get(usize::from(add.from)..)?.get(..place.len)?;
    let amount = amount.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    let old = number(data, place)?;
    let new = old.wrapping_add(amount) & place.mask();
    let bytes = data.get_mut(place.offset..place.offset + place.len)?;
    bytes.copy_from_slice(new.to_be_bytes().get(16 - place.len..)?);
    let delta = Delta::between(old, new, place.len);
    match add.follows {
        Follows::Nothing => {}
        Follows::Ip => {
            let delta = delta.at(place.offset.abs_diff(layout.ip()));
            checksum::update(data, layout.ip() + ipv4::CHECKSUM, delta, false);
        }
        Follows::Transport => {
            let sum = layout.sum()?;
            let delta = delta.at(place.offset.abs_diff(layout.l4()));
            checksum::update(data, sum.at, delta, sum.is_udp());
        }
    }
    Some(())
}
