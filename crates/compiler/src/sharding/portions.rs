//! Limits in portions: a function's limits, divided by the number of workers.

use braid_ir::chain::Node;
use braid_ir::model::{
    BinOp, Granularity, Model, Op, ParamId, Program, Setting, StateDecl, Ty, ValueId, Word,
};
use braid_ir::value::ParamValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Divides the limits of a function by the number of workers, if one of its tables is in portions.
/// `in_portions` has a value for each table. The function then computes with a portion wherever it
/// reads such a parameter, and its global state begins with portions. A control change gives the
/// undivided value.
pub fn divide_limits(node: &mut Node, in_portions: impl Iterator<Item = bool>, workers: u16) {
    let model = Arc::make_mut(&mut node.model);
    let tables = model.state.iter().zip(in_portions).filter(|(_, is_in_portions)| *is_in_portions);
    let limits: BTreeSet<ParamId> =
        tables.flat_map(|(decl, _)| decl.portions.iter().copied()).collect();
    for decl in &mut model.state {
        decl.portions.clear();
        begin(decl, &node.params, &limits, workers);
    }
    programs(model).for_each(|program| read(program, &limits, workers));
}

/// Makes the entry of a global table begin with portions.
fn begin(decl: &mut StateDecl, params: &[ParamValue], limits: &BTreeSet<ParamId>, workers: u16) {
    if decl.granularity != Granularity::Global {
        return;
    }
    for slot in decl.default.iter_mut().flatten() {
        if let Setting::Param(param) = *slot
            && limits.contains(&param)
            && let ParamValue::Scalar(whole) = params[param.index()]
        {
            *slot = Setting::Const(whole / Word::from(workers));
        }
    }
}

fn programs(model: &mut Model) -> impl Iterator<Item = &mut Program> {
    let timers = model.timers.iter_mut().map(|timer| &mut timer.body);
    let expiries = model.expire.iter_mut().map(|(_, program)| program);
    let streams = model.streams.iter_mut().map(|(_, program)| program);
    std::iter::once(&mut model.packet).chain(timers).chain(expiries).chain(streams)
}

/// Divides the limits where a program reads them.
fn read(program: &mut Program, limits: &BTreeSet<ParamId>, workers: u16) {
    let values = &mut program.values;
    for block in &mut program.blocks {
        let ops = std::mem::take(&mut block.ops);
        block.ops = ops.into_iter().flat_map(|op| portion(op, limits, workers, values)).collect();
    }
}

/// The replacement of an operation: three operations if it reads a limit, otherwise the operation
/// itself.
fn portion(op: Op, limits: &BTreeSet<ParamId>, workers: u16, values: &mut Vec<Ty>) -> Vec<Op> {
    let Op::Param { out, param } = op else { return vec![op] };
    if !limits.contains(&param) {
        return vec![op];
    }
    let ty = values[out.index()];
    // No value of this type is as large as the number of workers: each portion is 0.
    if Word::from(workers) > ty.max() {
        return vec![Op::Const { out, value: 0 }];
    }
    let mut fresh = || {
        values.push(ty);
        ValueId(u32::try_from(values.len() - 1).unwrap_or(u32::MAX))
    };
    let (a, b) = (fresh(), fresh());
    vec![
        Op::Param { out: a, param },
        Op::Const { out: b, value: workers.into() },
        Op::Bin { out, op: BinOp::Div, a, b },
    ]
}
