//! VLAN tags that a run without effect adds and removes, and where fields are in the packet as it is then.

use crate::findings::Dependence;
use crate::host::Functions;
use crate::key::{Bits, TAG_LEN, TAGS, bits_where, is_key};
use crate::specialiser::Specialiser;
use braid_ir::model::{ValueId, Word};
use braid_ir::values::Values;
use braid_packet::blend::WIDE_BYTES;
use braid_packet::{Field, Header};

/// Most tags of a packet at any time: behind one more nothing is recognised.
const MOST: usize = 8;

/// Where a field is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// In the packet's first bytes as they were when it came.
    Came(Bits),
    /// In the bytes of tags that it got.
    Got(Bits),
}

impl<F: Functions> Specialiser<'_, F> {
    /// How many tags the packet has now; `None` if that is not what its outline publications.
    fn tags(&self) -> Option<usize> {
        let has = |header| usize::from(self.layout.has(header));
        let came = has(Header::Vlan) + has(Header::Vlan2);
        let tags = &self.findings.path.effects.vlans;
        (came == self.outline.tags()).then(|| came - tags.lost + tags.got.len() / TAG_LEN)
    }

    /// It gets an outermost tag.
    pub(crate) fn push_tag(&mut self, values: &Values<'_>, id: ValueId) -> Option<()> {
        self.fix(values, id)?;
        if self.tags()? == MOST {
            return None;
        }
        let [high, low] = u16::try_from(values.get(id)).unwrap_or(u16::MAX).to_be_bytes();
        self.findings.path.effects.vlans.got.splice(..0, [0x81, 0, high & 0xf, low]);
        self.stale = true;
        Some(())
    }

    /// It loses its outermost tag.
    pub(crate) fn pop_tag(&mut self) -> Option<()> {
        if self.tags()? == 0 {
            return None;
        }
        let tags = &mut self.findings.path.effects.vlans;
        match tags.got.is_empty() {
            true => tags.lost += 1,
            false => drop(tags.got.drain(..TAG_LEN)),
        }
        self.stale = true;
        Some(())
    }

    /// Nothing is assigned to tags that the packet loses.
    pub(crate) fn forget_lost(&mut self) {
        let lost = self.findings.path.effects.vlans.lost;
        self.headers.mask[TAGS..TAGS + lost * TAG_LEN].fill(0);
    }

    /// Whether a header is there now, if that is the same for all packets of the flow.
    pub(crate) fn has(&self, header: Header) -> Option<bool> {
        let is_moved = self.findings.path.effects.vlans.longer() != 0
            || self.findings.path.effects.vlans.lost > 0;
        match header {
            Header::Vlan if is_moved => Some(self.tags()? >= 1),
            Header::Vlan2 if is_moved => Some(self.tags()? >= 2),
            _ => self.shape.has(header),
        }
    }

    /// Where a field is, if it is in the packet's first bytes.
    pub(crate) fn place(&self, field: Field) -> Option<Place> {
        let outline = self.outline.with(&self.findings.path.effects.vlans);
        let bits = bits_where(&|header| self.has(header), outline, field)?;
        match self.findings.path.effects.vlans.origin(bits.at) {
            Some(at) => (at + bits.len <= WIDE_BYTES).then_some(Place::Came(Bits { at, ..bits })),
            None => Some(Place::Got(Bits { at: bits.at - TAGS, ..bits })),
        }
    }

    /// What a field is that has its own bytes in the packet, after anything that was assigned, and on what that
    /// dependences; which bits of the key it is, if it is some.
    pub(crate) fn field(&self, field: Field) -> Option<(Word, Dependence, Option<Bits>)> {
        let is_link = is_link(field);
        let bits = match self.place(field) {
            Some(Place::Got(bits)) => {
                return Some((
                    bits.get(&self.findings.path.effects.vlans.got),
                    Dependence::Fixed,
                    None,
                ));
            }
            Some(Place::Came(bits)) => bits,
            // Where it is, or what it is, may have changed.
            None if self.headers.writes || is_link => return None,
            None => return Some((self.packet.get(self.layout, field)?, Dependence::Packet, None)),
        };
        let value = bits.get(&self.headers.head);
        let (some, all) = bits.are_in(&self.headers.fresh);
        if some {
            let fixed = all && (is_key(field) || is_link);
            return fixed.then_some((value, Dependence::Fixed, None));
        }
        let is_key = is_key(field);
        // Others may have followed what was assigned.
        if self.headers.writes && !is_link && !is_key {
            return None;
        }
        if self.headers.is_summed(field) {
            return Some((value, Dependence::Packet, None));
        }
        match bits.are_in(&self.headers.written) {
            (_, true) => return Some((value, Dependence::Fixed, None)),
            (true, false) => return None,
            (false, false) if is_key => return Some((value, Dependence::Fixed, Some(bits))),
            (false, false) => {}
        }
        let down = if bits.at == self.outline.ttl() { self.headers.down } else { 0 };
        let add = -i64::from(down);
        let dependence = |number| Dependence::Number { number, shift: bits.shift, add };
        Some((value, bits.number().map_or(Dependence::Packet, dependence), None))
    }
}

/// Whether a field is of the Ethernet header or of tags: nothing else follows what is assigned to it.
pub(crate) fn is_link(field: Field) -> bool {
    matches!(field.info().header, Header::Eth | Header::Vlan | Header::Vlan2)
}
