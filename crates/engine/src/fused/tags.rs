//! VLAN tags that a run without effect adds and removes, and where fields are in the packet as it is then.

use super::plan::{Bits, bits_where, is_key};
use super::probe::{Hang, Probe};
use crate::act::Values;
use braid_ir::model::{ValueId, Word};
use braid_packet::blend::{Outline, WIDE_BYTES};
use braid_packet::{Field, Header};

/// Bytes of a tag.
const LEN: usize = 4;
/// Where tags begin.
const TAGS: usize = 12;
/// Most tags of a packet at any time: behind one more nothing is recognised.
const MOST: usize = 8;

/// Where a field is.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In the packet's first bytes as they were when it came.
    Came(Bits),
    /// In the bytes of tags that it got.
    Got(Bits),
}

impl Probe<'_> {
    /// How many tags the packet has now; `None` if that is not what its outline says.
    fn tags(&self) -> Option<usize> {
        let has = |header| usize::from(self.layout.has(header));
        let came = has(Header::Vlan) + has(Header::Vlan2);
        let tags = &self.notes.way.aside.vlans;
        (came == self.outline.tags()).then(|| came - tags.lost + tags.got.len() / LEN)
    }

    /// It gets an outermost tag.
    pub(super) fn push_tag(&mut self, values: &Values<'_>, id: ValueId) -> Option<()> {
        self.fix(values, id)?;
        if self.tags()? == MOST {
            return None;
        }
        let [high, low] = u16::try_from(values.get(id)).unwrap_or(u16::MAX).to_be_bytes();
        self.notes.way.aside.vlans.got.splice(..0, [0x81, 0, high & 0xf, low]);
        self.stale = true;
        Some(())
    }

    /// It loses its outermost tag.
    pub(super) fn pop_tag(&mut self) -> Option<()> {
        if self.tags()? == 0 {
            return None;
        }
        let tags = &mut self.notes.way.aside.vlans;
        match tags.got.is_empty() {
            true => tags.lost += 1,
            false => drop(tags.got.drain(..LEN)),
        }
        self.stale = true;
        Some(())
    }

    /// Nothing is assigned to tags that the packet loses.
    pub(super) fn forget_lost(&mut self) {
        let lost = self.notes.way.aside.vlans.lost;
        self.headers.mask[TAGS..TAGS + lost * LEN].fill(0);
    }

    /// Whether a header is there now, if that is the same for all packets of the flow.
    pub(super) fn has(&self, header: Header) -> Option<bool> {
        let is_moved =
            self.notes.way.aside.vlans.longer() != 0 || self.notes.way.aside.vlans.lost > 0;
        match header {
            Header::Vlan if is_moved => Some(self.tags()? >= 1),
            Header::Vlan2 if is_moved => Some(self.tags()? >= 2),
            _ => self.shape.has(header),
        }
    }

    /// Where a field is, if it is in the packet's first bytes.
    pub(super) fn place(&self, field: Field) -> Option<Place> {
        let outline = self.outline.with(&self.notes.way.aside.vlans);
        let bits = bits_where(&|header| self.has(header), outline, field)?;
        match self.notes.way.aside.vlans.origin(bits.at) {
            Some(at) => (at + bits.len <= WIDE_BYTES).then_some(Place::Came(Bits { at, ..bits })),
            None => Some(Place::Got(Bits { at: bits.at - TAGS, ..bits })),
        }
    }

    /// What a field is that has its own bytes in the packet, after anything that was assigned, and on what that
    /// hangs; which bits of the key it is, if it is some.
    pub(super) fn field(&self, field: Field) -> Option<(Word, Hang, Option<Bits>)> {
        let is_link = is_link(field);
        let bits = match self.place(field) {
            Some(Place::Got(bits)) => {
                return Some((bits.get(&self.notes.way.aside.vlans.got), Hang::Fixed, None));
            }
            Some(Place::Came(bits)) => bits,
            // Where it is, or what it is, may have changed.
            None if self.headers.writes || is_link => return None,
            None => return Some((self.packet.get(self.layout, field)?, Hang::Packet, None)),
        };
        let value = bits.get(&self.headers.head);
        let (some, all) = bits.are_in(&self.headers.fresh);
        if some {
            let fixed = all && (is_key(field) || is_link);
            return fixed.then_some((value, Hang::Fixed, None));
        }
        let is_key = is_key(field);
        // Others may have followed what was assigned.
        if self.headers.writes && !is_link && !is_key {
            return None;
        }
        if self.headers.is_summed(field) {
            return Some((value, Hang::Packet, None));
        }
        match bits.are_in(&self.headers.written) {
            (_, true) => return Some((value, Hang::Fixed, None)),
            (true, false) => return None,
            (false, false) if is_key => return Some((value, Hang::Fixed, Some(bits))),
            (false, false) => {}
        }
        let down = if bits.at == self.outline.ttl() { self.headers.down } else { 0 };
        let add = -i64::from(down);
        let hang = |number| Hang::Number { number, shift: bits.shift, add };
        Some((value, bits.number().map_or(Hang::Packet, hang), None))
    }
}

/// Whether a field is of the Ethernet header or of tags: nothing else follows what is assigned to it.
pub(super) fn is_link(field: Field) -> bool {
    matches!(field.info().header, Header::Eth | Header::Vlan | Header::Vlan2)
}

/// Bits that tell tags of packets with an outline apart: what they are, and their identifiers.
pub(super) fn add_tags(outline: Outline, mask: &mut [u8; WIDE_BYTES]) {
    for tag in mask[TAGS..outline.ip - 2].chunks_mut(LEN) {
        tag.copy_from_slice(&[0xff, 0xff, 0x0f, 0xff]);
    }
}
