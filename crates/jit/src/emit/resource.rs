//! Steps on routes, lists and queues.

use super::call::SLOT;
use super::emitter::{Emitter, Place, at};
use super::state;
use crate::abi::Resource;
use crate::error::Error;
use crate::sys;
use braid_ir::engine::Fault;
use braid_ir::model::{ParamId, QueueId, ValueId, Word};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

pub(super) fn route(
    e: &mut Emitter<'_, '_>,
    number: u32,
    (found, hop): (ValueId, ValueId),
    addr: ValueId,
) -> Result<(), Error> {
    let (low, high) = e.halves(addr)?;
    let wide = e.imm(u64::from(e.width(addr) > 32));
    let [result] = e.host_call(at::ROUTE, number, &[low, high, wide]);
    e.flag_and_number(result, found, hop);
    Ok(())
}

pub(super) fn list_get(
    e: &mut Emitter<'_, '_>,
    place: Place,
    number: u32,
    out: ValueId,
    (index, column): (ValueId, u32),
) -> Result<(), Error> {
    let index = e.low(index)?;
    let column = e.build.ins().iconst(types::I32, i64::from(column));
    let [value, is_there] = e.host_call(at::MEMBER, number, &[index, column]);
    let (code, zero) = (e.imm(sys::code(Fault::Index)), e.imm(0));
    let code = e.build.ins().select(is_there, zero, code);
    e.fault_if(place, code);
    e.set(out, value);
    Ok(())
}

/// Reads a member of a list that never changes, without a host call.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`halves` also keeps the upper half, in a word of its own"
)]
pub(super) fn list_at(
    e: &mut Emitter<'_, '_>,
    place: Place,
    node: u16,
    out: ValueId,
    (param, index, column): (ParamId, ValueId, u32),
) -> Result<(), Error> {
    let wide = e.width(out) > 64;
    let rows = e.resources.list(node, param).unwrap_or(&[]);
    let count = rows.len() as u64;
    let known = e.lists.0.entry((node, param.0, column)).or_insert_with(|| {
        let values = rows.iter().map(|row| row.get(column as usize).copied().unwrap_or(0));
        let halves = |value: Word| [value as u64, (value >> 64) as u64];
        values.flat_map(|value| halves(value).into_iter().take(1 + usize::from(wide))).collect()
    });
    let start = known.as_ptr() as u64;
    let index = e.low(index)?;
    let count = e.imm(count);
    let past = e.build.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
    e.fault_when(place, past, Fault::Index);
    let start = e.imm(start);
    let offset = e.shift_left(index, if wide { 4 } else { 3 });
    let from = e.build.ins().iadd(start, offset);
    state::load_slots(e, &[out], from);
    Ok(())
}

pub(super) fn take(
    e: &mut Emitter<'_, '_>,
    number: u32,
    (ok, out): (ValueId, ValueId),
) -> Result<(), Error> {
    let [member, is_there] = e.host_call(at::TAKE, number, &[]);
    e.set(ok, is_there);
    e.set(out, member);
    Ok(())
}

/// Tests at the end of a block whether a queue has room.
#[expect(clippy::indexing_slicing, reason = "`block` is a block of the program")]
pub(super) fn has_room(
    e: &mut Emitter<'_, '_>,
    block: u32,
    (node, queue): (u16, QueueId),
    delay: ValueId,
) -> Result<Value, Error> {
    if let Some(number) = e.resources.number(node, Resource::Queue(queue)) {
        let [has_room] = e.host_call(at::HAS_ROOM, number, &[]);
        return Ok(has_room);
    }
    let steps = e.residual.blocks[block as usize].steps.len();
    let step = u32::try_from(steps).unwrap_or(u32::MAX);
    let place = Place { block, step, fault: None };
    let code = e.universal(place, &[delay], 1)?;
    e.fault_if(place, code);
    let args = e.scratch(0);
    Ok(e.load_word(args, SLOT))
}
