//! Fields of the packet, where their place is known.

use super::hot::is_own;
use super::{Emitter, Place, at};
use braid_ir::model::{BinOp, Op, ValueId};
use braid_ir::residual::What;
use braid_packet::layout::parts;
use braid_packet::{Base, Field, Header, Packet, Spot};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use std::mem::offset_of;

/// Bytes of a field that are loaded or stored at once: offset from its first byte, and how many.
pub(super) fn pieces(len: u8) -> Vec<(u8, u8)> {
    let mut all = Vec::new();
    let mut at = 0;
    for size in [8, 8, 4, 2, 1] {
        if len - at >= size {
            all.push((at, size));
            at += size;
        }
    }
    all
}

fn integer(bytes: u8) -> Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}

impl Emitter<'_, '_> {
    /// Whether a header is there, as the packet was last parsed.
    pub(super) fn has(&mut self, out: ValueId, header: Header) {
        let known = self.facts.headers.has(header).filter(|_| self.entered);
        let value = if let Some(known) = known {
            self.imm(u64::from(known))
        } else {
            let (word, bit) = (header as usize / 64, header as i64 % 64);
            let present = self.laid_out(parts::PRESENT + 8 * word, 8);
            let shifted = self.down(present, bit);
            self.masked(shifted, 1)
        };
        self.set(out, value);
    }

    /// Where a field is, as long as the packet has the headers that it was entered with.
    pub(super) fn spot(&self, field: Field) -> Option<Spot> {
        if !self.entered {
            return None;
        }
        Spot::of(field, &|header| self.facts.headers.has(header))
    }

    /// The address from which a spot's offset counts.
    pub(super) fn base(&mut self, base: Base) -> Value {
        let data = self.framed(at::DATA);
        let Some((offset, bytes)) = base.in_layout() else { return data };
        let start = self.laid_out(offset, bytes);
        self.build.ins().iadd(data, start)
    }

    /// Reads a field, unless that is the host's.
    pub(super) fn load_field(&mut self, out: ValueId, field: Field) -> bool {
        let value = match self.spot(field) {
            Some(spot) => self.read_spot(spot),
            None => match self.attribute(field) {
                Some(value) => value,
                None => return false,
            },
        };
        self.set(out, value);
        true
    }

    fn read_spot(&mut self, spot: Spot) -> Value {
        let base = self.base(spot.base);
        let mut parts = Vec::new();
        for (at, bytes) in pieces(spot.len) {
            let raw = self.raw(base, spot, at, bytes);
            parts.push((self.swapped(raw, bytes), spot.len - at - bytes));
        }
        if let [(high, _), (low, _)] = parts[..]
            && spot.len == 16
        {
            return self.build.ins().iconcat(low, high);
        }
        let mut whole = None;
        for (part, behind) in parts {
            let part = self.up(part, i64::from(behind) * 8);
            whole = Some(match whole {
                None => part,
                Some(before) => self.build.ins().bor(before, part),
            });
        }
        let whole = whole.unwrap_or_else(|| self.imm(0));
        let shifted = self.down(whole, i64::from(spot.shift));
        if u32::from(spot.width) + u32::from(spot.shift) == u32::from(spot.len) * 8 {
            return shifted;
        }
        self.masked(shifted, u16::from(spot.width))
    }

    /// What a constant leaves of a field that was just loaded, if that is in one of its bytes.
    pub(super) fn part_of_field(&mut self, value: ValueId, mask: ValueId) -> Option<Value> {
        let (spot, byte) = self.part(*self.loaded.get(&value)?, mask)?;
        let base = self.base(spot.base);
        let part = self.raw(base, spot, spot.len - 1 - byte, 1);
        let mask = self.facts.consts[mask.index()]? >> (byte * 8);
        let mask = self.imm(mask as u64);
        let part = self.build.ins().band(part, mask);
        Some(self.up(part, i64::from(byte) * 8))
    }

    /// The one byte of a field, from its end, that a constant leaves something of.
    fn part(&self, field: Field, mask: ValueId) -> Option<(Spot, u8)> {
        let mask = self.facts.consts[mask.index()].filter(|mask| *mask != 0)?;
        let spot = self.spot(field)?;
        let is_whole = u32::from(spot.width) == u32::from(spot.len) * 8 && spot.shift == 0;
        let byte = u8::try_from(mask.trailing_zeros() / 8).ok()?;
        let last = (u128::BITS - 1 - mask.leading_zeros()) / 8;
        let is_one = u32::from(byte) == last && byte < spot.len;
        (is_whole && is_one && (2..=8).contains(&spot.len)).then_some((spot, byte))
    }

