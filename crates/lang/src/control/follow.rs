//! Follows the rules and backends of a chain through the changes of a control file, so that a line
//! is reported before the run if it cannot be applied at its time.

use crate::ast::Span;
use crate::diag::{Diagnostic, Diagnostics, codes};
use braid_externs::Backend as _;
use braid_ir::chain::{Chain, Change, Scheduled, When};
use braid_ir::model::{Kind, ParamTy, Word};
use braid_ir::value::{Backend, ParamValue};
use std::collections::{BTreeMap, BTreeSet};

/// The most backends that a message lists.
const MOST_LISTED: usize = 8;

/// A line of a control file.
#[derive(Clone, Debug)]
pub struct Line {
    /// The change.
    pub scheduled: Scheduled,
    /// The place of what stands behind the parameter.
    pub(super) place: Span,
}

/// Reports the lines that cannot be applied at their times, such as the removal of a rule that is
/// not there. The chain must be as it is before the first line.
///
/// If the time of the first packet (ns) is unknown, lines of both kinds of times have no order.
/// Parameters with such lines are left out.
pub fn follow(
    lines: &[Line],
    chain: &Chain,
    first_packet_ns: Option<u64>,
    diags: &mut Diagnostics,
) {
    let time = |line: &Line| match (line.scheduled.when, first_packet_ns) {
        (_, Some(first)) => line.scheduled.resolve(first).time_ns,
        (When::At(time) | When::AfterFirst(time), None) => time,
    };
    let left_out = if first_packet_ns.is_none() { mixed(lines) } else { BTreeSet::new() };
    let mut ordered: Vec<&Line> =
        lines.iter().filter(|line| !left_out.contains(&parameter(line))).collect();
    ordered.sort_by_key(|line| time(line));
    let mut all = BTreeMap::new();
    for line in ordered {
        let (node, param) = parameter(line);
        let Some(function) = chain.nodes.get(usize::from(node)) else { continue };
        let at = param as usize;
        let Some((decl, value)) = function.model.params.get(at).zip(function.params.get(at)) else {
            continue;
        };
        let content = all.entry((node, param)).or_insert_with(|| Content::of(value, &decl.ty));
        let name = format!("{}.{}", function.name, decl.name);
        if let Err(wrong) = content.change(&name, &line.scheduled.change, line.place) {
            diags.push(*wrong);
        }
    }
}

/// The function and the parameter of a line.
fn parameter(line: &Line) -> (u16, u32) {
    (line.scheduled.node, line.scheduled.param.0)
}

/// The parameters with lines of both kinds of times.
fn mixed(lines: &[Line]) -> BTreeSet<(u16, u32)> {
    let is_relative = |line: &Line| matches!(line.scheduled.when, When::AfterFirst(_));
    let with = |relative: bool| -> BTreeSet<_> {
        lines.iter().filter(|line| is_relative(line) == relative).map(parameter).collect()
    };
    with(true).intersection(&with(false)).copied().collect()
}

/// What a parameter has at a time.
enum Content {
    /// This many rules.
    Rules(usize),
    /// Backends, named by values of this kind.
    Backends(Vec<Backend>, Kind),
    /// A value that lines can only replace.
    Other,
}

type Wrong = Box<Diagnostic>;

impl Content {
    fn of(value: &ParamValue, ty: &ParamTy) -> Self {
        match (value, ty) {
            (ParamValue::Rules(set), _) => Self::Rules(set.rules.len()),
            (ParamValue::Backends(all), ParamTy::Backends(columns)) => {
                let kind = columns.first().map_or(Kind::Uint, |(_, ty)| ty.kind);
                Self::Backends(all.clone(), kind)
            }
            _ => Self::Other,
        }
    }

    /// Applies a change, unless it cannot be applied.
    fn change(&mut self, name: &str, change: &Change, place: Span) -> Result<(), Wrong> {
        match (self, change) {
            (Self::Rules(count), Change::Set(ParamValue::Rules(set))) => *count = set.rules.len(),
            (Self::Rules(count), Change::AddRule(at, _)) => {
                may_add(name, *count, *at, place)?;
                *count += 1;
            }
            (Self::Rules(count), Change::RemoveRule(at)) => {
                may_remove(name, *count, *at, place)?;
                *count -= 1;
            }
            (Self::Backends(all, _), Change::Set(ParamValue::Backends(new))) => {
                all.clone_from(new);
            }
            (Self::Backends(all, kind), change) => change_backend(name, all, *kind, change, place)?,
            _ => {}
        }
        Ok(())
    }
}

/// How many rules a parameter has, with their numbers.
fn has(count: usize) -> String {
    match count {
        0 => "it has no rules".to_owned(),
        1 => "it has 1 rule, with the number 0".to_owned(),
        _ => format!("it has {count} rules, with the numbers 0 to {}", count - 1),
    }
}

fn may_add(name: &str, count: usize, at: Option<usize>, place: Span) -> Result<(), Wrong> {
    let Some(at) = at.filter(|at| *at > count) else { return Ok(()) };
    let message = format!("`{name}` has no place {at} for a rule at that time: {}", has(count));
    let wrong = Diagnostic::new(codes::CONTROL_PLACE, message, place, "beyond the end");
    Err(Box::new(wrong.help(format!("`at {count}`, or no `at`, adds the rule at the end"))))
}

fn may_remove(name: &str, count: usize, at: usize, place: Span) -> Result<(), Wrong> {
    if at < count {
        return Ok(());
    }
    let message = format!("`{name}` has no rule {at} at that time: {}", has(count));
    let wrong = Diagnostic::new(codes::CONTROL_PLACE, message, place, "no such rule");
    let last = count.checked_sub(1);
    let help = last.map(|last| format!("`remove-rule {name} {last}` removes the last rule"));
    Err(Box::new(wrong.help_if(help)))
}

fn change_backend(
    name: &str,
    all: &mut Vec<Backend>,
    kind: Kind,
    change: &Change,
    place: Span,
) -> Result<(), Wrong> {
    let is = |one: &Backend, wanted: Word| !one.is_removed() && one.name() == wanted;
    match change {
        Change::AddBackend(columns) => {
            let new = Backend::up(columns.clone());
            if all.iter().any(|one| is(one, new.name())) {
                let shown = kind.show(new.name());
                let message = format!("`{name}` already has a backend `{shown}` at that time");
                let wrong = Diagnostic::new(codes::CONTROL_PLACE, message, place, "a second one");
                let help = format!("`backend {name} remove {shown}` before this line removes it");
                return Err(Box::new(wrong.help(help)));
            }
            all.push(new);
        }
        Change::BackendUp(wanted, _) | Change::RemoveBackend(wanted) => {
            let Some(at) = all.iter().position(|one| is(one, *wanted)) else {
                let shown = kind.show(*wanted);
                let message = format!("`{name}` has no backend `{shown}` at that time");
                let wrong = Diagnostic::new(codes::CONTROL_PLACE, message, place, "unknown");
                return Err(Box::new(wrong.note(listed(all, kind))));
            };
            if matches!(change, Change::RemoveBackend(_)) {
                all.remove(at);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The backends that there are.
fn listed(all: &[Backend], kind: Kind) -> String {
    let names = all.iter().filter(|one| !one.is_removed()).map(|one| kind.show(one.name()));
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST_LISTED);
    names.truncate(MOST_LISTED);
    match (names.is_empty(), more) {
        (true, _) => "it has no backends".to_owned(),
        (_, 0) => format!("its backends are {}", names.join(", ")),
        _ => format!("its backends are {} and {more} more", names.join(", ")),
    }
}
