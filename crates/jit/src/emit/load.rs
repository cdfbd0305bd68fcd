//! Loads of fields whose place in the packet is known.

use super::emitter::{Emitter, Place, at};
use super::main_path::is_inline;
use crate::error::Error;
use braid_ir::model::{BinOp, Op, ValueId, Word};
use braid_ir::residual::What;
use braid_packet::field::Where;
use braid_packet::layout::parts;
use braid_packet::{Base, Field, Header, Packet, Spot};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use std::mem::offset_of;

/// The parts in which a field of `len` bytes is loaded or stored: the offset from its first byte,
/// and the number of bytes.
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

/// Defines whether a header is present, as of the last parse of the packet.
pub(super) fn has_header(e: &mut Emitter<'_, '_>, out: ValueId, header: Header) {
    let known = e.facts.headers.has(header).filter(|_| e.entered);
    let value = if let Some(known) = known {
        e.imm(u64::from(known))
    } else {
        let (word, bit) = (header as usize / 64, header as i64 % 64);
        let present = e.layout_part(parts::PRESENT + 8 * word, 8);
        let shifted = e.shift_right(present, bit);
        e.masked(shifted, 1)
    };
    e.set(out, value);
}

/// The place of a field, as long as the packet has the headers with which it entered. `None` if it
/// is not known.
pub(super) fn spot_of(e: &Emitter<'_, '_>, field: Field) -> Option<Spot> {
    if !e.entered {
        return None;
    }
    Spot::of(field, &|header| e.facts.headers.has(header))
}

/// The address to which the offset of a field is added.
pub(super) fn base_address(e: &mut Emitter<'_, '_>, base: Base) -> Value {
    let data = e.frame_word(at::DATA);
    let Some((offset, bytes)) = base.in_layout() else { return data };
    let start = e.layout_part(offset, bytes);
    e.build.ins().iadd(data, start)
}

/// Loads an input. Its number is below [`Facts::inputs`](crate::facts::Facts::inputs).
pub(super) fn load_input(e: &mut Emitter<'_, '_>, out: ValueId, number: u32) -> Result<(), Error> {
    let inputs = e.frame_word(at::INPUTS);
    let offset = number as usize * size_of::<Word>();
    let low = e.load_word(inputs, offset);
    let value = if e.is_wide(out) {
        let high = e.load_word(inputs, offset + 8);
        e.build.ins().iconcat(low, high)
    } else {
        low
    };
    e.set(out, value);
    Ok(())
}

/// Loads a field. Returns false if only the host can load it.
pub(super) fn load_field(e: &mut Emitter<'_, '_>, out: ValueId, field: Field) -> bool {
    let value = match spot_of(e, field) {
        Some(spot) => read_spot(e, spot),
        None => match load_attribute(e, field) {
            Some(value) => value,
            None => return false,
        },
    };
    e.set(out, value);
    true
}

fn read_spot(e: &mut Emitter<'_, '_>, spot: Spot) -> Value {
    let base = base_address(e, spot.base);
    let mut parts = Vec::new();
    for (at, bytes) in pieces(spot.len) {
        let raw = load_raw(e, base, spot, at, bytes);
        parts.push((swapped(e, raw, bytes), spot.len - at - bytes));
    }
    if let [(high, _), (low, _)] = parts[..]
        && spot.len == 16
    {
        return e.build.ins().iconcat(low, high);
    }
    let mut whole = None;
    for (part, behind) in parts {
        let part = e.shift_left(part, i64::from(behind) * 8);
        whole = Some(match whole {
            None => part,
            Some(before) => e.build.ins().bor(before, part),
        });
    }
    let whole = whole.unwrap_or_else(|| e.imm(0));
    let shifted = e.shift_right(whole, i64::from(spot.shift));
    if u32::from(spot.width) + u32::from(spot.shift) == u32::from(spot.len) * 8 {
        return shifted;
    }
    e.masked(shifted, u16::from(spot.width))
}

/// The result of masking a loaded field with a constant whose bits lie in one byte: loads only that
/// byte. `None` in all other cases.
#[expect(clippy::cast_possible_truncation, reason = "the shifted mask has only bits of one byte")]
pub(super) fn part_of_field(
    e: &mut Emitter<'_, '_>,
    value: ValueId,
    mask: ValueId,
) -> Option<Value> {
    let (spot, byte) = byte_part(e, *e.loaded.get(&value)?, mask)?;
    let base = base_address(e, spot.base);
    let part = load_raw(e, base, spot, spot.len - 1 - byte, 1);
    let mask = e.constant_of(mask)? >> (byte * 8);
    let mask = e.imm(mask as u64);
    let part = e.build.ins().band(part, mask);
    Some(e.shift_left(part, i64::from(byte) * 8))
}

