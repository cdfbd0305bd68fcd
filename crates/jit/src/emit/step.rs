//! Chooses for each step between machine code and a host call.

use super::emitter::{Emitter, Place};
use super::{arith, load, resource, rules, set, state, write};
use crate::abi::{Resource, reshapes};
use crate::error::Error;
use braid_ir::model::{Key, Op, ParamId, SetRef, ValueId};
use braid_ir::residual::{Step, What};

pub(super) fn emit_step(e: &mut Emitter<'_, '_>, place: Place, step: &Step) -> Result<(), Error> {
    let node = step.site.node;
    match &step.what {
        What::Op(op) => emit_op(e, place, node, op, step),
        What::Count(counters) => {
            e.count(*counters);
            Ok(())
        }
        What::Write(fields) => match write::plan_writes(e, fields) {
            Some(plan) => write::assign_fields(e, &plan),
            None => ask_host(e, place, &step.what),
        },
        What::Find { found, entry, state, key } => {
            let words = e.words(*entry);
            match numbered(e, node, Resource::Table(*state), words) {
                Some(number) => state::find_entry(e, number, (*found, *entry), key),
                None => ask_host(e, place, &step.what),
            }
        }
        What::Read { outs, state, entry } => {
            let words = e.words(*entry);
            match numbered(e, node, Resource::Table(*state), words) {
                Some(number) => state::read_entry(e, number, outs, *entry),
                None => ask_host(e, place, &step.what),
            }
        }
        What::Classify { pass, rule, param, packet: Some(packet) } => {
            match numbered(e, node, Resource::Rules(*param), 0) {
                Some(number) => rules::classify(e, place, number, (*pass, *rule), packet),
                None => ask_host(e, place, &step.what),
            }
        }
        What::CountRule { param, rule } => match numbered(e, node, Resource::Rules(*param), 0) {
            Some(number) => rules::count_rule(e, place, number, *rule),
            None => ask_host(e, place, &step.what),
        },
        What::Enter => enter_function(e, place, node),
        What::Parse | What::Classify { .. } => ask_host(e, place, &step.what),
    }
}

pub(super) fn emit_op(
    e: &mut Emitter<'_, '_>,
    place: Place,
    node: u16,
    op: &Op,
    step: &Step,
) -> Result<(), Error> {
    match op {
        // Each use of a constant emits it.
        Op::Const { .. } => Ok(()),
        Op::Bin { out, op, a, b } => arith::binary(e, place, *out, *op, (*a, *b)),
        Op::Cmp { out, op, a, b } => arith::compare(e, *out, *op, (*a, *b)),
        Op::Not { out, a } => arith::not(e, *out, *a),
        Op::Resize { out, a } => arith::convert(e, *out, *a, false),
        Op::Clamp { out, a } => arith::convert(e, *out, *a, true),
        Op::Select { out, cond, a, b } => arith::select(e, *out, *cond, (*a, *b)),
        Op::InSet { out, a, set: SetRef::Const(set) } if set::is_compiled(set) => {
            set::member_of(e, *out, *a, set)
        }
        Op::Has { out, header } => {
            load::has_header(e, *out, *header);
            Ok(())
        }
        Op::Load { out, field } => {
            if load::is_only_in_part(e, place, *out, *field) || load::load_field(e, *out, *field) {
                e.loaded.insert(*out, *field);
                Ok(())
            } else {
                ask_host(e, place, &step.what)
            }
        }
        Op::LoadEvent { out, field } => load::load_input(e, *out, *field),
        Op::Route { found, hop, param, addr } => {
            match numbered(e, node, Resource::Routes(*param), 0) {
                Some(number) => resource::route(e, number, (*found, *hop), *addr),
                None => ask_host(e, place, &step.what),
            }
        }
        Op::Take { ok, out, pool } if !e.is_wide(*out) => {
            match numbered(e, node, Resource::Pool(*pool), 0) {
                Some(number) => resource::take(e, number, (*ok, *out)),
                None => ask_host(e, place, &step.what),
            }
        }
        Op::ListGet { out, param, index, column } if !e.is_wide(*index) => {
            list_member(e, place, step, *out, (*param, *index, *column))
        }
        Op::StateSet { ok, state, key: Key::Explicit(key), values } => {
            match numbered(e, node, Resource::Table(*state), 0) {
                Some(number) => state::set_slots(e, place, number, *ok, key, values),
                None => ask_host(e, place, &step.what),
            }
        }
        Op::StatePut { ok, state, key: Key::Explicit(key), slot, value } => {
            match numbered(e, node, Resource::Table(*state), 0) {
                Some(number) => state::put_slot(e, place, number, *ok, key, (*slot, *value)),
                None => ask_host(e, place, &step.what),
            }
        }
        Op::LoadEntry { .. }
        | Op::Store { .. }
        | Op::Rules { .. }
        | Op::StateExists { .. }
        | Op::StateGet { .. }
        | Op::Expiring { .. }
        | Op::ExpiringKey { .. }
        | Op::Count { .. } => Err(Error::Operation { block: place.block, step: place.step }),
        _ => ask_host(e, place, &step.what),
    }
}

/// A member of a list, by an index of at most 64 bits.
fn list_member(
    e: &mut Emitter<'_, '_>,
    place: Place,
    step: &Step,
    out: ValueId,
    (param, index, column): (ParamId, ValueId, u32),
) -> Result<(), Error> {
    let node = step.site.node;
    if e.resources.list(node, param).is_some() {
        return resource::list_at(e, place, node, out, (param, index, column));
    }
    match numbered(e, node, Resource::List(param), 0).filter(|_| !e.is_wide(out)) {
        Some(number) => resource::list_get(e, place, number, out, (index, column)),
        None => ask_host(e, place, &step.what),
    }
}

/// The number of a resource. `None` if the code would read more than [`SLOTS`](crate::sys::SLOTS)
/// words of an entry.
pub(super) fn numbered(
    e: &mut Emitter<'_, '_>,
    node: u16,
    resource: Resource,
    words: u32,
) -> Option<u32> {
    if words as usize > crate::sys::SLOTS {
        return None;
    }
    e.resources.number(node, resource)
}

/// Enters a function. This needs a host call only if the run may have entered the function before,
/// because the host must then forget the entries that the function has found.
#[expect(clippy::indexing_slicing, reason = "`begun` has a set for each block")]
pub(super) fn enter_function(
    e: &mut Emitter<'_, '_>,
    place: Place,
    node: u16,
) -> Result<(), Error> {
    let known = &mut e.begun[place.block as usize];
    if known.insert(node) { Ok(()) } else { e.step_call(place, &What::Enter) }
}

/// Performs a step by a universal host call.
fn ask_host(e: &mut Emitter<'_, '_>, place: Place, what: &What) -> Result<(), Error> {
    let changes = reshapes(what);
    e.entered &= !changes;
    e.step_call(place, what)
}