    /// Whether nothing is asked of a field that is loaded here but what [`Self::part_of_field`] says: it
    /// need not be loaded as a whole.
    pub(super) fn is_only_in_part(&self, place: Place, value: ValueId, field: Field) -> bool {
        let steps = &self.residual.blocks[place.block as usize].steps;
        let mut parts = 0;
        for step in steps.iter().skip(place.step as usize + 1) {
            match &step.what {
                What::Op(Op::Bin { op: BinOp::And, a, b, .. }) if *a == value || *b == value => {
                    let mask = if *a == value { *b } else { *a };
                    if self.part(field, mask).is_none() {
                        return false;
                    }
                    parts += 1;
                }
                What::Write(_) => break,
                what if is_own(what, &self.residual.values) => {}
                _ => break,
            }
        }
        parts > 0 && parts == self.uses[value.index()]
    }

    /// Some bytes of a field as they lie in memory, as an `i64`.
    pub(super) fn raw(&mut self, base: Value, spot: Spot, at: u8, bytes: u8) -> Value {
        let offset = usize::from(spot.offset) + usize::from(at);
        self.load_bytes(self.regions.packet, usize::from(bytes), base, offset)
    }

    /// Stores the low bytes of an `i64` as they are.
    pub(super) fn put_raw(&mut self, value: Value, base: Value, offset: usize, bytes: u8) {
        let value = match integer(bytes) {
            types::I64 => value,
            ty => self.build.ins().ireduce(ty, value),
        };
        self.store(self.regions.packet, value, base, offset);
    }

    /// The low bytes of an `i64` in reverse order, the others 0.
    pub(super) fn swapped(&mut self, value: Value, bytes: u8) -> Value {
        let ty = integer(bytes);
        let value = match ty {
            types::I8 => return self.masked(value, 8),
            types::I64 => value,
            ty => self.build.ins().ireduce(ty, value),
        };
        let swapped = self.build.ins().bswap(value);
        self.narrowed(swapped)
    }

    /// Fields that have no bytes of their own.
    fn attribute(&mut self, field: Field) -> Option<Value> {
        use Field::*;
        Some(match field {
            PktLen => self.wire_len(),
            PktTime => self.framed(at::NOW),
            PktIngress => self.kept(offset_of!(Packet, ingress), 2),
            PktBackward => self.kept(offset_of!(Packet, backward), 1),
            PktHeld => self.kept(offset_of!(Packet, held), 1),
            PktTruncated => {
                let (captured, wire) = (self.framed(at::CAPTURED), self.wire_len());
                self.build.ins().icmp(IntCC::UnsignedLessThan, captured, wire)
            }
            _ if !self.entered => return None,
            PktPayloadLen => {
                let end = self.laid_out(parts::PAYLOAD_END, 4);
                let start = self.laid_out(parts::PAYLOAD, 4);
                self.build.ins().isub(end, start)
            }
            PktFragment => self.laid_out(parts::FRAGMENT, 1),
            PktLaterFragment => self.laid_out(parts::LATER_FRAGMENT, 1),
            _ => return self.structural(field),
        })
    }

    fn structural(&mut self, field: Field) -> Option<Value> {
        use Field::*;
        let headers = self.facts.headers;
        if !headers.is_present(field.info().header) {
            return None;
        }
        Some(match field {
            EthType => self.laid_out(parts::ETHER_TYPE, 2),
            Ip6Proto | InetProto => self.laid_out(parts::PROTO, 1),
            InetVersion => self.imm(if headers.has(Header::Ip4)? { 4 } else { 6 }),
            IpHlen => self.length(Base::Ip, 0, 0),
            TcpHlen => self.length(Base::L4, 12, 4),
            InetSport | InetDport => {
                let ports = [Header::L4, Header::IcmpEcho, Header::Icmp6Echo];
                if ports.iter().any(|header| headers.has(*header) != Some(false)) {
                    return None;
                }
                self.imm(0)
            }
            _ => return None,
        })
    }

    /// A header's length in words, in half a byte of it.
    fn length(&mut self, base: Base, offset: usize, shift: i64) -> Value {
        let base = self.base(base);
        let byte = self.load_bytes(self.regions.packet, 1, base, offset);
        let words = self.down(byte, shift);
        let words = self.masked(words, 4);
        self.up(words, 2)
    }
}