/// The byte of a field that contains all bits of a constant mask, counted from the field's last
/// byte.
fn byte_part(e: &Emitter<'_, '_>, field: Field, mask: ValueId) -> Option<(Spot, u8)> {
    let mask = e.constant_of(mask).filter(|mask| *mask != 0)?;
    let spot = spot_of(e, field)?;
    let is_whole = u32::from(spot.width) == u32::from(spot.len) * 8 && spot.shift == 0;
    let byte = u8::try_from(mask.trailing_zeros() / 8).ok()?;
    let last = (u128::BITS - 1 - mask.leading_zeros()) / 8;
    let is_one = u32::from(byte) == last && byte < spot.len;
    (is_whole && is_one && (2..=8).contains(&spot.len)).then_some((spot, byte))
}

/// Whether the program uses a field that is loaded here only as in [`part_of_field`], so that the
/// whole field need not be loaded.
#[expect(
    clippy::indexing_slicing,
    reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
)]
pub(super) fn is_only_in_part(
    e: &Emitter<'_, '_>,
    place: Place,
    value: ValueId,
    field: Field,
) -> bool {
    let steps = &e.residual.blocks[place.block as usize].steps;
    let mut parts = 0;
    for step in steps.iter().skip(place.step as usize + 1) {
        match &step.what {
            What::Op(Op::Bin { op: BinOp::And, a, b, .. }) if *a == value || *b == value => {
                let mask = if *a == value { *b } else { *a };
                if byte_part(e, field, mask).is_none() {
                    return false;
                }
                parts += 1;
            }
            What::Write(_) => break,
            what if is_inline(what, &e.residual.values) => {}
            _ => break,
        }
    }
    parts > 0 && parts == e.uses[value.index()]
}

/// Loads bytes of a field as they are in memory, as an `i64`.
pub(super) fn load_raw(
    e: &mut Emitter<'_, '_>,
    base: Value,
    spot: Spot,
    at: u8,
    bytes: u8,
) -> Value {
    let offset = usize::from(spot.offset) + usize::from(at);
    e.load_bytes(e.memories.packet, usize::from(bytes), base, offset)
}

/// Stores the low bytes of an `i64` in their order in memory.
pub(super) fn store_raw(
    e: &mut Emitter<'_, '_>,
    value: Value,
    base: Value,
    offset: usize,
    bytes: u8,
) {
    let value = match integer(bytes) {
        types::I64 => value,
        ty => e.build.ins().ireduce(ty, value),
    };
    e.store(e.memories.packet, value, base, offset);
}

/// The low `bytes` bytes of an `i64` in reverse order. The other bytes are 0.
pub(super) fn swapped(e: &mut Emitter<'_, '_>, value: Value, bytes: u8) -> Value {
    let ty = integer(bytes);
    let value = match ty {
        types::I8 => return e.masked(value, 8),
        types::I64 => value,
        ty => e.build.ins().ireduce(ty, value),
    };
    let swapped = e.build.ins().bswap(value);
    e.narrowed(swapped)
}

/// Loads a field that has no bytes in the packet. `None` if only the host can load it.
fn load_attribute(e: &mut Emitter<'_, '_>, field: Field) -> Option<Value> {
    use Field::*;
    Some(match field {
        PktLen => e.wire_len(),
        PktTime => e.frame_word(at::NOW),
        PktIngress => e.packet_part(offset_of!(Packet, ingress), 2),
        PktBackward => e.packet_part(offset_of!(Packet, backward), 1),
        PktHeld => e.packet_part(offset_of!(Packet, held), 1),
        PktTruncated => {
            let (captured, wire) = (e.frame_word(at::CAPTURED), e.wire_len());
            e.build.ins().icmp(IntCC::UnsignedLessThan, captured, wire)
        }
        _ if !e.entered => return None,
        PktPayloadLen => {
            let end = e.layout_part(parts::PAYLOAD_END, 4);
            let start = e.layout_part(parts::PAYLOAD, 4);
            e.build.ins().isub(end, start)
        }
        PktFragment => e.layout_part(parts::FRAGMENT, 1),
        PktLaterFragment => e.layout_part(parts::LATER_FRAGMENT, 1),
        _ => return load_structural(e, field),
    })
}

fn load_structural(e: &mut Emitter<'_, '_>, field: Field) -> Option<Value> {
    use Field::*;
    let headers = e.facts.headers;
    if !headers.is_present(field.info().header) {
        return None;
    }
    Some(match field {
        EthType => e.layout_part(parts::ETHER_TYPE, 2),
        Ip6Proto | InetProto => e.layout_part(parts::PROTO, 1),
        _ => match field.info().place {
            Where::Number(header, yes, no) => {
                e.imm(if headers.has(header)? { yes } else { no }.into())
            }
            Where::First(fields)
                if fields.iter().all(|(header, _)| headers.has(*header) == Some(false)) =>
            {
                e.imm(0)
            }
            Where::Words(_) => {
                let words = read_spot(e, Spot::words(field)?);
                e.shift_left(words, 2)
            }
            _ => return None,
        },
    })
}
