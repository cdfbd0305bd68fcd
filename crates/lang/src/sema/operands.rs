//! The values that an operation defines and uses, to be renumbered.

use braid_ir::model::{EventArg, Key, Op, ValueId};

/// Calls `each` for every value that `op` defines, in a fixed order.
pub fn outs(op: &mut Op, each: &mut dyn FnMut(&mut ValueId)) {
    match op {
        Op::Const { out, .. }
        | Op::Param { out, .. }
        | Op::ListLen { out, .. }
        | Op::ListGet { out, .. }
        | Op::BackendUp { out, .. }
        | Op::Bin { out, .. }
        | Op::Cmp { out, .. }
        | Op::Not { out, .. }
        | Op::Resize { out, .. }
        | Op::Clamp { out, .. }
        | Op::Select { out, .. }
        | Op::InSet { out, .. }
        | Op::Has { out, .. }
        | Op::Load { out, .. }
        | Op::LoadEntry { out, .. }
        | Op::LoadTag { out, .. }
        | Op::StateExists { out, .. }
        | Op::StateLen { out, .. } => each(out),
        Op::StateSet { ok, .. } | Op::StatePut { ok, .. } | Op::TakeThis { ok, .. } => each(ok),
        Op::Rules { pass: a, rule: b, .. }
        | Op::Route { found: a, hop: b, .. }
        | Op::Patterns { found: a, number: b, .. }
        | Op::Take { ok: a, out: b, .. } => {
            each(a);
            each(b);
        }
        Op::Extern { outs, .. }
        | Op::StateGet { outs, .. }
        | Op::Expiring { outs }
        | Op::ExpiringKey { outs } => outs.iter_mut().for_each(each),
        Op::Store { .. }
        | Op::StoreTag { .. }
        | Op::PushVlan { .. }
        | Op::PopVlan
        | Op::StateDelete { .. }
        | Op::Release { .. }
        | Op::Emit { .. }
        | Op::Count { .. }
        | Op::Mirror { .. }
        | Op::Create { .. } => {}
    }
}

/// Calls `each` for every value that `op` uses.
pub fn uses(op: &mut Op, each: &mut dyn FnMut(&mut ValueId)) {
    match op {
        Op::ListGet { index, .. } | Op::BackendUp { index, .. } => each(index),
        Op::Bin { a, b, .. } | Op::Cmp { a, b, .. } => {
            each(a);
            each(b);
        }
        Op::Not { a, .. }
        | Op::Resize { a, .. }
        | Op::Clamp { a, .. }
        | Op::InSet { a, .. }
        | Op::Store { a, .. }
        | Op::StoreTag { a, .. }
        | Op::TakeThis { a, .. }
        | Op::Release { a, .. }
        | Op::PushVlan { id: a }
        | Op::Route { addr: a, .. } => each(a),
        Op::Select { cond, a, b, .. } => {
            each(cond);
            each(a);
            each(b);
        }
        Op::Extern { args, .. } => args.iter_mut().for_each(each),
        Op::StateExists { key, .. } | Op::StateGet { key, .. } | Op::StateDelete { key, .. } => {
            key_values(key, each);
        }
        Op::StateSet { key, values, .. } => {
            key_values(key, each);
            values.iter_mut().for_each(each);
        }
        Op::StatePut { key, value, .. } => {
            key_values(key, each);
            each(value);
        }
        Op::Emit { args, .. } => {
            for arg in args {
                if let EventArg::Value(value) = arg {
                    each(value);
                }
            }
        }
        Op::Create { new, .. } => new.fields.iter_mut().for_each(|(_, value)| each(value)),
        Op::Const { .. }
        | Op::Param { .. }
        | Op::ListLen { .. }
        | Op::Has { .. }
        | Op::Load { .. }
        | Op::LoadEntry { .. }
        | Op::LoadTag { .. }
        | Op::PopVlan
        | Op::Rules { .. }
        | Op::Patterns { .. }
        | Op::StateLen { .. }
        | Op::Expiring { .. }
        | Op::ExpiringKey { .. }
        | Op::Take { .. }
        | Op::Count { .. }
        | Op::Mirror { .. } => {}
    }
}

fn key_values(key: &mut Key, each: &mut dyn FnMut(&mut ValueId)) {
    if let Key::Explicit(values) = key {
        values.iter_mut().for_each(each);
    }
}
