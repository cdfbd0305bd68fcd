//! Headers in a run without effect: what was assigned by now, and what of that a record will publish.

use crate::bindings::HeaderChange;
use crate::findings::Dependence;
use crate::host::Functions;
use crate::key::{Bits, in_sum, is_address, is_key};
use crate::mutants::RecordMutant;
use crate::specialiser::Specialiser;
use crate::tags::{Place, is_link};
use braid_ir::model::{ValueId, Word};
use braid_ir::values::Values;
use braid_packet::blend::{Blend, Outline, WIDE, WIDE_BYTES, sums, words};
use braid_packet::field::Cover;
use braid_packet::{Base, Field, Header, Packet};

/// What has become of a packet's headers.
pub(crate) struct Headers {
    /// The packet's first bytes as they are by now, but for checksums.
    pub(crate) head: [u8; WIDE_BYTES],
    /// The same at the last [`HeaderChange`], and the bits that were assigned since.
    base: [u8; WIDE_BYTES],
    pub(crate) mask: [u8; WIDE_BYTES],
    /// Bits that the program has assigned, and whether it has assigned any behind the link's headers.
    pub(crate) fresh: [u8; WIDE_BYTES],
    pub(crate) writes: bool,
    /// Bits that were assigned before it, and checksums that were updated.
    pub(crate) written: [u8; WIDE_BYTES],
    summed: [bool; 2],
    /// What the TTL went down by before it, and before the last [`HeaderChange`].
    pub(crate) down: u8,
    down_before: u8,
}

impl Headers {
    /// Nothing has been assigned yet.
    pub(crate) fn of(packet: &Packet) -> Self {
        let (head, none) = (packet.wide_window(), [0; WIDE_BYTES]);
        Self {
            head,
            base: head,
            mask: none,
            fresh: none,
            writes: false,
            written: none,
            summed: [false; 2],
            down: 0,
            down_before: 0,
        }
    }

    /// Whether a field is a checksum that was updated before the program.
    pub(crate) fn is_summed(&self, field: Field) -> bool {
        match field {
            Field::IpChecksum => self.summed[0],
            Field::L4Checksum => self.summed[1],
            _ => false,
        }
    }
}

impl<F: Functions> Specialiser<'_, F> {
    /// The packet is as it has been written by now; `None` if it has other headers then.
    pub(crate) fn renew(&mut self) -> Option<()> {
        let (headers, blend) = (&mut self.headers, &self.findings.path.blend);
        (headers.writes, headers.fresh) = (false, [0; WIDE_BYTES]);
        headers.down = headers.down_before + blend.ttl;
        headers.summed.iter_mut().zip(blend.sums).for_each(|(summed, sum)| *summed |= sum);
        headers.written.iter_mut().zip(headers.mask).for_each(|(written, mask)| *written |= mask);
        if headers.head != self.packet.wide_window() {
            let len = self.packet.data().len().min(WIDE_BYTES);
            self.packet.to_mut().data_mut()[..len].copy_from_slice(&headers.head[..len]);
            let layout = self.packet.parse();
            let same = layout.presence() == self.layout.presence();
            return (same && Outline::of(&layout) == Some(self.outline)).then_some(());
        }
        Some(())
    }

    /// What has been done to the headers since this was last asked; `None` if that cannot be said.
    pub(crate) fn change(&mut self) -> Option<HeaderChange> {
        let mut blend = std::mem::replace(&mut self.findings.path.blend, Blend::NONE);
        // Other packets of the flow may have the checksum that this one lacks.
        if blend.sums[1] && self.layout.lacks_sum() {
            return None;
        }
        let headers = &mut self.headers;
        let (mask, mut bytes) = (words::<WIDE>(&headers.mask), words::<WIDE>(&headers.head));
        bytes.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
        blend.keep = mask.map(|word| !word);
        let sums = sums(self.layout, self.outline, &headers.base, &headers.head);
        headers.down_before += blend.ttl;
        (headers.base, headers.mask) = (headers.head, [0; WIDE_BYTES]);
        Some(HeaderChange { blend, bytes, sums })
    }

    /// Assigns a field.
    pub(crate) fn write(&mut self, values: &Values<'_>, field: Field, id: ValueId) -> Option<()> {
        self.headers.writes |= !is_link(field);
        let bits = match self.place(field).filter(|_| !self.stale)? {
            Place::Came(bits) => bits,
            Place::Got(bits) => {
                self.fix(values, id)?;
                bits.set(&mut self.findings.path.effects.vlans.got, values.get(id));
                return Some(());
            }
        };
        let value = values.get(id);
        if let Dependence::Number { number, shift: 0, add } = self.dependence(id)
            && Some(number) == bits.number()
            && bits.at == self.outline.ttl()
        {
            self.sums_follow(field)?;
            // Relative to what it was when the packet came, also if it was assigned before.
            let down = -add - i64::from(self.headers.down_before);
            self.findings.path.blend.ttl = u8::try_from(down).ok()?;
            bits.set(&mut self.headers.head, value);
            bits.set(&mut self.headers.mask, 0);
            return Some(());
        }
        self.fix(values, id)?;
        self.assign_bits(field, bits, value)
    }

    /// Assigns a fixed value to the bits of a field.
    pub(crate) fn assign_bits(&mut self, field: Field, bits: Bits, value: Word) -> Option<()> {
        self.sums_follow(field)?;
        let is_written = bits.are_in(&self.headers.written).1;
        if in_sum(self.outline, field) && !is_key(field) && !is_written {
            let old = self.origin.get(self.layout, field)?;
            self.fix_bits(bits.number()?, u32::try_from(old).ok()?, bits.shift)?;
        }
        if bits.at == self.outline.ttl() {
            self.findings.path.blend.ttl = 0;
        }
        bits.set(&mut self.headers.head, value);
        bits.set(&mut self.headers.mask, Word::MAX);
        bits.set(&mut self.headers.fresh, Word::MAX);
        Some(())
    }

    /// Checksums that cover a field are updated.
    fn sums_follow(&mut self, field: Field) -> Option<()> {
        let follows = !self.has_mutant(RecordMutant::PseudoHeaderForgotten);
        let sums = &mut self.findings.path.blend.sums;
        match field.info().header {
            Header::Eth | Header::Vlan | Header::Vlan2 => {}
            Header::Ip4 | Header::Ip6 | Header::Inet => {
                sums[0] = !self.outline.is_ip6;
                if is_address(field) {
                    let (has, lacks) = (self.layout.has_pseudo_sum(), self.layout.lacks_sum());
                    sums[1] |= follows && (has || lacks);
                }
            }
            // TCP options may lie at odd offsets.
            header if header.info().sum == Cover::Transport && header.info().at.0 == Base::L4 => {
                sums[1] = true;
            }
            _ => return None,
        }
        Some(())
    }
}
