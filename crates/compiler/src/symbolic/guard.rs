//! Puts the main path first. A single test checks the conditions that packets on the likely path
//! share. The program after the test knows that these conditions hold. Several tests of one value
//! on the path, such as ten tests of the time to live, become one test of the packet's field.
//!
//! The likely path avoids drops and answers to the sender. Where both sides of a branch avoid them,
//! or neither side does, the likely path takes the longer side.

use super::facts::{Facts, allowed};
use super::range::{ends, full, is_full, one, shifted};
use super::values::{Def, Pure, Values};
use braid_ir::model::{BinOp, CmpOp, Kind, Ty, ValueId};
use braid_ir::residual::{Block, End};
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;
use braid_packet::Field;
use std::collections::BTreeMap;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };

/// The conditions that one test checks.
pub(super) struct Guard {
    /// Whether all of them hold.
    pub(super) cond: ValueId,
    /// The facts that hold after the test.
    pub(super) facts: Facts,
}

/// The conditions that packets share if they take the likely path from block `from` on. `None` if
/// there are fewer than two, or if they contradict each other.
pub(super) fn guard(values: &mut Values, blocks: &[Block], from: usize) -> Option<Guard> {
    let wanted = conditions(values, blocks, from);
    let mut facts = Facts::default();
    let mut fields: BTreeMap<Field, IntervalSet> = BTreeMap::new();
    let mut others = Vec::new();
    let mut count = 0;
    for (cond, truth) in wanted {
        if !facts.decide(values, cond, truth) {
            return None;
        }
        count += 1;
        match of_one_field(values, cond, truth) {
            Some((field, set)) => {
                let width = field.info().width;
                let known = fields.entry(field).or_insert_with(|| full(width));
                *known = known.intersection(&set);
            }
            None => others.push((cond, truth)),
        }
    }
    if count < 2 {
        return None;
    }
    let mut cond = values.truth(true);
    for (field, set) in fields {
        let test = test(values, field, &set)?;
        cond = values.bin(BinOp::And, BOOL, cond, test);
    }
    for (other, truth) in others {
        let test = if truth { other } else { values.not(BOOL, other) };
        cond = values.bin(BinOp::And, BOOL, cond, test);
    }
    Some(Guard { cond, facts })
}

/// The values of a field for which a condition has this outcome. `None` if the condition is not
/// about one field.
fn of_one_field(values: &Values, cond: ValueId, truth: bool) -> Option<(Field, IntervalSet)> {
    let (value, set) = match values.def(cond) {
        Def::Pure(Pure::Cmp(op, a, b)) => {
            let set = values.known(*b)?;
            let width = values.ty(*a).width;
            let set = allowed(*op, &one(set), width, truth);
            (*a, set)
        }
        Def::Pure(Pure::InSet(a, set)) => {
            let set = values.set(*set);
            let width = values.ty(*a).width;
            let out = set.complement(max_of(width));
            (*a, if truth { set.clone() } else { out })
        }
        Def::Pure(Pure::Not(inner)) => return of_one_field(values, *inner, !truth),
        _ => return None,
    };
    let (base, by) = values.split(value);
    let width = values.ty(base).width;
    match values.def(base) {
        Def::Pure(Pure::Init(field)) => Some((*field, shifted(&set, by.wrapping_neg(), width))),
        _ => None,
    }
}

/// The condition that a field is in a set.
fn test(values: &mut Values, field: Field, set: &IntervalSet) -> Option<ValueId> {
    let value = values.init(field);
    let ty = values.ty(value);
    let (low, high) = ends(set)?;
    if is_full(set, ty.width) {
        return Some(values.truth(true));
    }
    let single = set.intervals().len() == 1;
    Some(if single && high == ty.max() {
        let low = values.constant(ty, low);
        values.cmp(CmpOp::Ge, value, low)
    } else if single && low == 0 {
        let high = values.constant(ty, high);
        values.cmp(CmpOp::Le, value, high)
    } else {
        let number = values.intern(set);
        values.pure(BOOL, Pure::InSet(value, number))
    })
}

/// The conditions of the likely path that depend on the packet alone, with their outcomes on that
/// path.
fn conditions(values: &Values, blocks: &[Block], from: usize) -> Vec<(ValueId, bool)> {
    let (mut cold, mut length) = (vec![false; blocks.len()], vec![0_usize; blocks.len()]);
    for (at, block) in blocks.iter().enumerate().rev() {
        let targets = block.end.targets();
        cold[at] = block.is_unlikely(&cold);
        let rest = targets.iter().map(|target| length[target.block.index()]).max();
        length[at] = 1 + rest.unwrap_or(0);
    }
    let mut found = Vec::new();
    let mut at = from;
    loop {
        at = match &blocks[at].end {
            End::Jump(target) => target.block.index(),
            End::Branch { cond, yes, no } => {
                let (yes, no) = (yes.block.index(), no.block.index());
                let truth =
                    if cold[yes] == cold[no] { length[yes] >= length[no] } else { cold[no] };
                if cold[yes] != cold[no] && is_cheap(values, *cond) {
                    found.push((*cond, truth));
                }
                if truth { yes } else { no }
            }
            End::Hold { .. } | End::Exit(_) => return found,
        };
    }
}

/// Whether a value depends on the packet alone, and needs no lookups.
fn is_cheap(values: &Values, value: ValueId) -> bool {
    values.consists_of(value, |pure| {
        !matches!(pure, Pure::Route(..) | Pure::Classify(..) | Pure::InColumn(..) | Pure::Len(..))
    })
}
