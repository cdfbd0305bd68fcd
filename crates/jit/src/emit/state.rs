//! Steps on tables: find, read and assign entries.

use super::emitter::{Emitter, Fresh, Place, at};
use super::key;
use crate::error::Error;
use crate::sys;
use braid_ir::model::ValueId;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

/// Loads consecutive slots.
pub(super) fn load_slots(e: &mut Emitter<'_, '_>, outs: &[ValueId], from: Value) {
    let mut offset = 0;
    for out in outs {
        let mut value = e.load_word(from, offset);
        offset += 8;
        if e.width(*out) > 64 {
            let high = e.load_word(from, offset);
            offset += 8;
            value = e.build.ins().iconcat(value, high);
        }
        e.set(*out, value);
    }
}

pub(super) fn find_entry(
    e: &mut Emitter<'_, '_>,
    number: u32,
    (found, entry): (ValueId, ValueId),
    key: &[ValueId],
) -> Result<(), Error> {
    let words = key::key_words(e, key)?;
    let wanted = e.imm(u64::from(e.words(entry)));
    let [is, slots] = match *words {
        [word] => e.host_call(at::FIND_1, number, &[word, wanted]),
        [first, second] => e.host_call(at::FIND_2, number, &[first, second, wanted]),
        _ => {
            let key = key::store_key(e, &words);
            let size = e.imm(words.len() as u64);
            match words.len() {
                5 => e.host_call(at::FIND_5, number, &[key, wanted]),
                _ => e.host_call(at::FIND, number, &[key, size, wanted]),
            }
        }
    };
    let missing = e.imm(sys::missing());
    let is_there = e.build.ins().icmp(IntCC::NotEqual, slots, missing);
    e.set(found, is_there);
    e.set(entry, is);
    e.fresh = Some(Fresh { entry, slots });
    Ok(())
}

pub(super) fn read_entry(
    e: &mut Emitter<'_, '_>,
    number: u32,
    outs: &[ValueId],
    entry: ValueId,
) -> Result<(), Error> {
    let slots = match e.fresh {
        Some(fresh) if fresh.entry == entry => fresh.slots,
        _ => {
            let handle = e.low(entry)?;
            let wanted = e.imm(u64::from(e.words(entry)));
            let [slots] = e.host_call(at::READ, number, &[handle, wanted]);
            slots
        }
    };
    load_slots(e, outs, slots);
    Ok(())
}

/// Assigns all slots of the entry with a key.
#[expect(clippy::indexing_slicing, reason = "`begins` has an element for each block")]
pub(super) fn set_slots(
    e: &mut Emitter<'_, '_>,
    place: Place,
    number: u32,
    ok: ValueId,
    key: &[ValueId],
    values: &[ValueId],
) -> Result<(), Error> {
    let mut words = key::key_words(e, key)?;
    let size = words.len();
    for value in values {
        let (low, high) = e.halves(*value)?;
        words.push(low);
        if e.width(*value) > 64 {
            words.push(high);
        }
    }
    let slots = e.imm((words.len() - size) as u64);
    let [done] = match (size, words.split_first()) {
        (1, Some((key, words))) => {
            let from = key::store_key(e, words);
            // A packet that has found no entry begins a flow, so it will create this one.
            let begins = e.facts.begins[place.block as usize];
            let set = if begins { at::SET_NEW_1 } else { at::SET_1 };
            e.host_call(set, number, &[*key, from, slots])
        }
        _ => {
            let (all, size) = (key::store_key(e, &words), e.imm(size as u64));
            e.host_call(at::SET, number, &[all, size, slots])
        }
    };
    e.set(ok, done);
    Ok(())
}

/// Assigns one slot of the entry with a key.
pub(super) fn put_slot(
    e: &mut Emitter<'_, '_>,
    place: Place,
    number: u32,
    ok: ValueId,
    key: &[ValueId],
    (slot, value): (u32, ValueId),
) -> Result<(), Error> {
    let mut words = key::key_words(e, key)?;
    let size = e.imm(words.len() as u64);
    let (low, high) = e.halves(value)?;
    words.extend([low, high]);
    let all = key::store_key(e, &words);
    let slot = e.build.ins().iconst(types::I32, i64::from(slot));
    let [result] = e.host_call(at::PUT, number, &[all, size, slot]);
    let code = e.shift_right(result, 1);
    e.fault_if(place, code);
    e.set(ok, result);
    Ok(())
}
