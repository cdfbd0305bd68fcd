//! Generates changes of configuration while packets flow.

use crate::generate::{Boundaries, Rng};
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::model::{Kind, ParamId, ParamTy, Ty, Word};
use braid_ir::routes::RouteTable;
use braid_ir::strings::StringSet;
use braid_ir::value::{IntervalSet, ParamValue, RuleSet};

/// A valid change of a parameter of the chain. With `of_asked`, it prefers parameters that are read
/// for each packet to parameters that are compiled into programs.
pub(super) fn change(
    rng: &mut Rng,
    chain: &Chain,
    boundaries: &Boundaries,
    time_ns: u64,
    of_asked: bool,
) -> Option<Control> {
    let (mut at, mut param) = draw(rng, chain)?;
    for _ in 0..if of_asked { 6 } else { 0 } {
        if is_asked(&chain.nodes[at].params[param]) {
            break;
        }
        (at, param) = draw(rng, chain)?;
    }
    let node = &chain.nodes[at];
    let change = match (&node.model.params.get(param)?.ty, node.params.get(param)?) {
        (ParamTy::Backends(_), ParamValue::Backends(members)) => {
            let name = *members.get(rng.below(members.len()))?.columns.first()?;
            match rng.below(8) {
                0 => Change::RemoveBackend(name),
                1 => Change::AddBackend(vec![name.wrapping_add(100); members[0].columns.len()]),
                2 => {
                    let mut fewer = members.clone();
                    fewer.rotate_left(1);
                    fewer.pop();
                    Change::Set(ParamValue::Backends(fewer))
                }
                _ => Change::BackendUp(name, rng.one_in(2)),
            }
        }
        (ParamTy::Rules, ParamValue::Rules(set)) => {
            let number = rng.below(set.rules.len() + 2);
            match boundaries.rules.get(rng.below(boundaries.rules.len())) {
                _ if rng.one_in(8) => Change::Set(ParamValue::Rules(backwards(set))),
                Some(rule) if rng.one_in(2) => {
                    Change::AddRule(Some(number).filter(|_| !rng.one_in(4)), rule.clone())
                }
                _ => Change::RemoveRule(number),
            }
        }
        (ParamTy::Routes, ParamValue::Routes(table)) => {
            Change::Set(ParamValue::Routes(some_routes(rng, table)))
        }
        (ParamTy::Scalar(ty), ParamValue::Scalar(value)) => {
            Change::Set(ParamValue::Scalar(scalar(rng, *ty, *value)))
        }
        (ParamTy::Set(ty), ParamValue::Set(set)) => {
            Change::Set(ParamValue::Set(other_set(rng, *ty, set)))
        }
        (ParamTy::Pool(ty, _), ParamValue::Pool(set)) => {
            Change::Set(ParamValue::Pool(other_set(rng, *ty, set)))
        }
        (_, ParamValue::Strings(set)) => Change::Set(ParamValue::Strings(other_strings(rng, set))),
        (_, ParamValue::Str(text)) => Change::Set(ParamValue::Str(format!("{text}."))),
        (ParamTy::List(_), ParamValue::List(rows)) => {
            let mut rows = rows.clone();
            let by = rows.len().min(1);
            rows.rotate_left(by);
            if rng.one_in(3) {
                rows.pop();
            } else if rng.one_in(3) {
                rows.extend(rows.first().cloned());
            }
            Change::Set(ParamValue::List(rows))
        }
        _ => return None,
    };
    let node = u16::try_from(at).ok()?;
    Some(Control { time_ns, node, param: ParamId(u32::try_from(param).ok()?), change, line: None })
}

/// Whether the parameter is read for each packet.
fn is_asked(value: &ParamValue) -> bool {
    use ParamValue::{Backends, Routes, Rules, Strings};
    matches!(value, Rules(_) | Routes(_) | Backends(_) | Strings(_))
}

/// A set with some of the strings, and sometimes with a short one.
fn other_strings(rng: &mut Rng, set: &StringSet) -> StringSet {
    let mut entries = set.entries();
    entries.retain(|_| !rng.one_in(3));
    if rng.one_in(2) {
        entries.push(b"get".to_vec());
    }
    let made = match set.is_of_hosts() {
        true => StringSet::hosts(entries.iter().map(Vec::as_slice)),
        false => StringSet::exact(entries),
    };
    made.unwrap_or_else(|_| set.clone())
}

/// Draws a parameter of a function.
fn draw(rng: &mut Rng, chain: &Chain) -> Option<(usize, usize)> {
    let at = rng.below(chain.nodes.len());
    let params = &chain.nodes.get(at)?.params;
    let mut param = rng.below(params.len());
    // Functions have more scalars than tables, rules and lists.
    if matches!(params.get(param)?, ParamValue::Scalar(_)) && !rng.one_in(3) {
        param = rng.below(params.len());
    }
    Some((at, param))
}

/// Another value close to this one. Times keep their order of magnitude, because a timer of one
/// nanosecond would fire without end.
fn scalar(rng: &mut Rng, ty: Ty, value: Word) -> Word {
    let timed = matches!(ty.kind, Kind::Duration | Kind::Time);
    let other = match rng.below(6) {
        0 => value / 2 + 1,
        1 => value.saturating_mul(2),
        2 if !timed => 0,
        3 if !timed => value.saturating_sub(1),
        _ => value ^ Word::from(rng.byte() & 1),
    };
    other.min(ty.max())
}

/// The set without some members, or with additional ones.
fn other_set(rng: &mut Rng, ty: Ty, set: &IntervalSet) -> IntervalSet {
    let mut intervals = set.intervals().to_vec();
    match intervals.first_mut() {
        Some((lo, hi)) if *lo < *hi && rng.one_in(2) => *lo += 1,
        Some(_) if rng.one_in(4) => drop(intervals.remove(0)),
        Some((lo, _)) => *lo = lo.saturating_sub(1),
        None => intervals.push((0, ty.max().min(3))),
    }
    IntervalSet::new(intervals)
}

fn backwards(set: &RuleSet) -> RuleSet {
    let rules = set.rules.iter().rev().cloned().collect();
    RuleSet { rules, default_pass: !set.default_pass }
}

/// The table without some of its routes, and with other next hops for some.
fn some_routes(rng: &mut Rng, table: &RouteTable) -> RouteTable {
    let mut new = RouteTable::default();
    for (addr, len, hop) in table.iter4().filter(|_| !rng.one_in(4)).collect::<Vec<_>>() {
        new.insert4(addr, len, hop ^ u32::from(rng.one_in(4)));
    }
    for (addr, len, hop) in table.iter6().filter(|_| !rng.one_in(4)).collect::<Vec<_>>() {
        new.insert6(addr, len, hop ^ u32::from(rng.one_in(4)));
    }
    new
}
